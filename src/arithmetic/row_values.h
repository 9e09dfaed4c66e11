/* Converts the caller's f32 numbers to the type of a collection's rows and back. Here u8 is 0 to 255, as the caller sees it.
 *
 * f16 and bf16 round to nearest, ties to even; a number that would become infinite does not fit. i8 and u8 accept only integers
 * in their range. The conversion back to f32 is exact.
 */
#ifndef WW_ARITHMETIC_ROW_VALUES_H
#define WW_ARITHMETIC_ROW_VALUES_H

#include "arithmetic/row_types.h"

/* Whether the type can hold this number. Only f32 holds numbers that are not finite. */
CANON_FUNCTION bool row_value_fits(int32_t type, float x)
{
    if (type == ROW_F16)
        return (f16_from_f32(x) & 0x7c00u) != 0x7c00u;
    if (type == ROW_BF16)
        return (bf16_from_f32(x) & 0x7f80u) != 0x7f80u;
    if (type == ROW_F32)
        return true;
    const float min = type == ROW_I8 ? -128.0f : 0.0f, max = type == ROW_I8 ? 127.0f : 255.0f;
    return x >= min && x <= max && x == (float)(int32_t)x;
}

/* Converts `dim` numbers to elements. Returns whether all fit; if not, the output is meaningless. The loops are plain so that
 * compilers vectorize them. */
CANON_FUNCTION bool row_narrow(int32_t type, const float *from, int32_t dim, void *to)
{
    uint32_t lost = 0;
    if (type == ROW_F16) {
        uint16_t *halves = (uint16_t *)to;
        for (int32_t i = 0; i < dim; i++) {
            halves[i] = f16_from_f32(from[i]);
            lost |= (halves[i] & 0x7c00u) == 0x7c00u;
        }
    } else if (type == ROW_BF16) {
        uint16_t *halves = (uint16_t *)to;
        for (int32_t i = 0; i < dim; i++) {
            halves[i] = bf16_from_f32(from[i]);
            lost |= (halves[i] & 0x7f80u) == 0x7f80u;
        }
    } else if (type == ROW_F32) {
        __builtin_memcpy(to, from, (size_t)dim * sizeof *from);
    } else {
        const float min = type == ROW_I8 ? -128.0f : 0.0f, max = type == ROW_I8 ? 127.0f : 255.0f;
        uint8_t *bytes = (uint8_t *)to;
        for (int32_t i = 0; i < dim; i++) {
            const bool within = from[i] >= min && from[i] <= max; /* otherwise x is 0, which converts safely */
            const float x = within ? from[i] : 0.0f;
            const int32_t n = (int32_t)x;
            bytes[i] = (uint8_t)n;
            lost |= (uint32_t)!within | (uint32_t)(x != (float)n);
        }
    }
    return lost == 0;
}

CANON_FUNCTION void row_widen(int32_t type, const void *from, int32_t dim, float *to)
{
    if (type == ROW_F32)
        __builtin_memcpy(to, from, (size_t)dim * sizeof *to);
    for (int32_t i = 0; type == ROW_F16 && i < dim; i++)
        to[i] = f32_from_f16(((const uint16_t *)from)[i]);
    for (int32_t i = 0; type == ROW_BF16 && i < dim; i++)
        to[i] = f32_from_bf16(((const uint16_t *)from)[i]);
    for (int32_t i = 0; type == ROW_I8 && i < dim; i++)
        to[i] = (float)((const int8_t *)from)[i];
    for (int32_t i = 0; type == ROW_U8 && i < dim; i++)
        to[i] = (float)((const uint8_t *)from)[i];
}

#endif
