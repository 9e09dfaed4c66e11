/* The screen on a GPU: its codes are those of screen.h, and a screened search gives the CPU's results to the bit, whatever the
 * data; on emulated GPUs with waves of 32 and of 64 in several orders, or on the devices that WARPWAVE_TEST_DEVICES names. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/screen.h"
#include "device/backend.h"
#include "kernels/screen/screen_args.h"
#include "kernels/search/packed_layout.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3 };

static ww_device *cpu;

/* ---- codes --------------------------------------------------------------------------------------------------------------- */

static float canonical_sum_of_squares(const float *x, int32_t padded)
{
    float acc[CANON_LANES] = {0};
    for (int32_t i = 0; i < padded; i++)
        acc[i % CANON_LANES] = fmaf(x[i], x[i], acc[i % CANON_LANES]);
    for (int32_t s = CANON_LANES / 2; s > 0; s /= 2)
        for (int32_t j = 0; j < s; j++)
            acc[j] += acc[j + s];
    return acc[0];
}

/* The offset of the code of element `element` of row `row` on a GPU, in bytes. */
static uint64_t code_place(int32_t chunks, int64_t row, int32_t element)
{
    static const int32_t behind[4] = {0, 32, 16, 48};
    for (int32_t group = 0; group < PACKED_GROUPS; group++)
        for (int32_t i = 0; i < 4; i++)
            if (packed_first(group) + behind[i] == element % CANON_LANES)
                return (screen_code_at(chunks, (uint64_t)row, element / CANON_LANES, (uint32_t)group / 4) +
                        (uint32_t)group % 4) *
                           4 +
                       (uint64_t)i;
    return 0;
}

static void check_codes(const float *row, int32_t dim, const int8_t *codes, int64_t number, float scale, float residual)
{
    const int32_t padded = canon_padded(dim), chunks = padded / CANON_LANES;
    float *x = calloc((size_t)padded, sizeof *x), *rests = calloc((size_t)padded, sizeof *rests);
    float largest = 0;
    memcpy(x, row, (size_t)dim * sizeof *x);
    for (int32_t i = 0; i < dim; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    const float wanted = screen_scale(largest), inverse = screen_inverse(largest);
    for (int32_t i = 0; i < padded; i++) {
        const int32_t code = screen_code(x[i], inverse);
        rests[i] = screen_rest(x[i], wanted, code);
        const int8_t found = codes[code_place(chunks, number, i)];
        if (found != code)
            fail_msg("dim %d: element %d, %a, has code %d, not %d", dim, i, x[i], found, code);
    }
    assert_int_equal(canon_float_bits(scale), canon_float_bits(wanted));
    assert_int_equal(canon_float_bits(residual),
                     canon_float_bits(screen_residual(canonical_sum_of_squares(rests, padded), padded)));
    free(x);
    free(rests);
}

static buffer take(ww_device *device, size_t bytes)
{
    buffer made = {0};
    CHECK_OK(device->backend->buffer_create(device, bytes, &made));
    return made;
}

static segment segment_take(ww_device *device, int32_t dim)
{
    const size_t padded = (size_t)canon_padded(dim);
    const segment made = {.rows = take(device, 64 * padded * sizeof(float)),
                          .norms = take(device, 64 * sizeof(float)),
                          .codes = take(device, 64 * padded),
                          .scales = take(device, 64 * sizeof(float)),
                          .residuals = take(device, 64 * sizeof(float)),
                          .capacity = 64};
    return made;
}

static void segment_give(ww_device *device, segment *held)
{
    buffer *buffers[] = {&held->rows, &held->norms, &held->codes, &held->scales, &held->residuals};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        device->backend->buffer_destroy(device, buffers[i]);
}

/* Row i of the segment must have the codes of rows[numbers[i]]. */
static void check_segment(ww_device *device, const segment *of, const float *rows, const int64_t *numbers, int64_t count,
                          int32_t dim)
{
    const size_t padded = (size_t)canon_padded(dim);
    int8_t *codes = malloc(64 * padded);
    float scales[64], residuals[64];
    device_stream *stream = NULL;
    CHECK_OK(device->backend->stream_create(device, &stream));
    CHECK_OK(device->backend->copy_out(device, stream, codes, (buffer_range){&of->codes, 0, 64 * padded}));
    CHECK_OK(device->backend->copy_out(device, stream, scales, (buffer_range){&of->scales, 0, (size_t)count * sizeof(float)}));
    CHECK_OK(
        device->backend->copy_out(device, stream, residuals, (buffer_range){&of->residuals, 0, (size_t)count * sizeof(float)}));
    for (int64_t i = 0; i < count; i++)
        check_codes(rows + numbers[i] * dim, dim, codes, i, scales[i], residuals[i]);
    device->backend->stream_destroy(device, stream);
    free(codes);
}

static void codes_are_those_of_the_reference(void **state)
{
    static const int32_t dims[] = {1, 3, 63, 64, 65, 128, 200, 1536};
    enum { COUNT = 37 };
    ww_device *device = *state;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        const int32_t dim = dims[d];
        test_random random = {d + 1};
        float *rows = malloc(COUNT * (size_t)dim * sizeof *rows);
        random_normals(&random, rows, (int64_t)COUNT * dim);
        static const float factors[] = {1.0f, 0.0f, 0x1p-101f, 0x1p-100f, 0x1p-140f, 0x1p40f, 0x1p-60f};
        for (int64_t i = 0; i < (int64_t)COUNT * dim; i++)
            rows[i] *= factors[i / dim % 7];
        rows[0] = 1000.0f; /* one coordinate that swallows the scale */
        segment here = segment_take(device, dim), there = segment_take(device, dim);
        int64_t refused, numbers[COUNT], some[] = {0, 1, 2, 17, 30, 36};
        for (int64_t i = 0; i < COUNT; i++)
            numbers[i] = i;
        CHECK_OK(device->backend->rows_write(device, (row_range){&here, 0, COUNT, dim}, rows, dim, &refused));
        assert_int_equal(refused, -1);
        check_segment(device, &here, rows, numbers, COUNT, dim);
        CHECK_OK(device->backend->rows_gather(device, (row_range){&there, 0, 6, dim}, &here, some));
        check_segment(device, &there, rows, some, 6, dim);
        segment_give(device, &here);
        segment_give(device, &there);
        free(rows);
    }
}

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

