/* Loads and stores one element of any type in the kind used to compute it, for kernels and CPUs. For operations that work
 * element by element. The caller makes sure that type and kind match.
 */
#ifndef WW_ARITHMETIC_ELEMENT_H
#define WW_ARITHMETIC_ELEMENT_H

#include <stdint.h>

#include "arithmetic/convert.h"
#include "arithmetic/types.h"

CANON_FUNCTION float element_load_f32(const void *in, int32_t type, int64_t at)
{
    switch (type) {
    case TYPE_F32:
        return ((const float *)in)[at];
    case TYPE_F16:
        return widen_f16(((const uint16_t *)in)[at]);
    case TYPE_BF16:
        return widen_bf16(((const uint16_t *)in)[at]);
    default:
        return widen_f8e4m3(((const uint8_t *)in)[at]);
    }
}

CANON_FUNCTION void element_store_f32(void *out, int32_t type, int64_t at, float x)
{
    switch (type) {
    case TYPE_F32:
        ((float *)out)[at] = one_nan_f32(x);
        break;
    case TYPE_F16:
        ((uint16_t *)out)[at] = narrow_f16(x);
        break;
    case TYPE_BF16:
        ((uint16_t *)out)[at] = narrow_bf16(x);
        break;
    default:
        ((uint8_t *)out)[at] = narrow_f8e4m3(x);
        break;
    }
}

CANON_FUNCTION double element_load_f64(const void *in, int32_t type, int64_t at)
{
    (void)type;
    return ((const double *)in)[at];
}

CANON_FUNCTION void element_store_f64(void *out, int32_t type, int64_t at, double x)
{
    (void)type;
    ((double *)out)[at] = one_nan_f64(x);
}

CANON_FUNCTION int64_t element_load_i64(const void *in, int32_t type, int64_t at)
{
    switch (type) {
    case TYPE_U8:
        return ((const uint8_t *)in)[at];
    case TYPE_I16:
        return ((const int16_t *)in)[at];
    case TYPE_I32:
        return ((const int32_t *)in)[at];
    case TYPE_U32:
        return ((const uint32_t *)in)[at];
    default:
        return ((const int64_t *)in)[at];
    }
}

CANON_FUNCTION void element_store_i64(void *out, int32_t type, int64_t at, int64_t x)
{
    switch (type) {
    case TYPE_U8:
        ((uint8_t *)out)[at] = (uint8_t)x;
        break;
    case TYPE_I16:
        ((int16_t *)out)[at] = (int16_t)x;
        break;
    case TYPE_I32:
    case TYPE_U32:
        ((uint32_t *)out)[at] = (uint32_t)x;
        break;
    default:
        ((int64_t *)out)[at] = x;
        break;
    }
}

#endif
