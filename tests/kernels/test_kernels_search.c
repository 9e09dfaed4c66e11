/* The search kernels, each shape of them, against the CPU to the bit: on emulated GPUs with waves of 32 and of 64, in several
 * orders of waves, or on the devices that WARPWAVE_TEST_DEVICES names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "gpu/search/search.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3 };

static ww_device *cpu;
static bool again; /* not the first order of waves, or not the place for all of them: the smaller sizes are enough */

/* The same rows on the CPU and on the device under test. */
typedef struct twins {
    ww_collection *here, *there;
    int32_t dim;
    int64_t count;
    ww_progress progress; /* or NULL */
} twins;

/* Rows go in by `pieces`, so that there are as many segments or more. */
static twins twins_make(ww_device *device, ww_metric metric, const float *vectors, int64_t count, int32_t dim, int64_t pieces)
{
    twins t = {collection_make(cpu, dim, metric), collection_make(device, dim, metric), dim, count, NULL};
    for (int64_t done = 0; done < count;) {
        const int64_t left = count - done, piece = count / pieces + 1 < left ? count / pieces + 1 : left;
        ww_rows rows = ww_rows_default();
        rows.count = piece;
        rows.dim = dim;
        rows.vectors = vectors + done * dim;
        CHECK_OK(ww_collection_add(t.here, &rows));
        CHECK_OK(ww_collection_add(t.there, &rows));
        done += piece;
    }
    return t;
}

static void twins_free(twins *t)
{
    ww_collection_destroy(t->here);
    ww_collection_destroy(t->there);
}

/* Removes every third row, and a run longer than a word. */
static void twins_remove_some(twins *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        if (i % 3 != 1 && (i < 70 || i >= 200))
            continue;
        char text[32];
        const char *id = text;
        snprintf(text, sizeof text, "%lld", (long long)i);
        CHECK_OK(ww_collection_remove(t->here, &id, 1));
        CHECK_OK(ww_collection_remove(t->there, &id, 1));
    }
}

static void check_twins(const twins *t, const float *queries, int64_t query_count, int32_t k, const uint64_t *mask,
                        int64_t mask_rows)
{
    const size_t results = (size_t)(query_count * k);
    int64_t *rows = malloc(2 * results * sizeof *rows);
    float *scores = malloc(2 * results * sizeof *scores);
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = query_count;
    search.dim = t->dim;
    search.k = k;
    search.mask = mask;
    search.mask_rows = mask_rows;
    search.progress = t->progress;
    CHECK_OK(ww_collection_search(t->here, &search, rows, scores));
    CHECK_OK(ww_collection_search(t->there, &search, rows + results, scores + results));
    for (size_t i = 0; i < results; i++)
        if (rows[i] != rows[results + i] || canon_float_bits(scores[i]) != canon_float_bits(scores[results + i]))
            fail_msg("dim %d, %lld rows, %lld queries, k %d: query %zu, result %zu: row %lld with %a, not row %lld with %a",
                     t->dim, (long long)t->count, (long long)query_count, k, i / (size_t)k, i % (size_t)k,
                     (long long)rows[results + i], scores[results + i], (long long)rows[i], scores[i]);
    free(rows);
    free(scores);
}

static float *normals(uint64_t seed, int64_t count)
{
    test_random random = {seed};
    float *values = malloc((size_t)count * sizeof *values);
    random_normals(&random, values, count);
    return values;
}

/* One query, and batches: a part of a block, a whole block, slightly more, several blocks. */
static const int64_t query_counts[] = {1, 3, 8, 9, 33, 64, 70};
enum { QUERY_COUNTS = 7, QUERIES_MAX = 70 };

static void every_dimension_gives_the_cpus_bits(void **state)
{
    static const int32_t dims[] = {1, 65, 128, 192, 3, 63, 64, 384, 768, 1536, 4096};
    for (size_t d = 0; d < (again ? 4 : sizeof dims / sizeof *dims); d++) {
        const int32_t dim = dims[d];
        const int64_t count = dim > 192 || again ? 67 : 200;
        float *vectors = normals(dim, count * dim), *queries = normals(99, (int64_t)QUERIES_MAX * dim);
        for (int m = 0; m < METRICS; m++) {
            twins t = twins_make(*state, metrics[m], vectors, count, dim, 2);
            for (int q = 0; q < QUERY_COUNTS; q++)
                if ((q + m) % METRICS == 0 && (dim <= 384 || query_counts[q] < 33)) /* each kernel and each metric once */
                    check_twins(&t, queries, query_counts[q], 10, NULL, 0);
            twins_free(&t);
        }
        free(vectors);
        free(queries);
    }
}

