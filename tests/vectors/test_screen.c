/* The screen against the full scan: the same rows and the same score bits, on easy, hard and hostile data; and a bound that is
 * too small is noticed by exactly this comparison. */
#include "support/check.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/isa/isa.h"
#include "device/backend.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3, METRICS_IN_TURN = TEST_INSTRUMENTED ? 1 : METRICS };

/* The same rows in a collection with and in one without a screen. */
typedef struct pair {
    ww_collection *screened, *plain;
    int32_t dim;
    int64_t count, query_count;
    float *rows, *queries;
} pair;

static ww_collection *collection_with(ww_device *device, int32_t dim, ww_metric metric, ww_screen screen, const float *vectors,
                                      int64_t count)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    config.metric = metric;
    config.screen = screen;
    ww_collection *c = NULL;
    pretend_screen(device, true); /* these are small sets, which a GPU would scan plainly */
    CHECK_OK(ww_collection_create(device, &config, &c));
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = dim;
    rows.vectors = vectors;
    CHECK_OK(ww_collection_add(c, &rows));
    return c;
}

static pair pair_make(ww_device *device, const dataset *data, uint64_t seed, int32_t dim, ww_metric metric, int64_t count,
                      int64_t query_count)
{
    test_random random = {seed};
    pair p = {.dim = dim, .count = count, .query_count = query_count};
    p.rows = malloc((size_t)(count * dim) * sizeof *p.rows);
    p.queries = malloc((size_t)(query_count * dim) * sizeof *p.queries);
    data->make(&random, dim, p.rows, count, p.queries, query_count);
    p.screened = collection_with(device, dim, metric, WW_SCREEN_INT8, p.rows, count);
    p.plain = collection_with(device, dim, metric, WW_SCREEN_NONE, p.rows, count);
    return p;
}

static void pair_free(pair *p)
{
    ww_collection_destroy(p->screened);
    ww_collection_destroy(p->plain);
    free(p->rows);
    free(p->queries);
}

/* The first result in which the two differ, or -1. */
static int64_t first_difference(const pair *p, int64_t query_count, int32_t k, const uint64_t *mask, int64_t mask_rows,
                                ww_search_stats *stats)
{
    const size_t results = (size_t)(query_count * k);
    int64_t *rows = malloc(2 * results * sizeof *rows);
    float *scores = malloc(2 * results * sizeof *scores);
    ww_query search = ww_query_default();
    search.queries = p->queries;
    search.query_count = query_count;
    search.dim = p->dim;
    search.k = k;
    search.mask = mask;
    search.mask_rows = mask_rows;
    CHECK_OK(ww_collection_search(p->plain, &search, rows, scores));
    *stats = ww_search_stats_default();
    search.stats = stats;
    CHECK_OK(ww_collection_search(p->screened, &search, rows + results, scores + results));
    int64_t at = -1;
    for (size_t i = 0; i < results && at < 0; i++)
        if (rows[i] != rows[results + i] || memcmp(&scores[i], &scores[results + i], sizeof *scores) != 0)
            at = (int64_t)i;
    free(rows);
    free(scores);
    return at;
}

static void check_pair(const pair *p, const char *data, int64_t query_count, int32_t k, const uint64_t *mask, int64_t mask_rows)
{
    ww_search_stats stats;
    const int64_t at = first_difference(p, query_count, k, mask, mask_rows, &stats);
    if (at >= 0)
        fail_msg("%s, dim %d, %lld rows, %lld queries, k %d: result %lld is not that of the full scan", data, p->dim,
                 (long long)p->count, (long long)query_count, k, (long long)at);
    assert_true(stats.certificate >= 0.0f);
    if (stats.rows_kept > stats.rows_screened || stats.fallback_queries > query_count)
        fail_msg("%s, dim %d, %lld rows, %lld queries, k %d: %lld rows kept of %lld screened, %lld fell back", data, p->dim,
                 (long long)p->count, (long long)query_count, k, (long long)stats.rows_kept, (long long)stats.rows_screened,
                 (long long)stats.fallback_queries);
}

