/* Matrix products of every type, size and layout: to the bit against the definition, and near what real numbers give. */
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "support/devices.h"
#include "support/products.h"

static const ww_dtype types[] = {WW_F32, WW_F64, WW_F16, WW_BF16, WW_I8};
enum { TYPES_COUNT = sizeof types / sizeof *types };

/* The place of row-major element i of `out` in an operand whose dimensions, counted from the right, may be missing or 1. */
static uint64_t operand_bits(const test_tensor *x, const int64_t *index, int32_t rank)
{
    const ww_layout *layout = &x->tensor.layout;
    int64_t at = layout->offset;
    for (int32_t d = 0; d < layout->rank; d++) {
        const int64_t i = index[rank - layout->rank + d];
        at += (layout->shape[d] == 1 ? 0 : i) * layout->strides[d];
    }
    return bits_of(x->host, ww_storage_dtype(x->tensor.storage), at);
}

/* Multiplies, and checks every result, or some of many. */
static void check_product(ww_device *device, test_random *random, const test_tensor *a, const test_tensor *b)
{
    (void)device;
    const ww_layout *x = &a->tensor.layout, *y = &b->tensor.layout;
    const ww_dtype dtype = ww_storage_dtype(a->tensor.storage), result_type = dtype == WW_I8 ? WW_I32 : dtype;
    const int32_t rank = max_i32(x->rank, y->rank);
    const int64_t m = x->shape[x->rank - 2], k = x->shape[x->rank - 1], n = y->shape[y->rank - 1];
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_matmul(&a->tensor, &b->tensor, WW_MATH_CANONICAL, &out));
    assert_int_equal(ww_tensor_dtype(&out), result_type);
    uint8_t *bytes = storage_bytes(out.storage);
    const int64_t count = ww_layout_elements(&out.layout);
    const int64_t looks = count * k < 400000 ? count : 400000 / k + 1;
    for (int64_t look = 0; look < looks; look++) {
        const int64_t i = looks == count ? look : (int64_t)random_below(random, (uint64_t)count);
        int64_t index_a[WW_RANK_MAX], index_b[WW_RANK_MAX], rest = i / n / m;
        for (int32_t d = rank - 3; d >= 0; d--) {
            const int64_t own_x = d - (rank - x->rank), own_y = d - (rank - y->rank);
            const int64_t sx = own_x < 0 ? 1 : x->shape[own_x], sy = own_y < 0 ? 1 : y->shape[own_y];
            const int64_t size = sx == 1 ? sy : sx;
            index_a[d] = index_b[d] = rest % size;
            rest /= size;
        }
        index_a[rank - 2] = i / n % m;
        index_b[rank - 1] = i % n;
        plain_sum sum;
        plain_sum_begin(&sum, dtype);
        for (int64_t step = 0; step < k; step++) {
            index_a[rank - 1] = index_b[rank - 2] = step;
            plain_sum_step(&sum, operand_bits(a, index_a, rank), operand_bits(b, index_b, rank));
        }
        const uint64_t want = plain_sum_end(&sum), got = bits_of(bytes, result_type, i);
        if (got != want)
            fail_msg("%s, %lld x %lld x %lld, element %lld of %lld: %llx (%Lg), not %llx (%Lg)", ww_dtype_name(dtype),
                     (long long)m, (long long)k, (long long)n, (long long)i, (long long)count, (unsigned long long)got,
                     number_of(result_type, got), (unsigned long long)want, number_of(result_type, want));
        check_near(ww_dtype_name(dtype), &sum, result_type, got);
    }
    free(bytes);
    ww_tensor_release(&out);
}

static void multiply(ww_device *device, test_random *random, ww_dtype dtype, int64_t m, int64_t k, int64_t n, test_layout style,
                     bool tame)
{
    const int64_t shape_a[2] = {m, k}, shape_b[2] = {k, n};
    test_tensor (*const make)(ww_device *, test_random *, ww_dtype, int32_t, const int64_t *, test_layout) =
        tame ? test_tensor_tame : test_tensor_make;
    test_tensor a = make(device, random, dtype, 2, shape_a, style);
    test_tensor b = make(device, random, dtype, 2, shape_b, style);
    check_product(device, random, &a, &b);
    test_tensor_free(&a);
    test_tensor_free(&b);
}