static void every_k_gives_the_cpus_rows(void **state)
{
    enum { DIM = 8, LONG = 130, COUNT = 2500 };
    static const int32_t ks[] = {1, 10, 100, WW_K_MAX};
    float *vectors = normals(5, COUNT * LONG), *queries = normals(6, QUERIES_MAX * LONG);
    for (int m = 0; m < (again ? 1 : METRICS); m++) {
        twins t = twins_make(*state, metrics[m], vectors, again ? 600 : COUNT, m == 1 ? LONG : DIM, 3);
        for (int i = 0; i < 4; i++)
            check_twins(&t, queries, query_counts[(m + i) % 3], ks[i], NULL, 0);
        check_twins(&t, queries, 9, ks[m + 1], NULL, 0);
        if (m == 0)
            check_twins(&t, queries, 64, again ? 100 : WW_K_MAX, NULL, 0);
        twins_free(&t);
    }
    free(vectors);
    free(queries);
}

/* Rows that get better and better fill every list again and again; rows that get worse and worse never pass a gate; equal rows
 * pass it all, and only their numbers decide. */
static void no_order_of_rows_is_too_much(void **state)
{
    enum { LONG = 129, COUNT = 1500 };
    float *vectors = calloc(COUNT * LONG, sizeof *vectors), *queries = calloc(9 * LONG, sizeof *queries);
    for (int order = 0; order < (again ? 1 : 3); order++) {
        for (int m = 0; m < METRICS; m++) {
            const int dim = m == order ? LONG : 4;
            for (int i = 0; i < COUNT; i++) {
                const float step = order == 0 ? (float)i : order == 1 ? (float)(COUNT - i) : 7.0f;
                const float row[4] = {step, 0.5f * step, 1.0f, -step};
                memcpy(vectors + (size_t)i * dim, row, sizeof row);
            }
            for (int i = 0; i < 5; i++) {
                static const float some[5][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 1, 1}, {-1, 0, 0, 0}, {0, -1, 0, 0}};
                memcpy(queries + (size_t)i * dim, some[i], sizeof some[i]);
            }
            twins t = twins_make(*state, metrics[m], vectors, again ? 500 : COUNT, dim, 1);
            check_twins(&t, queries, 1, 10, NULL, 0);
            check_twins(&t, queries, 4, 100, NULL, 0);
            check_twins(&t, queries, 9, 33, NULL, 0);
            twins_free(&t);
            memset(vectors, 0, COUNT * LONG * sizeof *vectors);
            memset(queries, 0, 9 * LONG * sizeof *queries);
        }
    }
    free(vectors);
    free(queries);
}

static void masks_and_removed_rows_are_left_out(void **state)
{
    enum { DIM = 20, LONG = 140, COUNT = 700, WORDS = (COUNT + 63) / 64 };
    test_random random = {8};
    float *vectors = normals(7, COUNT * LONG), *queries = normals(9, QUERIES_MAX * LONG);
    uint64_t mask[WORDS];
    for (int m = 0; m < METRICS; m++) {
        twins t = twins_make(*state, metrics[m], vectors, again ? 330 : COUNT, m == 0 ? DIM : LONG, 4);
        twins_remove_some(&t);
        for (int q = 0; q < QUERY_COUNTS; q++) {
            /* Ever sparser, with words that are empty. */
            for (int w = 0; w < WORDS; w++) {
                mask[w] = w % 3 == q % 3 ? 0 : random_bits(&random);
                for (int i = 0; i < q; i++)
                    mask[w] &= random_bits(&random);
            }
            if (q % METRICS != m)
                continue;
            check_twins(&t, queries, query_counts[q], 20, NULL, 0);
            check_twins(&t, queries, query_counts[q], 20, mask, COUNT - 37 * q);
        }
        memset(mask, 0, sizeof mask);
        check_twins(&t, queries, 9, 5, mask, COUNT);
        check_twins(&t, queries, 70, 5, mask, COUNT);
        twins_free(&t);
    }
    free(vectors);
    free(queries);
}

