/* Quantized matrices times activations, on every device: close to the product of the decoded weights, the CPU's bits, odd
 * sizes, experts, other types of activations, and refused arguments.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/calls/quant.h"
#include "support/data/golden.h"
#include "support/devices.h"

/* All types, f32 last. */
static const golden_type *next_type(const golden_type *t)
{
    return t->name ? t + 1 : NULL;
}

/* Compared with f64 on decoded weights and the original activations: the mean of |error| over the mean of |result|. */
static void check_close(ww_device *device, ww_math math, int64_t rows, int64_t n, int64_t k)
{
    float *w = quant_normals(11, rows * k), *x = quant_normals(12, n * k),
          *decoded = malloc(sizeof(float) * (size_t)(rows * k));
    float *y = malloc(sizeof(float) * (size_t)(n * rows));
    ww_tensor xs = quant_tensor(device, x, n, k);
    ww_quant_product options = ww_quant_product_default();
    options.math = math;
    for (const golden_type *t = golden_types; t; t = next_type(t)) {
        ww_quant *q;
        ww_tensor out = {0};
        double error = 0, size = 0;
        CHECK_OK(ww_quant_from_f32(device, t->type, w, rows, k, 0, &q));
        CHECK_OK(ww_quant_read_f32(q, 0, rows, decoded));
        CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
        CHECK_OK(ww_tensor_to_host(&out, y));
        for (int64_t c = 0; c < n; c++)
            for (int64_t r = 0; r < rows; r++) {
                double exact = 0;
                for (int64_t i = 0; i < k; i++)
                    exact += (double)decoded[r * k + i] * x[c * k + i];
                error += fabs(exact - y[c * rows + r]);
                size += fabs(exact);
            }
        if (!(error <= 0.02 * size))
            fail_msg("%s: mean relative error %g", t->name ? t->name : "f32", error / size);
        ww_tensor_release(&out);
        ww_quant_destroy(q);
    }
    ww_storage_release(xs.storage);
    free(y);
    free(decoded);
    free(x);
    free(w);
}

static void a_product_is_close_to_that_of_the_decoded_weights(void **state)
{
    check_close(*state, WW_MATH_CANONICAL, 24, 3, 1024);
}

static void a_fast_product_is_close_as_well(void **state)
{
    check_close(*state, WW_MATH_FAST, 40, 36, 512);
    check_close(*state, WW_MATH_FAST, 24, 3, 512);
}

static void a_product_of_any_shape_has_the_cpus_bits(void **state)
{
    static const struct {
        int64_t rows, n, k;
    } shapes[] = {{1, 1, 256},   {33, 1, 2304}, {97, 2, 512},  {5, 3, 4096},   {65, 5, 256},  {17, 8, 768},
                  {3, 13, 2048}, {18, 9, 512},  {20, 64, 256}, {131, 33, 256}, {129, 65, 768}};
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        float *w = quant_normals(20 + s, shapes[s].rows * shapes[s].k), *x = quant_normals(40 + s, shapes[s].n * shapes[s].k);
        for (const golden_type *t = golden_types; t; t = next_type(t)) {
            float *here = quant_multiply(cpu, t->type, w, shapes[s].rows, x, shapes[s].n, shapes[s].k);
            float *there = quant_multiply(*state, t->type, w, shapes[s].rows, x, shapes[s].n, shapes[s].k);
            for (int64_t i = 0; i < shapes[s].rows * shapes[s].n; i++)
                if (memcmp(&here[i], &there[i], sizeof *here) != 0)
                    fail_msg("%s, %d x %d times %d: result %d is %a, on the CPU %a", t->name ? t->name : "f32",
                             (int)shapes[s].rows, (int)shapes[s].k, (int)shapes[s].n, (int)i, (double)there[i],
                             (double)here[i]);
            free(there);
            free(here);
        }
        free(x);
        free(w);
    }
    ww_device_close(cpu);
}

/* Rows of 32-element blocks whose number is not a multiple of eight. */
static void rows_of_any_number_of_blocks_are_multiplied(void **state)
{
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q4_1,   WW_QUANT_Q5_0, WW_QUANT_Q5_1,
                                          WW_QUANT_Q8_0, WW_QUANT_IQ4_NL, WW_QUANT_MXFP4};
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int64_t k = 32; k <= 320; k += 96) {
        float *w = quant_normals((uint64_t)k, 6 * k), *x = quant_normals((uint64_t)k + 1, 3 * k);
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            float *here = quant_multiply(cpu, types[t], w, 6, x, 3, k),
                  *there = quant_multiply(*state, types[t], w, 6, x, 3, k);
            assert_memory_equal(here, there, 18 * sizeof *here);
            free(there);
            free(here);
        }
        free(x);
        free(w);
    }
    ww_device_close(cpu);
}

