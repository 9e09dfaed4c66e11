/* Sparse vectors of rows in a store: searched like an index in memory, whether rows are in the inverted index or pending, and
 * kept in step with every kind of write. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/ranking.h>
#include <warpwave/store.h>

#include "store/sqlite/sql.h"
#include "support/check.h"
#include "support/collections.h"
#include "support/faults/fault_counts.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { DIM = 1, ROWS = 1300, ENTRIES = 9, TERMS = 40, QUERIES = 6 };

static ww_device *device;
static ww_store *store;
static ww_collection *docs;

typedef struct row_of_test {
    char id[24], payload[32];
    uint32_t indices[ENTRIES];
    float values[ENTRIES];
} row_of_test;

static row_of_test *all;
static ww_sparse_vector *vectors;

static void make_rows(void)
{
    test_random random = {3};
    all = calloc(ROWS, sizeof *all);
    vectors = calloc(ROWS, sizeof *vectors);
    for (int64_t i = 0; i < ROWS; i++) {
        row_of_test *row = &all[i];
        snprintf(row->id, sizeof row->id, "r%lld", (long long)i);
        snprintf(row->payload, sizeof row->payload, "{\"n\":%lld}", (long long)(i % 3));
        const uint32_t first = (uint32_t)random_below(&random, TERMS);
        for (uint32_t e = 0; e < ENTRIES; e++)
            row->indices[e] = (first + e * 7) % TERMS * 100000000u; /* up to 3.9e9, in any order */
        random_normals(&random, row->values, ENTRIES);
        row->values[0] = i % 5 == 0 ? row->values[0] : 0.5f; /* many equal */
        vectors[i] = (ww_sparse_vector){i % 11 == 0 ? 0 : i % 4 == 0 ? 1 : ENTRIES, row->indices, row->values};
    }
}

/* Rows `first` to `end` - 1, `shift` numbers later in the list of sparse vectors. */
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
    rows.sparse = vectors + first + shift;
    const ww_status status = write(docs, &rows);
    free(zeros);
    free(ids);
    free(payloads);
    return status;
}

static int setup(void **state)
{
    ww_collection_config config = ww_collection_config_default();
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF; /* no power fails here */
    scratch_setup(state);
    make_rows();
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("sparse.db"), device, &how, &store));
    config.name = "do'cs", config.dim = DIM, config.metric = WW_L2;
    CHECK_OK(ww_store_create(store, &config, &docs));
    return 0;
}

static int teardown(void **state)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
    free(all);
    free(vectors);
    return scratch_teardown(state);
}

