/* Queries: what was found with everything about it, taken at one moment and kept for as long as the caller likes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

enum { DIM = 20, ROWS = 150, QUERIES = 7, K = 12, FETCH_ALL = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS };

static ww_collection *filled(ww_device *device, int32_t keep_host_copy)
{
    test_random random = {21};
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = DIM;
    config.metric = WW_COSINE;
    config.keep_host_copy = keep_host_copy;
    ww_collection *c = NULL;
    CHECK_OK(ww_collection_create(device, &config, &c));
    for (int64_t first = 0; first < ROWS; first += 50) /* several segments */
        collection_fill(c, &random, 50, DIM, "row", first);
    const char *gone[] = {"row3", "row64", "row65"};
    CHECK_OK(ww_collection_remove(c, gone, 3));
    return c;
}

static ww_query query_of(const float *queries, int64_t count, int32_t k, uint32_t fetch)
{
    ww_query query = ww_query_default();
    query.queries = queries;
    query.query_count = count;
    query.dim = DIM;
    query.k = k;
    query.fetch = fetch;
    return query;
}

/* Every hit of every query against ww_collection_search() and the lookups. */
static void check_results(ww_collection *c, const ww_query *query, const ww_results *results)
{
    const size_t places = (size_t)(query->query_count * query->k) + 1;
    int64_t *rows = malloc(places * sizeof *rows);
    float *scores = malloc(places * sizeof *scores);
    ww_query search = ww_query_default();
    search.queries = query->queries;
    search.query_count = query->query_count;
    search.dim = query->dim;
    search.k = query->k;
    search.mask = query->mask;
    search.mask_rows = query->mask_rows;
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    assert_int_equal(ww_results_query_count(results), query->query_count);
    for (int64_t q = 0; q < query->query_count; q++) {
        int64_t found = 0;
        while (found < query->k && rows[q * query->k + found] >= 0)
            found++;
        assert_int_equal(ww_results_count(results, q), found);
        assert_memory_equal(ww_results_rows(results, q), rows + q * query->k, (size_t)found * sizeof *rows);
        assert_memory_equal(ww_results_scores(results, q), scores + q * query->k, (size_t)found * sizeof *scores);
        for (int64_t i = 0; i < found; i++) {
            char text[64];
            float vector[DIM];
            const int64_t row = rows[q * query->k + i];
            int64_t handle = -1;
            CHECK_OK(ww_collection_handle(c, row, &handle));
            assert_int_equal(ww_results_handles(results, q)[i], handle);
            CHECK_OK(ww_collection_id(c, row, text, sizeof text, NULL));
            assert_string_equal(ww_results_id(results, q, i), text);
            CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
            const char *payload = ww_results_payload(results, q, i);
            assert_string_equal(payload ? payload : "", text);
            CHECK_OK(ww_collection_vector(c, row, vector));
            assert_memory_equal(ww_results_vector(results, q, i), vector, sizeof vector);
        }
    }
    free(scores);
    free(rows);
}

static void a_query_gives_the_results_of_a_search_and_lookups(void **state)
{
    test_random random = {22};
    float queries[QUERIES * DIM];
    random_normals(&random, queries, QUERIES * DIM);
    const uint64_t mask[3] = {0xfffffff0ffffff00u, 0x1u, 0x7u};
    for (int32_t keep_host_copy = 0; keep_host_copy <= 1; keep_host_copy++) {
        ww_collection *c = filled(*state, keep_host_copy);
        const int32_t ks[] = {1, K, WW_K_MAX};
        for (int i = 0; i < 3; i++)
            for (int masked = 0; masked < 2; masked++) {
                ww_results *results = NULL;
                ww_query query = query_of(queries, i == 0 ? 1 : QUERIES, ks[i], FETCH_ALL);
                query.mask = masked ? mask : NULL;
                query.mask_rows = masked ? ROWS : 0;
                CHECK_OK(ww_collection_query(c, &query, &results));
                check_results(c, &query, results);
                ww_results_destroy(results);
            }
        ww_collection_destroy(c);
    }
}

