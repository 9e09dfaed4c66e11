/* Convolutions, plain and transposed, of every type and layout: to the bit against the definition. */
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/products.h"

static const ww_dtype types[] = {WW_F32, WW_F64, WW_F16, WW_BF16};
enum { TYPES_COUNT = sizeof types / sizeof *types };

typedef struct example {
    const char *name;
    int64_t x[4], w[4]; /* shapes; a height of 1 and a kernel of height 1 for one dimension */
    int64_t padding[2], stride[2], dilation[2], output_padding[2], groups;
} example;

static uint64_t bits_at(const test_tensor *t, const int64_t index[4])
{
    const ww_layout *layout = &t->tensor.layout;
    int64_t at = layout->offset;
    for (int32_t d = 0; d < layout->rank; d++) /* of rank 3: without the height */
        at += index[layout->rank == 3 && d == 2 ? 3 : d] * layout->strides[d];
    return bits_of(t->host, ww_storage_dtype(t->tensor.storage), at);
}

/* One output, as kernels/matmul/matmul.h defines it: channels, then taps; where there is no input there is +0. Taps of a
 * transposed convolution that fall between inputs are not there at all. */
static uint64_t expected(const example *e, bool transposed, const test_tensor *x, const test_tensor *w, const int64_t out[4],
                         plain_sum *sum)
{
    const int64_t ins = e->x[1] / e->groups, outs = (transposed ? e->w[1] * e->groups : e->w[0]) / e->groups;
    const int64_t group = out[1] / outs;
    plain_sum_begin(sum, ww_storage_dtype(x->tensor.storage));
    for (int64_t c = 0; c < ins; c++) {
        for (int64_t ty = 0; ty < e->w[2]; ty++) {
            for (int64_t tx = 0; tx < e->w[3]; tx++) {
                int64_t y, at;
                if (transposed) {
                    y = out[2] + e->padding[0] - ty * e->dilation[0];
                    at = out[3] + e->padding[1] - tx * e->dilation[1];
                    if (y % e->stride[0] != 0 || at % e->stride[1] != 0)
                        continue;
                    y /= e->stride[0];
                    at /= e->stride[1];
                } else {
                    y = out[2] * e->stride[0] - e->padding[0] + ty * e->dilation[0];
                    at = out[3] * e->stride[1] - e->padding[1] + tx * e->dilation[1];
                }
                const bool inside = y >= 0 && y < e->x[2] && at >= 0 && at < e->x[3];
                const int64_t in_x[4] = {out[0], group * ins + c, y, at};
                const int64_t in_w[4] = {transposed ? group * ins + c : out[1], transposed ? out[1] % outs : c, ty, tx};
                plain_sum_step(sum, inside ? bits_at(x, in_x) : BITS_ZERO, bits_at(w, in_w));
            }
        }
    }
    return plain_sum_end(sum);
}

