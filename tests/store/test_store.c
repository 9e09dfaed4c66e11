/* Collections of a store are collections: the same answers as one in memory, to the bit, before and after the file is opened
 * again. */
#include <stdlib.h>
#include <string.h>

#include <warpwave/store.h>

#include "support/collections.h"
#include "support/devices.h"
#include "support/scratch.h"

enum { DIM = 24, ROWS = 300, QUERIES = 5, K = 7 };

static char *path_make(void)
{
    return strdup(scratch_path("store.db"));
}

static ww_store *store_make(const char *path, ww_device *device)
{
    ww_store *store = NULL;
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    return store;
}

static ww_collection *stored_make(ww_store *store, const char *name, ww_metric metric)
{
    ww_collection_config config = ww_collection_config_default();
    ww_collection *collection = NULL;
    config.name = name, config.dim = DIM, config.metric = metric;
    CHECK_OK(ww_store_create(store, &config, &collection));
    return collection;
}

static ww_collection *stored_open(ww_store *store, const char *name)
{
    ww_collection *collection = NULL;
    CHECK_OK(ww_store_collection(store, name, &collection));
    return collection;
}

static ww_results *ask(ww_collection *collection, const float *queries, int32_t k)
{
    ww_results *results = NULL;
    ww_query query = ww_query_default();
    query.queries = queries, query.query_count = QUERIES, query.dim = DIM, query.k = k;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_query(collection, &query, &results));
    return results;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Expects the same hits except for the rows' numbers, which depend on where rows are stored. */
static void check_same(const ww_results *a, const ww_results *b)
{
    assert_int_equal(ww_results_query_count(a), ww_results_query_count(b));
    for (int64_t q = 0; q < ww_results_query_count(a); q++) {
        assert_int_equal(ww_results_count(a, q), ww_results_count(b, q));
        assert_int_equal(ww_results_total(a, q), ww_results_total(b, q));
        for (int64_t i = 0; i < ww_results_count(a, q); i++) {
            assert_int_equal(ww_results_handles(a, q)[i], ww_results_handles(b, q)[i]);
            assert_memory_equal(&ww_results_scores(a, q)[i], &ww_results_scores(b, q)[i], sizeof(float));
            assert_true(same_text(ww_results_id(a, q, i), ww_results_id(b, q, i)));
            assert_true(same_text(ww_results_payload(a, q, i), ww_results_payload(b, q, i)));
            assert_memory_equal(ww_results_vector(a, q, i), ww_results_vector(b, q, i), DIM * sizeof(float));
        }
    }
}

static void check_alike(ww_collection *stored, ww_collection *plain, const float *queries)
{
    ww_results *a = ask(stored, queries, K), *b = ask(plain, queries, K);
    check_same(a, b);
    ww_results_destroy(a);
    ww_results_destroy(b);
    ww_get all = ww_get_default();
    all.count = WW_ROWS_MAX, all.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_get(stored, &all, &a));
    CHECK_OK(ww_collection_get(plain, &all, &b));
    check_same(a, b);
    ww_results_destroy(a);
    ww_results_destroy(b);
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = queries, range.query_count = QUERIES, range.dim = DIM, range.limit = 50;
    range.bound = 0.1f, range.fetch = all.fetch;
    CHECK_OK(ww_collection_query(stored, &range, &a));
    CHECK_OK(ww_collection_query(plain, &range, &b));
    check_same(a, b);
    ww_results_destroy(a);
    ww_results_destroy(b);
    assert_int_equal(ww_collection_count(stored), ww_collection_count(plain));
}

/* The same change to both. */
static void change_both(ww_collection *stored, ww_collection *plain, test_random *random)
{
    ww_collection *const both[2] = {stored, plain};
    test_rows more = test_rows_make(random, 40, DIM, "r", 100); /* replaces r100 to r139 */
    test_rows numbered = test_rows_make(random, 10, DIM, "x", 0);
    numbered.rows.ids = NULL;
    for (int i = 0; i < 2; i++) {
        const char *gone[] = {"r3", "r77", "r250"};
        const char *texts[] = {"{\"new\":true}", NULL};
        int64_t missing = 0;
        CHECK_OK(ww_collection_remove(both[i], gone, 3));
        CHECK_OK(ww_collection_upsert(both[i], &more.rows));
        CHECK_OK(ww_collection_add(both[i], &numbered.rows));
        CHECK_OK(ww_collection_discard(both[i], (const char *[]){"r5", "nobody", "r6"}, 3, &missing));
        assert_int_equal(missing, 1);
        CHECK_OK(ww_collection_set_payloads(both[i], (const char *[]){"r9", "r10"}, texts, 2));
    }
    test_rows_free(&numbered);
    test_rows_free(&more);
}

