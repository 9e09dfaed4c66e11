/* `warpwave bench --parity`: its lines are those of docs/evidence/parity-lines.tsv, whatever computes them. */
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/devices.h"
#include "support/scratch.h"

enum { KINDS = 4 };
static const char *const kinds[KINDS] = {"searches", "tensors", "products", "model"};

/* The digests of the table's first machine; every other line of it has the same. */
static void read_table(char digests[KINDS][32])
{
    size_t bytes = 0;
    int machines = 0;
    char *table = scratch_content(SOURCE_DIR "/docs/evidence/parity-lines.tsv", &bytes), *rest = NULL;
    for (char *line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char found[KINDS][32];
        if (line[0] == '#' || strncmp(line, "machine\t", 8) == 0)
            continue;
        if (sscanf(line, "%*[^\t]\t%*[^\t]\t%*[^\t]\t%*[^\t]\t%31[0-9a-f]\t%31[0-9a-f]\t%31[0-9a-f]\t%31[0-9a-f]", found[0],
                   found[1], found[2], found[3]) != KINDS)
            fail_msg("not a line of the table: %s", line);
        if (machines++ == 0)
            memcpy(digests, found, sizeof found);
        for (int i = 0; i < KINDS; i++)
            assert_string_equal(found[i], digests[i]);
    }
    assert_true(machines > 0);
    free(table);
}

static void check_device(const char *device, char digests[KINDS][32])
{
    json_t *report = COMMAND_JSON("bench", "--parity", "--json", "--device", device);
    for (int i = 0; i < KINDS; i++) {
        const json_t *line = json_object_get(report, kinds[i]);
        if (line || i < KINDS - 1) /* a command without models has no line for one */
            assert_string_equal(json_string_value(line), digests[i]);
    }
    json_decref(report);
}

static void the_lines_are_the_same_with_every_instruction_set(void **state)
{
    (void)state;
    static const char *const sets[] = {"scalar", "neon", "avx2", "avx512", "amx"};
    char digests[KINDS][32];
    int here = 0;
    read_table(digests);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        setenv("WARPWAVE_ISA", sets[i], 1);
        command_result asked = COMMAND_RUN("devices", "--device", "cpu");
        if (asked.code == 0) {
            check_device("cpu", digests);
            here++;
        }
        command_free(&asked);
    }
    unsetenv("WARPWAVE_ISA");
    assert_true(here >= 2);
}

static void the_lines_are_the_same_on_emulated_devices(void **state)
{
    (void)state;
    char digests[KINDS][32];
    if (test_is_short()) {
        printf("SKIP: ten seconds for each device; .ci/run tests them\n");
        skip();
    }
    read_table(digests);
    check_device("emulator:32", digests);
    check_device("emulator:64", digests);
}

static void the_text_has_a_line_for_each_kind(void **state)
{
    (void)state;
    char digests[KINDS][32], line[160];
    read_table(digests);
    command_result result = COMMAND_RUN("bench", "--parity", "--device", "cpu");
    assert_int_equal(result.code, 0);
    for (int i = 0; i < KINDS - 1; i++) {
        snprintf(line, sizeof line, "%-9s %s\n", kinds[i], digests[i]);
        assert_non_null(strstr(result.out, line));
    }
    const bool has_model = strstr(result.out, "\nmodel ") != NULL;
    command_free(&result);
    COMMAND_SAYS(2, "--parity measures nothing", "bench", "--parity", "--ivf");
    setenv("TMPDIR", "/proc/nonexistent", 1);
    if (has_model)
        COMMAND_SAYS(3, "TMPDIR names another place", "bench", "--parity", "--device", "cpu");
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lines_are_the_same_with_every_instruction_set),
        cmocka_unit_test(the_lines_are_the_same_on_emulated_devices),
        cmocka_unit_test(the_text_has_a_line_for_each_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