static void every_kind_of_data_gives_the_results_of_the_full_scan(void **state)
{
    static const int32_t dims[] = {1, 3, 64, 65, 128, 200};
    const int64_t count = device_is_slow(*state) ? 300 : 1500;
    const size_t share =
        (device_is_slow(*state) ? 5 : 1) * (TEST_INSTRUMENTED ? 5 : 1); /* over all data, every dimension and metric */
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            for (int m = 0; m < METRICS; m++) {
                if ((i * METRICS + (size_t)m + (size_t)(d - datasets)) % share != 0)
                    continue;
                pair p = pair_make(*state, d, 11 * i + (uint64_t)m, dims[i], metrics[m], count, 20);
                check_pair(&p, d->name, 20, 10, NULL, 0);
                check_pair(&p, d->name, 1, 1, NULL, 0);
                check_pair(&p, d->name, 3, 5, NULL, 0);
                pair_free(&p);
            }
        }
    }
}

static void long_vectors_give_the_results_of_the_full_scan(void **state)
{
    static const int32_t dims[] = {513, 768, 1100, 4096};
    const int64_t count = device_is_slow(*state) ? 150 : 600;
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            if ((device_is_slow(*state) || TEST_INSTRUMENTED) && (i + (size_t)(d - datasets)) % 4 != 0)
                continue;
            if (TEST_INSTRUMENTED && (d - datasets) % 3 != 0)
                continue;
            const ww_metric metric = metrics[(i + (size_t)(d - datasets)) % METRICS];
            pair p = pair_make(*state, d, i, dims[i], metric, count, 18);
            check_pair(&p, d->name, 18, 10, NULL, 0);
            check_pair(&p, d->name, 1, 4, NULL, 0);
            pair_free(&p);
        }
    }
}

static void any_number_of_results_is_that_of_the_full_scan(void **state)
{
    static const int32_t ks[] = {1, 2, 17, 100, 511, 2048};
    const bool slow = device_is_slow(*state);
    for (const dataset *d = datasets; d->name; d++) {
        const ww_metric metric = metrics[(d - datasets) % METRICS];
        if (TEST_INSTRUMENTED && (d - datasets) % 3 != 1)
            continue;
        pair p = pair_make(*state, d, 5, 24, metric, slow ? 500 : 6000, 17);
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            if (!slow || (i + (size_t)(d - datasets)) % 3 == 0)
                check_pair(&p, d->name, i % 2 ? 17 : 1, ks[i], NULL, 0);
        pair_free(&p);
    }
}

/* Enough rows for a threshold from a sample. */
static void many_rows_are_sampled_first(void **state)
{
    if (device_is_slow(*state))
        return;
    static const char *const names[] = {"random normal", "clustered", "sorted", "adversarial"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int m = 0; m < METRICS; m++) {
            if (TEST_INSTRUMENTED && (size_t)m != i % METRICS)
                continue;
            pair p = pair_make(*state, dataset_named(names[i]), 77, 32, metrics[m], 30000, 40);
            check_pair(&p, names[i], 40, 10, NULL, 0);
            check_pair(&p, names[i], 1, 10, NULL, 0);
            pair_free(&p);
        }
    }
}

static void masks_and_removed_rows_are_honoured_in_the_screen(void **state)
{
    const int64_t count = device_is_slow(*state) ? 400 : 3000;
    test_random random = {3};
    uint64_t mask[48];
    for (int m = 0; m < METRICS_IN_TURN; m++) {
        pair p = pair_make(*state, dataset_named("random normal"), 8, 50, metrics[m], count, 20);
        for (int64_t row = 0; row < count; row += 1 + (int64_t)random_below(&random, 4)) {
            char id[24];
            const char *ids[] = {id};
            snprintf(id, sizeof id, "%lld", (long long)row);
            CHECK_OK(ww_collection_remove(p.screened, ids, 1));
            CHECK_OK(ww_collection_remove(p.plain, ids, 1));
        }
        for (int density = 0; density < 3; density++) {
            for (int w = 0; w < 48; w++)
                mask[w] = density == 0   ? random_bits(&random)
                          : density == 1 ? random_bits(&random) & random_bits(&random) & random_bits(&random)
                                         : random_bits(&random) | random_bits(&random);
            check_pair(&p, "masked", 20, 10, mask, count);
            check_pair(&p, "masked", 1, 10, mask, count - 77);
        }
        check_pair(&p, "some removed", 20, 10, NULL, 0);
        CHECK_OK(ww_collection_compact(p.screened, NULL, NULL));
        CHECK_OK(ww_collection_compact(p.plain, NULL, NULL));
        check_pair(&p, "compacted", 20, 10, NULL, 0);
        check_pair(&p, "compacted", 2, 3, NULL, 0);
        pair_free(&p);
    }
}