/* The definition for a row of q8_0, and the result if products are rounded before they are added. */
typedef struct coded_block {
    uint16_t d;
    int8_t codes[32];
} coded_block;

static float scale_of(ww_device *device, const coded_block *block)
{
    coded_block one = {.d = block->d, .codes = {1}};
    float decoded[32];
    ww_quant *q;
    CHECK_OK(ww_quant_load(device, WW_QUANT_Q8_0, &one, sizeof one, 1, 32, &q));
    CHECK_OK(ww_quant_read_f32(q, 0, 1, decoded));
    ww_quant_destroy(q);
    return decoded[0];
}

static float defined_product(const coded_block *a, const float *scale_a, const coded_block *b, const float *scale_b, int blocks,
                             bool fused)
{
    float acc[8] = {0};
    for (int i = 0; i < blocks; i++) {
        int32_t sum = 0;
        for (int l = 0; l < 32; l++)
            sum += a[i].codes[l] * b[i].codes[l];
        const float factor = scale_a[i] * scale_b[i];
        volatile float rounded = factor * (float)sum;
        acc[i % 8] = fused ? fmaf(factor, (float)sum, acc[i % 8]) : rounded + acc[i % 8];
    }
    return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

/* With many rows of many blocks: sums of two terms often round to the same number, fused or not, and the difference must
 * show. */
static void a_product_equals_its_definition(void **state)
{
    enum { ROWS = 16, K = 2048, BLOCKS = K / 32 };
    float *w = quant_normals(5, (int64_t)ROWS * K), *x = quant_normals(6, K),
          *y = quant_multiply(*state, WW_QUANT_Q8_0, w, ROWS, x, 1, K);
    coded_block a[ROWS * BLOCKS], b[BLOCKS];
    float scale_a[BLOCKS], scale_b[BLOCKS];
    int apart = 0;
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, w, ROWS, K, 0, &q));
    CHECK_OK(ww_quant_read_blocks(q, 0, ROWS, a));
    ww_quant_destroy(q);
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, x, 1, K, 0, &q)); /* q8_1 has the same codes and scales */
    CHECK_OK(ww_quant_read_blocks(q, 0, 1, b));
    ww_quant_destroy(q);
    for (int i = 0; i < BLOCKS; i++)
        scale_b[i] = scale_of(*state, &b[i]);
    for (int r = 0; r < ROWS; r++) {
        const coded_block *row = a + (ptrdiff_t)r * BLOCKS;
        for (int i = 0; i < BLOCKS; i++)
            scale_a[i] = scale_of(*state, &row[i]);
        const float expected = defined_product(row, scale_a, b, scale_b, BLOCKS, true);
        assert_memory_equal(&y[r], &expected, sizeof expected);
        apart += expected != defined_product(row, scale_a, b, scale_b, BLOCKS, false);
    }
    assert_true(apart > ROWS / 4);
    free(y);
    free(x);
    free(w);
}

static void experts_are_slices_of_the_matrix(void **state)
{
    enum { EXPERTS = 3, ROWS = 7, N = 5, K = 512 };
    static const int64_t chosen[N] = {2, 0, 2, 1, 1};
    float *w = quant_normals(31, (int64_t)EXPERTS * ROWS * K), *x = quant_normals(32, (int64_t)N * K), y[N * ROWS];
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q4_K,   WW_QUANT_Q6_K,
                                          WW_QUANT_F16,  WW_QUANT_IQ4_XS, WW_QUANT_MXFP4};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        ww_quant *q;
        ww_tensor out = {0};
        ww_tensor xs = quant_tensor(*state, x, N, K);
        CHECK_OK(ww_quant_from_f32(*state, types[t], w, EXPERTS * ROWS, K, 0, &q));
        CHECK_OK(ww_quant_matmul_experts(q, ROWS, &xs, chosen, &out));
        CHECK_OK(ww_tensor_to_host(&out, y));
        for (int i = 0; i < N; i++) {
            float *one = quant_multiply(*state, types[t], w + chosen[i] * ROWS * K, ROWS, x + i * K, 1, K);
            assert_memory_equal(one, y + i * ROWS, ROWS * sizeof *one);
            free(one);
        }
        ww_tensor_release(&out);
        ww_storage_release(xs.storage);
        ww_quant_destroy(q);
    }
    free(x);
    free(w);
}