static void a_stored_collection_answers_as_one_in_memory(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    for (int metric = 0; metric < 3; metric++) {
        test_random random = {7 + (uint64_t)metric};
        ww_store *store = store_make(path, device);
        char name[8] = {'c', (char)('0' + metric), '\0'};
        ww_collection *stored = stored_make(store, name, (ww_metric)metric);
        ww_collection *plain = collection_make(device, DIM, (ww_metric)metric);
        test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0);
        test_rows queries = test_rows_make(&random, QUERIES, DIM, "q", 0);
        CHECK_OK(ww_collection_add(stored, &rows.rows));
        CHECK_OK(ww_collection_add(plain, &rows.rows));
        check_alike(stored, plain, queries.vectors);
        change_both(stored, plain, &random); /* with the mirror loaded */
        check_alike(stored, plain, queries.vectors);
        ww_collection_destroy(stored);
        ww_store_close(store);

        store = store_make(path, device);
        stored = stored_open(store, name);
        check_alike(stored, plain, queries.vectors);
        CHECK_OK(ww_collection_compact(stored, NULL, NULL));
        CHECK_OK(ww_collection_compact(plain, NULL, NULL));
        check_alike(stored, plain, queries.vectors);
        CHECK_OK(ww_store_check(store, NULL, NULL));
        ww_store_close(store);
        ww_collection_destroy(stored); /* keeps the store until now */
        ww_collection_destroy(plain);
        test_rows_free(&queries);
        test_rows_free(&rows);
    }
    free(path);
}

static void changes_before_the_first_search_are_read_from_the_file(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    test_random random = {3};
    ww_store *store = store_make(path, device);
    ww_collection *stored = stored_make(store, "docs", WW_L2);
    ww_collection *plain = collection_make(device, DIM, WW_L2);
    test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0);
    CHECK_OK(ww_collection_add(stored, &rows.rows));
    CHECK_OK(ww_collection_add(plain, &rows.rows));
    change_both(stored, plain, &random);
    check_alike(stored, plain, rows.vectors);
    CHECK_OK(ww_collection_clear(stored));
    CHECK_OK(ww_collection_clear(plain));
    check_alike(stored, plain, rows.vectors);
    CHECK_OK(ww_collection_add(stored, &rows.rows));
    CHECK_OK(ww_collection_add(plain, &rows.rows));
    check_alike(stored, plain, rows.vectors);
    ww_collection_destroy(plain);
    ww_collection_destroy(stored);
    ww_store_close(store);
    test_rows_free(&rows);
    free(path);
}

static void two_handles_on_one_collection_see_each_others_writes(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    test_random random = {4};
    ww_store *store = store_make(path, device), *other = store_make(path, device);
    ww_collection *a = stored_make(store, "docs", WW_COSINE), *b = stored_open(other, "docs");
    test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0);
    CHECK_OK(ww_collection_add(a, &rows.rows));
    check_alike(a, b, rows.vectors);
    test_rows more = test_rows_make(&random, 40, DIM, "r", 290);
    CHECK_OK(ww_collection_remove(a, (const char *[]){"r3", "r299"}, 2));
    check_alike(a, b, rows.vectors);
    CHECK_OK(ww_collection_upsert(b, &more.rows));
    check_alike(a, b, rows.vectors);
    CHECK_OK(ww_collection_set_payloads(b, (const char *[]){"r1"}, (const char *[]){"[1]"}, 1));
    check_alike(a, b, rows.vectors);
    CHECK_OK(ww_collection_compact(a, NULL, NULL));
    check_alike(a, b, rows.vectors);
    CHECK_OK(ww_store_drop(store, "docs"));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_add(b, &more.rows));
    ww_collection *next = stored_make(store, "DOCS", WW_COSINE); /* another one, though its name is the same */
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_add(b, &more.rows));
    assert_int_equal(ww_collection_count(b), 0);
    ww_collection_destroy(next);
    test_rows_free(&more);
    ww_collection_destroy(a);
    ww_collection_destroy(b);
    ww_store_close(store);
    ww_store_close(other);
    test_rows_free(&rows);
    free(path);
}

static void update_does_the_same_as_in_memory(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    test_random random = {6};
    ww_store *store = store_make(path, device);
    ww_collection *stored = stored_make(store, "docs", WW_L2), *plain = collection_make(device, DIM, WW_L2);
    test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0), new = test_rows_make(&random, 30, DIM, "r", 7);
    CHECK_OK(ww_collection_add(stored, &rows.rows));
    CHECK_OK(ww_collection_add(plain, &rows.rows));
    for (int turn = 0; turn < 3; turn++) { /* first read from the file, then into the copy in memory */
        ww_rows update = new.rows;
        update.payloads = turn == 1 ? new.rows.payloads : NULL;
        update.vectors = turn == 2 ? rows.vectors : new.vectors;
        CHECK_OK(ww_collection_update(stored, &update));
        CHECK_OK(ww_collection_update(plain, &update));
        check_alike(stored, plain, rows.vectors);
    }
    strcpy(new.ids[29], "no");
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_update(stored, &new.rows));
    strcpy(new.ids[29], "r9");
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_update(stored, &new.rows));
    check_alike(stored, plain, rows.vectors);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_collection_destroy(plain);
    ww_collection_destroy(stored);
    ww_store_close(store);
    test_rows_free(&new);
    test_rows_free(&rows);
    free(path);
}

