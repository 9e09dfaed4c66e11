/* Multivectors of rows in a store: searched like an index in memory, and kept in step with every kind of write. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/store.h>

#include "store/sqlite/sql.h"
#include "support/check.h"
#include "support/collections.h"
#include "support/faults/fault_counts.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { DIM = 1, MULTI_DIM = 6, ROWS = 400, LENGTH_MAX = 9, QUERIES = 5 };

static ww_device *device;
static ww_store *store;
static ww_collection *docs;

typedef struct row_of_test {
    char id[24], payload[32];
    float numbers[LENGTH_MAX * MULTI_DIM];
} row_of_test;

static row_of_test *all;
static ww_multivector *vectors;

static void make_rows(void)
{
    test_random random = {3};
    all = calloc(ROWS, sizeof *all);
    vectors = calloc(ROWS, sizeof *vectors);
    for (int64_t i = 0; i < ROWS; i++) {
        row_of_test *row = &all[i];
        snprintf(row->id, sizeof row->id, "r%lld", (long long)i);
        snprintf(row->payload, sizeof row->payload, "{\"n\":%lld}", (long long)(i % 3));
        random_normals(&random, row->numbers, LENGTH_MAX * MULTI_DIM);
        if (i % 10 == 9) /* rows with equal scores */
            memcpy(row->numbers, all[i - 3].numbers, sizeof row->numbers);
        vectors[i] = (ww_multivector){i % 11 == 0 ? 0 : 1 + (int32_t)(i % LENGTH_MAX), MULTI_DIM, row->numbers};
    }
}

/* Rows `first` to `end` - 1, `shift` numbers later in the list of multivectors. */
static ww_status write_rows(ww_status (*write)(ww_collection *, const ww_rows *), int64_t first, int64_t end, int64_t shift)
{
    ww_rows rows = ww_rows_default();
    float *zeros = calloc((size_t)(end - first), sizeof *zeros);
    const char **ids = malloc((size_t)(end - first) * sizeof *ids),
               **payloads = malloc((size_t)(end - first) * sizeof *payloads);
    for (int64_t i = first; i < end; i++) {
        ids[i - first] = all[i].id;
        payloads[i - first] = all[i].payload;
    }
    rows.count = end - first, rows.dim = DIM, rows.vectors = zeros, rows.ids = ids, rows.payloads = payloads;
    rows.multi = vectors + first + shift;
    const ww_status status = write(docs, &rows);
    free(zeros);
    free(ids);
    free(payloads);
    return status;
}

static void store_begin(const char *device_name)
{
    ww_collection_config config = ww_collection_config_default();
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF; /* no power fails here */
    CHECK_OK(ww_device_open(device_name, &device));
    CHECK_OK(ww_store_open(scratch_path("multi.db"), device, &how, &store));
    config.name = "do'cs", config.dim = DIM, config.metric = WW_COSINE;
    CHECK_OK(ww_store_create(store, &config, &docs));
}

static void store_end(void)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
}

static int setup(void **state)
{
    scratch_setup(state);
    make_rows();
    store_begin("cpu");
    return 0;
}

static int teardown(void **state)
{
    store_end();
    free(all);
    free(vectors);
    return scratch_teardown(state);
}

