/* Adversarial rows through the gates of sm_90a (screen_wgmma.c), of MFMA (screen_mfma.c) and the other kernels of the screen:
 * every kind of data, metric, length of rows and number of queries, with and without a mask, searches and range searches, each
 * to the bits of the CPU. On a card with code for sm_90a that is more than a thousand configurations through the gates, and the
 * test counts them; on emulated devices, which run the same kernels, a few of each kind of data, by one and the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
static const int32_t dims[] = {1, 24, 64, 65, 200, 768, 1100};
enum { METRICS = 3, DIMS = 7, ROWS_MAX = 2100, ROWS_SLOW = 700, QUERIES_MAX = 260, KINDS_MAX = 32 };

/* More than SCREEN_SMALL_BATCH_MAX go through gates, by one team of 64 to four. */
static const struct shape {
    int64_t queries;
    int32_t k;
    bool masked;
} shapes[] = {{9, 10, false}, {20, 1, true}, {65, 17, false}, {130, 10, false}, {260, 5, true}, {1, 10, false}, {7, 20, false}};
enum { SHAPES = 7, SHAPES_OF_GATES = 5 };

static ww_device *cpu;

/* The same rows on the CPU and on the device under test. */
typedef struct twins {
    ww_device *device;
    ww_collection *here, *there;
    const char *kind;
    ww_metric metric;
    int32_t dim;
    int64_t count;
    float *rows, *queries;
    uint64_t mask[ROWS_MAX / 64 + 1];
} twins;

static void twins_make(twins *t, ww_device *device, const dataset *data, ww_metric metric, int32_t dim)
{
    test_random random = {(uint64_t)dim * 7 + (uint64_t)metric + 1};
    *t = (twins){.device = device, .kind = data->name, .metric = metric, .dim = dim};
    t->count = device_is_slow(device) ? ROWS_SLOW : ROWS_MAX;
    t->rows = malloc((size_t)t->count * (size_t)dim * sizeof *t->rows);
    t->queries = malloc((size_t)QUERIES_MAX * (size_t)dim * sizeof *t->queries);
    data->make(&random, dim, t->rows, t->count, t->queries, QUERIES_MAX);
    for (size_t i = 0; i < sizeof t->mask / sizeof *t->mask; i++)
        t->mask[i] = i % 5 == 3 ? 0 : random_bits(&random);
    t->here = collection_make(cpu, dim, metric);
    t->there = collection_make(device, dim, metric);
    for (int64_t done = 0; done < t->count; done += 1003) { /* several segments */
        ww_rows some = ww_rows_default();
        some.count = t->count - done < 1003 ? t->count - done : 1003;
        some.dim = dim;
        some.vectors = t->rows + done * dim;
        CHECK_OK(ww_collection_add(t->here, &some));
        CHECK_OK(ww_collection_add(t->there, &some));
    }
    const bool mfma = ((gpu_device *)device)->driver->capabilities && (dim + (int32_t)metric) % 2 != 0;
    pretend_screen(device, true);
    pretend_sm_90a(device, !mfma);
    pretend_mfma(device, mfma);
}

static void twins_free(twins *t)
{
    ww_collection_destroy(t->here);
    ww_collection_destroy(t->there);
    free(t->rows);
    free(t->queries);
    pretend_nothing(t->device);
}

static void check_stats(const twins *t, const struct shape *shape, const ww_search_stats *stats)
{
    if (!(stats->certificate >= 0.0f) || stats->repeated_queries != 0 || stats->rows_screened == 0)
        fail_msg("%s, metric %d, dim %d, %lld queries: certificate %g, %lld queries repeated, %lld rows screened", t->kind,
                 (int)t->metric, t->dim, (long long)shape->queries, (double)stats->certificate,
                 (long long)stats->repeated_queries, (long long)stats->rows_screened);
}

/* Returns the score of the last query's k-th result, as a bound for a range. */
static float compare_search(const twins *t, const struct shape *shape)
{
    const size_t results = (size_t)(shape->queries * shape->k);
    int64_t *rows = malloc(2 * results * sizeof *rows);
    float *scores = malloc(2 * results * sizeof *scores);
    ww_query search = ww_query_default();
    ww_search_stats stats = ww_search_stats_default();
    search.queries = t->queries;
    search.query_count = shape->queries;
    search.dim = t->dim;
    search.k = shape->k;
    search.mask = shape->masked ? t->mask : NULL;
    search.mask_rows = shape->masked ? t->count : 0;
    CHECK_OK(ww_collection_search(t->here, &search, rows, scores));
    search.stats = &stats;
    CHECK_OK(ww_collection_search(t->there, &search, rows + results, scores + results));
    if (memcmp(rows, rows + results, results * sizeof *rows) != 0 ||
        memcmp(scores, scores + results, results * sizeof *scores) != 0)
        fail_msg("%s, metric %d, dim %d, %lld queries, k %d%s: not the bits of the CPU", t->kind, (int)t->metric, t->dim,
                 (long long)shape->queries, shape->k, shape->masked ? ", masked" : "");
    check_stats(t, shape, &stats);
    const float bound = scores[results - 1];
    free(rows);
    free(scores);
    return bound;
}