/* The same rows on the CPU and, screened, on the device under test. */
typedef struct twins {
    ww_device *device;
    ww_collection *here, *there;
    int32_t dim;
    int64_t count;
} twins;

static twins twins_make(ww_device *device, ww_metric metric, const float *vectors, int64_t count, int32_t dim)
{
    twins t = {device, collection_make(cpu, dim, metric), collection_make(device, dim, metric), dim, count};
    pretend_screen(device, true);
    for (int64_t done = 0; done < count; done += 503) {
        ww_rows rows = ww_rows_default();
        rows.count = count - done < 503 ? count - done : 503;
        rows.dim = dim;
        rows.vectors = vectors + done * dim;
        CHECK_OK(ww_collection_add(t.here, &rows));
        CHECK_OK(ww_collection_add(t.there, &rows));
    }
    return t;
}

static void twins_free(twins *t)
{
    ww_collection_destroy(t->here);
    ww_collection_destroy(t->there);
    pretend_nothing(t->device);
}

/* Returns the number of different results; fills in the statistics of the screened search. */
static int64_t differences(const twins *t, const float *queries, int64_t query_count, int32_t k, const uint64_t *mask,
                           ww_search_stats *stats)
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
    search.mask_rows = mask ? t->count - 5 : 0;
    CHECK_OK(ww_collection_search(t->here, &search, rows, scores));
    *stats = ww_search_stats_default();
    search.stats = stats;
    CHECK_OK(ww_collection_search(t->there, &search, rows + results, scores + results));
    int64_t wrong = 0;
    for (size_t i = 0; i < results; i++)
        wrong += rows[i] != rows[results + i] || canon_float_bits(scores[i]) != canon_float_bits(scores[results + i]);
    free(rows);
    free(scores);
    return wrong;
}

static void check_twins(const twins *t, const float *queries, int64_t query_count, int32_t k, const uint64_t *mask)
{
    ww_search_stats stats;
    const int64_t wrong = differences(t, queries, query_count, k, mask, &stats);
    if (wrong != 0)
        fail_msg("dim %d, %lld rows, %lld queries, k %d: %lld results differ", t->dim, (long long)t->count,
                 (long long)query_count, k, (long long)wrong);
    assert_true(stats.certificate >= 0);
    assert_true(stats.rows_screened > 0);
}

enum { ROWS = 700, QUERIES = 20, QUERIES_MAX = 260 };

