/* Fast products and convolutions on AMD's matrix units, by the kernels' portable twins: every way that matrices can lie, sizes
 * around tiles and slabs, batches. With whole numbers all sums are exact, so that every result has the canonical bits; with
 * others, results are within the stated error (docs/design/arithmetic.md). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/pretend/pretend.h"
#include "support/tensors.h"

static const ww_dtype types[] = {WW_F16, WW_BF16, WW_F32};
enum { TYPES_COUNT = sizeof types / sizeof *types };

/* The layout of a matrix: its rows, or its columns, with `gap` elements between them, from element `offset` on. */
typedef struct lying {
    bool transposed;
    int64_t gap, offset;
    bool strided; /* every other element does not belong to it */
} lying;

typedef struct size {
    int64_t batch, m, n, k;
} size;

/* A tensor of three dimensions, with the numbers that its storage has. */
typedef struct matrix {
    ww_tensor tensor;
    double *values;
} matrix;

static matrix matrix_of(ww_device *device, test_random *random, ww_dtype dtype, const int64_t *shape, lying how, bool whole)
{
    const int64_t rows = how.transposed ? shape[2] : shape[1], columns = how.transposed ? shape[1] : shape[2];
    const int64_t step = how.strided ? 2 : 1, stride = columns * step + how.gap, each = rows * stride;
    const int64_t elements = how.offset + shape[0] * each;
    uint8_t *bytes = malloc((size_t)elements * ww_dtype_bytes(dtype));
    matrix x = {.values = malloc((size_t)elements * sizeof *x.values)};
    for (int64_t i = 0; i < elements; i++) {
        const double value = whole ? (double)random_below(random, 9) - 4 : (double)random_normal(random);
        const uint64_t bits = bits_nearest(dtype, (long double)value);
        memcpy(bytes + (size_t)i * ww_dtype_bytes(dtype), &bits, ww_dtype_bytes(dtype));
        x.values[i] = (double)number_of(dtype, bits);
    }
    x.tensor.layout = (ww_layout){.rank = 3, .offset = how.offset};
    memcpy(x.tensor.layout.shape, shape, 3 * sizeof *shape);
    x.tensor.layout.strides[0] = each;
    x.tensor.layout.strides[1] = how.transposed ? step : stride;
    x.tensor.layout.strides[2] = how.transposed ? stride : step;
    CHECK_OK(ww_storage_from_host(device, dtype, elements, bytes, &x.tensor.storage));
    free(bytes);
    return x;
}

static void matrix_free(matrix *x)
{
    ww_storage_release(x->tensor.storage);
    free(x->values);
}

static const double *line_of(const matrix *x, int64_t batch, int64_t row, int64_t column)
{
    const ww_layout *l = &x->tensor.layout;
    return x->values + l->offset + (l->shape[0] == 1 ? 0 : batch) * l->strides[0] + row * l->strides[1] +
           column * l->strides[2];
}

/* The stated error of fast products: `sizes` is the sum of the products' sizes. A rounding of the result is half a unit. */
static double stated_error(ww_dtype dtype, double sum, double sizes, int64_t k)
{
    if (dtype == WW_F32)
        return sizes * 0x1p-9;
    const double summed = (double)k * 0x1p-23 * sizes;
    return summed + (fabs(sum) + summed) * (dtype == WW_F16 ? 0x1p-11 : 0x1p-8) + 0x1p-24;
}

static void check_results(const matrix *a, const matrix *b, const ww_tensor *out, size s, bool whole)
{
    const ww_dtype dtype = ww_tensor_dtype(out);
    const int64_t a_step = a->tensor.layout.strides[2], b_step = b->tensor.layout.strides[1];
    uint8_t *bytes = storage_bytes(out->storage);
    for (int64_t i = 0; i < s.batch * s.m * s.n; i++) {
        const double *x = line_of(a, i / s.n / s.m, i / s.n % s.m, 0), *y = line_of(b, i / s.n / s.m, 0, i % s.n);
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < s.k; k++) {
            sum += x[k * a_step] * y[k * b_step];
            magnitude += fabs(x[k * a_step] * y[k * b_step]);
        }
        const uint64_t got = bits_of(bytes, dtype, i);
        const double off = fabs((double)number_of(dtype, got) - sum);
        if (whole ? got != bits_nearest(dtype, (long double)sum) : !(off <= stated_error(dtype, sum, magnitude, s.k)))
            fail_msg("%s, %lld of %lld x %lld x %lld, element %lld: %Lg, not %g", ww_dtype_name(dtype), (long long)s.batch,
                     (long long)s.m, (long long)s.n, (long long)s.k, (long long)i, number_of(dtype, got), sum);
    }
    free(bytes);
}

