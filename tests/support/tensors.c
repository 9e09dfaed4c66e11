/* Random tensors, and the definition of what their bits mean. */
#include "support/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

typedef struct float_format {
    int fraction_bits, exponent_bits;
    bool has_infinity;
} float_format;

static float_format format_of(ww_dtype dtype)
{
    switch (dtype) {
    case WW_BF16:
        return (float_format){7, 8, true};
    case WW_F16:
        return (float_format){10, 5, true};
    case WW_F8E4M3:
        return (float_format){3, 4, false};
    case WW_F64:
        return (float_format){52, 11, true};
    default:
        return (float_format){23, 8, true};
    }
}

bool is_float(ww_dtype dtype)
{
    return dtype == WW_BF16 || dtype == WW_F16 || dtype == WW_F32 || dtype == WW_F64 || dtype == WW_F8E4M3;
}

bool is_unsigned(ww_dtype dtype)
{
    return dtype == WW_U8 || dtype == WW_U32;
}

long double number_of(ww_dtype dtype, uint64_t bits)
{
    switch (dtype) {
    case WW_U8:
    case WW_U32:
        return (long double)bits;
    case WW_I8:
        return (int8_t)bits;
    case WW_I16:
        return (int16_t)bits;
    case WW_I32:
        return (int32_t)bits;
    case WW_I64:
        return (long double)(int64_t)bits;
    default:
        break;
    }
    const float_format f = format_of(dtype);
    const uint64_t fraction = bits & ((1ull << f.fraction_bits) - 1);
    const int top = (1 << f.exponent_bits) - 1, bias = top / 2;
    const int exponent = (int)(bits >> f.fraction_bits) & top;
    const long double sign = bits >> (f.fraction_bits + f.exponent_bits) & 1 ? -1.0L : 1.0L;
    if (exponent == top && f.has_infinity)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == top && fraction == 7) /* f8e4m3 */
        return NAN;
    if (exponent == 0)
        return sign * ldexpl((long double)fraction, 1 - bias - f.fraction_bits);
    return sign * ldexpl((long double)(fraction | 1ull << f.fraction_bits), exponent - bias - f.fraction_bits);
}

bool bits_are_nan(ww_dtype dtype, uint64_t bits)
{
    return is_float(dtype) && isnan(number_of(dtype, bits));
}

