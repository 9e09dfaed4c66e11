/* The command on a group: it writes the files and answers of the CPU, and describes the group. */
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/data/random.h"

enum { ROWS = 400, DIM = 19, QUERIES = 6 };

static int make_files(void **state)
{
    static float base[ROWS][DIM], queries[QUERIES][DIM];
    test_random random = {21};
    if (scratch_setup(state) != 0)
        return -1;
    random_normals(&random, base[0], (int64_t)ROWS * DIM);
    random_normals(&random, queries[0], (int64_t)QUERIES * DIM);
    memcpy(base[390], base[10], sizeof base[0]); /* a tie, on two members */
    memcpy(queries[1], base[10], sizeof base[0]);
    CHECK_OK(ww_matrix_write_f32(scratch_path("base.fbin"), base[0], ROWS, DIM));
    CHECK_OK(ww_matrix_write_f32(scratch_path("queries.fbin"), queries[0], QUERIES, DIM));
    return 0;
}

static char *neighbors(const char *device, const char *name, size_t *size)
{
    char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    COMMAND_SAYS(0, "", "search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"), "-k", "5",
                 "--device", device, "--out-neighbors", path, "--quiet");
    return scratch_content(path, size);
}

static void a_search_on_a_group_writes_the_same_bytes(void **state)
{
    (void)state;
    static const char *const groups[] = {"cpu+emulator:32", "emulator:32+emulator:64", "cpu+cpu+cpu"};
    size_t expected_size = 0, size = 0;
    char *expected = neighbors("cpu", "cpu.ibin", &expected_size);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        char name[32];
        snprintf(name, sizeof name, "group%zu.ibin", i);
        char *found = neighbors(groups[i], name, &size);
        assert_int_equal(size, expected_size);
        assert_memory_equal(found, expected, size);
        free(found);
    }
    free(expected);
}

static void rows_on_the_host_give_the_same_bytes(void **state)
{
    (void)state;
    char far[SCRATCH_PATH_BYTES];
    size_t near_size = 0, far_size = 0;
    char *near = neighbors("emulator:32", "near.ibin", &near_size);
    snprintf(far, sizeof far, "%s", scratch_path("far.ibin"));
    COMMAND_SAYS(0, "", "search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"), "-k", "5",
                 "--device", "emulator:32", "--rows-on", "host", "--out-neighbors", far, "--quiet");
    char *found = scratch_content(far, &far_size);
    assert_int_equal(far_size, near_size);
    assert_memory_equal(found, near, near_size);
    COMMAND_SAYS(3, "screen must be", "search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"),
                 "--device", "emulator:32", "--rows-on", "host", "--screen", "none", "--quiet");
    COMMAND_SAYS(3, "screen must be", "bench", "--rows", "100", "--dim", "8", "--queries", "2", "--repeat", "1", "--device",
                 "emulator:32", "--rows-on", "host", "--screen", "none", "--quiet");
    free(near);
    free(found);
}

static void devices_shows_a_group_with_the_shares_of_its_members(void **state)
{
    (void)state;
    json_t *shown = COMMAND_JSON("devices", "--device", "cpu+cpu", "--json");
    const json_t *device = json_array_get(json_object_get(shown, "devices"), 0);
    assert_string_equal(json_string_value(json_object_get(device, "id")), "cpu+cpu");
    assert_int_equal(json_integer_value(json_object_get(device, "member_count")), 2);
    assert_string_equal(json_string_value(json_object_get(device, "members")), "cpu 50.0%, cpu 50.0%");
    json_decref(shown);
    COMMAND_SAYS(0, "cpu 50.0%, cpu 50.0%", "devices", "--device", "cpu+cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_on_a_group_writes_the_same_bytes),
        cmocka_unit_test(rows_on_the_host_give_the_same_bytes),
        cmocka_unit_test(devices_shows_a_group_with_the_shares_of_its_members),
    };
    return cmocka_run_group_tests_name("the command on groups", tests, make_files, scratch_teardown);
}
