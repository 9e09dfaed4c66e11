/* Pools and enlargements of images, of every type and layout, against plain loops: to the bit where the definition is exact
 * enough to be written down twice.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/products.h"

static uint64_t bits_at(const test_tensor *t, int64_t image, int64_t channel, int64_t y, int64_t x)
{
    const int64_t *strides = t->tensor.layout.strides;
    const int64_t at = t->tensor.layout.offset + image * strides[0] + channel * strides[1] +
                       (t->tensor.layout.rank == 3 ? x * strides[2] : y * strides[2] + x * strides[3]);
    return bits_of(t->host, ww_storage_dtype(t->tensor.storage), at);
}

static void check_element(const char *what, ww_dtype dtype, int64_t i, uint64_t got, uint64_t want)
{
    if (got != want)
        fail_msg("%s, %s, element %lld: %llx (%Lg), not %llx (%Lg)", what, ww_dtype_name(dtype), (long long)i,
                 (unsigned long long)got, number_of(dtype, got), (unsigned long long)want, number_of(dtype, want));
}

/* ---- pools ----------------------------------------------------------------------------------------------------------------
 */

static int64_t integer_of(ww_dtype dtype, uint64_t bits)
{
    return dtype == WW_I64 ? (int64_t)bits : (int64_t)number_of(dtype, bits);
}

/* The sum or maximum of a window by the definition. */
static uint64_t pooled(const test_tensor *x, const ww_pool *how, bool average, const int64_t at[4])
{
    const int64_t *in = x->tensor.layout.shape;
    const ww_dtype dtype = ww_storage_dtype(x->tensor.storage);
    int64_t count = 0, whole = 0;
    uint64_t sum_i = 0;
    float sum_f = 0.0f;
    double sum_d = 0.0;
    long double most = 0.0L;
    bool nan = false;
    for (int64_t ky = 0; ky < how->kernel[0]; ky++) {
        for (int64_t kx = 0; kx < how->kernel[1]; kx++) {
            const int64_t y = at[2] * how->stride[0] - how->padding[0] + ky, z = at[3] * how->stride[1] - how->padding[1] + kx;
            if (y < 0 || z < 0 || y >= in[2] || z >= in[3])
                continue;
            const uint64_t bits = bits_at(x, at[0], at[1], y, z);
            const long double value = number_of(dtype, bits);
            if (is_float(dtype) && dtype == WW_F64)
                sum_d = sum_d + (double)value;
            else if (is_float(dtype))
                sum_f = sum_f + (float)value;
            else
                sum_i += (uint64_t)integer_of(dtype, bits);
            nan = nan || isnan(value);
            if (!is_float(dtype))
                whole = count == 0 || integer_of(dtype, bits) > whole ? integer_of(dtype, bits) : whole;
            else if (count == 0 || value > most || (value == 0.0L && most == 0.0L && signbit(most)))
                most = value;
            count++;
        }
    }
    const int64_t among = how->padding_counts ? how->kernel[0] * how->kernel[1] : count;
    const size_t bytes = ww_dtype_bytes(dtype);
    if (!is_float(dtype))
        return (uint64_t)(average ? (int64_t)sum_i / among : whole) & (bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1);
    if (!average)
        return bits_nearest(dtype, nan ? (long double)NAN : most);
    return bits_nearest(dtype, dtype == WW_F64 ? (long double)(sum_d / (double)among) : (long double)(sum_f / (float)among));
}

static void check_pool(ww_device *device, test_random *random, ww_dtype dtype, test_layout style, const int64_t shape[4],
                       const ww_pool *how)
{
    test_tensor x = test_tensor_make(device, random, dtype, 4, shape, style);
    for (int average = 0; average < 2; average++) {
        ww_tensor out = {0};
        CHECK_OK(average ? ww_tensor_avg_pool2d(&x.tensor, how, &out) : ww_tensor_max_pool2d(&x.tensor, how, &out));
        const int64_t oy = ww_conv_size(shape[2], how->kernel[0], how->padding[0], how->stride[0], 1);
        const int64_t ox = ww_conv_size(shape[3], how->kernel[1], how->padding[1], how->stride[1], 1);
        assert_int_equal(ww_layout_elements(&out.layout), shape[0] * shape[1] * oy * ox);
        assert_int_equal(ww_tensor_dtype(&out), dtype);
        uint8_t *bytes = storage_bytes(out.storage);
        for (int64_t i = 0; i < ww_layout_elements(&out.layout); i++) {
            const int64_t at[4] = {i / ox / oy / shape[1], i / ox / oy % shape[1], i / ox % oy, i % ox};
            check_element(average ? "average" : "maximum", dtype, i, bits_of(bytes, dtype, i),
                          pooled(&x, how, average != 0, at));
        }
        free(bytes);
        ww_tensor_release(&out);
    }
    test_tensor_free(&x);
}