static void check_convolution(ww_device *device, test_random *random, const example *e, bool transposed, bool flat,
                              ww_dtype dtype, test_layout style, bool tame)
{
    test_tensor (*const make)(ww_device *, test_random *, ww_dtype, int32_t, const int64_t *, test_layout) =
        tame ? test_tensor_tame : test_tensor_make;
    const int64_t x3[3] = {e->x[0], e->x[1], e->x[3]}, w3[3] = {e->w[0], e->w[1], e->w[3]};
    test_tensor x = make(device, random, dtype, flat ? 3 : 4, flat ? x3 : e->x, style);
    test_tensor w = make(device, random, dtype, flat ? 3 : 4, flat ? w3 : e->w, style);
    ww_conv how = ww_conv_default();
    ww_tensor out = {0};
    for (int d = 0; d < 2; d++) {
        const int of = flat ? 0 : d, from = flat ? 1 : d;
        how.padding[of] = e->padding[from];
        how.stride[of] = e->stride[from];
        how.dilation[of] = e->dilation[from];
        how.output_padding[of] = e->output_padding[from];
    }
    how.groups = e->groups;
    if (transposed)
        CHECK_OK(flat ? ww_tensor_conv_transpose1d(&x.tensor, &w.tensor, &how, &out)
                      : ww_tensor_conv_transpose2d(&x.tensor, &w.tensor, &how, &out));
    else
        CHECK_OK(flat ? ww_tensor_conv1d(&x.tensor, &w.tensor, &how, &out)
                      : ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    int64_t sizes[4] = {e->x[0], transposed ? e->w[1] * e->groups : e->w[0], 1, 1};
    for (int d = 0; d < 2; d++)
        sizes[2 + d] = transposed ? ww_conv_transpose_size(e->x[2 + d], e->w[2 + d], e->padding[d], e->stride[d],
                                                           e->dilation[d], e->output_padding[d])
                                  : ww_conv_size(e->x[2 + d], e->w[2 + d], e->padding[d], e->stride[d], e->dilation[d]);
    const int64_t count = sizes[0] * sizes[1] * sizes[2] * sizes[3], k = e->x[1] * e->w[2] * e->w[3];
    assert_int_equal(ww_layout_elements(&out.layout), count);
    uint8_t *bytes = storage_bytes(out.storage);
    const int64_t looks = count * k < 150000 ? count : 150000 / k;
    for (int64_t look = 0; look < looks; look++) {
        const int64_t i = looks == count ? look : (int64_t)random_below(random, (uint64_t)count);
        const int64_t at[4] = {i / sizes[3] / sizes[2] / sizes[1], i / sizes[3] / sizes[2] % sizes[1], i / sizes[3] % sizes[2],
                               i % sizes[3]};
        plain_sum sum;
        const uint64_t want = expected(e, transposed, &x, &w, at, &sum), got = bits_of(bytes, dtype, i);
        if (got != want)
            fail_msg("%s%s, %s, output %lld %lld %lld %lld: %llx (%Lg), not %llx (%Lg)", e->name,
                     transposed ? ", transposed" : "", ww_dtype_name(dtype), (long long)at[0], (long long)at[1],
                     (long long)at[2], (long long)at[3], (unsigned long long)got, number_of(dtype, got),
                     (unsigned long long)want, number_of(dtype, want));
        check_near(e->name, &sum, dtype, got);
    }
    free(bytes);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    test_tensor_free(&w);
}

static const example plain[] = {
    {"one by one", {2, 5, 4, 6}, {7, 5, 1, 1}, {0, 0}, {1, 1}, {1, 1}, {0, 0}, 1},
    {"three by three", {2, 3, 7, 6}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
    {"strides, dilations", {1, 4, 11, 13}, {6, 2, 3, 2}, {2, 1}, {2, 3}, {2, 1}, {0, 0}, 2},
    {"each channel by itself", {2, 6, 5, 5}, {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 6},
    {"padding beyond the kernel", {1, 2, 3, 3}, {3, 2, 1, 1}, {2, 2}, {1, 1}, {1, 1}, {0, 0}, 1},
    {"one by one with strides", {3, 2, 5, 4}, {3, 2, 1, 1}, {0, 0}, {2, 2}, {1, 1}, {0, 0}, 1},
    {"a row", {3, 4, 1, 9}, {2, 4, 1, 3}, {0, 2}, {1, 2}, {1, 1}, {0, 0}, 1},
    {"many channels", {2, 60, 4, 5}, {9, 60, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1}, /* two chunks */
};

static const example turned[] = {
    {"one by one", {2, 5, 4, 6}, {5, 7, 1, 1}, {0, 0}, {1, 1}, {1, 1}, {0, 0}, 1},
    {"three by three", {2, 3, 5, 6}, {3, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
    {"stride of two", {2, 4, 5, 4}, {4, 3, 3, 3}, {1, 1}, {2, 2}, {1, 1}, {1, 1}, 1},
    {"groups, strides, dilations", {1, 4, 5, 6}, {4, 2, 3, 2}, {2, 0}, {3, 2}, {2, 3}, {2, 1}, 2},
    {"strides beyond the kernel", {1, 2, 3, 3}, {2, 3, 2, 1}, {0, 0}, {4, 3}, {1, 1}, {1, 2}, 1},
    {"strides and dilations alike", {1, 2, 4, 4}, {2, 2, 3, 3}, {1, 1}, {2, 2}, {2, 4}, {1, 0}, 1},
    {"a row", {2, 4, 1, 6}, {4, 3, 1, 4}, {0, 1}, {1, 2}, {1, 1}, {0, 1}, 1},
    {"many channels", {1, 130, 3, 3}, {130, 3, 3, 3}, {1, 1}, {2, 1}, {1, 1}, {0, 0}, 1},
};

static void convolutions_have_the_canonical_bits(void **state)
{
    test_random random = {21};
    for (size_t e = 0; e < sizeof plain / sizeof *plain; e++)
        for (int t = 0; t < TYPES_COUNT; t++)
            check_convolution(*state, &random, &plain[e], false, false, types[t], (test_layout)((e + (size_t)t) % 3), true);
}

static void transposed_convolutions_have_the_canonical_bits(void **state)
{
    test_random random = {22};
    for (size_t e = 0; e < sizeof turned / sizeof *turned; e++)
        for (int t = 0; t < TYPES_COUNT; t++)
            check_convolution(*state, &random, &turned[e], true, false, types[t], (test_layout)((e + (size_t)t) % 3), true);
}

static void one_dimension_is_a_height_of_one(void **state)
{
    test_random random = {23};
    for (int style = TEST_DENSE; style <= TEST_BROADCAST; style++) {
        check_convolution(*state, &random, &plain[6], false, true, WW_F32, (test_layout)style, true);
        check_convolution(*state, &random, &turned[6], true, true, WW_F32, (test_layout)style, true);
    }
}

/* Infinite weights are multiplied with the padding: 0 times infinity is NaN on every device. */
static void extremes_have_the_canonical_bits(void **state)
{
    test_random random = {24};
    for (int t = 0; t < TYPES_COUNT; t++) {
        check_convolution(*state, &random, &plain[1], false, false, types[t], TEST_VIEW, false);
        check_convolution(*state, &random, &turned[2], true, false, types[t], TEST_VIEW, false);
    }
}

/* Enough outputs and channels for large tiles and several blocks. */
static void large_convolutions_have_the_canonical_bits(void **state)
{
    test_random random = {25};
    const bool slow = device_is_slow(*state);
    const example large = {
        "large", {2, slow ? 8 : 64, 14, 14}, {slow ? 66 : 130, slow ? 8 : 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1};
    check_convolution(*state, &random, &large, false, false, WW_F32, TEST_DENSE, true);
    check_convolution(*state, &random, &large, false, false, WW_BF16, TEST_VIEW, true);
    const example wide = {"wide", {3, 5, 20, slow ? 17 : 300}, {7, 5, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1};
    check_convolution(*state, &random, &wide, false, false, WW_F32, TEST_VIEW, true);
}

static void empty_images_and_channels_work(void **state)
{
    test_random random = {26};
    const example none = {"no images", {0, 3, 5, 5}, {2, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1};
    const example channels = {"no channels", {2, 0, 5, 5}, {2, 0, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1};
    check_convolution(*state, &random, &none, false, false, WW_F32, TEST_DENSE, true);
    check_convolution(*state, &random, &channels, false, false, WW_F32, TEST_DENSE, true);
}

static void unsuitable_arguments_are_refused(void **state)
{
    test_random random = {27};
    const int64_t shape[4] = {1, 4, 5, 5}, kernel[4] = {2, 4, 3, 3};
    test_tensor x = test_tensor_tame(*state, &random, WW_F32, 4, shape, TEST_DENSE);
    test_tensor w = test_tensor_tame(*state, &random, WW_F32, 4, kernel, TEST_DENSE);
    test_tensor half = test_tensor_tame(*state, &random, WW_F16, 4, kernel, TEST_DENSE);
    test_tensor whole = test_tensor_make(*state, &random, WW_I32, 4, kernel, TEST_DENSE);
    ww_tensor out = {0};
    ww_conv how = ww_conv_default();
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_conv1d(&x.tensor, &w.tensor, &how, &out));

    how.groups = 3;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    assert_non_null(strstr(ww_error_message(), "[1, 4, 5, 5]"));
    assert_non_null(strstr(ww_error_message(), "[2, 4, 3, 3]"));
    how.groups = 0;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    how = ww_conv_default();
    how.stride[1] = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    how = ww_conv_default();
    how.dilation[0] = 3; /* a reach of 7 over 5 */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    how = ww_conv_default();
    how.padding[0] = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    how.padding[0] = INT64_MAX / 2 + 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    how = ww_conv_default();
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv2d(&x.tensor, &half.tensor, &how, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_conv2d(&whole.tensor, &whole.tensor, &how, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv2d(&x.tensor, &w.tensor, NULL, &out));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_conv_transpose2d(&x.tensor, &w.tensor, &how, &out)); /* 2 channels, not 4 */
    how.output_padding[0] = 1; /* not below a stride of 1 */
    ww_tensor turned_w = w.tensor;
    turned_w.layout.shape[0] = 4;
    turned_w.layout.shape[1] = 2;
    turned_w.layout.strides[0] = 9;
    turned_w.layout.strides[1] = 36;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_conv_transpose2d(&x.tensor, &turned_w, &how, &out));
    assert_null(out.storage);
    test_tensor_free(&x);
    test_tensor_free(&w);
    test_tensor_free(&half);
    test_tensor_free(&whole);
}

/* Both modes of a convolution that has more outputs and channels than a block of any kernel makes, in every type. */
static void check_fast(ww_device *device, test_random *random, const example *e, ww_dtype dtype)
{
    test_tensor x = test_tensor_tame(device, random, dtype, 4, e->x, TEST_DENSE);
    test_tensor w = test_tensor_tame(device, random, dtype, 4, e->w, TEST_DENSE);
    ww_conv how = ww_conv_default();
    ww_tensor fast = {0}, canonical = {0};
    for (int d = 0; d < 2; d++) {
        how.padding[d] = e->padding[d];
        how.stride[d] = e->stride[d];
        how.dilation[d] = e->dilation[d];
    }
    how.groups = e->groups;
    CHECK_OK(ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &canonical));
    how.math = WW_MATH_FAST;
    CHECK_OK(ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &fast));
    uint8_t *got = storage_bytes(fast.storage), *want = storage_bytes(canonical.storage);
    for (int64_t i = 0; i < ww_layout_elements(&fast.layout); i++) {
        const double a = (double)number_of(dtype, bits_of(got, dtype, i)),
                     b = (double)number_of(dtype, bits_of(want, dtype, i));
        const double bound = dtype == WW_F64 ? 1e-11 : dtype == WW_BF16 ? 0.5 : 0.1;
        if (!(a - b <= bound && b - a <= bound))
            fail_msg("%s, %s, output %lld: %g, not about %g", e->name, ww_dtype_name(dtype), (long long)i, a, b);
    }
    free(got);
    free(want);
    ww_tensor_release(&fast);
    ww_tensor_release(&canonical);
    test_tensor_free(&x);
    test_tensor_free(&w);
}

static void fast_convolutions_are_near(void **state)
{
    static const example examples[] = {
        {"more than a block", {3, 9, 11, 13}, {70, 9, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
        {"whole pieces of weights", {2, 16, 12, 12}, {20, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
        {"as large as the image, spread taps", {2, 35, 9, 32}, {66, 35, 3, 5}, {2, 2}, {1, 1}, {2, 1}, {0, 0}, 1},
        {"more taps than are held", {1, 3, 6, 7}, {2, 3, 5, 3}, {2, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
        {"an image larger than is held", {1, 2, 4, 700}, {3, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
        {"no padding", {2, 16, 12, 12}, {20, 16, 3, 3}, {0, 0}, {1, 1}, {1, 1}, {0, 0}, 1},
        {"strides and groups", {2, 6, 15, 14}, {8, 3, 5, 2}, {2, 0}, {2, 1}, {1, 3}, {0, 0}, 2},
        {"a window too tall for the fast way", {1, 2, 20, 6}, {3, 2, 17, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
    };
    test_random random = {27};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        for (int t = 0; t < TYPES_COUNT; t++)
            check_fast(*state, &random, &examples[i], types[t]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_have_the_canonical_bits),
        cmocka_unit_test(transposed_convolutions_have_the_canonical_bits),
        cmocka_unit_test(one_dimension_is_a_height_of_one),
        cmocka_unit_test(extremes_have_the_canonical_bits),
        cmocka_unit_test(large_convolutions_have_the_canonical_bits),
        cmocka_unit_test(empty_images_and_channels_work),
        cmocka_unit_test(unsuitable_arguments_are_refused),
        cmocka_unit_test(fast_convolutions_are_near),
    };
    return RUN_ON_EVERY_DEVICE("convolutions", tests);
}