static void sizes_around_tiles_and_chunks_have_the_canonical_bits(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 3, 1},    {2, 2, 2},    {5, 7, 3},     {14, 16, 32}, {15, 17, 33},
                                       {1, 513, 70}, {70, 512, 1}, {64, 16, 64}, {65, 15, 130}, {3, 1100, 9}, {129, 33, 66}};
    test_random random = {1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < TYPES_COUNT; t++)
            multiply(*state, &random, types[t], sizes[s][0], sizes[s][1], sizes[s][2], TEST_DENSE, true);
}

static void views_and_repeated_rows_have_the_canonical_bits(void **state)
{
    test_random random = {2};
    for (int round = 0; round < (device_is_slow(*state) ? 3 : 12); round++)
        for (int t = 0; t < TYPES_COUNT; t++)
            for (int style = TEST_VIEW; style <= TEST_BROADCAST; style++)
                multiply(*state, &random, types[t], 1 + (int64_t)random_below(&random, 40),
                         1 + (int64_t)random_below(&random, 40), 1 + (int64_t)random_below(&random, 40), (test_layout)style,
                         true);
}

/* Infinities, NaNs, denormals and zeros of both signs. */
static void extremes_have_the_canonical_bits(void **state)
{
    test_random random = {3};
    for (int round = 0; round < (device_is_slow(*state) ? 2 : 8); round++)
        for (int t = 0; t < TYPES_COUNT; t++)
            multiply(*state, &random, types[t], 20, 1 + (int64_t)random_below(&random, 4), 37, TEST_VIEW, false);
}

static test_tensor transposed(const test_tensor *x)
{
    test_tensor turned = *x;
    const int32_t last = x->tensor.layout.rank - 1;
    turned.tensor.layout.shape[last] = x->tensor.layout.shape[last - 1];
    turned.tensor.layout.shape[last - 1] = x->tensor.layout.shape[last];
    turned.tensor.layout.strides[last] = x->tensor.layout.strides[last - 1];
    turned.tensor.layout.strides[last - 1] = x->tensor.layout.strides[last];
    return turned;
}

static void either_side_may_be_transposed(void **state)
{
    test_random random = {4};
    const int64_t across[2] = {520, 48}, down[2] = {36, 520}; /* [k, m], [n, k] */
    for (int t = 0; t < TYPES_COUNT; t++) {
        test_tensor a = test_tensor_tame(*state, &random, types[t], 2, across, TEST_DENSE);
        test_tensor b = test_tensor_tame(*state, &random, types[t], 2, down, TEST_DENSE);
        const test_tensor turned_a = transposed(&a), turned_b = transposed(&b);
        check_product(*state, &random, &turned_a, &turned_b);
        test_tensor_free(&a);
        test_tensor_free(&b);
    }
}

static void batches_are_broadcast(void **state)
{
    static const struct {
        int32_t rank_a, rank_b;
        int64_t a[WW_RANK_MAX], b[WW_RANK_MAX];
    } cases[] = {
        {3, 2, {4, 5, 6}, {6, 7}},          {2, 3, {5, 6}, {4, 6, 7}},
        {4, 4, {2, 1, 3, 4}, {1, 5, 4, 3}}, {5, 3, {2, 3, 2, 3, 4}, {2, 4, 5}},
        {3, 3, {6, 9, 8}, {6, 8, 10}},      {8, 8, {2, 1, 2, 1, 1, 2, 3, 4}, {1, 2, 2, 1, 2, 1, 4, 3}},
    };
    test_random random = {5};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int style = TEST_DENSE; style <= TEST_BROADCAST; style++) {
            const ww_dtype dtype = types[(c + (size_t)style) % TYPES_COUNT];
            test_tensor a = test_tensor_tame(*state, &random, dtype, cases[c].rank_a, cases[c].a, (test_layout)style);
            test_tensor b = test_tensor_tame(*state, &random, dtype, cases[c].rank_b, cases[c].b, (test_layout)style);
            check_product(*state, &random, &a, &b);
            test_tensor_free(&a);
            test_tensor_free(&b);
        }
    }
}