static void pools_of_every_type_match_their_definition(void **state)
{
    test_random random = {31};
    for (int type = 0; type < TEST_TYPES; type++) {
        if (type == WW_I8)
            continue;
        for (int style = TEST_DENSE; style <= TEST_BROADCAST; style++) {
            const int64_t shape[4] = {2, 3, 7, 9};
            ww_pool how = ww_pool_default(2, 3);
            check_pool(*state, &random, (ww_dtype)type, (test_layout)style, shape, &how);
            how.stride[0] = 1;
            how.stride[1] = 2;
            how.padding[0] = how.padding[1] = 1;
            check_pool(*state, &random, (ww_dtype)type, (test_layout)style, shape, &how);
            how.padding_counts = 0;
            check_pool(*state, &random, (ww_dtype)type, (test_layout)style, shape, &how);
        }
    }
}

/* ---- enlargements ---------------------------------------------------------------------------------------------------------
 */

static void nearest_copies_elements_of_every_type(void **state)
{
    test_random random = {32};
    static const int64_t sizes[][2] = {{8, 10}, {4, 5}, {3, 1}, {7, 13}};
    for (int type = 0; type < TEST_TYPES; type++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes && type != WW_I8; s++) {
            const bool flat = s % 2 == 1;
            const int64_t shape[4] = {2, 3, flat ? 5 : 4, 5};
            const int64_t oy = flat ? 1 : sizes[s][0], ox = sizes[s][1];
            test_tensor x = test_tensor_make(*state, &random, (ww_dtype)type, flat ? 3 : 4, shape, (test_layout)(s % 3));
            ww_tensor out = {0};
            CHECK_OK(flat ? ww_tensor_upsample_nearest1d(&x.tensor, ox, &out)
                          : ww_tensor_upsample_nearest2d(&x.tensor, oy, ox, &out));
            assert_int_equal(ww_layout_elements(&out.layout), 6 * oy * ox);
            uint8_t *bytes = storage_bytes(out.storage);
            for (int64_t i = 0; i < 6 * oy * ox; i++) {
                const int64_t y = flat ? 0 : i / ox % oy * 4 / oy, z = i % ox * 5 / ox;
                check_element("nearest", (ww_dtype)type, i, bits_of(bytes, (ww_dtype)type, i),
                              bits_at(&x, i / ox / oy / 3, i / ox / oy % 3, y, z));
            }
            free(bytes);
            ww_tensor_release(&out);
            test_tensor_free(&x);
        }
    }
}

static double position(int64_t o, int64_t in, int64_t outs, bool corners, double factor)
{
    const double scale = corners        ? (outs > 1 ? (double)(in - 1) / (double)(outs - 1) : 0.0)
                         : factor > 0.0 ? 1.0 / factor
                                        : (double)in / (double)outs;
    const double at = corners ? (double)o * scale : ((double)o + 0.5) * scale - 0.5;
    return at < 0.0 ? 0.0 : at;
}

static uint64_t between(const test_tensor *x, int64_t image, int64_t channel, double y, double z)
{
    const int64_t *in = x->tensor.layout.shape;
    const ww_dtype dtype = ww_storage_dtype(x->tensor.storage);
    const int64_t y0 = y < (double)(in[2] - 1) ? (int64_t)y : in[2] - 1, x0 = z < (double)(in[3] - 1) ? (int64_t)z : in[3] - 1;
    const int64_t y1 = y0 + 1 < in[2] ? y0 + 1 : y0, x1 = x0 + 1 < in[3] ? x0 + 1 : x0;
    const long double a = number_of(dtype, bits_at(x, image, channel, y0, x0));
    const long double b = number_of(dtype, bits_at(x, image, channel, y0, x1));
    const long double c = number_of(dtype, bits_at(x, image, channel, y1, x0));
    const long double d = number_of(dtype, bits_at(x, image, channel, y1, x1));
    if (dtype == WW_F64) {
        const double wy = y - (double)y0, wx = z - (double)x0;
        const double above = fma((double)b, wx, (double)a * (1 - wx)), below = fma((double)d, wx, (double)c * (1 - wx));
        return bits_nearest(dtype, fma(below, wy, above * (1 - wy)));
    }
    const float wy = (float)(y - (double)y0), wx = (float)(z - (double)x0);
    const float above = fmaf((float)b, wx, (float)a * (1 - wx)), below = fmaf((float)d, wx, (float)c * (1 - wx));
    return bits_nearest(dtype, fmaf(below, wy, above * (1 - wy)));
}