/* Rows for which every part of the bound is needed. Queries are all ones, coded without error. So are most rows: 127 and then
 * zeros, at scale 1, except for the decoys, which have `ones` ones. The others, HIDDEN of them, have 0.499 after their 127,
 * whose codes are 0, so that all of their coding error points along the query. For 128 elements, with w the share of the bound
 * that is trusted:
 *
 *              decoy            hidden, true score    hidden, at most as the screen has it
 *   dot        127 + ones       190.4                 127 + 63.6 w
 *   cosine     the same / 127.2 the same / 127.1      the same / 127.1
 *   l2^2       16003 - ones     15907.9               16034.6 - 127.2 w
 *
 * With all of the bound the hidden rows are the best. With 9/10 of it they look worse than the decoys, so that none is found.
 * There are enough rows for a CPU to take a sample first. Without a sample, each thread scores rows until it knows k of them,
 * and may find hidden ones by chance. */
enum { HIDDEN = 32, HIDDEN_DIM = 128, HIDDEN_COUNT = 16000, HIDDEN_COUNT_GPU = 1600, HIDDEN_QUERIES = 9, HIDDEN_K = 20 };

static void hide(float *rows, int64_t count, int32_t ones)
{
    for (int64_t i = 0; i < count; i++) {
        const bool hidden = i % (count / HIDDEN) == 31, decoy = i % 13 == 5;
        float *row = rows + i * HIDDEN_DIM;
        row[0] = 127.0f;
        for (int32_t j = 1; j < HIDDEN_DIM; j++)
            row[j] = hidden ? 0.499f : decoy && j <= ones ? 1.0f : 0.0f;
    }
}

static void a_bound_that_is_too_small_is_noticed(void **state)
{
    static const int32_t ones[] = {[WW_COSINE] = 60, [WW_L2] = 89, [WW_DOT] = 60};
    static const float factors[] = {0.9f, 0.5f, 0.0f};
    ww_device *device = *state;
    const int64_t count = strcmp(device->backend->name, "cpu") == 0 ? HIDDEN_COUNT : HIDDEN_COUNT_GPU;
    for (int m = 0; m < METRICS_IN_TURN; m++) {
        pair p = {.dim = HIDDEN_DIM, .count = count, .query_count = HIDDEN_QUERIES};
        p.rows = malloc((size_t)count * HIDDEN_DIM * sizeof *p.rows);
        p.queries = malloc((size_t)HIDDEN_QUERIES * HIDDEN_DIM * sizeof *p.queries);
        hide(p.rows, count, ones[metrics[m]]);
        for (int64_t i = 0; i < (int64_t)HIDDEN_QUERIES * HIDDEN_DIM; i++)
            p.queries[i] = 1.0f;
        p.screened = collection_with(*state, HIDDEN_DIM, metrics[m], WW_SCREEN_INT8, p.rows, count);
        p.plain = collection_with(*state, HIDDEN_DIM, metrics[m], WW_SCREEN_NONE, p.rows, count);
        ww_search_stats stats;
        for (int64_t queries = 1; queries <= HIDDEN_QUERIES; queries += HIDDEN_QUERIES - 1)
            assert_int_equal(first_difference(&p, queries, HIDDEN_K, NULL, 0, &stats), -1);
        for (size_t t = 0; t < sizeof factors / sizeof *factors; t++) {
            ww_collection_destroy(p.screened);
            p.screened = collection_with(*state, HIDDEN_DIM, metrics[m], WW_SCREEN_INT8, p.rows, count);
            shrink_bounds(p.screened, factors[t]);
            for (int64_t queries = 1; queries <= HIDDEN_QUERIES; queries += HIDDEN_QUERIES - 1) {
                const int64_t at = first_difference(&p, queries, HIDDEN_K, NULL, 0, &stats);
                if (at < 0 && stats.repeated_queries == 0) /* if the certificate detects it, the search is repeated */
                    fail_msg("metric %d, %d queries: right results with %g of the bound", (int)metrics[m], (int)queries,
                             (double)factors[t]);
            }
        }
        pair_free(&p);
    }
}