static void results_stay_when_the_rows_are_gone(void **state)
{
    test_random random = {23};
    float queries[2 * DIM];
    random_normals(&random, queries, 2 * DIM);
    ww_collection *c = filled(*state, 0);
    ww_results *before = NULL, *after = NULL;
    const ww_query query = query_of(queries, 2, K, FETCH_ALL);
    CHECK_OK(ww_collection_query(c, &query, &before));
    CHECK_OK(ww_collection_query(c, &query, &after));
    const char *best = ww_results_id(after, 1, 0);
    CHECK_OK(ww_collection_remove(c, &best, 1));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    CHECK_OK(ww_collection_clear(c));
    ww_collection_destroy(c);
    for (int64_t q = 0; q < 2; q++) {
        assert_int_equal(ww_results_count(after, q), K);
        for (int64_t i = 0; i < K; i++) {
            assert_string_equal(ww_results_id(after, q, i), ww_results_id(before, q, i));
            float score;
            CHECK_OK(ww_score(WW_COSINE, queries + q * DIM, ww_results_vector(after, q, i), DIM, &score));
            assert_true(score == ww_results_scores(after, q)[i]);
        }
    }
    ww_results_destroy(after);
    ww_results_destroy(before);
}

static void fields_that_were_not_fetched_or_do_not_exist_are_null(void **state)
{
    test_random random = {24};
    float queries[DIM];
    random_normals(&random, queries, DIM);
    ww_collection *c = filled(*state, 0);
    ww_results *results = NULL;
    ww_query query = query_of(queries, 1, K, 0);
    CHECK_OK(ww_collection_query(c, &query, &results));
    assert_int_equal(ww_results_count(results, 0), K);
    assert_null(ww_results_id(results, 0, 0));
    assert_null(ww_results_payload(results, 0, 0));
    assert_null(ww_results_vector(results, 0, 0));
    ww_results_destroy(results);
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_query(c, &query, &results));
    const int64_t wrong_hits[] = {-1, K, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        assert_null(ww_results_id(results, 0, wrong_hits[i]));
        assert_null(ww_results_payload(results, 0, wrong_hits[i]));
        assert_null(ww_results_vector(results, 0, wrong_hits[i]));
    }
    const int64_t wrong_queries[] = {-1, 1, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ww_results_count(results, wrong_queries[i]), 0);
        assert_null(ww_results_rows(results, wrong_queries[i]));
        assert_null(ww_results_scores(results, wrong_queries[i]));
        assert_null(ww_results_handles(results, wrong_queries[i]));
        assert_null(ww_results_id(results, wrong_queries[i], 0));
    }
    ww_results_destroy(results);
    ww_results_destroy(NULL);
    assert_int_equal(ww_results_query_count(NULL), 0);
    assert_int_equal(ww_results_count(NULL, 0), 0);
    assert_null(ww_results_id(NULL, 0, 0));
    ww_collection_destroy(c);
}

static void a_query_of_nothing_has_no_hits(void **state)
{
    const float queries[2 * DIM] = {1.0f, 2.0f};
    ww_collection *empty = collection_make(*state, DIM, WW_L2);
    ww_collection *c = filled(*state, 0);
    ww_results *results = NULL;
    ww_query query = query_of(queries, 2, K, FETCH_ALL);
    CHECK_OK(ww_collection_query(empty, &query, &results));
    assert_int_equal(ww_results_query_count(results), 2);
    assert_int_equal(ww_results_count(results, 1), 0);
    assert_null(ww_results_id(results, 0, 0));
    ww_results_destroy(results);
    query.k = 0;
    CHECK_OK(ww_collection_query(c, &query, &results));
    assert_int_equal(ww_results_count(results, 0), 0);
    ww_results_destroy(results);
    query.k = K;
    query.query_count = 0;
    CHECK_OK(ww_collection_query(c, &query, &results));
    assert_int_equal(ww_results_query_count(results), 0);
    ww_results_destroy(results);
    ww_collection_destroy(c);
    ww_collection_destroy(empty);
}

static void a_query_reports_its_stats(void **state)
{
    const float queries[DIM] = {1.0f, 2.0f};
    ww_collection *c = filled(*state, 0);
    ww_results *results = NULL;
    ww_search_stats stats = ww_search_stats_default();
    ww_query query = query_of(queries, 1, K, 0);
    query.stats = &stats;
    CHECK_OK(ww_collection_query(c, &query, &results));
    assert_true(stats.rows_scored >= K);
    ww_results_destroy(results);
    ww_collection_destroy(c);
}