/* The same search in memory: an index of the collection's multivectors in the order of its rows. */
static void check_queries(ww_collection *of, const char *filter, int32_t modulo)
{
    ww_results *rows = NULL;
    ww_get get = ww_get_default();
    ww_multi_index *index = NULL;
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_MULTI;
    CHECK_OK(ww_collection_get(of, &get, &rows));
    CHECK_OK(ww_multi_create(device, MULTI_DIM, WW_COSINE, &index));
    const int64_t count = ww_results_count(rows, 0);
    int64_t hits = 0;
    uint64_t *mask = calloc((size_t)count / 64 + 1, sizeof *mask);
    for (int64_t i = 0; i < count; i++) {
        ww_multivector v;
        (void)ww_results_multi(rows, 0, i, &v);
        CHECK_OK(ww_multi_add(index, &v, 1));
        mask[i / 64] |= (uint64_t)(modulo < 0 || atoi(ww_results_id(rows, 0, i) + 1) % 3 == modulo) << (i % 64);
    }
    for (int q = 0; q < QUERIES; q++) {
        ww_results *found[2] = {NULL, NULL};
        ww_multi_query multi = ww_multi_query_default();
        ww_query query = ww_query_default();
        multi.vectors = &vectors[70 * q + 1];
        query.multi = &multi, query.query_count = 2; /* two queries at once */
        if (q < 3) {
            query.k = q == 2 ? WW_K_MAX : 10;
        } else {
            query.mode = WW_QUERY_RANGE, query.bound = 0.25f, query.limit = q == 4 ? 7 : WW_ROWS_MAX;
        }
        ww_query masked = query;
        masked.mask = mask, masked.mask_rows = count;
        query.filter = filter ? filter_of(filter) : NULL;
        query.fetch = WW_FETCH_IDS;
        CHECK_OK(ww_collection_query(of, &query, &found[0]));
        CHECK_OK(ww_multi_search(index, &masked, &found[1]));
        for (int64_t one = 0; one < 2; one++) {
            assert_int_equal(ww_results_count(found[0], one), ww_results_count(found[1], one));
            assert_int_equal(ww_results_total(found[0], one), ww_results_total(found[1], one));
            hits += ww_results_count(found[0], one);
            for (int64_t i = 0; i < ww_results_count(found[0], one); i++) {
                const int64_t row = ww_results_rows(found[1], one)[i];
                assert_int_equal(ww_results_handles(found[0], one)[i], ww_results_handles(rows, 0)[row]);
                assert_string_equal(ww_results_id(found[0], one, i), ww_results_id(rows, 0, row));
                assert_memory_equal(&ww_results_scores(found[0], one)[i], &ww_results_scores(found[1], one)[i], sizeof(float));
            }
        }
        ww_results_destroy(found[0]);
        ww_results_destroy(found[1]);
    }
    assert_true(hits > 0);
    free(mask);
    ww_multi_destroy(index);
    ww_results_destroy(rows);
}

static int64_t number_of(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(scratch_path("multi.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return number;
}

static void searches_have_the_bits_of_an_index_in_memory(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 1, 0)); /* a row without a multivector */
    ww_multi_query multi = ww_multi_query_default();
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    multi.vectors = &vectors[1], query.multi = &multi, query.query_count = 1, query.k = 3;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    assert_int_equal(ww_results_count(found, 0), 0);
    ww_results_destroy(found);
    CHECK_OK(write_rows(ww_collection_add, 1, 350, 0));
    check_queries(docs, NULL, -1);
    check_queries(docs, "{\"n\": 1}", 1);
    CHECK_OK(write_rows(ww_collection_add, 350, 390, 0)); /* after the set was read */
    check_queries(docs, NULL, -1);
    check_queries(docs, "{\"n\": 2}", 2);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void an_emulated_gpu_has_the_same_bits(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 300, 0));
    store_end();
    CHECK_OK(ww_device_open("emulator:32", &device));
    CHECK_OK(ww_store_open(scratch_path("multi.db"), device, NULL, &store));
    CHECK_OK(ww_store_collection(store, "do'cs", &docs));
    ww_device *emulator = device;
    CHECK_OK(ww_device_open("cpu", &device)); /* of the index to compare with */
    check_queries(docs, NULL, -1);
    ww_device_close(emulator);
}

