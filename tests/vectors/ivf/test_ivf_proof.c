/* Hits that a query with nprobe calls proven are correct: they are the first hits of the exact search, for all data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/data/datasets.h"
#include "support/data/indexed.h"
#include "support/devices.h"
#include "vectors/ivf/ivf.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
static const int32_t dims[] = {1, 3, 64, 65, 130};
enum { METRICS = 3, DIMS = 5, K = 10 };

typedef struct tried {
    int64_t queries, hits, proven;
} tried;

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How many hits of query q the bounds of all lists prove that were not read: a search ends sooner, with the same number. */
static int64_t proven_by_all_lists(const ww_collection *c, const float *query, const ww_results *found, int64_t q,
                                   int64_t nprobe)
{
    const ivf *index = c->index;
    const float *scores = ww_results_scores(found, q);
    const int64_t hits = ww_results_count(found, q);
    const proof_query given = proof_query_of(index, query);
    uint64_t order[512];
    int64_t read = 0, rows = 0, proven = hits;
    for (int64_t l = 0; l < index->nlist; l++) {
        float score;
        CHECK_OK(ww_score(c->metric, query, index->centroids + l * c->dim, c->dim, &score));
        order[l] = canon_make_key(index->metric, score, (uint32_t)l);
    }
    qsort(order, (size_t)index->nlist, sizeof *order, by_value);
    while (read < index->nlist && (read < nprobe || rows < hits))
        rows += index->lists[canon_key_row(order[read++])].count;
    const proof_list near = {canon_key_row(order[0]), canon_key_score(index->metric, order[0])};
    for (int64_t i = read; i < index->nlist; i++) {
        const proof_list list = {canon_key_row(order[i]), canon_key_score(index->metric, order[i])};
        const double own = proof_bound(index, &given, list.list, list.score);
        const double plane = proof_plane_bound(index, &given, near, list, scores[hits - 1]);
        while (proven > 0 && !proof_holds(index->metric, scores[proven - 1], own) &&
               !proof_holds(index->metric, scores[proven - 1], plane))
            proven--;
    }
    return proven;
}

/* Compares the proven hits of each query with the exact ones. */
static void check_proofs(ww_collection *c, const float *queries, int64_t count, int32_t k, tried *so_far)
{
    ww_results *exact = query_lists(c, queries, count, k, 0);
    for (int64_t nprobe = 1; nprobe < c->index->nlist; nprobe = nprobe * 2 + 1) {
        ww_results *found = query_lists(c, queries, count, k, nprobe);
        for (int64_t q = 0; q < count; q++) {
            const int64_t proven = ww_results_proven(found, q);
            assert_true(proven >= 0 && proven <= ww_results_count(found, q));
            assert_int_equal(ww_results_count(found, q), ww_results_count(exact, q));
            assert_true(c->index->nlist <= 512);
            if (!device_is_slow(c->device))
                assert_int_equal(proven, proven_by_all_lists(c, queries + q * c->dim, found, q, nprobe));
            for (int64_t i = 0; i < proven; i++) {
                assert_int_equal(ww_results_rows(found, q)[i], ww_results_rows(exact, q)[i]);
                assert_memory_equal(ww_results_scores(found, q) + i, ww_results_scores(exact, q) + i, sizeof(float));
            }
            so_far->queries++;
            so_far->hits += ww_results_count(found, q);
            so_far->proven += proven;
        }
        ww_results_destroy(found);
    }
    ww_results_destroy(exact);
}

static void try_dataset(ww_device *device, const dataset *data, int32_t dim, ww_metric metric, tried *so_far)
{
    const bool slow = device_is_slow(device);
    const int64_t count = slow ? 150 : 400, query_count = slow ? 4 : test_is_long() ? 200 : 12;
    float *rows = malloc((size_t)count * (size_t)dim * sizeof *rows);
    float *queries = malloc((size_t)query_count * (size_t)dim * sizeof *queries);
    test_random random = {(uint64_t)dim * 31 + (uint64_t)metric};
    data->make(&random, dim, rows, count, queries, query_count);
    memset(rows + 7 * dim, 0, (size_t)dim * sizeof *rows); /* a row of zeros, and two that are equal */
    memcpy(rows + 11 * dim, rows + 90 * dim, (size_t)dim * sizeof *rows);
    memcpy(queries + dim, rows + 90 * dim, (size_t)dim * sizeof *rows);
    ww_collection_config config = ww_collection_config_default();
    config.name = data->name;
    config.dim = dim;
    config.metric = metric;
    ww_collection *c = collection_of(device, &config, rows, count);
    index_build(c, 20);
    check_index_is_whole(c);
    check_proofs(c, queries, query_count, K, so_far);
    check_proofs(c, queries, 2, 60, so_far); /* more than a list has */
    ww_collection_destroy(c);
    free(queries);
    free(rows);
}