static void bilinear_images_have_the_same_bits_everywhere(void **state)
{
    static const ww_dtype types[] = {WW_F32, WW_F64, WW_F16, WW_BF16, WW_F8E4M3};
    static const int64_t sizes[][2] = {{8, 10}, {4, 5}, {3, 1}, {7, 13}, {2, 2}};
    static const double factors[2] = {2.5, 0.75};
    test_random random = {33};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const int64_t shape[4] = {2, 2, 4, 5}, oy = sizes[s][0], ox = sizes[s][1];
            const bool corners = s % 2 == 1, has_factors = s == 2 || s == 1;
            test_tensor x = test_tensor_tame(*state, &random, types[t], 4, shape, (test_layout)(s % 3));
            ww_tensor out = {0};
            CHECK_OK(ww_tensor_upsample_bilinear2d(&x.tensor, oy, ox, corners, has_factors ? factors : NULL, &out));
            uint8_t *bytes = storage_bytes(out.storage);
            for (int64_t i = 0; i < ww_layout_elements(&out.layout); i++)
                check_element("bilinear", types[t], i, bits_of(bytes, types[t], i),
                              between(&x, i / ox / oy / 2, i / ox / oy % 2,
                                      position(i / ox % oy, 4, oy, corners, has_factors ? factors[0] : 0.0),
                                      position(i % ox, 5, ox, corners, has_factors ? factors[1] : 0.0)));
            free(bytes);
            ww_tensor_release(&out);
            test_tensor_free(&x);
        }
    }
}

static void empty_images_are_empty(void **state)
{
    const int64_t shape[4] = {0, 3, 4, 4};
    test_random random = {34};
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 4, shape, TEST_DENSE);
    const ww_pool how = ww_pool_default(2, 2);
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_max_pool2d(&x.tensor, &how, &out));
    assert_int_equal(ww_layout_elements(&out.layout), 0);
    ww_tensor_release(&out);
    CHECK_OK(ww_tensor_upsample_nearest2d(&x.tensor, 8, 8, &out));
    assert_int_equal(ww_layout_elements(&out.layout), 0);
    ww_tensor_release(&out);
    test_tensor_free(&x);
}

static void unsuitable_arguments_are_refused(void **state)
{
    const int64_t shape[4] = {1, 2, 4, 4}, none[4] = {1, 2, 0, 4};
    test_random random = {35};
    test_tensor x = test_tensor_tame(*state, &random, WW_F32, 4, shape, TEST_DENSE);
    test_tensor whole = test_tensor_make(*state, &random, WW_U8, 4, shape, TEST_DENSE);
    test_tensor bytes = test_tensor_make(*state, &random, WW_I8, 4, shape, TEST_DENSE);
    test_tensor nothing = test_tensor_make(*state, &random, WW_F32, 4, none, TEST_DENSE);
    ww_tensor out = {0};
    ww_pool how = ww_pool_default(5, 2);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_max_pool2d(&x.tensor, &how, &out)); /* 5 in 4 */
    assert_non_null(strstr(ww_error_message(), "[1, 2, 4, 4]"));
    how = ww_pool_default(2, 2);
    how.padding[1] = 2;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_avg_pool2d(&x.tensor, &how, &out)); /* a window of nothing but padding */
    how = ww_pool_default(2, 2);
    how.stride[0] = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_avg_pool2d(&x.tensor, &how, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_avg_pool2d(&x.tensor, NULL, &out));
    how = ww_pool_default(2, 2);
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_avg_pool2d(&bytes.tensor, &how, &out));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_upsample_nearest1d(&x.tensor, 4, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_upsample_nearest2d(&x.tensor, -1, 4, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_upsample_nearest2d(&nothing.tensor, 4, 4, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_upsample_bilinear2d(&whole.tensor, 8, 8, 0, NULL, &out));
    const double factors[2] = {0.0, NAN};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_upsample_bilinear2d(&x.tensor, 8, 8, 0, factors, &out));
    assert_null(out.storage);
    test_tensor_free(&x);
    test_tensor_free(&whole);
    test_tensor_free(&bytes);
    test_tensor_free(&nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_of_every_type_match_their_definition),
        cmocka_unit_test(nearest_copies_elements_of_every_type),
        cmocka_unit_test(bilinear_images_have_the_same_bits_everywhere),
        cmocka_unit_test(empty_images_are_empty),
        cmocka_unit_test(unsuitable_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("pools and enlargements", tests);
}
