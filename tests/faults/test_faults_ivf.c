/* An index when memory or the driver fails, at every allocation and call in turn: a failed call leaves collection and index as
 * they were, nothing leaks, and the call can be made again. */
#include <string.h>

#include "base/memory.h"
#include "gpu/backend.h"
#include "gpu/driver/emulated/emulated.h"
#include "gpu/driver/emulated/parts.h"
#include "support/data/indexed.h"
#include "support/devices.h"
#include "support/fault_counts.h"
#include "support/faulty_driver.h"
#include "vectors/ivf/ivf.h"

enum { CALLS_MAX = 5000, DIM = 20, ROWS = 140, NLIST = 6 };

/* ---- what is done to an indexed collection ----------------------------------------------------------------------------------
 */

static ww_status build_again(ww_collection *c)
{
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = 9;
    config.iterations = 2;
    return ww_collection_build_ivf(c, &config);
}

static ww_status search_lists(ww_collection *c)
{
    float queries[3 * DIM];
    test_random random = {11};
    ww_query asked = ww_query_default();
    ww_results *results = NULL;
    random_normals(&random, queries, sizeof queries / sizeof queries[0]);
    asked.queries = queries;
    asked.query_count = 3;
    asked.dim = DIM;
    asked.k = 7;
    asked.nprobe = 2;
    asked.fetch = WW_FETCH_IDS;
    const ww_status status = ww_collection_query(c, &asked, &results);
    ww_results_destroy(results);
    return status;
}

static ww_status calibrate(ww_collection *c)
{
    float queries[299 * DIM];
    test_random random = {12};
    ww_calibrate_config config = ww_calibrate_config_default();
    random_normals(&random, queries, sizeof queries / sizeof queries[0]);
    config.queries = queries;
    config.query_count = 299;
    return ww_collection_calibrate(c, &config);
}

static ww_status write_rows(ww_collection *c, int64_t count, const char *prefix, int64_t first)
{
    test_random random = {9};
    test_rows rows = test_rows_make(&random, count, DIM, prefix, first);
    const ww_status status = ww_collection_upsert(c, &rows.rows);
    test_rows_free(&rows);
    return status;
}

static ww_status add_few(ww_collection *c)
{
    return write_rows(c, 20, "more", 0);
}

static ww_status replace_some(ww_collection *c)
{
    return write_rows(c, 30, "row", ROWS - 15);
}

static ww_status compact(ww_collection *c)
{
    return ww_collection_compact(c, NULL, NULL);
}

static ww_status move_to_the_cpu(ww_collection *c)
{
    ww_device *cpu = NULL;
    ww_status status = ww_device_open("cpu", &cpu);
    if (status == WW_OK)
        status = ww_collection_move(c, cpu);
    ww_device_close(cpu);
    return status;
}

typedef ww_status (*operation)(ww_collection *collection);
static const operation operations[] = {build_again, search_lists, calibrate, add_few, replace_some, compact, move_to_the_cpu};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static ww_collection *make_and_index(ww_device *device)
{
    test_random random = {8};
    ww_collection *c = collection_make(device, DIM, WW_COSINE);
    const char *removed = "row5";
    collection_fill(c, &random, ROWS, DIM, "row", 0);
    index_build(c, NLIST);
    CHECK_OK(ww_collection_remove(c, &removed, 1));
    return c;
}

/* Is the index as that of a collection to which nothing was done? */
static void check_index_unchanged(ww_collection *c)
{
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_collection *untouched = make_and_index(cpu);
    check_same_index(c, untouched);
    check_index_is_whole(c);
    ww_collection_destroy(untouched);
    ww_device_close(cpu);
}

/* ---- memory -----------------------------------------------------------------------------------------------------------------
 */

/* Fails the n-th allocation of the operation; true if there was none to fail. */
static bool fail_allocation(ww_device *device, operation work, int64_t n)
{
    ww_collection *c = make_and_index(device);
    CHECK_OK(search_lists(c)); /* the lists are on the device and stay */
    snapshot before = snapshot_take(c);
    const int64_t blocks = memory_blocks_held();
    memory_fail_at(n);
    const ww_status status = work(c);
    memory_fail_at(0);
    if (status == WW_OK) {
        snapshot_free(&before);
    } else {
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(memory_blocks_held(), blocks);
        check_unchanged(c, &before);
        check_index_unchanged(c);
        CHECK_OK(work(c));
    }
    check_index_is_whole(c);
    ww_collection_destroy(c);
    return status == WW_OK;
}

static void every_operation_survives_a_failure_of_every_allocation(void **state)
{
    for (int i = 0; i < OPERATIONS; i++) {
        int64_t n = 1;
        while (n < CALLS_MAX && !fail_allocation(*state, operations[i], n))
            n = device_is_slow(*state) && !test_is_long() ? n * 2 : fault_next(n);
        assert_true(n > 1);
    }
}

/* Lists for which there is no memory are read from all rows. */
static void lists_are_brought_to_a_device_whole_or_not_at_all(void **state)
{
    for (int64_t n = 1; n < 40; n = fault_next(n)) {
        ww_collection *c = make_and_index(*state);
        memory_fail_at(n);
        const ww_status status = search_lists(c);
        memory_fail_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        CHECK_OK(search_lists(c));
        CHECK_OK(add_few(c));
        CHECK_OK(search_lists(c));
        const bool holds = c->device->backend->lists_push != NULL;
        assert_int_equal(c->index->held != NULL, holds);
        for (int64_t l = 0; l < c->index->nlist; l++)
            assert_int_equal(c->index->lists[l].held, holds ? c->index->lists[l].count : 0);
        check_index_is_whole(c);
        ww_collection_destroy(c);
    }
}

/* ---- the driver -------------------------------------------------------------------------------------------------------------
 */

/* Fails the n-th call of the operation; true if there was such a call. */
static bool fail_call(operation work, int64_t n, int number)
{
    ww_device *device = NULL;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
    ww_collection *c = make_and_index(device);
    snapshot before = snapshot_take(c);
    faulty_arm(&emulated_driver, n, number, NULL);
    const ww_status status = work(c);
    const bool failed = faulty_victim() != NULL;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    if (status == WW_OK) {
        snapshot_free(&before);
    } else {
        check_unchanged(c, &before);
        check_index_unchanged(c);
        CHECK_OK(work(c));
    }
    check_index_is_whole(c);
    ww_collection_destroy(c);
    ww_device_close(device);
    return failed;
}

static void every_operation_survives_a_failure_of_every_driver_call(void **state)
{
    (void)state;
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_INVALID_VALUE};
    for (int i = 0; i < OPERATIONS; i++) {
        int64_t n = 1;
        while (n < CALLS_MAX && fail_call(operations[i], n, numbers[n % 2]))
            n = test_is_long() ? n + 1 : n * 3 + 1;
        assert_true(n > 2 && n < CALLS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest memory[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_allocation),
        cmocka_unit_test(lists_are_brought_to_a_device_whole_or_not_at_all),
    };
    const struct CMUnitTest driver[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_driver_call),
    };
    const int failures = cmocka_run_group_tests_name("ivf and the driver", driver, NULL, NULL);
    return failures + RUN_ON_EVERY_DEVICE("ivf and memory", memory);
}