/* Denormals, values whose squares vanish or nearly overflow, zeros of both signs, rows of nothing but zeros. */
static void strange_values_are_scored_as_on_the_cpu(void **state)
{
    enum { DIM = 66, COUNT = 190 };
    test_random random = {11};
    float *vectors = malloc(COUNT * DIM * sizeof *vectors), *queries = malloc(QUERIES_MAX * DIM * sizeof *queries);
    for (int i = 0; i < (COUNT + QUERIES_MAX) * DIM; i++) {
        static const int exponents[] = {0, -70, -140, 30, -149, 57};
        const int row = i / DIM;
        float value = ldexpf(random_normal(&random), exponents[row % 6]);
        if (row % 6 == 4)
            value = (float)((int)random_below(&random, 3) - 1) * ldexpf(1, -149);
        if (row % 11 == 5 || random_below(&random, 5) == 0)
            value = random_below(&random, 2) ? 0.0f : -0.0f;
        if (row < COUNT)
            vectors[i] = value;
        else
            queries[i - COUNT * DIM] = value;
    }
    for (int m = 0; m < METRICS; m++) {
        twins t = twins_make(*state, metrics[m], vectors, COUNT, DIM, 2);
        for (int q = 0; q < QUERY_COUNTS; q++)
            if (!again || q % METRICS == m)
                check_twins(&t, queries, query_counts[q], 40, NULL, 0);
        twins_free(&t);
    }
    free(vectors);
    free(queries);
}

static void any_number_of_rows_will_do(void **state)
{
    enum { DIM = 3, COUNT = 1000 };
    static const int64_t counts[] = {1, 15, 16, 63, 64, 65, 255, 256, 257, 511, COUNT};
    float *vectors = normals(12, COUNT * DIM), *queries = normals(13, QUERIES_MAX * DIM);
    for (size_t i = again ? 4 : 0; i < sizeof counts / sizeof *counts - again; i++) {
        twins t = twins_make(*state, metrics[i % METRICS], vectors, counts[i], DIM, 1);
        for (int q = 0; q < QUERY_COUNTS; q++)
            if ((size_t)q % 4 == i % 4)
                check_twins(&t, queries, query_counts[q], 20, NULL, 0);
        twins_free(&t);
    }
    free(vectors);
    free(queries);
}

/* Rows of odd and even numbers of runs, in one stage and in several, for one octet of queries and for more. */
static void rows_that_an_engine_copies_give_the_cpus_bits(void **state)
{
    enum { LONGEST = 384, COUNT = 330 };
    static const int32_t dims[] = {129, 192, 320, LONGEST};
    float *vectors = normals(16, COUNT * LONGEST), *queries = normals(17, QUERIES_MAX * LONGEST);
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (int m = 0; m < METRICS; m++) {
            twins t = twins_make(*state, metrics[m], vectors, COUNT, dims[d], 2);
            check_twins(&t, queries, query_counts[1 + (d + (size_t)m) % 4], m == 0 ? 100 : 10, NULL, 0);
            twins_free(&t);
        }
    free(vectors);
    free(queries);
}

static int go_on(int64_t done, int64_t total, void *user)
{
    (void)user;
    return done > total;
}

static void queries_in_rounds_are_answered_as_at_once(void **state)
{
    enum { DIM = 2, COUNT = 60, QUERIES = 1030 }; /* more than the queries of a round with a progress callback */
    float *vectors = normals(14, COUNT * DIM), *queries = normals(15, QUERIES * DIM);
    twins t = twins_make(*state, WW_L2, vectors, COUNT, DIM, 1);
    t.progress = go_on;
    check_twins(&t, queries, QUERIES, 2, NULL, 0);
    twins_free(&t);
    free(vectors);
    free(queries);
}

/* ---- the merge alone ----------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const canon_key x = *(const canon_key *)a, y = *(const canon_key *)b;
    return x < y ? -1 : x > y;
}

/* Keys that blocks could leave for the merge, which are more on a GPU with many blocks than in emulated searches: in any order,
 * each better than all before it, next to each other, and as far apart as possible. */
static void make_keys(test_random *random, int32_t kind, canon_key *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t number = random_bits(random);
        keys[i] = kind == 0   ? number % 1000 << 32 | (i + 1)
                  : kind == 1 ? (canon_key)(count - i) << 32
                  : kind == 2 ? ((canon_key)0xbf800000u << 32) + i * (uint64_t)7919 % count
                              : number % (UINT64_MAX - 1) + 1;
    }
}

