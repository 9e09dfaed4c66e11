/* A GPU that is lost in the middle of a search: a collection with a host copy moves to another device and answers as before;
 * one without reports what is left. The device is the emulator with a driver that fails on demand. */
#include "support/collections.h"

#include <string.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"

enum { DIM = 20, ROWS = 130, QUERIES = 3, K = 6, CALLS_MAX = 5000 };

typedef struct answers {
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
} answers;

static ww_status search(ww_collection *c, answers *out)
{
    float queries[QUERIES * DIM];
    test_random random = {11};
    random_normals(&random, queries, QUERIES * DIM);
    ww_query asked = ww_query_default();
    asked.queries = queries;
    asked.query_count = QUERIES;
    asked.dim = DIM;
    asked.k = K;
    return ww_collection_search(c, &asked, out->rows, out->scores);
}

static ww_collection *make_and_fill(ww_device *device, int32_t keep_host_copy)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "lost";
    config.dim = DIM;
    config.keep_host_copy = keep_host_copy;
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, &config, &c));
    test_random random = {8};
    collection_fill(c, &random, ROWS, DIM, "row", 0);
    const char *removed = "row5";
    CHECK_OK(ww_collection_remove(c, &removed, 1));
    return c;
}

static void check_nothing_left(int64_t host_blocks)
{
    emulated_counts counts;
    emulated_count(&counts);
    assert_int_equal(counts.contexts + counts.blocks + counts.pinned + counts.streams + counts.events + counts.modules, 0);
    assert_int_equal(blocks_held(), host_blocks);
}

/* Loses the device at the n-th call of a search; false if the search makes fewer. */
static bool lose_and_leave(int64_t n, int32_t keep_host_copy, ww_device *cpu)
{
    ww_device *device = NULL;
    answers expected = {0}, found = {0};
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
    ww_collection *c = make_and_fill(device, keep_host_copy);
    snapshot before = snapshot_take(c);
    CHECK_OK(search(c, &expected));
    faulty_arm(&emulated_driver, n, EMULATED_LAUNCH_FAILED, NULL);
    (void)search(c, &found);
    const bool lost = faulty_victim() != NULL;
    if (lost) {
        CHECK_FAILS(WW_DRIVER_ERROR, search(c, &found));
        int64_t row = -1;
        CHECK_OK(ww_collection_find(c, "row77", &row));
        assert_int_equal(row, 77);
    } else {
        faulty_arm(&emulated_driver, 0, 0, NULL);
    }
    if (lost && !keep_host_copy) {
        CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_move(c, cpu));
        assert_non_null(strstr(ww_error_message(), "device lost"));
        assert_non_null(strstr(ww_error_message(), "keep_host_copy"));
    } else {
        CHECK_OK(ww_collection_move(c, cpu));
        CHECK_OK(search(c, &found));
        assert_memory_equal(&found, &expected, sizeof found);
        snapshot now = snapshot_take(c);
        assert_true(snapshot_equal_but_figures(&before, &now));
        snapshot_free(&now);
    }
    snapshot_free(&before);
    ww_collection_destroy(c);
    ww_device_close(device);
    return lost;
}

static void lose_at_every_call(int32_t keep_host_copy)
{
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    const int64_t blocks = blocks_held();
    int64_t n = 1;
    for (; n < CALLS_MAX && lose_and_leave(n, keep_host_copy, cpu); n++)
        check_nothing_left(blocks);
    assert_true(n > 5 && n < CALLS_MAX);
    ww_device_close(cpu);
}

static void a_collection_with_a_host_copy_moves_away_from_a_lost_device(void **state)
{
    (void)state;
    lose_at_every_call(1);
}

static void a_collection_without_one_keeps_ids_and_payloads(void **state)
{
    (void)state;
    lose_at_every_call(0);
}

static void a_lost_device_opened_again_takes_the_collection_back(void **state)
{
    (void)state;
    ww_device *lost = NULL, *again = NULL;
    answers expected = {0}, found = {0};
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, 0, &lost));
    ww_collection *c = make_and_fill(lost, 1);
    CHECK_OK(search(c, &expected));
    faulty_arm(&emulated_driver, 1, EMULATED_LAUNCH_FAILED, "launch");
    CHECK_FAILS(WW_DRIVER_ERROR, search(c, &found));
    ww_device_close(lost); /* the collection still uses it */
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(ww_device_open("emulator:32", &again));
    CHECK_OK(ww_collection_move(c, again));
    CHECK_OK(search(c, &found));
    assert_memory_equal(&found, &expected, sizeof found);
    ww_collection_destroy(c);
    ww_device_close(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collection_with_a_host_copy_moves_away_from_a_lost_device),
        cmocka_unit_test(a_collection_without_one_keeps_ids_and_payloads),
        cmocka_unit_test(a_lost_device_opened_again_takes_the_collection_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