static void removed_and_replaced_rows_are_not_found(void **state)
{
    (void)state;
    const char *gone[] = {"r1", "r20", "r201", "r349"};
    CHECK_OK(write_rows(ww_collection_add, 0, 350, 0));
    check_queries(docs, NULL, -1);
    CHECK_OK(ww_collection_remove(docs, gone, 4));
    check_queries(docs, NULL, -1);
    CHECK_OK(write_rows(ww_collection_upsert, 30, 60, 1)); /* other vectors, at other places */
    check_queries(docs, NULL, -1);
    for (int64_t i = 0; i < 5; i++) /* more removed rows than live ones: the set is read again */
        CHECK_OK(write_rows(ww_collection_upsert, 0, 350, i % 2));
    check_queries(docs, NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    assert_true(number_of("SELECT max(place) FROM \"do'cs_multi\"") < 350);
    check_queries(docs, NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_collection_clear(docs));
    assert_int_equal(number_of("SELECT count(*) FROM \"do'cs_multi\""), 0);
    CHECK_OK(write_rows(ww_collection_add, 0, 100, 0));
    check_queries(docs, NULL, -1);
}

static void all_multivectors_have_one_dimension(void **state)
{
    (void)state;
    const float zero = 0.0f, two[] = {1, 2, 3, 4};
    const char *const id = "r1";
    const ww_multivector other = {2, 2, two}, both[] = {{2, 2, two}, {1, 3, two}};
    ww_rows rows = ww_rows_default();
    ww_multi_query multi = ww_multi_query_default();
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    CHECK_OK(write_rows(ww_collection_add, 0, 5, 0));
    check_queries(docs, NULL, -1);
    rows.count = 1, rows.dim = DIM, rows.vectors = &zero, rows.multi = &other;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_add(docs, &rows));
    assert_int_equal(ww_collection_count(docs), 5);
    multi.vectors = &other, query.multi = &multi, query.query_count = 1, query.k = 3;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_query(docs, &query, &found));
    CHECK_OK(ww_collection_clear(docs)); /* then another will do */
    CHECK_OK(ww_collection_add(docs, &rows));
    CHECK_OK(ww_collection_query(docs, &query, &found));
    assert_int_equal(ww_results_count(found, 0), 1);
    ww_results_destroy(found);
    const float zeros[2] = {0};
    rows.count = 2, rows.vectors = zeros, rows.multi = both;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_add(docs, &rows));
    rows.count = 1, rows.ids = &id, rows.multi = NULL;
    CHECK_OK(ww_collection_add(docs, &rows)); /* none, beside one that has */
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void l2_has_no_multivectors(void **state)
{
    (void)state;
    ww_collection_config config = ww_collection_config_default();
    ww_collection *far = NULL;
    ww_rows rows = ww_rows_default();
    const float zero = 0.0f;
    config.name = "far", config.dim = DIM, config.metric = WW_L2;
    CHECK_OK(ww_store_create(store, &config, &far));
    rows.count = 1, rows.dim = DIM, rows.vectors = &zero, rows.multi = &vectors[1];
    CHECK_FAILS(WW_UNSUPPORTED, ww_collection_add(far, &rows));
    ww_collection_destroy(far);
}

static void new_vectors_and_payloads_leave_a_multivector_alone(void **state)
{
    (void)state;
    ww_rows rows = ww_rows_default();
    const char *const id = "r5", *const payload = "{\"n\":7}";
    const float one = 1.0f;
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    ww_multivector v;
    uint64_t before = 0, after = 0;
    CHECK_OK(write_rows(ww_collection_add, 0, 10, 0));
    rows.count = 1, rows.dim = DIM, rows.ids = &id, rows.vectors = &one;
    CHECK_OK(ww_collection_digest(docs, &before));
    CHECK_OK(ww_collection_update(docs, &rows));
    CHECK_OK(ww_collection_set_payloads(docs, &id, &payload, 1));
    get.ids = &id, get.count = 1, get.fetch = WW_FETCH_MULTI | WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_get(docs, &get, &found));
    assert_int_equal(ww_results_multi(found, 0, 0, &v), 1);
    assert_int_equal(v.count, vectors[5].count);
    assert_memory_equal(v.vectors, vectors[5].vectors, (size_t)v.count * MULTI_DIM * sizeof(float));
    assert_true(ww_results_vector(found, 0, 0)[0] == 1.0f);
    ww_results_destroy(found);
    check_queries(docs, NULL, -1);
    rows.multi = &vectors[6];
    CHECK_OK(ww_collection_update(docs, &rows));
    check_queries(docs, NULL, -1);
    rows.vectors = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(docs, &rows)); /* a multivector without a dense one */
    CHECK_OK(write_rows(ww_collection_upsert, 5, 6, 0));
    CHECK_OK(ww_collection_digest(docs, &after));
    assert_true(before == after); /* it is as it was: the digest has the multivector */
    CHECK_OK(write_rows(ww_collection_upsert, 5, 6, 1));
    CHECK_OK(ww_collection_digest(docs, &after));
    assert_true(before != after);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void a_renamed_or_dropped_collection_takes_its_multivectors_along(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 100, 0));
    ww_collection_destroy(docs);
    docs = NULL;
    CHECK_OK(ww_store_rename(store, "do'cs", "papers"));
    CHECK_OK(ww_store_collection(store, "papers", &docs));
    check_queries(docs, NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_collection_destroy(docs);
    docs = NULL;
    CHECK_OK(ww_store_drop(store, "papers"));
    assert_int_equal(number_of("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%multi%'"), 0);
}