/* A view of the matrix, x in f16 and bf16, and x that is a slice with gaps: the same as dense f32 with the same numbers. */
static void views_and_other_types_of_activations_are_accepted(void **state)
{
    enum { ROWS = 9, N = 4, K = 256, GAP = 3 };
    float *w = quant_normals(51, (int64_t)ROWS * K), *x = quant_normals(52, (int64_t)N * (K + GAP)),
          *dense = malloc(sizeof(float) * N * K);
    for (int i = 0; i < N * (K + GAP); i++)
        x[i] = (float)(int)(x[i] * 32.0f) / 32.0f; /* f16 and bf16 hold these */
    for (int c = 0; c < N; c++)
        memcpy(dense + c * K, x + c * (K + GAP), K * sizeof *x);
    float *expected = quant_multiply(*state, WW_QUANT_Q5_K, w + 2 * K, 5, dense, N, K), y[N * 5];
    static const ww_dtype types[] = {WW_F32, WW_F16, WW_BF16};
    ww_quant *q, *view;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q5_K, w, ROWS, K, 0, &q));
    CHECK_OK(ww_quant_view(q, 2, 5, &view));
    for (int t = 0; t < 3; t++) {
        ww_tensor cast = {0}, out = {0};
        ww_tensor all = quant_tensor(*state, x, N, K + GAP);
        CHECK_OK(ww_tensor_cast(&all, types[t], &cast));
        ww_tensor slice = cast;
        slice.layout.shape[1] = K;
        CHECK_OK(ww_quant_matmul(view, &slice, &out));
        CHECK_OK(ww_tensor_to_host(&out, y));
        assert_memory_equal(y, expected, sizeof y);
        ww_tensor_release(&out);
        ww_tensor_release(&cast);
        ww_storage_release(all.storage);
    }
    ww_quant_destroy(view);
    ww_quant_destroy(q);
    free(expected);
    free(dense);
    free(x);
    free(w);
}

/* Rows of 17 to 36 bytes: most views start at an address that is not a multiple of 16, and the last row is at the end of the
 * memory. */
static void views_may_begin_anywhere(void **state)
{
    enum { ROWS = 21, N = 2, K = 32 };
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q4_1,   WW_QUANT_Q5_0, WW_QUANT_Q5_1,
                                          WW_QUANT_Q8_0, WW_QUANT_IQ4_NL, WW_QUANT_MXFP4};
    float *w = quant_normals(71, (int64_t)ROWS * K), *x = quant_normals(72, (int64_t)N * K), y[N * ROWS];
    ww_tensor xs = quant_tensor(*state, x, N, K);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        ww_quant *q;
        CHECK_OK(ww_quant_from_f32(*state, types[t], w, ROWS, K, 0, &q));
        for (int first = 0; first < ROWS; first++) {
            const int rows = ROWS - first;
            float *expected = quant_multiply(*state, types[t], w + (ptrdiff_t)first * K, rows, x, N, K);
            ww_quant *view;
            ww_tensor out = {0};
            CHECK_OK(ww_quant_view(q, first, rows, &view));
            CHECK_OK(ww_quant_matmul(view, &xs, &out));
            CHECK_OK(ww_tensor_to_host(&out, y));
            assert_memory_equal(y, expected, (size_t)(N * rows) * sizeof *y);
            ww_tensor_release(&out);
            ww_quant_destroy(view);
            free(expected);
        }
        ww_quant_destroy(q);
    }
    ww_storage_release(xs.storage);
    free(x);
    free(w);
}

/* More columns than a group of them holds, in an order that jumps between experts; and one column for each of many. */
static void any_number_of_columns_can_use_any_expert(void **state)
{
    enum { EXPERTS = 5, ROWS = 18, N = 29, K = 256 };
    int64_t chosen[N];
    float *w = quant_normals(81, (int64_t)EXPERTS * ROWS * K), *x = quant_normals(82, (int64_t)N * K), y[N * ROWS];
    ww_quant *q;
    ww_tensor xs = quant_tensor(*state, x, N, K);
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_K, w, (int64_t)EXPERTS * ROWS, K, 0, &q));
    for (int pattern = 0; pattern < 2; pattern++) {
        ww_tensor out = {0};
        for (int i = 0; i < N; i++)
            chosen[i] = pattern ? i * 3 % EXPERTS : i % 7 == 6 ? 4 : 1;
        ww_quant_product options = ww_quant_product_default();
        options.experts = chosen;
        options.expert_rows = ROWS;
        CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
        CHECK_OK(ww_tensor_to_host(&out, y));
        ww_tensor_release(&out);
        for (int e = 0; e < EXPERTS; e++) {
            float *all = quant_multiply(*state, WW_QUANT_Q4_K, w + (ptrdiff_t)e * ROWS * K, ROWS, x, N, K);
            for (int i = 0; i < N; i++)
                if (chosen[i] == e)
                    assert_memory_equal(y + i * ROWS, all + i * ROWS, ROWS * sizeof *y);
            free(all);
        }
    }
    ww_storage_release(xs.storage);
    ww_quant_destroy(q);
    free(x);
    free(w);
}