static void statistics_count_the_work_done(void **state)
{
    const int64_t count = device_is_slow(*state) ? 4000 : 20000, many = device_is_slow(*state) ? 9 : 32;
    ww_search_stats stats;
    pair p = pair_make(*state, dataset_named("random normal"), 31, 128, WW_COSINE, count, many);
    for (int64_t queries = 1; queries <= many; queries += many - 1) {
        assert_int_equal(first_difference(&p, queries, 10, NULL, 0, &stats), -1);
        const int64_t pairs = queries * p.count;
        assert_true(stats.rows_screened > pairs / 2 && stats.rows_screened <= pairs);
        assert_true(stats.rows_kept >= 10 * queries / 2 && stats.rows_kept < pairs / 20);
        assert_true(stats.rows_scored >= 10 * queries && stats.rows_scored < pairs / 4);
        assert_true(stats.certificate >= 0.0f && isfinite(stats.certificate));
    }
    pair_free(&p);
    /* Rows that cannot be distinguished: queries fall back, in the way that the device has. */
    p = pair_make(*state, dataset_named("all equal"), 31, 128, WW_COSINE, device_is_slow(*state) ? 6000 : 20000, many);
    assert_int_equal(first_difference(&p, many, 10, NULL, 0, &stats), -1);
    assert_int_equal(stats.fallback_queries, many);
    assert_true(stats.rows_kept > 0 && stats.rows_kept <= stats.rows_screened);
    assert_true(stats.certificate >= 0.0f);
    pair_free(&p);
}

static void without_a_screen_every_row_is_scored(void **state)
{
    test_random random = {4};
    float rows[200 * 8], scores[5];
    int64_t found[5];
    random_normals(&random, rows, 200 * 8);
    ww_collection *c = collection_with(*state, 8, WW_L2, WW_SCREEN_NONE, rows, 200);
    ww_query search = ww_query_default();
    ww_search_stats stats = ww_search_stats_default();
    search.queries = rows;
    search.query_count = 1;
    search.dim = 8;
    search.k = 5;
    search.stats = &stats;
    stats.rows_screened = 77;
    CHECK_OK(ww_collection_search(c, &search, found, scores));
    assert_int_equal(stats.rows_screened, 0);
    assert_int_equal(stats.rows_kept, 0);
    assert_true(isinf(stats.certificate));
    search.k = 0;
    stats.rows_screened = 77;
    CHECK_OK(ww_collection_search(c, &search, NULL, NULL));
    assert_int_equal(stats.rows_screened, 0);
    stats.struct_size = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(c, &search, found, scores));
    ww_collection_destroy(c);
}

static void a_screen_takes_a_quarter_more_memory_and_no_screen_takes_none(void **state)
{
    enum { DIM = 128, COUNT = 640 };
    float *rows = calloc((size_t)COUNT * DIM, sizeof *rows);
    ww_collection_info info = ww_collection_info_default();
    ww_collection *c = collection_with(*state, DIM, WW_DOT, WW_SCREEN_INT8, rows, COUNT);
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.screen, WW_SCREEN_INT8);
    const double planes = strncmp(info.device, "cpu", 3) == 0 ? 0.13 : 0.0; /* a CPU has the high planes of the codes, too */
    assert_true((double)info.bytes_screen > (0.25 + planes * 0.9) * (double)info.bytes_rows);
    assert_true((double)info.bytes_screen < (0.27 + planes) * (double)info.bytes_rows);
    CHECK_OK(ww_collection_clear(c));
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.bytes_screen, 0);
    ww_collection_destroy(c);
    c = collection_with(*state, DIM, WW_DOT, WW_SCREEN_NONE, rows, COUNT);
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.screen, WW_SCREEN_NONE);
    assert_int_equal(info.bytes_screen, 0);
    ww_collection_destroy(c);
    free(rows);
}

static void a_screen_that_is_not_there_is_refused(void **state)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = 3;
    config.screen = (ww_screen)2;
    ww_collection *c = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, &config, &c));
    assert_string_equal(ww_screen_name(WW_SCREEN_INT8), "int8");
    assert_string_equal(ww_screen_name(WW_SCREEN_NONE), "none");
    assert_null(ww_screen_name((ww_screen)2));
}

/* Every instruction set of this machine, each with its own products and test. */
static void every_instruction_set_gives_the_results_of_the_full_scan(void **state)
{
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if (!(*set)->present())
            continue;
        setenv("WARPWAVE_ISA", (*set)->name, 1);
        ww_device *device = NULL;
        CHECK_OK(ww_device_open("cpu", &device));
        for (const dataset *d = datasets; d->name; d++) {
            for (int m = 0; m < METRICS; m++) {
                if (TEST_INSTRUMENTED &&
                    ((d - datasets) % METRICS != m || ((d - datasets) / METRICS + (set - instruction_sets)) % 2 != 0))
                    continue;
                pair p =
                    pair_make(device, d, 90 + (uint64_t)m, m == 1 ? 700 : 100, metrics[m], TEST_INSTRUMENTED ? 130 : 700, 37);
                check_pair(&p, d->name, 37, 10, NULL, 0);
                check_pair(&p, d->name, 2, 10, NULL, 0);
                pair_free(&p);
            }
        }
        ww_device_close(device);
    }
    unsetenv("WARPWAVE_ISA");
}