/* Several blocks of every backend, several chunks, and sizes that no tile divides. */
static void large_products_have_the_canonical_bits(void **state)
{
    test_random random = {6};
    const bool slow = device_is_slow(*state);
    multiply(*state, &random, WW_F32, slow ? 140 : 700, slow ? 530 : 1100, slow ? 132 : 1300, TEST_DENSE, true);
    multiply(*state, &random, WW_BF16, slow ? 66 : 300, 1026, slow ? 70 : 301, TEST_DENSE, true);
    multiply(*state, &random, WW_F16, slow ? 66 : 300, 1025, slow ? 70 : 301, TEST_VIEW, true);
    multiply(*state, &random, WW_F64, slow ? 66 : 200, 600, slow ? 70 : 200, TEST_DENSE, true);
    multiply(*state, &random, WW_I8, slow ? 66 : 200, 1001, slow ? 70 : 300, TEST_DENSE, true);
}

static void empty_products_are_zero_or_empty(void **state)
{
    static const int64_t sizes[][3] = {{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {0, 0, 0}};
    test_random random = {7};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int t = 0; t < TYPES_COUNT; t++) {
            const int64_t shape_a[2] = {sizes[s][0], sizes[s][1]}, shape_b[2] = {sizes[s][1], sizes[s][2]};
            test_tensor a = test_tensor_make(*state, &random, types[t], 2, shape_a, TEST_DENSE);
            test_tensor b = test_tensor_make(*state, &random, types[t], 2, shape_b, TEST_DENSE);
            ww_tensor out = {0};
            CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_CANONICAL, &out));
            assert_int_equal(ww_layout_elements(&out.layout), shape_a[0] * shape_b[1]);
            uint8_t *bytes = storage_bytes(out.storage);
            for (int64_t i = 0; i < ww_layout_elements(&out.layout); i++)
                assert_int_equal(bits_of(bytes, ww_tensor_dtype(&out), i), BITS_ZERO);
            free(bytes);
            ww_tensor_release(&out);
            test_tensor_free(&a);
            test_tensor_free(&b);
        }
    }
}

/* A product that rounds to -0 is +0, with one chunk and with more. */
static void a_result_is_never_minus_zero(void **state)
{
    const int64_t a_shape[2] = {1, 600}, b_shape[2] = {600, 1};
    float tiny[600] = {0}, minus[600] = {0};
    tiny[599] = 0x1p-100f;
    minus[599] = -0x1p-100f;
    test_tensor a = test_tensor_of(*state, WW_F32, 2, a_shape, tiny), b = test_tensor_of(*state, WW_F32, 2, b_shape, minus);
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_CANONICAL, &out));
    uint8_t *bytes = storage_bytes(out.storage);
    assert_int_equal(bits_of(bytes, WW_F32, 0), BITS_ZERO);
    free(bytes);
    ww_tensor_release(&out);
    test_tensor_free(&a);
    test_tensor_free(&b);
}