static void check_product(ww_device *device, ww_dtype dtype, size s, lying how_a, lying how_b, bool whole)
{
    test_random random = {(uint64_t)(s.m * 7 + s.n * 3 + s.k)};
    const int64_t shape_a[3] = {s.batch, s.m, s.k}, shape_b[3] = {s.batch > 2 ? 1 : s.batch, s.k, s.n};
    matrix a = matrix_of(device, &random, dtype, shape_a, how_a, whole);
    matrix b = matrix_of(device, &random, dtype, shape_b, how_b, whole);
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_FAST, &out));
    check_results(&a, &b, &out, s, whole);
    ww_tensor_release(&out);
    matrix_free(&a);
    matrix_free(&b);
}

static void matrices_may_have_any_layout(void **state)
{
    static const lying ways[] = {
        {.transposed = false},
        {.transposed = true},
        {.transposed = false, .gap = 8},
        {.transposed = true, .gap = 8},
        {.transposed = false, .gap = 3},
        {.transposed = true, .offset = 1},
        {.transposed = false, .strided = true},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    const size whole_slabs = {1, 132, 140, 64}, odd = {1, 35, 137, 67};
    for (int way = 0; way < WAYS; way++) {
        const ww_dtype dtype = types[way % TYPES_COUNT];
        check_product(*state, dtype, whole_slabs, ways[way], ways[0], true);
        check_product(*state, dtype, whole_slabs, ways[1], ways[way], true);
        check_product(*state, dtype, odd, ways[way], ways[(way + 3) % WAYS], true);
    }
}

static void sizes_around_tiles_and_slabs(void **state)
{
    static const int64_t lines[] = {1, 4, 63, 65, 128, 130}, steps[] = {15, 16, 32, 33, 96, 160};
    enum { LINES = sizeof lines / sizeof *lines, STEPS = sizeof steps / sizeof *steps };
    for (int t = 0; t < TYPES_COUNT; t++)
        for (int i = 0; i < LINES; i++) {
            const size s = {1, lines[i], lines[(i * 4 + t + 3) % LINES], steps[(i + t) % STEPS]};
            check_product(*state, types[t], s, (lying){.transposed = i % 2 == 1}, (lying){.transposed = i / 2 % 2 == 1}, true);
        }
}

static void batches_are_multiplied_and_shared_matrices_copied_once(void **state)
{
    for (int t = 0; t < TYPES_COUNT; t++) {
        check_product(*state, types[t], (size){2, 33, 20, 64}, (lying){0}, (lying){.transposed = true}, true);
        check_product(*state, types[t], (size){3, 17, 36, 70}, (lying){.gap = 1}, (lying){.offset = 3}, true);
    }
}

/* Tiles in several rows of tiles, so that their order is gone through. */
static void many_tiles_are_all_made(void **state)
{
    check_product(*state, WW_BF16, (size){1, 1160, 132, 32}, (lying){0}, (lying){0}, true);
}

static void results_are_within_the_stated_error(void **state)
{
    for (int t = 0; t < TYPES_COUNT; t++)
        check_product(*state, types[t], (size){1, 40, 36, 1056}, (lying){0}, (lying){.transposed = t == 1}, false);
}

/* ---- convolutions -------------------------------------------------------------------------------------------------------- */

typedef struct image_example {
    int64_t x[4], w[4];
    int32_t padding, stride, dilation, groups;
} image_example;

/* Sums of whole numbers are exact: the canonical bits. */
static void check_convolution(ww_device *device, ww_dtype dtype, const image_example *e)
{
    test_random random = {(uint64_t)e->w[0]};
    const int64_t x_shape[3] = {1, 1, e->x[0] * e->x[1] * e->x[2] * e->x[3]},
                  w_shape[3] = {1, 1, e->w[0] * e->w[1] * e->w[2] * e->w[3]};
    matrix x = matrix_of(device, &random, dtype, x_shape, (lying){0}, true);
    matrix w = matrix_of(device, &random, dtype, w_shape, (lying){.offset = e->groups - 1}, true);
    ww_tensor fast = {0}, canonical = {0};
    ww_conv how = ww_conv_default();
    const int64_t offset = w.tensor.layout.offset;
    x.tensor.layout = ww_layout_contiguous(4, e->x);
    w.tensor.layout = ww_layout_contiguous(4, e->w);
    w.tensor.layout.offset = offset;
    for (int d = 0; d < 2; d++) {
        how.padding[d] = e->padding;
        how.stride[d] = e->stride;
        how.dilation[d] = e->dilation;
    }
    how.groups = e->groups;
    CHECK_OK(ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &canonical));
    how.math = WW_MATH_FAST;
    CHECK_OK(ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &fast));
    uint8_t *got = storage_bytes(fast.storage), *want = storage_bytes(canonical.storage);
    assert_memory_equal(got, want, (size_t)ww_layout_elements(&fast.layout) * ww_dtype_bytes(dtype));
    free(got);
    free(want);
    ww_tensor_release(&fast);
    ww_tensor_release(&canonical);
    matrix_free(&x);
    matrix_free(&w);
}

