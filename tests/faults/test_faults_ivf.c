/* An index when memory or the driver fails, at every allocation and call in turn: a failed call leaves collection and index as
 * they were, nothing leaks, and the call can be made again. */
#include "device/backend.h"
#include "support/data/indexed.h"
#include "support/devices.h"
#include "support/faults/collection_faults.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "vectors/ivf/ivf.h"

enum { DIM = 20, ROWS = 140, NLIST = 6 };

/* ---- what is done to an indexed collection ------------------------------------------------------------------------------- */

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

/* By lists, although there are few rows: also the lists that are within reach of the nearest hits. */
static ww_status search_exactly(ww_collection *c)
{
    float query[DIM];
    int64_t rows[2];
    float scores[2];
    test_random random = {8};
    ww_query asked = ww_query_default();
    random_normals(&random, query, DIM);
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = 2;
    const tuning_choice before = c->device->tuning.exact_lists;
    c->device->tuning.exact_lists = TUNING_ALWAYS;
    const ww_status status = ww_collection_search(c, &asked, rows, scores);
    c->device->tuning.exact_lists = before;
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

/* Checks that the index equals that of an unchanged collection. */
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

static const faulty_operation operations[] = {
    {build_again, false},  {search_lists, false}, {search_exactly, false},  {calibrate, false}, {add_few, false},
    {replace_some, false}, {compact, false},      {move_to_the_cpu, false}, {NULL, false},
};

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static ww_collection *make_and_search(ww_device *device)
{
    ww_collection *c = make_and_index(device);
    CHECK_OK(search_lists(c)); /* the lists are on the device and stay */
    return c;
}

static void every_operation_survives_a_failure_of_every_allocation(void **state)
{
    fail_every_allocation(&(collection_faults){operations, make_and_search, check_index_unchanged, check_index_is_whole},
                          *state);
}

/* Lists stay unchanged if there is no memory to merge them. */
static void merging_survives_a_failure_of_every_allocation(void **state)
{
    for (int64_t n = 1; n < (device_is_slow(*state) ? 20 : 120); n = fault_next(n)) {
        ww_collection *c = make_and_index(*state);
        for (int64_t row = 10; row < ROWS; row++) {
            char id[32];
            const char *gone[] = {id};
            snprintf(id, sizeof id, "row%lld", (long long)row);
            CHECK_OK(ww_collection_remove(c, gone, 1));
        }
        const int64_t lists = c->index->nlist;
        fail_allocation_at(n);
        const ww_status status = compact(c);
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        check_index_is_whole(c);
        CHECK_OK(search_lists(c));
        CHECK_OK(write_rows(c, 1, "row", 1)); /* a row is replaced, so there is something to compact */
        CHECK_OK(compact(c));
        assert_true(c->index->nlist < lists);
        check_index_is_whole(c);
        ww_collection_destroy(c);
    }
}

/* If there is no memory for the lists, all rows are read. */
static void lists_are_brought_to_a_device_whole_or_not_at_all(void **state)
{
    for (int64_t n = 1; n < 40; n = fault_next(n)) {
        ww_collection *c = make_and_index(*state);
        fail_allocation_at(n);
        const ww_status status = search_lists(c);
        fail_allocation_at(0);
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

/* ---- the driver ---------------------------------------------------------------------------------------------------------- */

static void every_operation_survives_a_failure_of_every_driver_call(void **state)
{
    (void)state;
    fail_every_driver_call(&(collection_faults){operations, make_and_index, check_index_unchanged, check_index_is_whole});
}

int main(void)
{
    const struct CMUnitTest memory[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_allocation),
        cmocka_unit_test(merging_survives_a_failure_of_every_allocation),
        cmocka_unit_test(lists_are_brought_to_a_device_whole_or_not_at_all),
    };
    const struct CMUnitTest driver[] = {
        cmocka_unit_test(every_operation_survives_a_failure_of_every_driver_call),
    };
    const int failures = cmocka_run_group_tests_name("ivf and the driver", driver, NULL, NULL);
    return failures + RUN_ON_EVERY_DEVICE("ivf and memory", memory);
}
