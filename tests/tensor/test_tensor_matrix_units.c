/* Fast products on AMD's matrix units, by the kernels' portable twins: every way that matrices can lie, sizes around tiles and
 * slabs, batches. With whole numbers all sums are exact, so that every result has the canonical bits; with others, results are
 * within the stated error (docs/design/arithmetic.md). */
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/products.h"

static const ww_dtype types[] = {WW_F16, WW_BF16, WW_F32};
enum { TYPES_COUNT = sizeof types / sizeof *types };

/* How a matrix lies: its rows one after the other with `gap` elements between them, or its columns; from element `offset` on. */
typedef struct lying {
    bool transposed;
    int64_t gap, offset;
    bool strided; /* every other element is none of it */
} lying;

typedef struct size {
    int64_t batch, m, n, k;
} size;

static test_tensor matrix_of(ww_device *device, test_random *random, ww_dtype dtype, const int64_t *shape, lying how, bool whole)
{
    const int64_t rows = how.transposed ? shape[2] : shape[1], columns = how.transposed ? shape[1] : shape[2];
    const int64_t step = how.strided ? 2 : 1, stride = columns * step + how.gap, each = rows * stride;
    const int64_t elements = how.offset + shape[0] * each;
    uint8_t *bytes = malloc((size_t)elements * ww_dtype_bytes(dtype));
    test_tensor x = {.host = bytes};
    for (int64_t i = 0; i < elements; i++) {
        const long double value = whole ? (long double)(int)(random_below(random, 9)) - 4 : (long double)random_normal(random);
        const uint64_t bits = bits_nearest(dtype, value);
        memcpy(bytes + (size_t)i * ww_dtype_bytes(dtype), &bits, ww_dtype_bytes(dtype));
    }
    x.tensor.layout = (ww_layout){.rank = 3, .offset = how.offset};
    memcpy(x.tensor.layout.shape, shape, 3 * sizeof *shape);
    x.tensor.layout.strides[0] = each;
    x.tensor.layout.strides[1] = how.transposed ? step : stride;
    x.tensor.layout.strides[2] = how.transposed ? stride : step;
    CHECK_OK(ww_storage_from_host(device, dtype, elements, bytes, &x.tensor.storage));
    return x;
}

static uint64_t element(const test_tensor *x, int64_t batch, int64_t i, int64_t j)
{
    const ww_layout *l = &x->tensor.layout;
    const int64_t at = l->offset + (l->shape[0] == 1 ? 0 : batch) * l->strides[0] + i * l->strides[1] + j * l->strides[2];
    return bits_of(x->host, ww_storage_dtype(x->tensor.storage), at);
}

/* The stated error of fast products, and half a unit of the result's last place. */
static long double stated_error(ww_dtype dtype, const plain_sum *sum, int64_t k)
{
    const long double value = sum->near < 0 ? -sum->near : sum->near;
    if (dtype == WW_F32)
        return sum->size * 0x1p-9L;
    const long double summed = (long double)k * 0x1p-23L * sum->size;
    return summed + (value + summed) * (dtype == WW_F16 ? 0x1p-11L : 0x1p-8L) + 0x1p-24L;
}

static void check_results(const test_tensor *a, const test_tensor *b, const ww_tensor *out, size s, bool whole)
{
    const ww_dtype dtype = ww_tensor_dtype(out);
    uint8_t *bytes = storage_bytes(out->storage);
    for (int64_t i = 0; i < s.batch * s.m * s.n; i += whole ? 1 : 7) {
        plain_sum sum;
        plain_sum_begin(&sum, dtype);
        for (int64_t k = 0; k < s.k; k++)
            plain_sum_step(&sum, element(a, i / s.n / s.m, i / s.n % s.m, k), element(b, i / s.n / s.m, k, i % s.n));
        const uint64_t want = plain_sum_end(&sum), got = bits_of(bytes, dtype, i);
        const long double off = number_of(dtype, got) - sum.near;
        if (whole ? got != want : !((off < 0 ? -off : off) <= stated_error(dtype, &sum, s.k)))
            fail_msg("%s, %lld of %lld x %lld x %lld, element %lld: %Lg, not %Lg", ww_dtype_name(dtype), (long long)s.batch,
                     (long long)s.m, (long long)s.n, (long long)s.k, (long long)i, number_of(dtype, got), sum.near);
    }
    free(bytes);
}

static void check_product(ww_device *device, ww_dtype dtype, size s, lying how_a, lying how_b, bool whole)
{
    test_random random = {(uint64_t)(s.m * 7 + s.n * 3 + s.k)};
    const int64_t shape_a[3] = {s.batch, s.m, s.k}, shape_b[3] = {s.batch > 2 ? 1 : s.batch, s.k, s.n};
    test_tensor a = matrix_of(device, &random, dtype, shape_a, how_a, whole);
    test_tensor b = matrix_of(device, &random, dtype, shape_b, how_b, whole);
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_FAST, &out));
    check_results(&a, &b, &out, s, whole);
    ww_tensor_release(&out);
    test_tensor_free(&a);
    test_tensor_free(&b);
}

static void matrices_may_lie_in_any_way(void **state)
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
    static const int64_t lines[] = {1, 3, 4, 63, 65, 127, 128, 129, 130}, steps[] = {15, 16, 32, 33, 96, 160};
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
    check_product(*state, WW_BF16, (size){1, 1200, 260, 32}, (lying){0}, (lying){0}, true);
}

static void results_are_within_the_stated_error(void **state)
{
    for (int t = 0; t < TYPES_COUNT; t++)
        check_product(*state, types[t], (size){1, 70, 66, 1056}, (lying){0}, (lying){.transposed = t == 1}, false);
}

/* Canonical products add chunks of 512; the kernels for matrix units do not: some of so many results differ. */
static void fast_products_are_of_the_kernels_for_matrix_units(void **state)
{
    test_random random = {3};
    const int64_t shape[3] = {1, 64, 1056}, other[3] = {1, 1056, 64};
    if (!device_is_slow(*state)) /* emulated; others have a vendor's library, or another way */
        return;
    test_tensor a = matrix_of(*state, &random, WW_F32, shape, (lying){0}, false);
    test_tensor b = matrix_of(*state, &random, WW_F32, other, (lying){0}, false);
    ww_tensor fast = {0}, canonical = {0};
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_FAST, &fast));
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_CANONICAL, &canonical));
    uint8_t *x = storage_bytes(fast.storage), *y = storage_bytes(canonical.storage);
    assert_memory_not_equal(x, y, 64 * 64 * sizeof(float));
    free(x);
    free(y);
    ww_tensor_release(&fast);
    ww_tensor_release(&canonical);
    test_tensor_free(&a);
    test_tensor_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_may_lie_in_any_way),
        cmocka_unit_test(sizes_around_tiles_and_slabs),
        cmocka_unit_test(batches_are_multiplied_and_shared_matrices_copied_once),
        cmocka_unit_test(many_tiles_are_all_made),
        cmocka_unit_test(results_are_within_the_stated_error),
        cmocka_unit_test(fast_products_are_of_the_kernels_for_matrix_units),
    };
    return RUN_ON_EVERY_DEVICE("products on matrix units", tests);
}