static uint64_t saturated(long double value, long double least, long double most)
{
    if (isnan(value))
        return 0;
    value = truncl(value);
    if (value >= most)
        return (uint64_t)most;
    return value <= least ? (uint64_t)(int64_t)least : value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static uint64_t float_nearest(float_format f, long double value)
{
    const int top = (1 << f.exponent_bits) - 1, bias = top / 2;
    const uint64_t sign = (uint64_t)(signbit(value) != 0) << (f.fraction_bits + f.exponent_bits);
    const uint64_t infinity = (uint64_t)top << f.fraction_bits;
    if (isnan(value))
        return f.has_infinity ? infinity | 1ull << (f.fraction_bits - 1) : 0x7f;
    value = fabsl(value);
    if (value == 0)
        return sign;
    const uint64_t largest = f.has_infinity ? infinity : 0x7e; /* larger numbers become this */
    if (isinf(value))
        return sign | largest;
    int exponent;
    (void)frexpl(value, &exponent); /* value = 0.1... x 2^exponent */
    const int lowest = 1 - bias - f.fraction_bits;
    const int unit = exponent - 1 - f.fraction_bits > lowest ? exponent - 1 - f.fraction_bits : lowest;
    uint64_t units = (uint64_t)rintl(ldexpl(value, -unit)); /* ties to even */
    uint64_t bits;
    if (units < 1ull << f.fraction_bits)
        bits = units; /* denormal */
    else if (units >> f.fraction_bits == 2)
        bits = (uint64_t)(unit + f.fraction_bits + bias + 1) << f.fraction_bits;
    else
        bits = ((uint64_t)(unit + f.fraction_bits + bias) << f.fraction_bits) | (units & ((1ull << f.fraction_bits) - 1));
    return sign | (bits > largest ? largest : bits);
}

uint64_t bits_nearest(ww_dtype dtype, long double value)
{
    switch (dtype) {
    case WW_U8:
        return saturated(value, 0, UINT8_MAX) & UINT8_MAX;
    case WW_U32:
        return saturated(value, 0, UINT32_MAX) & UINT32_MAX;
    case WW_I8:
        return saturated(value, INT8_MIN, INT8_MAX) & UINT8_MAX;
    case WW_I16:
        return saturated(value, INT16_MIN, INT16_MAX) & UINT16_MAX;
    case WW_I32:
        return saturated(value, INT32_MIN, INT32_MAX) & UINT32_MAX;
    case WW_I64:
        return saturated(value, (long double)INT64_MIN, (long double)INT64_MAX);
    default:
        return float_nearest(format_of(dtype), value);
    }
}

uint64_t random_element(test_random *random, ww_dtype dtype)
{
    static const long double extremes[] = {0.0L,          -0.0L,  INFINITY, -INFINITY, NAN,      0.5L,      -0.5L,
                                           1.5L,          448.0L, 464.0L,   65504.0L,  65520.0L, -65520.0L, 2147483648.0L,
                                           4294967295.0L, 1e10L,  -1e19L,   1e-8L,     3e-5L,    -3e38L};
    const size_t bytes = ww_dtype_bytes(dtype);
    const uint64_t all = bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1;
    switch (random_below(random, 4)) {
    case 0:
        return random_bits(random) & all;
    case 1:
        return bits_nearest(dtype, extremes[random_below(random, sizeof extremes / sizeof *extremes)]);
    case 2:
        return bits_nearest(dtype, (long double)random_below(random, 41) - 20);
    default:
        return bits_nearest(dtype, (long double)random_normal(random) * 10);
    }
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

void random_shape(test_random *random, int32_t rank, int64_t most, int64_t *shape)
{
    int64_t left = most;
    for (int32_t d = 0; d < rank; d++) {
        const int64_t largest = left < 12 ? left : 12;
        shape[d] = random_below(random, 5) == 0 ? 1 : 1 + (int64_t)random_below(random, (uint64_t)largest);
        left /= shape[d];
    }
}

static void random_layout(test_random *random, ww_layout *layout, test_layout style, int64_t *elements)
{
    int32_t order[WW_RANK_MAX];
    int64_t stride = 1 + (int64_t)random_below(random, 2);
    for (int32_t d = 0; d < layout->rank; d++)
        order[d] = d;
    for (int32_t d = layout->rank - 1; d > 0; d--) {
        const int32_t other = (int32_t)random_below(random, (uint64_t)d + 1), held = order[d];
        order[d] = order[other];
        order[other] = held;
    }
    for (int32_t n = 0; n < layout->rank; n++) {
        const int32_t d = order[n];
        if (style == TEST_BROADCAST && random_below(random, 3) == 0) {
            layout->strides[d] = 0;
            continue;
        }
        layout->strides[d] = stride;
        stride = stride * layout->shape[d] + (int64_t)random_below(random, 3);
    }
    layout->offset = (int64_t)random_below(random, 5);
    *elements = layout->offset + stride + (int64_t)random_below(random, 5);
}

test_tensor test_tensor_make(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape,
                             test_layout style)
{
    test_tensor x = {.tensor.layout = ww_layout_contiguous(rank, shape)};
    int64_t elements = ww_layout_elements(&x.tensor.layout);
    const size_t bytes = ww_dtype_bytes(dtype);
    if (style != TEST_DENSE)
        random_layout(random, &x.tensor.layout, style, &elements);
    x.host = malloc((size_t)elements * bytes + 1);
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bits = random_element(random, dtype);
        memcpy(x.host + (size_t)i * bytes, &bits, bytes);
    }
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a failed check ends the test */
    CHECK_OK(ww_storage_from_host(device, dtype, elements, x.host, &x.tensor.storage));
    return x;
}

test_tensor test_tensor_of(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, const void *elements)
{
    test_tensor x = {.tensor.layout = ww_layout_contiguous(rank, shape)};
    const size_t bytes = (size_t)ww_layout_elements(&x.tensor.layout) * ww_dtype_bytes(dtype);
    x.host = malloc(bytes + 1);
    if (bytes > 0)
        memcpy(x.host, elements, bytes);
    CHECK_OK(ww_storage_from_host(device, dtype, ww_layout_elements(&x.tensor.layout), x.host, &x.tensor.storage));
    return x;
}

void test_tensor_free(test_tensor *x)
{
    ww_storage_release(x->tensor.storage);
    free(x->host);
    *x = (test_tensor){0};
}

uint64_t bits_of(const void *bytes, ww_dtype dtype, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const uint8_t *)bytes + (size_t)i * ww_dtype_bytes(dtype), ww_dtype_bytes(dtype));
    return bits;
}

int64_t test_tensor_place(const ww_layout *layout, int64_t i)
{
    int64_t place = layout->offset;
    for (int32_t d = layout->rank - 1; d >= 0; d--) {
        place += i % layout->shape[d] * layout->strides[d];
        i /= layout->shape[d];
    }
    return place;
}

uint64_t test_tensor_bits(const test_tensor *x, int64_t i)
{
    return bits_of(x->host, ww_storage_dtype(x->tensor.storage), test_tensor_place(&x->tensor.layout, i));
}

uint8_t *storage_bytes(const ww_storage *storage)
{
    uint8_t *bytes = malloc((size_t)ww_storage_elements(storage) * ww_dtype_bytes(ww_storage_dtype(storage)) + 1);
    CHECK_OK(ww_storage_to_host(storage, bytes));
    return bytes;
}

void check_dense(const ww_tensor *x, int32_t rank, const int64_t *shape)
{
    const ww_layout dense = ww_layout_contiguous(rank, shape);
    assert_memory_equal(&x->layout, &dense, sizeof dense);
    assert_int_equal(ww_storage_elements(x->storage), ww_layout_elements(&dense));
}