static void proven_hits_are_correct(void **state)
{
    tried so_far = {0};
    const dataset *const all[] = {datasets, extreme_datasets};
    const int32_t step = !device_is_slow(*state) ? 1 : test_is_long() ? 4 : 16;
    for (int kind = 0; kind < 2; kind++)
        for (const dataset *data = all[kind]; data->name; data++)
            for (int32_t d = (int32_t)((data - all[kind]) % step); d < DIMS; d += step)
                for (int32_t m = (int32_t)((data - all[kind]) % step % METRICS); m < METRICS; m += step)
                    try_dataset(*state, data, dims[d], metrics[m], &so_far);
    print_message("%lld queries, %lld hits, %lld proven\n", (long long)so_far.queries, (long long)so_far.hits,
                  (long long)so_far.proven);
    assert_true(so_far.proven > 0);
    if (!device_is_slow(*state) && test_is_long())
        assert_true(so_far.queries > 100000);
}

/* Small integers: most scores are equal to many others, and distances to centroids often whole. */
static void ties_are_not_proven_by_mistake(void **state)
{
    enum { DIM = 2, COUNT = 500, QUERIES = 30 };
    test_random random = {4};
    float rows[COUNT * DIM], queries[QUERIES * DIM];
    tried so_far = {0};
    for (int64_t i = 0; i < COUNT * DIM; i++)
        rows[i] = (float)random_below(&random, 7) - 3.0f;
    for (int64_t i = 0; i < QUERIES * DIM; i++)
        queries[i] = (float)random_below(&random, 7) - 3.0f;
    for (int m = 0; m < METRICS; m++) {
        ww_collection_config config = ww_collection_config_default();
        config.dim = DIM;
        config.metric = metrics[m];
        ww_collection *c = collection_of(*state, &config, rows, device_is_slow(*state) ? 100 : COUNT);
        for (int64_t nlist = 2; nlist <= 100; nlist *= 7) {
            index_build(c, nlist);
            check_proofs(c, queries, device_is_slow(*state) ? 3 : QUERIES, K, &so_far);
        }
        ww_collection_destroy(c);
    }
}

static void far_clusters_are_proven(void **state)
{
    enum { DIM = 16, COUNT = 320, QUERIES = 5 };
    test_random random = {6};
    float rows[COUNT * DIM];
    for (int64_t r = 0; r < COUNT; r++) /* around 0.01 noise, the axes: far from each other by l2 and by angle */
        for (int32_t i = 0; i < DIM; i++)
            rows[r * DIM + i] = (i == r % DIM ? 50.0f : 0.0f) + 0.05f * random_uniform(&random);
    for (int m = 0; m < METRICS; m++) {
        ww_collection_config config = ww_collection_config_default();
        tried so_far = {0};
        config.dim = DIM;
        config.metric = metrics[m];
        ww_collection *c = collection_of(*state, &config, rows, COUNT);
        ww_ivf_config build = ww_ivf_config_default();
        build.nlist = 60; /* so that every cluster has lists of its own */
        build.iterations = device_is_slow(*state) ? 4 : 20;
        CHECK_OK(ww_collection_build_ivf(c, &build));
        ww_results *found = query_lists(c, rows, QUERIES, K, 12);
        for (int64_t q = 0; q < QUERIES; q++)
            so_far.proven += ww_results_proven(found, q);
        ww_results_destroy(found);
        assert_true(so_far.proven * 10 >= QUERIES * K * 9);
        check_proofs(c, rows, QUERIES, K, &so_far);
        ww_collection_destroy(c);
    }
}

/* Rows that fill a cube, or by cosine a sphere, have no gaps between lists: it is planes between centroids that prove most. */
static void rows_without_gaps_are_proven_by_planes(void **state)
{
    enum { DIM = 3, COUNT = 600, QUERIES = 200, NEAREST = 2 };
    static float rows[COUNT * DIM], queries[QUERIES * DIM];
    const int64_t query_count = device_is_slow(*state) ? 10 : QUERIES;
    test_random random = {9};
    for (int64_t i = 0; i < COUNT * DIM; i++)
        rows[i] = random_uniform(&random);
    for (int64_t i = 0; i < QUERIES * DIM; i++)
        queries[i] = random_uniform(&random);
    for (int m = 0; m < 2; m++) {
        ww_collection_config config = ww_collection_config_default();
        tried so_far = {0};
        config.dim = DIM;
        config.metric = metrics[m];
        ww_collection *c = collection_of(*state, &config, rows, COUNT);
        index_build(c, 30);
        ww_results *found = query_lists(c, queries, query_count, NEAREST, 3);
        for (int64_t q = 0; q < query_count; q++)
            so_far.proven += ww_results_proven(found, q);
        ww_results_destroy(found);
        /* with radii only 0.86 and 0.56 of them */
        if (query_count == QUERIES)
            assert_true((double)so_far.proven > (metrics[m] == WW_COSINE ? 0.92 : 0.7) * QUERIES * NEAREST);
        check_proofs(c, queries, query_count, NEAREST, &so_far);
        ww_collection_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proven_hits_are_correct),
        cmocka_unit_test(ties_are_not_proven_by_mistake),
        cmocka_unit_test(far_clusters_are_proven),
        cmocka_unit_test(rows_without_gaps_are_proven_by_planes),
    };
    return RUN_ON_EVERY_DEVICE("ivf_proof", tests);
}