static void a_refusal_does_not_change_the_pointer(void **state)
{
    float queries[DIM] = {1.0f, 2.0f};
    ww_collection *c = filled(*state, 0);
    ww_results *const untouched = (ww_results *)&queries;
    ww_results *results = untouched;
    const ww_query good = query_of(queries, 1, K, 0);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(NULL, &good, &results));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, NULL, &results));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &good, NULL));
    ww_query query = good;
    query.fetch = 64;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &query, &results));
    assert_non_null(strstr(ww_error_message(), "WW_FETCH_IDS"));
    query = good;
    query.struct_size = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &query, &results));
    query = good;
    query.k = WW_K_MAX + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(c, &query, &results));
    assert_non_null(strstr(ww_error_message(), "ww_collection_query"));
    query = good;
    query.dim = DIM + 1;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_query(c, &query, &results));
    queries[3] = NAN;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &good, &results));
    assert_ptr_equal(results, untouched);
    ww_collection_destroy(c);
}

/* The arrays over all hits against what is read hit by hit. */
static void columns_contain_the_data_of_the_hits(void **state)
{
    test_random random = {5};
    ww_collection *c = filled(*state, 0);
    float queries[QUERIES * DIM];
    random_normals(&random, queries, QUERIES * DIM);
    ww_results *results = NULL;
    const ww_query query = query_of(queries, QUERIES, K, FETCH_ALL);
    CHECK_OK(ww_collection_query(c, &query, &results));
    ww_results_columns columns = ww_results_columns_default();
    CHECK_OK(ww_results_describe(results, &columns));
    assert_int_equal(columns.query_count, QUERIES);
    assert_int_equal(columns.hit_count, QUERIES * K);
    assert_int_equal(columns.dim, DIM);
    assert_null(columns.totals);
    for (int64_t q = 0; q < QUERIES; q++) {
        const int64_t first = columns.starts[q], count = columns.starts[q + 1] - first;
        assert_int_equal(count, ww_results_count(results, q));
        assert_ptr_equal(columns.rows + first, ww_results_rows(results, q));
        assert_ptr_equal(columns.handles + first, ww_results_handles(results, q));
        assert_ptr_equal(columns.scores + first, ww_results_scores(results, q));
        for (int64_t i = 0; i < count; i++) {
            const char *payload = ww_results_payload(results, q, i);
            assert_ptr_equal(columns.text + columns.ids[first + i], ww_results_id(results, q, i));
            assert_true(columns.payloads[first + i] < columns.text_bytes);
            assert_true(payload ? columns.text + columns.payloads[first + i] == payload : columns.payloads[first + i] == -1);
            assert_ptr_equal(columns.vectors + (first + i) * DIM, ww_results_vector(results, q, i));
        }
    }
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_describe(NULL, &columns));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_describe(results, NULL));
    ww_results_destroy(results);
    const ww_query bare = query_of(queries, QUERIES, K, 0);
    CHECK_OK(ww_collection_query(c, &bare, &results));
    CHECK_OK(ww_results_describe(results, &columns));
    assert_true(!columns.ids && !columns.payloads && !columns.text && !columns.vectors && columns.text_bytes == 0);
    ww_results_destroy(results);
    ww_collection_destroy(c);
}

typedef struct all_scores {
    const float *vectors, *queries;
    int64_t rows;
    int32_t dim;
    ww_metric metric;
    const uint64_t *mask;
} all_scores;

/* The hits of each query are the first k of all admitted rows, sorted: each is not before the one before it, and there are as
 * many better rows as hits before it. */
static void check_order(const ww_results *results, const all_scores *all, int32_t k)
{
    static float scores[4096];
    for (int64_t q = 0; q < 2; q++) {
        int64_t admitted = 0;
        for (int64_t i = 0; i < all->rows; i++) {
            CHECK_OK(ww_score(all->metric, all->queries + q * all->dim, all->vectors + i * all->dim, all->dim, &scores[i]));
            admitted += !all->mask || (all->mask[i / 64] >> (i % 64) & 1);
        }
        const int64_t count = ww_results_count(results, q), *rows = ww_results_rows(results, q);
        assert_int_equal(count, k < admitted ? k : admitted);
        assert_int_equal(ww_results_total(results, q), count);
        for (int64_t i = 0; i < count; i++) {
            const float score = ww_results_scores(results, q)[i];
            assert_true(score == scores[rows[i]] && (!all->mask || (all->mask[rows[i] / 64] >> (rows[i] % 64) & 1)));
            if (i > 0) {
                const float before = ww_results_scores(results, q)[i - 1];
                assert_true(all->metric == WW_L2 ? before <= score : before >= score);
                assert_true(before != score || rows[i - 1] < rows[i]);
            }
        }
        int64_t better = 0;
        for (int64_t i = 0; i < all->rows && count > 0; i++) {
            const float last = ww_results_scores(results, q)[count - 1];
            const bool in = !all->mask || (all->mask[i / 64] >> (i % 64) & 1);
            const bool before = all->metric == WW_L2 ? scores[i] < last : scores[i] > last;
            better += in && (before || (scores[i] == last && i <= rows[count - 1]));
        }
        assert_int_equal(better, count);
    }
}