static void convolutions_are_written_out_and_multiplied(void **state)
{
    static const image_example examples[] = {
        {{2, 5, 12, 13}, {7, 5, 3, 3}, 1, 1, 1, 1},  {{3, 8, 9, 8}, {10, 4, 3, 3}, 2, 2, 2, 2},
        {{1, 32, 5, 4}, {4, 32, 2, 2}, 0, 1, 1, 1},  {{2, 3, 20, 6}, {3, 3, 17, 3}, 1, 1, 1, 1},
        {{5, 4, 12, 11}, {66, 4, 3, 3}, 1, 1, 1, 1},
    };
    ww_device *device = *state;
    pretend_no_mma(device);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        for (int64_t bytes = 0; bytes <= 1 << 16;
             bytes = bytes == 0 ? 1 : bytes << 16) { /* all at once, 128 outputs, a few images */
            pretend_tuning(device)->im2col_bytes = bytes;
            check_convolution(device, types[i % TYPES_COUNT], &examples[i]);
        }
    pretend_nothing(device);
}

/* Canonical products add chunks of 512; the kernels for matrix units do not, so some of these results differ. */
static void fast_products_are_of_the_kernels_for_matrix_units(void **state)
{
    test_random random = {3};
    const int64_t shape[3] = {1, 16, 1056}, other[3] = {1, 1056, 16};
    if (!device_is_slow(*state)) /* emulated; others have a vendor's library, or another way */
        return;
    matrix a = matrix_of(*state, &random, WW_F32, shape, (lying){0}, false);
    matrix b = matrix_of(*state, &random, WW_F32, other, (lying){0}, false);
    ww_tensor fast = {0}, canonical = {0};
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_FAST, &fast));
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_CANONICAL, &canonical));
    uint8_t *x = storage_bytes(fast.storage), *y = storage_bytes(canonical.storage);
    assert_memory_not_equal(x, y, 16 * 16 * sizeof(float));
    free(x);
    free(y);
    ww_tensor_release(&fast);
    ww_tensor_release(&canonical);
    matrix_free(&a);
    matrix_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_may_have_any_layout),
        cmocka_unit_test(sizes_around_tiles_and_slabs),
        cmocka_unit_test(batches_are_multiplied_and_shared_matrices_copied_once),
        cmocka_unit_test(many_tiles_are_all_made),
        cmocka_unit_test(results_are_within_the_stated_error),
        cmocka_unit_test(convolutions_are_written_out_and_multiplied),
        cmocka_unit_test(fast_products_are_of_the_kernels_for_matrix_units),
    };
    return RUN_ON_EVERY_DEVICE("products on matrix units", tests);
}