/* Each kernel. */
static const struct shape {
    int64_t queries;
    bool wgmma, mfma;
} shapes[] = {{1, false, false},       {3, false, false},      {7, false, false},
              {QUERIES, false, false}, {QUERIES, false, true}, {QUERIES, true, false}};
enum { SHAPES = 6 };

/* Enough rows for at least two segments on any device. */
static int64_t rows_for(ww_device *device)
{
    return device_is_slow(device) ? 700 : ROWS;
}

static void check_shape(const twins *t, const float *queries, struct shape shape, int32_t k, const uint64_t *mask)
{
    static int checked;
    pretend_three_stages(t->device, ++checked % 2 == 0);
    pretend_sm_90a(t->device, shape.wgmma);
    pretend_mfma(t->device, shape.mfma);
    check_twins(t, queries, shape.queries, k, mask);
}

static void every_dataset_gives_the_cpus_bits(void **state)
{
    enum { DIM = 24 };
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows), *queries = malloc((size_t)QUERIES * DIM * sizeof *queries);
    for (const dataset *d = datasets; d->name; d++)
        for (int m = 0; m < METRICS; m++) {
            const int number = (int)(d - datasets);
            if (TEST_INSTRUMENTED && (number + m) % METRICS != 0)
                continue;
            test_random random = {(uint64_t)number + 1};
            d->make(&random, DIM, rows, ROWS, queries, QUERIES);
            twins t = twins_make(*state, metrics[m], rows, rows_for(*state), DIM);
            for (int s = 0; s < SHAPES; s++)
                if (!device_is_slow(*state) || s == (number + m) % SHAPES)
                    check_shape(&t, queries, shapes[s], 10, NULL);
            twins_free(&t);
        }
    free(rows);
    free(queries);
}

static void every_dimension_gives_the_cpus_bits(void **state)
{
    static const int32_t dims[] = {1, 65, 192, 256};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        const int32_t dim = dims[d];
        float *rows = malloc((size_t)ROWS * (size_t)dim * sizeof *rows);
        float *queries = malloc((size_t)QUERIES * (size_t)dim * sizeof *queries);
        test_random random = {(uint64_t)dim};
        random_normals(&random, rows, (int64_t)ROWS * dim);
        random_normals(&random, queries, (int64_t)QUERIES * dim);
        twins t = twins_make(*state, metrics[d % METRICS], rows, rows_for(*state), dim);
        for (int s = 0; s < SHAPES; s++)
            if (!device_is_slow(*state) || (s + (int)d) % 2 == 0)
                check_shape(&t, queries, shapes[s], 1 + (int32_t)d * 3, NULL);
        twins_free(&t);
        free(rows);
        free(queries);
    }
}

static void many_queries_give_the_cpus_bits(void **state)
{
    enum { DIM = 32 };
    static float rows[ROWS * DIM], queries[QUERIES_MAX * DIM];
    random_normals(&(test_random){41}, rows, ROWS * DIM);
    random_normals(&(test_random){43}, queries, QUERIES_MAX * DIM);
    twins t = twins_make(*state, WW_COSINE, rows, ROWS, DIM);
    check_shape(&t, queries, (struct shape){130, false, false}, 10, NULL); /* more than a block takes */
    check_shape(&t, queries, (struct shape){130, false, true}, 10, NULL);
    check_shape(&t, queries, (struct shape){QUERIES_MAX, true, false}, 10, NULL);
    twins_free(&t);
}

static void removed_and_masked_rows_are_not_found(void **state)
{
    enum { DIM = 32 };
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows), *queries = malloc((size_t)QUERIES * DIM * sizeof *queries);
    uint64_t mask[ROWS / 64 + 1];
    test_random random = {77};
    random_normals(&random, rows, (int64_t)ROWS * DIM);
    random_normals(&random, queries, (int64_t)QUERIES * DIM);
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = i % 7 == 3 ? 0 : random_bits(&random);
    twins t = twins_make(*state, WW_L2, rows, rows_for(*state), DIM);
    for (int64_t i = 0; i < t.count; i += 1 + i % 5) {
        char text[32];
        const char *id = text;
        snprintf(text, sizeof text, "%lld", (long long)i);
        CHECK_OK(ww_collection_remove(t.here, &id, 1));
        CHECK_OK(ww_collection_remove(t.there, &id, 1));
    }
    for (int s = 0; s < SHAPES; s++) {
        check_shape(&t, queries, shapes[s], 10, NULL);
        check_shape(&t, queries, shapes[s], 10, mask);
    }
    memset(mask, 0, sizeof mask);
    mask[3] = 0x10; /* fewer rows than k */
    check_twins(&t, queries, 1, 10, mask);
    check_shape(&t, queries, (struct shape){20, false, false}, 10, mask);
    check_shape(&t, queries, (struct shape){20, false, true}, 10, mask);
    check_shape(&t, queries, (struct shape){20, true, false}, 10, mask);
    CHECK_OK(ww_collection_compact(t.here, NULL, NULL));
    CHECK_OK(ww_collection_compact(t.there, NULL, NULL));
    ww_search_stats stats;
    assert_int_equal(differences(&t, queries, 9, 10, NULL, &stats), 0);
    twins_free(&t);
    free(rows);
    free(queries);
}

