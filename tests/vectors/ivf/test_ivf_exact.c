/* An exact search of a collection with an index reads fewer rows where lists can be excluded, and finds the bits of a CPU's
 * search without one. */
#include <stdlib.h>
#include <string.h>

#include "support/data/datasets.h"
#include "support/data/indexed.h"
#include "support/devices.h"
#include "support/memory.h"
#include "vectors/ivf/ivf.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_BF16, WW_VECTOR_F16};
enum { METRICS = 3, ROWS = 9000, ROWS_SLOW = 3000, DIM = 5, QUERIES = 40, QUERIES_SLOW = 6, K = 10 };

typedef struct scene {
    ww_device *device, *cpu;
    ww_collection *plain;   /* on the CPU, */
    ww_collection *indexed; /* and on the device under test */
    int64_t row_count, query_count;
    float rows[ROWS * DIM], queries[QUERIES * DIM];
} scene;

/* Groups of rows far from each other, or with `ties` small integers: hundreds of rows are equal. */
static scene *scene_of(ww_device *device, ww_metric metric, bool ties)
{
    scene *s = calloc(1, sizeof *s);
    s->device = device;
    s->row_count = device_is_slow(device) ? ROWS_SLOW : ROWS;
    s->query_count = device_is_slow(device) ? QUERIES_SLOW : QUERIES;
    test_random random = {17 + (uint64_t)metric};
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = metric;
    config.type = ties ? WW_VECTOR_F32 : types[(int)metric];
    for (int64_t i = 0; i < ROWS * DIM; i++)
        s->rows[i] = ties ? (float)random_below(&random, 5) - 2.0f
                          : 50.0f * (float)(i / DIM % 97 >> i % DIM & 1) - 20.0f + random_uniform(&random);
    memcpy(s->queries, s->rows, sizeof s->queries);
    for (int64_t i = 0; i < s->query_count * DIM / 2; i++)
        s->queries[i] += random_uniform(&random);
    CHECK_OK(ww_device_open("cpu", &s->cpu));
    s->plain = collection_of(s->cpu, &config, s->rows, s->row_count);
    s->indexed = collection_of(device, &config, s->rows, s->row_count);
    index_build(s->indexed, s->row_count / 100);
    device->tuning.exact_lists = TUNING_ALWAYS;
    return s;
}

static void scene_free(scene *s)
{
    ww_collection_destroy(s->plain);
    ww_collection_destroy(s->indexed);
    ww_device_close(s->cpu);
    s->device->tuning.exact_lists = TUNING_AUTO;
    free(s);
}

/* Every query with both; returns how many rows the screen looked at with the index. */
static int64_t compare(const scene *s, int64_t each, int32_t k)
{
    int64_t screened = 0, *rows = malloc(2 * (size_t)(each * k) * sizeof *rows);
    float *scores = malloc(2 * (size_t)(each * k) * sizeof *scores);
    for (int64_t q = 0; q + each <= s->query_count; q += each) {
        ww_query asked = ww_query_default();
        ww_search_stats stats = ww_search_stats_default();
        asked.queries = s->queries + q * DIM;
        asked.query_count = each;
        asked.dim = DIM;
        asked.k = k;
        CHECK_OK(ww_collection_search(s->plain, &asked, rows, scores));
        asked.stats = &stats;
        CHECK_OK(ww_collection_search(s->indexed, &asked, rows + each * k, scores + each * k));
        assert_memory_equal(rows, rows + each * k, (size_t)(each * k) * sizeof *rows);
        assert_memory_equal(scores, scores + each * k, (size_t)(each * k) * sizeof *scores);
        screened += stats.rows_screened + stats.rows_scored;
    }
    free(rows);
    free(scores);
    return screened;
}

static void lists_are_excluded_and_the_bits_are_the_same(void **state)
{
    const char *gone[] = {"0", "1", "97", "2000", "2999"};
    for (int m = 0; m < METRICS; m++) {
        scene *s = scene_of(*state, metrics[m], false);
        const int64_t read = compare(s, 1, K);
        if (metrics[m] != WW_DOT)
            assert_true(read < s->query_count * s->row_count / 2);
        compare(s, 3, K);
        compare(s, 1, (int32_t)s->row_count / 13); /* more than a list has */
        CHECK_OK(ww_collection_remove(s->plain, gone, 5));
        CHECK_OK(ww_collection_remove(s->indexed, gone, 5));
        compare(s, 1, K);
        scene_free(s);
    }
}

static void ties_are_found_in_the_same_order(void **state)
{
    for (int m = 0; m < METRICS; m++) {
        if (device_is_slow(*state) && !test_is_long() && metrics[m] != WW_L2)
            continue;
        scene *s = scene_of(*state, metrics[m], true);
        compare(s, 1, K);
        compare(s, 2, 100);
        scene_free(s);
    }
}

