/* Collections over a driver whose calls fail in turn: a failed operation leaves the collection as it was and the device
 * working; a device that is lost says so from then on, and nothing crashes or leaks. */
#include "support/collections.h"

#include <stdlib.h>
#include <string.h>

#include <warpwave/tensor.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"
#include "vectors/collection.h"

enum { CALLS_MAX = 5000, DIM = 20, ROWS = 130 };

typedef ww_status (*operation)(ww_collection *collection);

static bool was_failed[64];

static ww_status add_more(ww_collection *collection)
{
    test_random random = {9};
    test_rows rows = test_rows_make(&random, 150, DIM, "more", 0);
    const ww_status status = ww_collection_add(collection, &rows.rows);
    test_rows_free(&rows);
    return status;
}

static ww_status replace_some(ww_collection *collection)
{
    test_random random = {10};
    test_rows rows = test_rows_make(&random, 70, DIM, "row", ROWS - 35);
    const ww_status status = ww_collection_upsert(collection, &rows.rows);
    test_rows_free(&rows);
    return status;
}

/* Upserts rows that are on the device, some with existing ids, and every third with a payload. */
static ww_status replace_by_a_tensor(ww_collection *collection)
{
    test_random random = {14};
    test_rows rows = test_rows_make(&random, 70, DIM, "row", ROWS - 35);
    ww_tensor tensor = {0};
    ww_status status = ww_tensor_from_host(collection->device, WW_F32, 2, (int64_t[]){70, DIM}, rows.vectors, &tensor);
    rows.rows.vectors = NULL;
    rows.rows.tensor = &tensor;
    if (status == WW_OK)
        status = ww_collection_upsert(collection, &rows.rows);
    ww_tensor_release(&tensor);
    test_rows_free(&rows);
    return status;
}

static ww_status search_with_a_tensor(ww_collection *collection)
{
    float queries[3 * DIM];
    int64_t rows[3 * 7];
    float scores[3 * 7];
    test_random random = {15};
    ww_query asked = ww_query_default();
    ww_tensor tensor = {0};
    random_normals(&random, queries, sizeof queries / sizeof queries[0]);
    ww_status status = ww_tensor_from_host(collection->device, WW_F32, 2, (int64_t[]){3, DIM}, queries, &tensor);
    asked.query_tensor = &tensor;
    asked.k = 7;
    if (status == WW_OK)
        status = ww_collection_search(collection, &asked, rows, scores);
    ww_tensor_release(&tensor);
    return status;
}

static ww_status remove_some(ww_collection *collection)
{
    static const char *const ids[] = {"row3", "row77", "row129"};
    return ww_collection_remove(collection, ids, 3);
}

static ww_status compact(ww_collection *collection)
{
    return ww_collection_compact(collection, NULL, NULL);
}

static ww_status reserve(ww_collection *collection)
{
    return ww_collection_reserve(collection, 1000);
}

static ww_status search(ww_collection *collection)
{
    float queries[3 * DIM];
    int64_t rows[3 * 7];
    float scores[3 * 7];
    test_random random = {11};
    ww_query asked = ww_query_default();
    random_normals(&random, queries, sizeof queries / sizeof queries[0]);
    asked.queries = queries;
    asked.query_count = 3;
    asked.dim = DIM;
    asked.k = 7;
    return ww_collection_search(collection, &asked, rows, scores);
}

/* More rows than are read one by one, so that the device gathers them. */
static ww_status get_many(ww_collection *collection)
{
    static const char *const ids[] = {"row1", "row77", "row0", "row129", "row64", "row63", "row2", "row9", "row8", "row7"};
    ww_get asked = ww_get_default();
    asked.ids = ids;
    asked.count = sizeof ids / sizeof *ids;
    asked.fetch = WW_FETCH_VECTORS;
    ww_results *results = NULL;
    const ww_status status = ww_collection_get(collection, &asked, &results);
    ww_results_destroy(results);
    return status;
}

