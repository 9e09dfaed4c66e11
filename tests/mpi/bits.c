/* Searches over ranks give the bits of a search over one collection: rows, scores, ids, payloads, vectors, ties, empty shards.
 */
#include <math.h>
#include <string.h>

#include "mpi/ranks.h"

static ww_query query_of_scene(const ranks *r, int32_t k, bool everywhere)
{
    ww_query query = ww_query_default();
    query.queries = r->rank == 0 || everywhere ? scene_make()->queries[0] : NULL;
    query.query_count = QUERIES;
    query.dim = DIM;
    query.k = k;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    return query;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void expect_same_results(const ww_results *got, const ww_results *expected)
{
    EXPECT(ww_results_query_count(got) == ww_results_query_count(expected));
    for (int64_t q = 0; q < ww_results_query_count(expected); q++) {
        EXPECT(ww_results_count(got, q) == ww_results_count(expected, q));
        EXPECT(ww_results_total(got, q) == ww_results_total(expected, q));
        for (int64_t i = 0; i < ww_results_count(expected, q); i++) {
            EXPECT(ww_results_rows(got, q)[i] == ww_results_rows(expected, q)[i]);
            EXPECT(memcmp(&ww_results_scores(got, q)[i], &ww_results_scores(expected, q)[i], sizeof(float)) == 0);
            EXPECT(same_text(ww_results_id(got, q, i), ww_results_id(expected, q, i)));
            EXPECT(same_text(ww_results_payload(got, q, i), ww_results_payload(expected, q, i)));
            EXPECT(memcmp(ww_results_vector(got, q, i), ww_results_vector(expected, q, i), DIM * sizeof(float)) == 0);
        }
    }
}

typedef struct padded {
    int32_t k;
    const int64_t *rows;
    const float *scores;
    ww_metric metric;
} padded;

static void expect_padded(const ww_results *expected, padded got)
{
    const float worst = got.metric == WW_L2 ? INFINITY : -INFINITY;
    for (int64_t q = 0; q < QUERIES; q++) {
        for (int64_t i = 0; i < got.k; i++) {
            const bool there = i < ww_results_count(expected, q);
            const float score = there ? ww_results_scores(expected, q)[i] : worst;
            EXPECT(got.rows[q * got.k + i] == (there ? ww_results_rows(expected, q)[i] : -1));
            EXPECT(memcmp(&got.scores[q * got.k + i], &score, sizeof score) == 0);
        }
    }
}

static void search_gives_the_same(const ranks *r, ww_cluster *cluster, const ww_results *expected, int32_t k, ww_metric metric)
{
    static int64_t rows[QUERIES * WW_K_MAX];
    static float scores[QUERIES * WW_K_MAX];
    ww_query search = ww_query_default();
    ww_search_stats stats = ww_search_stats_default();
    search.queries = scene_make()->queries[0];
    search.query_count = QUERIES;
    search.dim = DIM;
    search.k = k;
    search.stats = &stats;
    memset(rows, 0x55, sizeof rows);
    const ww_answer answer = k % 2 ? WW_ANSWER_ALL : WW_ANSWER_ROOT;
    EXPECT(ww_cluster_search(cluster, &search, answer, rows, scores) == WW_OK);
    EXPECT(k == 0 || stats.rows_screened + stats.rows_scored > 0);
    if (answer == WW_ANSWER_ROOT && r->rank != 0) /* other ranks' arrays do not change */
        EXPECT(rows[0] == INT64_C(0x5555555555555555));
    else
        expect_padded(expected, (padded){k, rows, scores, metric});
}

void case_bits(const ranks *r)
{
    static const int32_t ks[] = {37, 1, 10, 0, WW_K_MAX};
    const size_t k_count = r->count > 16 ? 2 : sizeof ks / sizeof *ks; /* fewer, because more than 16 ranks share a few cores */
    for (int metric = r->count > 16 ? WW_DOT : WW_COSINE; metric <= WW_DOT; metric++) {
        ww_cluster *cluster = cluster_of_scene(r, (ww_metric)metric);
        ww_collection *whole = collection_of_scene(r, (ww_metric)metric);
        for (size_t i = 0; i < k_count; i++) {
            ww_query query = query_of_scene(r, ks[i], true);
            ww_results *expected = NULL, *got = NULL;
            EXPECT(ww_collection_query(whole, &query, &expected) == WW_OK);
            query = query_of_scene(r, ks[i], i % 2 != 0);
            EXPECT(ww_cluster_query(cluster, &query, WW_ANSWER_ALL, &got) == WW_OK);
            expect_same_results(got, expected);
            ww_results_destroy(got);
            EXPECT(ww_cluster_query(cluster, &query, WW_ANSWER_ROOT, &got) == WW_OK);
            EXPECT((got != NULL) == (r->rank == 0));
            if (got)
                expect_same_results(got, expected);
            ww_results_destroy(got);
            search_gives_the_same(r, cluster, expected, ks[i], (ww_metric)metric);
            ww_results_destroy(expected);
        }
        ww_collection_destroy(whole);
        ww_cluster_destroy(cluster);
    }
}

void case_range(const ranks *r)
{
    static const int64_t limits[] = {0, 3, WW_ROWS_MAX};
    ww_cluster *cluster = cluster_of_scene(r, WW_L2);
    ww_collection *whole = collection_of_scene(r, WW_L2);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        ww_query range = ww_query_default();
        range.mode = WW_QUERY_RANGE;
        ww_results *expected = NULL, *got = NULL;
        range.queries = scene_make()->queries[0];
        range.query_count = QUERIES;
        range.dim = DIM;
        range.bound = 5.0f;
        range.limit = limits[i];
        range.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
        EXPECT(ww_collection_query(whole, &range, &expected) == WW_OK);
        EXPECT(ww_results_total(expected, 0) > 3);
        if (r->rank != 0)
            range.queries = NULL;
        EXPECT(ww_cluster_query(cluster, &range, WW_ANSWER_ALL, &got) == WW_OK);
        expect_same_results(got, expected);
        ww_results_destroy(got);
        ww_results_destroy(expected);
    }
    ww_collection_destroy(whole);
    ww_cluster_destroy(cluster);
}