static void searches_that_exclude_nothing_try_seldom(void **state)
{
    scene *s = scene_of(*state, WW_DOT, true);
    memset(s->queries, 0, sizeof s->queries); /* all scores are 0 */
    compare(s, 1, K);
    assert_true(atomic_load(&s->indexed->index->exact.pause) > 0);
    scene_free(s);
}

/* Searches one query at a time, each of which tries to exclude lists; returns how many were answered by lists. */
static int64_t compare_each(ww_collection *c, const float *queries, const ww_results *exact, int32_t k)
{
    int64_t rows[K], by_lists = 0;
    float scores[K];
    for (int64_t q = 0; q < ww_results_query_count(exact); q++) {
        ww_query asked = ww_query_default();
        ww_search_stats stats = ww_search_stats_default();
        asked.queries = queries + q * c->dim;
        asked.query_count = 1;
        asked.dim = c->dim;
        asked.k = k;
        asked.stats = &stats;
        atomic_store(&c->index->exact.wait, 0);
        CHECK_OK(ww_collection_search(c, &asked, rows, scores));
        assert_memory_equal(rows, ww_results_rows(exact, q), (size_t)k * sizeof *rows);
        assert_memory_equal(scores, ww_results_scores(exact, q), (size_t)k * sizeof *scores);
        by_lists += stats.rows_screened + stats.rows_scored < ROWS / 2;
    }
    return by_lists;
}

static int64_t try_dataset(ww_device *device, const dataset *data, int32_t dim, ww_metric metric, int64_t query_count)
{
    float *rows = malloc((size_t)ROWS * (size_t)dim * sizeof *rows);
    float *queries = malloc((size_t)query_count * (size_t)dim * sizeof *queries);
    test_random random = {(uint64_t)dim * 37 + (uint64_t)metric};
    data->make(&random, dim, rows, ROWS, queries, query_count);
    memcpy(queries, rows + 4000 * dim, (size_t)dim * sizeof *rows);
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    config.metric = metric;
    ww_collection *c = collection_of(device, &config, rows, ROWS);
    ww_results *exact = query_lists(c, queries, query_count, K, 0);
    index_build(c, ROWS / 100);
    const int64_t by_lists = compare_each(c, queries, exact, K);
    ww_results_destroy(exact);
    ww_collection_destroy(c);
    free(queries);
    free(rows);
    return by_lists;
}

static void no_list_is_excluded_by_mistake(void **state)
{
    (void)state;
    static const int32_t dims[] = {1, 3, 65};
    const dataset *const all[] = {datasets, extreme_datasets};
    const int step = test_is_long() ? 1 : 7;
    const int64_t each = test_is_long() ? 1000 : 40;
    int64_t queries = 0, by_lists = 0, number = 0;
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    for (int kind = 0; kind < 2; kind++)
        for (const dataset *data = all[kind]; data->name; data++)
            for (int i = 0; i < 9; i++) {
                if (number++ % step != 0)
                    continue;
                by_lists += try_dataset(device, data, dims[i / 3], metrics[i % 3], each);
                queries += each;
            }
    print_message("%lld queries, %lld answered by lists\n", (long long)queries, (long long)by_lists);
    assert_true(by_lists > 0);
    assert_true(!test_is_long() || queries > 100000);
    ww_device_close(device);
}

static void a_search_without_memory_fails_and_can_be_made_again(void **state)
{
    scene *s = scene_of(*state, WW_L2, false);
    ww_query asked = ww_query_default();
    int64_t rows[K], right[K];
    float scores[K];
    ww_status status = WW_OUT_OF_MEMORY;
    asked.queries = s->queries;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = K;
    CHECK_OK(ww_collection_search(s->plain, &asked, right, scores));
    CHECK_OK(ww_collection_search(s->indexed, &asked, rows, scores)); /* the lists are on the device now */
    int64_t n = 0;
    while (status == WW_OUT_OF_MEMORY) {
        const int64_t blocks = blocks_held();
        fail_allocation_at(++n);
        status = ww_collection_search(s->indexed, &asked, rows, scores);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), blocks);
    }
    assert_int_equal(status, WW_OK);
    assert_true(n > 3);
    assert_memory_equal(rows, right, sizeof rows);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_excluded_and_the_bits_are_the_same),
        cmocka_unit_test(ties_are_found_in_the_same_order),
        cmocka_unit_test(no_list_is_excluded_by_mistake),
        cmocka_unit_test(searches_that_exclude_nothing_try_seldom),
        cmocka_unit_test(a_search_without_memory_fails_and_can_be_made_again),
    };
    return RUN_ON_EVERY_DEVICE("ivf_exact", tests);
}