/* A range of some rows and of all rows, with room for only a few at a time. */
static ww_status range_within(ww_collection *collection, float bound)
{
    float queries[3 * DIM];
    test_random random = {11};
    random_normals(&random, queries, sizeof queries / sizeof queries[0]);
    ww_query asked = ww_query_default();
    asked.mode = WW_QUERY_RANGE;
    asked.queries = queries;
    asked.query_count = 3;
    asked.dim = DIM;
    asked.bound = bound;
    asked.limit = 1000;
    asked.fetch = WW_FETCH_IDS | WW_FETCH_VECTORS;
    ww_results *results = NULL;
    const ww_status status = ww_collection_query(collection, &asked, &results);
    ww_results_destroy(results);
    return status;
}

static ww_status range_of_some(ww_collection *collection)
{
    return range_within(collection, 0.4f);
}

static ww_status range_of_all(ww_collection *collection)
{
    return range_within(collection, -2.0f);
}

static ww_status get(ww_collection *collection)
{
    float vector[DIM];
    return ww_collection_vector(collection, 100, vector);
}

static void check_nothing_left(int64_t host_blocks)
{
    emulated_counts counts;
    emulated_count(&counts);
    assert_int_equal(counts.contexts + counts.blocks + counts.pinned + counts.streams + counts.events + counts.modules, 0);
    assert_int_equal(blocks_held(), host_blocks);
}

static ww_collection *make_and_fill(ww_device *device)
{
    test_random random = {8};
    ww_collection *collection = collection_make(device, DIM, WW_COSINE);
    collection_fill(collection, &random, ROWS, DIM, "row", 0);
    const char *removed = "row5";
    CHECK_OK(ww_collection_remove(collection, &removed, 1));
    return collection;
}

/* Fails the n-th call of the operation; true if there was such a call. */
static bool fail_call(operation work, int64_t n, int number)
{
    ww_device *device = NULL;
    const bool lost = emulated_driver.error_class(number) == DRIVER_ERROR_LOST;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
    ww_collection *collection = make_and_fill(device);
    snapshot before = snapshot_take(collection);
    faulty_arm(&emulated_driver, n, number, NULL);
    const ww_status status = work(collection);
    const char *victim = faulty_victim();
    for (int32_t i = 0; victim != NULL && faulty_function(i) != NULL; i++)
        was_failed[i] |= strcmp(victim, faulty_function(i)) == 0;
    if (victim != NULL && lost) {
        CHECK_FAILS(WW_DRIVER_ERROR, search(collection));
        assert_non_null(strstr(ww_error_message(), "device lost"));
        snapshot_free(&before);
    } else {
        faulty_arm(&emulated_driver, 0, 0, NULL);
        if (status != WW_OK)
            check_unchanged(collection, &before);
        else
            snapshot_free(&before);
        CHECK_OK(status != WW_OK ? work(collection) : search(collection));
    }
    ww_collection_destroy(collection);
    ww_device_close(device);
    return victim != NULL;
}

/* In each of three ways; in the short form in one of them, alternately. */
static void fail_each_call(operation work)
{
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_INVALID_VALUE, EMULATED_LAUNCH_FAILED};
    const int64_t host_blocks = blocks_held();
    const bool by_turns = TEST_INSTRUMENTED || !test_is_long();
    for (int32_t kind = 0; kind < (by_turns ? 1 : 3); kind++) {
        int64_t n = 1, turn = 1;
        while (n < CALLS_MAX && fail_call(work, n, numbers[by_turns ? turn % 3 : kind])) {
            check_nothing_left(host_blocks);
            n = fault_after(n);
            turn++;
        }
        assert_true(n > 2 && n < CALLS_MAX);
    }
}

static void a_failed_add_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(add_more);
}

static void a_failed_upsert_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(replace_some);
}

static void a_failed_upsert_of_a_tensor_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(replace_by_a_tensor);
}

static void a_failed_search_with_a_tensor_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(search_with_a_tensor);
}

static void a_failed_remove_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(remove_some);
}

static void a_failed_compact_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(compact);
}

static void a_failed_reserve_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(reserve);
}

static void a_failed_search_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(search);
}

static void a_failed_range_search_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(range_of_some);
    fail_each_call(range_of_all);
}

static void a_failed_get_of_many_rows_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(get_many);
}

static void a_failed_get_changes_nothing(void **state)
{
    (void)state;
    fail_each_call(get);
}