/* Opens the CPU with one worker, which reads rows in their order: so the test knows when it reads which. */
static ww_device *open_alone(void)
{
    ww_device *device = NULL;
    cpu_set_t mine, one;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &mine))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_OK(ww_device_open("cpu", &device));
    assert_int_equal(sched_setaffinity(0, sizeof mine, &mine), 0);
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    assert_int_equal(info.compute_units, 1);
    return device;
}

enum { UNEQUAL_DIM = 64, UNEQUAL_WORDS = 144, UNEQUAL_SAMPLED = 18, UNEQUAL_QUERIES = 4 };

/* A point near one of two places. */
static void put_near(test_random *random, float *vector, float place, float radius)
{
    for (int32_t i = 0; i < UNEQUAL_DIM; i++)
        vector[i] = place + radius * random_normal(random);
}

/* Every 18th word of 64 rows is in the sample, which gives each query a threshold, and then all lists of results are empty
 * again. The first query is at one place, the other three are at another. Word 0 has the first one's nearest row, so its list
 * is full from there on. Word 5, not sampled, is all near the other three, which keep all of it: so it is scored for the whole
 * group, and their lists are still empty. All other rows are far from everything. */
static void make_unequal(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t i = 0; i < count; i++)
        put_near(random, rows + i * dim, 20.0f, 1.0f);
    put_near(random, rows, -1.0f, 0.1f);
    for (int64_t i = 5 * 64; i < 6 * 64; i++)
        put_near(random, rows + i * dim, 1.0f, 0.1f);
    put_near(random, rows + (UNEQUAL_WORDS - UNEQUAL_SAMPLED) * 64 * (int64_t)dim, 1.0f, 1.0f); /* sampled, and less near */
    for (int64_t q = 0; q < query_count; q++)
        put_near(random, queries + q * dim, q == 0 ? -1.0f : 1.0f, 0.1f);
}

/* Many queries by l2 are tried by dot products once the first one's list is full: they are never taken for distances. */
static void lists_of_a_group_that_fill_unequally_give_the_results_of_the_full_scan(void **state)
{
    (void)state;
    static const dataset unequal = {"unequal lists", make_unequal};
    ww_device *device = open_alone();
    pair p = pair_make(device, &unequal, 7, UNEQUAL_DIM, WW_L2, UNEQUAL_WORDS * 64, UNEQUAL_QUERIES);
    ww_search_stats stats;
    assert_int_equal(first_difference(&p, UNEQUAL_QUERIES, 1, NULL, 0, &stats), -1);
    assert_int_equal(stats.fallback_queries,
                     UNEQUAL_QUERIES); /* the group was scored as a whole, and only where it was dense */
    assert_true(stats.rows_screened > (UNEQUAL_WORDS - 2) * 64 * UNEQUAL_QUERIES && stats.rows_kept < 256);
    pair_free(&p);
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_data_gives_the_results_of_the_full_scan),
        cmocka_unit_test(long_vectors_give_the_results_of_the_full_scan),
        cmocka_unit_test(any_number_of_results_is_that_of_the_full_scan),
        cmocka_unit_test(many_rows_are_sampled_first),
        cmocka_unit_test(masks_and_removed_rows_are_honoured_in_the_screen),
        cmocka_unit_test(a_bound_that_is_too_small_is_noticed),
        cmocka_unit_test(statistics_count_the_work_done),
        cmocka_unit_test(without_a_screen_every_row_is_scored),
        cmocka_unit_test(a_screen_takes_a_quarter_more_memory_and_no_screen_takes_none),
        cmocka_unit_test(a_screen_that_is_not_there_is_refused),
    };
    const struct CMUnitTest of_the_cpu[] = {
        cmocka_unit_test(every_instruction_set_gives_the_results_of_the_full_scan),
        cmocka_unit_test(lists_of_a_group_that_fill_unequally_give_the_results_of_the_full_scan),
    };
    const bool again = getenv("WARPWAVE_HIP_LIBRARY") != NULL; /* on the stand-in, after the CPU */
    return RUN_ON_EVERY_DEVICE("screen", tests) + (again ? 0 : cmocka_run_group_tests(of_the_cpu, NULL, NULL));
}