static void a_failed_write_changes_nothing(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    test_random random = {5};
    ww_store *store = store_make(path, device);
    ww_collection *stored = stored_make(store, "docs", WW_DOT), *plain = collection_make(device, DIM, WW_DOT);
    test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0), again = test_rows_make(&random, 20, DIM, "s", 0);
    CHECK_OK(ww_collection_add(stored, &rows.rows));
    CHECK_OK(ww_collection_add(plain, &rows.rows));
    check_alike(stored, plain, rows.vectors);
    strcpy(again.ids[19], "r7");
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_add(stored, &again.rows));
    strcpy(again.ids[19], "s3");
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_upsert(stored, &again.rows));
    assert_non_null(strstr(ww_error_message(), "twice"));
    strcpy(again.ids[19], "s99");
    again.vectors[19 * DIM + 3] = 1e30f;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(stored, &again.rows));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(stored, (const char *[]){"r1", "nobody"}, 2));
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_remove(stored, (const char *[]){"r1", "r1"}, 2));
    CHECK_FAILS(WW_NOT_FOUND,
                ww_collection_set_payloads(stored, (const char *[]){"r1", "nobody"}, (const char *[]){"1", "2"}, 2));
    check_alike(stored, plain, rows.vectors);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_collection_destroy(plain);
    ww_collection_destroy(stored);
    ww_store_close(store);
    test_rows_free(&again);
    test_rows_free(&rows);
    free(path);
}

static void rows_are_looked_up_by_id_handle_and_number(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    test_random random = {6};
    ww_store *store = store_make(path, device);
    ww_collection *stored = stored_make(store, "docs", WW_DOT);
    test_rows rows = test_rows_make(&random, 10, DIM, "r", 0);
    CHECK_OK(ww_collection_add(stored, &rows.rows));
    int64_t row = -1, again = -1, handle = -1;
    char text[64];
    float vector[DIM];
    size_t length = 0;
    CHECK_OK(ww_collection_find(stored, "r4", &row));
    CHECK_OK(ww_collection_handle(stored, row, &handle));
    CHECK_OK(ww_collection_find_handle(stored, handle, &again));
    assert_int_equal(row, again);
    CHECK_OK(ww_collection_id(stored, row, text, sizeof text, &length));
    assert_string_equal(text, "r4");
    CHECK_OK(ww_collection_vector(stored, row, vector));
    assert_memory_equal(vector, rows.vectors + 4 * DIM, sizeof vector);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(stored, "nobody", &row));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_vector(stored, 4711, vector));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(stored, -5, &again));
    int64_t visited = 0;
    for (int64_t r = ww_collection_next(stored, -1); r >= 0; r = ww_collection_next(stored, r))
        visited++;
    assert_int_equal(visited, 10);
    ww_collection_destroy(stored);
    ww_store_close(store);
    test_rows_free(&rows);
    free(path);
}

static void masks_speak_of_row_numbers(void **state)
{
    ww_device *device = *state;
    char *path = path_make();
    test_random random = {8};
    ww_store *store = store_make(path, device);
    ww_collection *stored = stored_make(store, "docs", WW_L2);
    test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0);
    CHECK_OK(ww_collection_add(stored, &rows.rows));
    CHECK_OK(ww_collection_upsert(
        stored,
        &(ww_rows){
            .struct_size = sizeof(ww_rows), .count = 1, .dim = DIM, .vectors = rows.vectors, .ids = (const char *[]){"r130"}}));
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(stored, &info));
    assert_int_equal(info.rows_live, ROWS);
    assert_int_equal(info.mask_rows, ROWS + 1);
    for (int64_t row = 0; row < info.mask_rows; row++) {
        uint64_t mask[ROWS / 64 + 2] = {0};
        int64_t found[2];
        float scores[2];
        mask[row / 64] |= UINT64_C(1) << (row % 64);
        ww_query search = ww_query_default();
        search.queries = rows.vectors, search.query_count = 1, search.dim = DIM, search.k = 2;
        search.mask = mask, search.mask_rows = info.mask_rows;
        CHECK_OK(ww_collection_search(stored, &search, found, scores));
        assert_int_equal(found[0], row == 130 ? -1 : row);
        assert_int_equal(found[1], -1);
    }
    ww_collection_destroy(stored);
    ww_store_close(store);
    test_rows_free(&rows);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stored_collection_answers_as_one_in_memory, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(changes_before_the_first_search_are_read_from_the_file, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(update_does_the_same_as_in_memory, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_failed_write_changes_nothing, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_are_looked_up_by_id_handle_and_number, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(masks_speak_of_row_numbers, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(two_handles_on_one_collection_see_each_others_writes, scratch_setup, scratch_teardown),
    };
    return RUN_ON_EVERY_DEVICE("store", tests);
}