static void compare_range(const twins *t, const struct shape *shape, float bound)
{
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    ww_search_stats stats = ww_search_stats_default();
    ww_results *here = NULL, *there = NULL;
    range.queries = t->queries;
    range.query_count = shape->queries;
    range.dim = t->dim;
    range.bound = bound;
    range.limit = 200;
    CHECK_OK(ww_collection_query(t->here, &range, &here));
    range.stats = &stats;
    CHECK_OK(ww_collection_query(t->there, &range, &there));
    for (int64_t q = 0; q < shape->queries; q++) {
        const size_t hits = (size_t)ww_results_count(here, q);
        if (ww_results_total(here, q) != ww_results_total(there, q) || ww_results_count(there, q) != (int64_t)hits ||
            (hits > 0 && (memcmp(ww_results_rows(here, q), ww_results_rows(there, q), hits * sizeof(int64_t)) != 0 ||
                          memcmp(ww_results_scores(here, q), ww_results_scores(there, q), hits * sizeof(float)) != 0)))
            fail_msg("%s, metric %d, dim %d, query %lld of %lld, bound %a: not the range of the CPU", t->kind, (int)t->metric,
                     t->dim, (long long)q, (long long)shape->queries, (double)bound);
    }
    check_stats(t, shape, &stats);
    ww_results_destroy(here);
    ww_results_destroy(there);
}

/* Searches that were compared, and those of them by enough queries for gates. */
typedef struct tally {
    int64_t searches, gates;
} tally;

/* All shapes on a card; on an emulated device one, another for each collection. */
static void check_collection(ww_device *device, const dataset *data, int number, tally *done)
{
    const int m = number % METRICS, d = number / METRICS % DIMS, only = number % SHAPES_OF_GATES;
    twins t;
    twins_make(&t, device, data, metrics[m], dims[d]);
    for (int s = 0; s < SHAPES; s++) {
        if (device_is_slow(device) && s != only)
            continue;
        const float bound = compare_search(&t, &shapes[s]);
        const bool ranged = s % 2 == 0 && isfinite(bound);
        if (ranged)
            compare_range(&t, &shapes[s], bound);
        done->searches += 1 + ranged;
        done->gates += s < SHAPES_OF_GATES ? 1 + ranged : 0;
    }
    twins_free(&t);
}

static bool has_gates(ww_device *device)
{
    const chip_capabilities *has = &((gpu_device *)device)->capabilities;
    return has->sm_90a_code || has->matrix_f32;
}

static void adversarial_rows_give_the_cpus_bits(void **state)
{
    ww_device *device = *state;
    const bool slow = device_is_slow(device);
    tally done = {0};
    const dataset *kinds[KINDS_MAX];
    int count = 0;
    for (const dataset *d = datasets; d->name; d++)
        kinds[count++] = d;
    for (const dataset *d = extreme_datasets; d->name; d++)
        kinds[count++] = d;
    for (int kind = 0; kind < count; kind += 1 + TEST_INSTRUMENTED)
        for (int number = 0; number < METRICS * DIMS; number++)
            if (!slow || number == kind % (METRICS * 4)) /* for short rows, each metric and length in turn */
                check_collection(device, kinds[kind], number, &done);
    const int64_t gates = has_gates(device) ? done.gates : 0;
    printf("%lld searches of adversarial rows on %s, %lld of them through gates: all have the bits of the CPU\n",
           (long long)done.searches, device->info.id, (long long)gates);
    assert_true(slow || !has_gates(device) || gates >= 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adversarial_rows_give_the_cpus_bits)};
    setenv("WARPWAVE_TEST_DEVICES", test_is_short() ? "emulator:32" : "emulator:32,emulator:64", 0);
    if (ww_device_open("cpu", &cpu) != WW_OK)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE("gates", tests);
    ww_device_close(cpu);
    return failed;
}