static void fast_products_are_near(void **state)
{
    test_random random = {8};
    const int64_t shape_a[3] = {2, 33, 70}, shape_b[3] = {1, 70, 40};
    for (int t = 0; t < TYPES_COUNT; t++) {
        test_tensor a = test_tensor_tame(*state, &random, types[t], 3, shape_a, TEST_DENSE);
        test_tensor b = test_tensor_tame(*state, &random, types[t], 3, shape_b, TEST_DENSE);
        ww_tensor fast = {0}, canonical = {0};
        CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_FAST, &fast));
        CHECK_OK(ww_tensor_matmul(&a.tensor, &b.tensor, WW_MATH_CANONICAL, &canonical));
        const ww_dtype dtype = ww_tensor_dtype(&fast);
        uint8_t *x = storage_bytes(fast.storage), *y = storage_bytes(canonical.storage);
        for (int64_t i = 0; i < ww_layout_elements(&fast.layout); i++) {
            const double got = (double)number_of(dtype, bits_of(x, dtype, i)),
                         want = (double)number_of(dtype, bits_of(y, dtype, i));
            const double bound = dtype == WW_I32 ? 0.0 : dtype == WW_F64 ? 1e-11 : dtype == WW_BF16 ? 0.5 : 0.06;
            if (!(got - want <= bound && want - got <= bound))
                fail_msg("%s: %g, not about %g", ww_dtype_name(dtype), got, want);
        }
        free(x);
        free(y);
        ww_tensor_release(&fast);
        ww_tensor_release(&canonical);
        test_tensor_free(&a);
        test_tensor_free(&b);
    }
}

static void unsuitable_arguments_are_refused(void **state)
{
    test_random random = {9};
    const int64_t shape[3] = {2, 3, 4}, other[3] = {3, 4, 5};
    test_tensor x = test_tensor_tame(*state, &random, WW_F32, 3, shape, TEST_DENSE);
    test_tensor y = test_tensor_tame(*state, &random, WW_F32, 3, other, TEST_DENSE);
    test_tensor z = test_tensor_tame(*state, &random, WW_F64, 3, other, TEST_DENSE);
    test_tensor u = test_tensor_tame(*state, &random, WW_U8, 3, shape, TEST_DENSE);
    ww_tensor out = {0};
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_matmul(&x.tensor, &x.tensor, WW_MATH_CANONICAL, &out));
    assert_non_null(strstr(ww_error_message(), "[2, 3, 4] and [2, 3, 4]"));
    CHECK_FAILS(WW_DIMENSION_MISMATCH,
                ww_tensor_matmul(&x.tensor, &y.tensor, WW_MATH_CANONICAL, &out)); /* batches of 2 and 3 */
    ww_tensor flat = x.tensor;
    flat.layout = ww_layout_contiguous(1, shape);
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_matmul(&flat, &flat, WW_MATH_CANONICAL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_matmul(&x.tensor, &z.tensor, WW_MATH_CANONICAL, &out));
    assert_non_null(strstr(ww_error_message(), "f32 and f64"));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_matmul(&u.tensor, &u.tensor, WW_MATH_CANONICAL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_matmul(&x.tensor, &x.tensor, (ww_math)7, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_matmul(NULL, &x.tensor, WW_MATH_CANONICAL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_matmul(&x.tensor, &x.tensor, WW_MATH_CANONICAL, NULL));
    ww_tensor outside = x.tensor;
    outside.layout.strides[2] = 5;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_matmul(&outside, &x.tensor, WW_MATH_CANONICAL, &out));
    ww_tensor huge = x.tensor, tall = x.tensor;
    huge.layout = (ww_layout){.rank = 2, .shape = {INT64_MAX / 2, 1}, .strides = {0, 0}};
    tall.layout = (ww_layout){.rank = 2, .shape = {1, INT64_MAX / 2}, .strides = {0, 0}};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_matmul(&huge, &tall, WW_MATH_CANONICAL, &out));
    assert_null(out.storage);
    test_tensor_free(&x);
    test_tensor_free(&y);
    test_tensor_free(&z);
    test_tensor_free(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_around_tiles_and_chunks_have_the_canonical_bits),
        cmocka_unit_test(views_and_repeated_rows_have_the_canonical_bits),
        cmocka_unit_test(extremes_have_the_canonical_bits),
        cmocka_unit_test(either_side_may_be_transposed),
        cmocka_unit_test(batches_are_broadcast),
        cmocka_unit_test(large_products_have_the_canonical_bits),
        cmocka_unit_test(empty_products_are_zero_or_empty),
        cmocka_unit_test(a_result_is_never_minus_zero),
        cmocka_unit_test(fast_products_are_near),
        cmocka_unit_test(unsuitable_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("matrix products", tests);
}
