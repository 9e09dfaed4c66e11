/* An exact search of a collection with an index reads fewer rows where lists can be excluded, and finds the bits of a CPU's
 * search without one. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/data/indexed.h"
#include "support/devices.h"
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
        const int64_t blocks = memory_blocks_held();
        memory_fail_at(++n);
        status = ww_collection_search(s->indexed, &asked, rows, scores);
        memory_fail_at(0);
        assert_int_equal(memory_blocks_held(), blocks);
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
        cmocka_unit_test(searches_that_exclude_nothing_try_seldom),
        cmocka_unit_test(a_search_without_memory_fails_and_can_be_made_again),
    };
    return RUN_ON_EVERY_DEVICE("ivf_exact", tests);
}