/* Whatever is changed in the file behind the store's back, a check says so. */
static void damage_is_noticed(void **state)
{
    (void)state;
    static const char *const DAMAGE[] = {
        "UPDATE \"do'cs_multi\" SET vectors = zeroblob(length(vectors)) WHERE place = 5",
        "UPDATE \"do'cs_multi\" SET vectors = x'00' WHERE place = 5",
        "UPDATE \"do'cs_multi\" SET handle = handle + 1 WHERE place = 5",
        "UPDATE \"do'cs_multi\" SET dim = 3 WHERE place = 5",
        "UPDATE \"do'cs_multi\" SET dim = 0 WHERE place = 5",
        "UPDATE \"do'cs_multi\" SET place = 1000 WHERE place = 5",
        "DELETE FROM \"do'cs_multi\" WHERE place = 5",
    };
    CHECK_OK(write_rows(ww_collection_add, 0, 100, 0));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    for (size_t i = 0; i < sizeof DAMAGE / sizeof *DAMAGE; i++) {
        sqlite3 *db = NULL;
        ww_store *copy = NULL;
        ww_collection *damaged = NULL;
        ww_results *found = NULL;
        ww_multi_query multi = ww_multi_query_default();
        ww_query query = ww_query_default();
        CHECK_OK(ww_store_backup(store, scratch_path("copy.db"), NULL, NULL));
        assert_int_equal(sqlite3_open(scratch_path("copy.db"), &db), SQLITE_OK);
        sql_run(db, DAMAGE[i]);
        sqlite3_close(db);
        CHECK_OK(ww_store_open(scratch_path("copy.db"), device, NULL, &copy));
        CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(copy, NULL, NULL));
        CHECK_OK(ww_store_collection(copy, "do'cs", &damaged));
        multi.vectors = &vectors[1], query.multi = &multi, query.query_count = 1, query.k = 3;
        if (i < sizeof DAMAGE / sizeof *DAMAGE - 1)
            CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_query(damaged, &query, &found));
        ww_collection_destroy(damaged);
        ww_store_close(copy);
        remove(scratch_path("copy.db"));
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 30, 0));
    check_queries(docs, NULL, -1); /* the set is there from now on */
    const int64_t held = blocks_held();
    long failures = 0;
    bool passed = false;
    for (int64_t n = 1; !passed; n = fault_next(n)) {
        ww_results *found = NULL;
        ww_multi_query multi = ww_multi_query_default();
        ww_query query = ww_query_default();
        multi.vectors = &vectors[1];
        query.multi = &multi, query.query_count = 2, query.k = 5, query.fetch = WW_FETCH_IDS | WW_FETCH_MULTI;
        fail_allocation_at(n);
        ww_status status = write_rows(ww_collection_upsert, 0, 60, 1);
        if (status == WW_OK)
            status = ww_collection_query(docs, &query, &found);
        fail_allocation_at(0);
        passed = status == WW_OK;
        failures += !passed;
        if (!passed)
            assert_int_equal(status, WW_OUT_OF_MEMORY);
        ww_results_destroy(found);
        if (n % 8 == 1) {
            CHECK_OK(ww_store_check(store, NULL, NULL));
            check_queries(docs, NULL, -1);
        }
    }
    check_queries(docs, NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_true(blocks_held() < held + 96); /* statements and mirrors that are kept */
    fault_count("allocation", failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(searches_have_the_bits_of_an_index_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(an_emulated_gpu_has_the_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(removed_and_replaced_rows_are_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(all_multivectors_have_one_dimension, setup, teardown),
        cmocka_unit_test_setup_teardown(l2_has_no_multivectors, setup, teardown),
        cmocka_unit_test_setup_teardown(new_vectors_and_payloads_leave_a_multivector_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_renamed_or_dropped_collection_takes_its_multivectors_along, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
