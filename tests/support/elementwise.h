/* Shared by the tests of element-wise operations: sizes, the check of a result, and the expected values of casts and functions.
 */
#ifndef WW_TESTS_SUPPORT_ELEMENTWISE_H
#define WW_TESTS_SUPPORT_ELEMENTWISE_H

#include <math.h>
#include <stdlib.h>

#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"
#include "support/devices.h"
#include "support/tensors.h"

/* More elements than a block of a kernel processes at once, 16 bytes at a time, plus a few for the element-wise rest. */
static inline int64_t tile_and_some(ww_dtype dtype)
{
    const int64_t bytes = (int64_t)ww_dtype_bytes(dtype);
    return 16384 / (bytes < 4 ? bytes : 4) + 77;
}

/* Checks every element of a result against `expected`, and frees it. */
typedef uint64_t (*expectation)(const test_tensor *xs, int32_t op, int64_t i);

static inline void check_result(const char *what, ww_tensor *out, ww_dtype dtype, const test_tensor *xs, int32_t op,
                                expectation expected)
{
    const int64_t count = ww_layout_elements(&xs[0].tensor.layout);
    check_dense(out, xs[0].tensor.layout.rank, xs[0].tensor.layout.shape);
    assert_int_equal(ww_tensor_dtype(out), dtype);
    uint8_t *bytes = storage_bytes(out->storage);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t got = bits_of(bytes, dtype, i);
        const uint64_t want = expected(xs, op, i);
        if (got != want)
            fail_msg("%s, %s, element %lld of %lld: %llx (%Lg), not %llx (%Lg); x is %Lg", what, ww_dtype_name(dtype),
                     (long long)i, (long long)count, (unsigned long long)got, number_of(dtype, got), (unsigned long long)want,
                     number_of(dtype, want), number_of(ww_storage_dtype(xs[0].tensor.storage), test_tensor_bits(&xs[0], i)));
    }
    free(bytes);
    ww_tensor_release(out);
}

static inline uint64_t cast_expected(const test_tensor *xs, int32_t to, int64_t i)
{
    const ww_dtype from = ww_storage_dtype(xs[0].tensor.storage);
    const uint64_t bits = test_tensor_bits(&xs[0], i);
    const size_t bytes = ww_dtype_bytes((ww_dtype)to);
    if (from == (ww_dtype)to)
        return bits;
    if (!is_float(from) && !is_float((ww_dtype)to)) /* the low bits, and those of the sign above */
        return (is_unsigned(from) ? bits : (uint64_t)(int64_t)number_of(from, bits)) &
               (bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1);
    return bits_nearest((ww_dtype)to, number_of(from, bits));
}

static inline uint64_t wrapped(ww_dtype dtype, uint64_t value)
{
    const size_t bytes = ww_dtype_bytes(dtype);
    return bytes == 8 ? value : value & ((1ull << (8 * bytes)) - 1);
}

static inline uint64_t unary_integer(ww_unary op, ww_dtype dtype, uint64_t bits)
{
    const int64_t x = dtype == WW_I64 ? (int64_t)bits : (int64_t)number_of(dtype, bits);
    switch (op) {
    case WW_ABS:
        return wrapped(dtype, x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    case WW_NEG:
        return wrapped(dtype, 0 - (uint64_t)x);
    case WW_SQR:
        return wrapped(dtype, (uint64_t)x * (uint64_t)x);
    case WW_RELU:
        return x < 0 ? 0 : bits;
    case WW_SIGN:
        return wrapped(dtype, (uint64_t)(int64_t)((x > 0) - (x < 0)));
    default:
        return bits; /* floor, ceil, round */
    }
}

/* For floats the element functions themselves, one element after the other; other tests measure their accuracy. */
static inline uint64_t unary_float(ww_unary op, ww_dtype dtype, long double number)
{
    const float f = (float)number;
    const double d = (double)number;
    switch (op) {
#define F32(NAME, name)                                                                                                        \
    case WW_##NAME:                                                                                                            \
        return bits_nearest(dtype, dtype == WW_F64 ? (long double)canon_##name##_f64(d) : (long double)canon_##name##_f32(f));
#define UNARY(NAME, name, floats, integers, which) F32(NAME, name)
#include "arithmetic/unary.def"
#undef UNARY
#undef F32
    default:
        fail();
        return 0;
    }
}

static inline uint64_t unary_expected(const test_tensor *xs, int32_t number, int64_t i)
{
    const ww_dtype dtype = ww_storage_dtype(xs[0].tensor.storage);
    const uint64_t bits = test_tensor_bits(&xs[0], i);
    return is_float(dtype) ? unary_float((ww_unary)number, dtype, number_of(dtype, bits))
                           : unary_integer((ww_unary)number, dtype, bits);
}

#endif