/* The same search in memory: a sparse index of the collection's rows in their order. */
static void check_queries(const char *filter, int32_t modulo)
{
    ww_results *rows = NULL;
    ww_get get = ww_get_default();
    ww_sparse_index *index = NULL;
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_SPARSE;
    CHECK_OK(ww_collection_get(docs, &get, &rows));
    CHECK_OK(ww_sparse_create(&index));
    const int64_t count = ww_results_count(rows, 0);
    int64_t hits = 0;
    uint64_t *mask = calloc((size_t)count / 64 + 1, sizeof *mask);
    for (int64_t i = 0; i < count; i++) {
        ww_sparse_vector v;
        (void)ww_results_sparse(rows, 0, i, &v);
        CHECK_OK(ww_sparse_add(index, &v, 1));
        mask[i / 64] |= (uint64_t)(modulo < 0 || atoi(ww_results_id(rows, 0, i) + 1) % 3 == modulo) << (i % 64);
    }
    for (int q = 0; q < QUERIES; q++) {
        ww_results *found[2] = {NULL, NULL};
        ww_sparse_query sparse = ww_sparse_query_default();
        ww_query query = ww_query_default();
        sparse.vectors = &vectors[100 * q + 1], sparse.modifier = q % 2 == 0 ? WW_SPARSE_PLAIN : WW_SPARSE_IDF;
        query.sparse = &sparse, query.query_count = 2; /* two queries at once */
        if (q < 4) {
            query.k = q == 3 ? WW_K_MAX : 10;
        } else {
            query.mode = WW_QUERY_RANGE, query.bound = 0.25f, query.limit = q == 4 ? 7 : WW_ROWS_MAX;
        }
        ww_query masked = query;
        masked.mask = mask, masked.mask_rows = count;
        query.filter = filter ? filter_of(filter) : NULL;
        query.fetch = WW_FETCH_IDS;
        CHECK_OK(ww_collection_query(docs, &query, &found[0]));
        CHECK_OK(ww_sparse_search(index, &masked, &found[1]));
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
    ww_sparse_destroy(index);
    ww_results_destroy(rows);
}

static int64_t number_of(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(scratch_path("sparse.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return number;
}

#define PENDING "SELECT count(*) FROM \"do'cs_sparse_pending\""
#define INDEXED "SELECT entries FROM \"do'cs_sparse_blocks\" WHERE key = -1"

static void searches_have_the_bits_of_an_index_in_memory(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 20, 0));
    assert_true(number_of(PENDING) > 0 && number_of(INDEXED) == 0);
    check_queries(NULL, -1);
    CHECK_OK(write_rows(ww_collection_add, 20, 1200, 0));
    assert_true(number_of(PENDING) == 0 && number_of(INDEXED) > 1000);
    check_queries(NULL, -1);
    check_queries("{\"n\": 1}", 1);
    CHECK_OK(write_rows(ww_collection_add, 1200, 1250, 0)); /* pending, beside the index */
    assert_true(number_of(PENDING) > 30);
    check_queries(NULL, -1);
    check_queries("{\"n\": 2}", 2);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

/* Without a bound these are all rows with an index of the query. */
/* Blocks of an index that reach into two windows of rows, for more indices than blocks are kept in memory. */
static void a_query_with_very_many_indices_keeps_few_blocks(void **state)
{
    enum { MANY = 5000, WIDE = 40, BETWEEN = 2100, COUNT = WIDE + BETWEEN };
    (void)state;
    test_random random = {5};
    uint32_t *indices = malloc(MANY * sizeof *indices);
    float *values = malloc((size_t)COUNT * MANY * sizeof *values), *zeros = calloc(COUNT, sizeof *zeros);
    ww_sparse_vector *wide = malloc(COUNT * sizeof *wide);
    ww_sparse_index *index = NULL;
    ww_results *found[2] = {NULL, NULL};
    ww_rows rows = ww_rows_default();
    for (uint32_t i = 0; i < MANY; i++)
        indices[i] = 3 * i;
    for (int64_t i = 0; i < COUNT; i++) {
        const bool all_of_them = i < WIDE / 2 || i >= COUNT - WIDE / 2;
        wide[i] = (ww_sparse_vector){all_of_them ? MANY : 1, indices, values + i * MANY};
        random_normals(&random, values + i * MANY, wide[i].count);
    }
    rows.count = COUNT, rows.dim = DIM, rows.vectors = zeros, rows.sparse = wide;
    CHECK_OK(ww_collection_add(docs, &rows));
    CHECK_OK(ww_sparse_create(&index));
    CHECK_OK(ww_sparse_add(index, wide, COUNT));
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    sparse.vectors = wide, sparse.modifier = WW_SPARSE_IDF;
    query.sparse = &sparse, query.query_count = 1, query.k = WIDE;
    fail_allocation_at(MANY); /* not a block for each index */
    CHECK_OK(ww_collection_query(docs, &query, &found[0]));
    fail_allocation_at(0);
    CHECK_OK(ww_sparse_search(index, &query, &found[1]));
    assert_int_equal(ww_results_count(found[0], 0), WIDE);
    for (int64_t i = 0; i < WIDE; i++)
        assert_int_equal(ww_results_handles(found[0], 0)[i], ww_results_rows(found[1], 0)[i]);
    assert_memory_equal(ww_results_scores(found[0], 0), ww_results_scores(found[1], 0), WIDE * sizeof(float));
    ww_results_destroy(found[0]);
    ww_results_destroy(found[1]);
    ww_sparse_destroy(index);
    free(indices);
    free(values);
    free(zeros);
    free(wide);
}

static void the_statistics_count_the_rows_that_were_scored(void **state)
{
    (void)state;
    ww_search_stats stats = ww_search_stats_default();
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    CHECK_OK(write_rows(ww_collection_add, 0, 1250, 0));
    sparse.vectors = &vectors[1];
    query.sparse = &sparse, query.query_count = 1, query.stats = &stats;
    query.mode = WW_QUERY_RANGE, query.bound = -INFINITY;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    assert_int_equal(stats.rows_scored, ww_results_total(found, 0));
    assert_true(stats.rows_scored > 100);
    ww_results_destroy(found);
}

static void removed_and_replaced_rows_are_not_found(void **state)
{
    (void)state;
    const char *gone[] = {"r1", "r20", "r201", "r1199", "r1249"};
    CHECK_OK(write_rows(ww_collection_add, 0, 1250, 0));
    CHECK_OK(ww_collection_remove(docs, gone, 5));
    check_queries(NULL, -1);
    CHECK_OK(write_rows(ww_collection_upsert, 30, 60, 1)); /* other vectors, at other places */
    assert_true(number_of(PENDING) > 50);
    check_queries(NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(write_rows(ww_collection_upsert, 60, 800, 1));
    assert_int_equal(number_of(PENDING), 0);
    check_queries(NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    assert_int_equal(number_of("SELECT max(place) FROM \"do'cs_sparse\""), 1245); /* r201 came back */
    check_queries(NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_collection_clear(docs));
    assert_true(number_of(PENDING) == 0 && number_of(INDEXED) == 0);
    CHECK_OK(write_rows(ww_collection_add, 0, 100, 0));
    check_queries(NULL, -1);
}

static void new_vectors_and_payloads_leave_a_sparse_vector_alone(void **state)
{
    (void)state;
    ww_rows rows = ww_rows_default();
    const char *const id = "r5", *const payload = "{\"n\":7}";
    const float one = 1.0f;
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    ww_sparse_vector v;
    uint64_t before = 0, after = 0;
    CHECK_OK(write_rows(ww_collection_add, 0, 10, 0));
    rows.count = 1, rows.dim = DIM, rows.ids = &id, rows.vectors = &one;
    CHECK_OK(ww_collection_digest(docs, &before));
    CHECK_OK(ww_collection_update(docs, &rows));
    CHECK_OK(ww_collection_set_payloads(docs, &id, &payload, 1));
    get.ids = &id, get.count = 1, get.fetch = WW_FETCH_SPARSE | WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_get(docs, &get, &found));
    assert_int_equal(ww_results_sparse(found, 0, 0, &v), 1);
    assert_int_equal(v.count, ENTRIES);
    assert_true(ww_results_vector(found, 0, 0)[0] == 1.0f);
    ww_results_destroy(found);
    check_queries(NULL, -1);
    rows.sparse = &vectors[6];
    CHECK_OK(ww_collection_update(docs, &rows));
    check_queries(NULL, -1);
    rows.vectors = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_update(docs, &rows)); /* a sparse vector without a dense one */
    CHECK_OK(write_rows(ww_collection_upsert, 5, 6, 0));
    CHECK_OK(ww_collection_digest(docs, &after));
    assert_true(before == after); /* it is as it was: the digest has the sparse vector */
    CHECK_OK(write_rows(ww_collection_upsert, 5, 6, 1));
    CHECK_OK(ww_collection_digest(docs, &after));
    assert_true(before != after);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void a_renamed_or_dropped_collection_takes_its_sparse_vectors_along(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 100, 0));
    ww_collection_destroy(docs);
    docs = NULL;
    CHECK_OK(ww_store_rename(store, "do'cs", "papers"));
    CHECK_OK(ww_store_collection(store, "papers", &docs));
    check_queries(NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_collection_destroy(docs);
    docs = NULL;
    CHECK_OK(ww_store_drop(store, "papers"));
    assert_int_equal(number_of("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%sparse%'"), 0);
}

static void hits_are_fused_with_those_by_vectors(void **state)
{
    (void)state;
    ww_results *lists[2] = {NULL, NULL}, *fused = NULL;
    const float east = 0.0f;
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    CHECK_OK(write_rows(ww_collection_add, 0, 100, 0));
    sparse.vectors = &vectors[3];
    query.query_count = 1, query.dim = DIM, query.k = 10, query.fetch = WW_FETCH_IDS | WW_FETCH_SPARSE, query.queries = &east;
    CHECK_OK(ww_collection_query(docs, &query, &lists[0]));
    query.sparse = &sparse;
    CHECK_OK(ww_collection_query(docs, &query, &lists[1]));
    CHECK_OK(ww_results_fuse((const ww_results *const *)lists, 2, NULL, &fused));
    assert_int_equal(ww_results_parts(fused, 0)[0].ranks[0] > 0 || ww_results_parts(fused, 0)[0].ranks[1] > 0, 1);
    bool any = false;
    for (int64_t i = 0; i < ww_results_count(fused, 0); i++) {
        ww_sparse_vector v;
        const int64_t number = atoi(ww_results_id(fused, 0, i) + 1);
        assert_int_equal(ww_results_sparse(fused, 0, i, &v), vectors[number].count > 0);
        assert_int_equal(v.count, vectors[number].count);
        any = any || v.count > 0;
    }
    assert_true(any);
    ww_results_destroy(fused);
    ww_results_destroy(lists[0]);
    ww_results_destroy(lists[1]);
}

/* Whatever is changed in the file behind the store's back, a check says so; a search fails or is right. */
static void damage_is_noticed(void **state)
{
    (void)state;
    static const char *const DAMAGE[] = {
        "UPDATE \"do'cs_sparse\" SET vector = zeroblob(length(vector)) WHERE place = 5",
        "UPDATE \"do'cs_sparse\" SET handle = handle + 1 WHERE place = 5",
        "DELETE FROM \"do'cs_sparse\" WHERE place = 5",
        "UPDATE \"do'cs_sparse_blocks\" SET high = 0.0 WHERE key >= 0",
        "UPDATE \"do'cs_sparse_blocks\" SET data = zeroblob(length(data)) WHERE key >= 0",
        "UPDATE \"do'cs_sparse_blocks\" SET data = x'00' WHERE key >= 0",
        "DELETE FROM \"do'cs_sparse_blocks\" WHERE key IN (SELECT max(key) FROM \"do'cs_sparse_blocks\")",
        "UPDATE \"do'cs_sparse_blocks\" SET entries = entries + 1 WHERE key = -1",
        "DELETE FROM \"do'cs_sparse_pending\"",
        "UPDATE \"do'cs_sparse_pending\" SET vector = x'00' WHERE vector IS NOT NULL",
    };
    const char *gone[] = {"r30", "r31"};
    CHECK_OK(write_rows(ww_collection_add, 0, 1200, 0));
    CHECK_OK(write_rows(ww_collection_add, 1200, 1230, 0));
    CHECK_OK(ww_collection_remove(docs, gone, 2));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    for (size_t i = 0; i < sizeof DAMAGE / sizeof *DAMAGE; i++) {
        sqlite3 *db = NULL;
        CHECK_OK(ww_store_backup(store, scratch_path("copy.db"), NULL, NULL));
        ww_store *copy = NULL;
        assert_int_equal(sqlite3_open(scratch_path("copy.db"), &db), SQLITE_OK);
        sql_run(db, DAMAGE[i]);
        sqlite3_close(db);
        CHECK_OK(ww_store_open(scratch_path("copy.db"), device, NULL, &copy));
        CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(copy, NULL, NULL));
        if (i < 3) { /* the vectors themselves are damaged: only writing the row again helps */
            ww_store_close(copy);
            remove(scratch_path("copy.db"));
            continue;
        }
        ww_collection *damaged = NULL; /* the index is made again from the vectors */
        CHECK_OK(ww_store_collection(copy, "do'cs", &damaged));
        CHECK_OK(ww_collection_compact(damaged, NULL, NULL));
        CHECK_OK(ww_store_check(copy, NULL, NULL));
        ww_collection_destroy(damaged);
        ww_store_close(copy);
        remove(scratch_path("copy.db"));
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    CHECK_OK(write_rows(ww_collection_add, 0, 30, 0));
    const int64_t held = blocks_held();
    long failures = 0;
    bool passed = false;
    for (int64_t n = 1; !passed; n = fault_next(n)) {
        ww_results *found = NULL;
        ww_sparse_query sparse = ww_sparse_query_default();
        ww_query query = ww_query_default();
        sparse.vectors = &vectors[1], sparse.modifier = WW_SPARSE_IDF;
        query.sparse = &sparse, query.query_count = 2, query.k = 5, query.fetch = WW_FETCH_IDS | WW_FETCH_SPARSE;
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
        if (n % 8 == 1)
            CHECK_OK(ww_store_check(store, NULL, NULL));
    }
    check_queries(NULL, -1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    assert_true(blocks_held() < held + 64); /* statements and mirrors that are kept */
    fault_count("allocation", failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(searches_have_the_bits_of_an_index_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_query_with_very_many_indices_keeps_few_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(the_statistics_count_the_rows_that_were_scored, setup, teardown),
        cmocka_unit_test_setup_teardown(removed_and_replaced_rows_are_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(new_vectors_and_payloads_leave_a_sparse_vector_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_renamed_or_dropped_collection_takes_its_sparse_vectors_along, setup, teardown),
        cmocka_unit_test_setup_teardown(hits_are_fused_with_those_by_vectors, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