/* Products that follow each other without waiting, each with memory that the previous one freed. */
static void queued_products_see_earlier_results(void **state)
{
    enum { ROWS = 256, N = 3, K = 256, TIMES = 4 };
    float *w = quant_normals(91, (int64_t)ROWS * K), *x = quant_normals(92, (int64_t)N * K), queued[N * ROWS], waited[N * ROWS];
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q6_K, w, ROWS, K, 0, &q));
    for (options.queued = 0; options.queued < 2; options.queued++) {
        ww_tensor t = quant_tensor(*state, x, N, K);
        for (int i = 0; i < TIMES; i++) {
            ww_tensor out = {0}, smaller = {0};
            CHECK_OK(ww_quant_multiply(q, &t, &options, &out));
            CHECK_OK(ww_tensor_affine(&out, 1.0 / 16, 0.0, &smaller));
            ww_tensor_release(&out);
            ww_tensor_release(&t);
            t = smaller;
        }
        CHECK_OK(ww_storage_to_host(t.storage, options.queued ? queued : waited));
        ww_storage_release(t.storage);
    }
    assert_memory_equal(queued, waited, sizeof queued);
    ww_quant_destroy(q);
    free(x);
    free(w);
}

/* Products that need not wait for each other, and some that must: every third uses the result of the one before it. */
static void queued_products_do_not_mix_up_their_activations(void **state)
{
    enum { ROWS = 512, K = 512, TIMES = 24 };
    float *w = quant_normals(95, (int64_t)ROWS * K), *x = quant_normals(96, (int64_t)TIMES * K),
          *queued = malloc(sizeof(float) * TIMES * ROWS), *waited = malloc(sizeof(float) * TIMES * ROWS);
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_0, w, ROWS, K, 0, &q));
    for (options.queued = 0; options.queued < 2; options.queued++) {
        ww_tensor t[TIMES];
        ww_tensor out[TIMES] = {{0}};
        for (int i = 0; i < TIMES; i++)
            t[i] = quant_tensor(*state, x + (ptrdiff_t)i * K, 1, K);
        for (int i = 0; i < TIMES; i++) {
            CHECK_OK(ww_quant_multiply(q, i % 3 == 2 ? &out[i - 1] : &t[i], &options, &out[i]));
        }
        for (int i = 0; i < TIMES; i++) {
            CHECK_OK(ww_tensor_to_host(&out[i], (options.queued ? queued : waited) + (ptrdiff_t)i * ROWS));
            ww_tensor_release(&out[i]);
            ww_storage_release(t[i].storage);
        }
    }
    assert_memory_equal(queued, waited, sizeof(float) * TIMES * ROWS);
    ww_quant_destroy(q);
    free(waited);
    free(queued);
    free(x);
    free(w);
}

static void values_that_cannot_be_coded_in_a_queued_product_give_nan(void **state)
{
    enum { ROWS = 5, K = 512, MANY = 40 };
    static const struct {
        ww_quant_type type;
        float bad;
    } cases[] = {{WW_QUANT_Q8_0, NAN}, {WW_QUANT_Q4_0, 1e7f}, {WW_QUANT_Q4_K, INFINITY}};
    float *w = quant_normals(101, (int64_t)ROWS * K), *x = quant_normals(102, (int64_t)MANY * K),
          *y = malloc(sizeof(float) * MANY * ROWS);
    ww_quant_product options = ww_quant_product_default();
    options.queued = 1;
    for (int c = 0; c < 6; c++) {
        const int64_t n = c < 3 ? 3 : MANY;
        ww_quant *q;
        ww_tensor out = {0};
        float *expected = quant_multiply(*state, cases[c % 3].type, w, ROWS, x, n, K);
        const float good = x[K + 300];
        x[K + 300] = cases[c % 3].bad;
        ww_tensor t = quant_tensor(*state, x, n, K);
        x[K + 300] = good;
        CHECK_OK(ww_quant_from_f32(*state, cases[c % 3].type, w, ROWS, K, 0, &q));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_matmul(q, &t, &out));
        CHECK_OK(ww_quant_multiply(q, &t, &options, &out));
        CHECK_OK(ww_tensor_to_host(&out, y));
        for (int64_t i = 0; i < n * ROWS; i++)
            if (i / ROWS == 1 ? !isnan(y[i]) : memcmp(&y[i], &expected[i], sizeof *y) != 0)
                fail_msg("case %d: result %d is %a", c, (int)i, (double)y[i]);
        ww_tensor_release(&out);
        ww_storage_release(t.storage);
        ww_quant_destroy(q);
        free(expected);
    }
    free(y);
    free(x);
    free(w);
}