static void merge_keys(gpu_device *device, const canon_key *keys, uint32_t count, uint32_t k, canon_key *best)
{
    gpu_stream *stream = NULL;
    void *found = NULL, *rest = NULL, *to = NULL;
    const struct {
        uint64_t worst;
        uint32_t taken;
    } given = {CANON_KEY_WORST, count};
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_OK(gpu_workspace(stream, 0, (count + 1) * sizeof *keys, &found));
    CHECK_OK(gpu_workspace(stream, 1, sizeof given, &rest));
    CHECK_OK(gpu_workspace(stream, 2, k * sizeof *best, &to));
    CHECK_OK(gpu_copy_in(stream, found, keys, count * sizeof *keys));
    CHECK_OK(gpu_copy_in(stream, rest, &given, sizeof given));
    const search_merge_args args = {
        .lists = {.found = found, .taken = (uint32_t *)((uint64_t *)rest + 1), .parts = 1, .trigger = count, .k = k},
        .worst = rest,
        .best = to};
    CHECK_OK(launch_search_merge(stream, grid_of(1), SEARCH_THREADS, 0, &args));
    CHECK_OK(gpu_copy_out(stream, best, to, k * sizeof *best));
    CHECK_OK(gpu_stream_return(stream, WW_OK));
}

static void any_number_of_keys_is_merged_to_the_best_in_order(void **state)
{
    static const uint32_t counts[] = {0, 1, 63, 64, 65, 1000, 1025, 3000, 9000}, ks[] = {1, 10, 32, 33, 300, 2048};
    enum { MOST = 9000 };
    canon_key *keys = malloc(MOST * sizeof *keys), best[2048];
    test_random random = {77};
    assert_non_null(keys);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (size_t n = 0; n < sizeof ks / sizeof ks[0]; n++) {
            const uint32_t count = counts[c], k = ks[n];
            make_keys(&random, (int32_t)((c + n) % 4), keys, count);
            merge_keys(gpu_of(*state), keys, count, k, best);
            qsort(keys, count, sizeof *keys, by_key);
            for (uint32_t i = 0; i < k; i++)
                assert_int_equal(best[i], i < count ? keys[i] : CANON_KEY_WORST);
        }
    free(keys);
}

static int stream_always(void **state)
{
    ww_device *device = *state;
    pretend_sm_90a(device, true);
    pretend_small_streams(device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dimension_gives_the_cpus_bits),
        cmocka_unit_test(every_k_gives_the_cpus_rows),
        cmocka_unit_test(no_order_of_rows_is_too_much),
        cmocka_unit_test(masks_and_removed_rows_are_left_out),
        cmocka_unit_test(strange_values_are_scored_as_on_the_cpu),
        cmocka_unit_test(any_number_of_rows_will_do),
        cmocka_unit_test(queries_in_rounds_are_answered_as_at_once),
        cmocka_unit_test(any_number_of_keys_is_merged_to_the_best_in_order),
    };
    const struct CMUnitTest streamed[] = {
        cmocka_unit_test_setup(rows_that_an_engine_copies_give_the_cpus_bits, stream_always),
        cmocka_unit_test_setup(no_order_of_rows_is_too_much, stream_always),
        cmocka_unit_test_setup(masks_and_removed_rows_are_left_out, stream_always),
    };
    setenv("WARPWAVE_TEST_DEVICES", test_is_short() ? "emulator:32" : "emulator:32,emulator:64", 0);
    if (ww_device_open("cpu", &cpu) != WW_OK)
        return 1;
    int failed = 0;
    again = TEST_INSTRUMENTED || getenv("WARPWAVE_HIP_LIBRARY") != NULL; /* on the stand-in: the same kernels again */
    for (const char *seed = again ? "1" : test_is_long() ? "012" : "0"; *seed && failed == 0; seed++) {
        const char text[2] = {*seed, 0};
        setenv("WARPWAVE_EMULATOR_SEED", text, 1);
        failed += RUN_ON_EVERY_DEVICE("search kernels", tests);
        again = true;
        failed += RUN_ON_EVERY_DEVICE("search kernels for chips with a copy engine", streamed);
    }
    ww_device_close(cpu);
    return failed;
}