static void launches_were_among_the_failures(void **state)
{
    (void)state;
    for (int32_t i = 0; faulty_function(i) != NULL; i++)
        if (strcmp(faulty_function(i), "launch") == 0 || strcmp(faulty_function(i), "memory_alloc") == 0)
            assert_true(was_failed[i]);
}

static void memory_that_runs_out_in_an_add_leaves_a_collection_that_works(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_status status = WW_OK;
    test_random random = {12};
    emulated_set_memory((3 << 20) + (200 << 10)); /* the remaining memory is enough to search the rows */
    CHECK_OK(ww_device_open("emulator:64", &device));
    ww_collection *collection = collection_make(device, 512, WW_DOT);
    for (int64_t turn = 0; turn < 100 && status == WW_OK; turn++) {
        snapshot before = snapshot_take(collection);
        test_rows rows = test_rows_make(&random, 100, 512, "row", turn * 100);
        status = ww_collection_add(collection, &rows.rows);
        test_rows_free(&rows);
        if (status != WW_OK)
            check_unchanged(collection, &before);
        else
            snapshot_free(&before);
    }
    assert_int_equal(status, WW_OUT_OF_MEMORY);
    const char *removed[] = {"row1", "row2"};
    CHECK_OK(ww_collection_remove(collection, removed, 2));
    ww_collection_destroy(collection);
    ww_device_close(device);
    emulated_set_memory(0);
}

/* Searches with MANY queries on a device with so much memory. */
enum { MANY = 512, BEST = 10 };

static ww_status search_many(size_t memory_bytes, int64_t *rows, float *scores)
{
    ww_device *device = NULL;
    test_random random = {13};
    emulated_set_memory(memory_bytes);
    CHECK_OK(ww_device_open("emulator:32", &device));
    ww_collection *collection = collection_make(device, DIM, WW_L2);
    test_rows added = test_rows_make(&random, ROWS, DIM, "row", 0);
    CHECK_OK(ww_collection_add(collection, &added.rows));
    float *queries = malloc(sizeof(float[MANY][DIM]));
    random_normals(&random, queries, (int64_t)MANY * DIM);
    ww_query asked = ww_query_default();
    asked.queries = queries;
    asked.query_count = MANY;
    asked.dim = DIM;
    asked.k = BEST;
    const ww_status status = ww_collection_search(collection, &asked, rows, scores);
    free(queries);
    test_rows_free(&added);
    ww_collection_destroy(collection);
    ww_device_close(device);
    emulated_set_memory(0);
    return status;
}

/* The lists of all queries at once take 512 x 112 keys, 448 KiB, for each part of the rows. */
static void a_search_on_a_full_device_goes_in_smaller_rounds(void **state)
{
    (void)state;
    static int64_t rows[2][MANY * BEST];
    static float scores[2][MANY * BEST];
    CHECK_OK(search_many(64 << 20, rows[0], scores[0]));
    CHECK_OK(search_many(420 << 10, rows[1], scores[1]));
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    CHECK_FAILS(WW_OUT_OF_MEMORY, search_many(150 << 10, rows[1], scores[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_add_changes_nothing),
        cmocka_unit_test(a_failed_upsert_changes_nothing),
        cmocka_unit_test(a_failed_upsert_of_a_tensor_changes_nothing),
        cmocka_unit_test(a_failed_search_with_a_tensor_changes_nothing),
        cmocka_unit_test(a_failed_remove_changes_nothing),
        cmocka_unit_test(a_failed_compact_changes_nothing),
        cmocka_unit_test(a_failed_reserve_changes_nothing),
        cmocka_unit_test(a_failed_search_changes_nothing),
        cmocka_unit_test(a_failed_range_search_changes_nothing),
        cmocka_unit_test(a_failed_get_of_many_rows_changes_nothing),
        cmocka_unit_test(a_failed_get_changes_nothing),
        cmocka_unit_test(launches_were_among_the_failures),
        cmocka_unit_test(memory_that_runs_out_in_an_add_leaves_a_collection_that_works),
        cmocka_unit_test(a_search_on_a_full_device_goes_in_smaller_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