static void many_rows_that_fill_no_tile_are_multiplied(void **state)
{
    enum { ROWS = 4097, K = 64 };
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    float *w = quant_normals(111, (int64_t)ROWS * K), *x = quant_normals(112, 8 * (int64_t)K);
    for (int64_t n = 2; n <= 8; n += device_is_slow(*state) ? 3 : 1) {
        float *here = quant_multiply(cpu, WW_QUANT_Q8_0, w, ROWS, x, n, K),
              *there = quant_multiply(*state, WW_QUANT_Q8_0, w, ROWS, x, n, K);
        assert_memory_equal(here, there, (size_t)(n * ROWS) * sizeof *here);
        free(there);
        free(here);
    }
    free(x);
    free(w);
    ww_device_close(cpu);
}

/* One column as long as the hidden layer of a model with 8 billion weights: longer than a thread block reads at once. */
static void one_long_column_has_the_cpus_bits(void **state)
{
    enum { K = 14336, ROWS = 4096, FEW_ROWS = 17 };
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q8_0, WW_QUANT_Q4_K, WW_QUANT_Q6_K};
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    const int64_t rows = device_is_quick_gpu(*state) ? ROWS : FEW_ROWS;
    float *w = quant_normals(113, rows * K), *x = quant_normals(114, K);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        float *here = quant_multiply(cpu, types[t], w, rows, x, 1, K),
              *there = quant_multiply(*state, types[t], w, rows, x, 1, K);
        assert_memory_equal(here, there, (size_t)rows * sizeof *here);
        free(there);
        free(here);
    }
    free(x);
    free(w);
    ww_device_close(cpu);
}

static void unsuitable_matrices_are_refused(void **state)
{
    enum { K = 256 };
    float *w = quant_normals(61, 4 * K), *x = quant_normals(62, 2 * K);
    static const int64_t wrong[2] = {0, 2};
    ww_quant *q;
    ww_tensor out = {0};
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_K, w, 4, K, 0, &q));
    ww_tensor narrow = quant_tensor(*state, x, 2, K - 1), right = quant_tensor(*state, x, 2, K);
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_matmul(q, &narrow, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_matmul(NULL, &right, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_matmul(q, &right, NULL));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_matmul_experts(q, 3, &right, wrong, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_matmul_experts(q, 2, &right, wrong, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_matmul_experts(q, 2, &right, NULL, &out));
    x[K + 3] = NAN;
    ww_tensor bad = quant_tensor(*state, x, 2, K);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_matmul(q, &bad, &out));
    assert_non_null(strstr(ww_error_message(), "block 1 of the activations"));
    assert_null(out.storage);
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_tensor elsewhere = quant_tensor(cpu, x, 2, K);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_matmul(q, &elsewhere, &out)); /* another opening of the CPU is another device */
    ww_storage_release(elsewhere.storage);
    ww_device_close(cpu);
    ww_storage_release(bad.storage);
    ww_storage_release(narrow.storage);
    ww_storage_release(right.storage);
    ww_quant_destroy(q);
    free(x);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_close_to_that_of_the_decoded_weights),
        cmocka_unit_test(a_fast_product_is_close_as_well),
        cmocka_unit_test(a_product_of_any_shape_has_the_cpus_bits),
        cmocka_unit_test(rows_of_any_number_of_blocks_are_multiplied),
        cmocka_unit_test(a_product_equals_its_definition),
        cmocka_unit_test(experts_are_slices_of_the_matrix),
        cmocka_unit_test(views_and_other_types_of_activations_are_accepted),
        cmocka_unit_test(views_may_begin_anywhere),
        cmocka_unit_test(any_number_of_columns_can_use_any_expert),
        cmocka_unit_test(queued_products_see_earlier_results),
        cmocka_unit_test(queued_products_do_not_mix_up_their_activations),
        cmocka_unit_test(values_that_cannot_be_coded_in_a_queued_product_give_nan),
        cmocka_unit_test(many_rows_that_fill_no_tile_are_multiplied),
        cmocka_unit_test(one_long_column_has_the_cpus_bits),
        cmocka_unit_test(unsuitable_matrices_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("quant product", tests);
}