static void full_lists_are_asked_again_and_then_plainly(void **state)
{
    enum { DIM = 16 };
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows), *queries = malloc((size_t)QUERIES * DIM * sizeof *queries);
    for (int f = 0; f < 4; f++) {
        test_random random = {5};
        datasets[f].make(&random, DIM, rows, ROWS, queries, QUERIES);
        twins t = twins_make(*state, metrics[f % METRICS], rows, rows_for(*state), DIM);
        for (int s = 0; s < SHAPES; s++) {
            ww_search_stats stats;
            if (device_is_slow(*state) && (s + f) % 2 != 0)
                continue;
            t.device->tuning.screen_list_capacity = 12;
            pretend_sm_90a(t.device, shapes[s].wgmma);
            pretend_mfma(t.device, shapes[s].mfma);
            assert_int_equal(differences(&t, queries, shapes[s].queries, 10, NULL, &stats), 0);
            assert_true(stats.fallback_queries > 0);
        }
        twins_free(&t);
    }
    free(rows);
    free(queries);
}

/* All rows have the same codes, so that without a bound whole queries are lost. */
static void almost_one_row(test_random *random, float *rows, int64_t count, int32_t dim)
{
    random_normals(random, rows, dim);
    for (int64_t i = 1; i < count; i++)
        for (int32_t j = 0; j < dim; j++) {
            const float x = rows[j];
            rows[i * dim + j] = i % 2 ? canon_bits_float(canon_float_bits(x) + (uint32_t)random_below(random, 2))
                                      : x * (1.0f + 1e-6f * random_uniform(random));
        }
}

static void a_weakened_bound_is_caught(void **state)
{
    enum { DIM = 128 };
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows), *queries = malloc((size_t)QUERIES * DIM * sizeof *queries);
    test_random random = {3};
    almost_one_row(&random, rows, ROWS, DIM);
    random_normals(&random, queries, QUERIES * DIM);
    twins t = twins_make(*state, WW_DOT, rows, rows_for(*state), DIM);
    for (int s = 2; s < SHAPES; s++)
        check_shape(&t, queries, shapes[s], 10, NULL);
    shrink_bounds(t.there, -4.0f);     /* the query's part of it, too */
    for (int s = 2; s < SHAPES; s++) { /* with fewer queries one may keep all rows; test_screen.c tests that */
        ww_search_stats stats;
        pretend_sm_90a(t.device, shapes[s].wgmma);
        pretend_mfma(t.device, shapes[s].mfma);
        const int64_t wrong = differences(&t, queries, shapes[s].queries, 10, NULL, &stats);
        assert_true(wrong > 0 || stats.repeated_queries > 0); /* a defect that the certificate detects is repaired */
    }
    twins_free(&t);
    free(rows);
    free(queries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_reference),
        cmocka_unit_test(every_dataset_gives_the_cpus_bits),
        cmocka_unit_test(every_dimension_gives_the_cpus_bits),
        cmocka_unit_test(many_queries_give_the_cpus_bits),
        cmocka_unit_test(removed_and_masked_rows_are_not_found),
        cmocka_unit_test(full_lists_are_asked_again_and_then_plainly),
        cmocka_unit_test(a_weakened_bound_is_caught),
    };
    setenv("WARPWAVE_TEST_DEVICES", test_is_short() ? "emulator:32" : "emulator:32,emulator:64", 0);
    setenv("WARPWAVE_EMULATOR_SEED", "7", 0);
    if (ww_device_open("cpu", &cpu) != WW_OK)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE("screening", tests);
    ww_device_close(cpu);
    return failed;
}