/* ww_collection_search() finds the same rows, padded. */
static void check_buffers(ww_collection *c, const ww_query *query, const ww_results *results)
{
    static int64_t rows[2 * WW_K_MAX];
    static float scores[2 * WW_K_MAX];
    CHECK_OK(ww_collection_search(c, query, rows, scores));
    for (int64_t q = 0; q < 2; q++) {
        const int64_t count = ww_results_count(results, q), at = q * query->k;
        assert_memory_equal(rows + at, ww_results_rows(results, q), (size_t)count * sizeof *rows);
        assert_memory_equal(scores + at, ww_results_scores(results, q), (size_t)count * sizeof *scores);
        for (int64_t i = count; i < query->k; i++)
            assert_true(rows[at + i] == -1 && isinf(scores[at + i]));
    }
}

static void check_k(ww_collection *c, const all_scores *all, int32_t k)
{
    ww_results *results = NULL;
    ww_query asked = ww_query_default();
    asked.queries = all->queries, asked.query_count = 2, asked.dim = all->dim, asked.k = k;
    asked.mask = all->mask, asked.mask_rows = all->mask != NULL ? all->rows : 0;
    CHECK_OK(ww_collection_query(c, &asked, &results));
    check_order(results, all, k);
    check_buffers(c, &asked, results);
    ww_results_destroy(results);
}

/* More hits than kernels keep: the order of all scores, with many equal ones, after rows were removed, with and without a mask.
 */
static void any_k_finds_the_order_of_all_scores(void **state)
{
    enum { MANY = 2400, WIDTH = 4, REMOVED = 7 };
    static const int32_t ks[] = {2048, 2049, 2300, WW_K_MAX};
    static float vectors[MANY * WIDTH];
    static uint64_t mask[MANY / 64 + 1];
    const float query[2 * WIDTH] = {1, 2, 3, -1, 0, 1, 0, 2};
    test_random random = {9};
    for (int i = 0; i < MANY * WIDTH; i++)
        vectors[i] = (float)random_below(&random, 5) - 1.5f;
    for (int m = 0; m < 3; m++) {
        ww_collection *c = collection_make(*state, WIDTH, (ww_metric)m);
        ww_rows rows = ww_rows_default();
        rows.count = MANY, rows.dim = WIDTH, rows.vectors = vectors;
        CHECK_OK(ww_collection_add(c, &rows));
        for (int masked = 0; masked < 2; masked++) {
            for (int i = 0; i < MANY; i++)
                mask[i / 64] = i % 64 == 0 ? 1 : mask[i / 64] | (uint64_t)(i % REMOVED != 3) << (i % 64);
            for (size_t k = 0; k < sizeof ks / sizeof *ks; k++)
                check_k(c, &(all_scores){vectors, query, MANY, WIDTH, (ww_metric)m, masked ? mask : NULL}, ks[k]);
        }
        ww_collection_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_gives_the_results_of_a_search_and_lookups),
        cmocka_unit_test(results_stay_when_the_rows_are_gone),
        cmocka_unit_test(fields_that_were_not_fetched_or_do_not_exist_are_null),
        cmocka_unit_test(a_query_of_nothing_has_no_hits),
        cmocka_unit_test(a_query_reports_its_stats),
        cmocka_unit_test(a_refusal_does_not_change_the_pointer),
        cmocka_unit_test(columns_contain_the_data_of_the_hits),
        cmocka_unit_test(any_k_finds_the_order_of_all_scores),
    };
    return RUN_ON_EVERY_DEVICE("queries", tests);
}
