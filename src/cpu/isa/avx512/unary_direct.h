/* Operations on f32, f16 and bf16 with results of the same type, without blocks in between: sixteen elements are widened,
 * computed and narrowed in registers. For the functions of functions.h and for rsqrt. Lanes past the end are masked.
 */
#ifndef WW_CPU_ISA_AVX512_UNARY_DIRECT_H
#define WW_CPU_ISA_AVX512_UNARY_DIRECT_H

#include <stdint.h>

#include "arithmetic/operations.h"
#include "cpu/isa/avx512/element_functions.h"

/* Rounds to the nearest, ties to even; every NaN becomes the one NaN. */
F32X16_FUNCTION void f32x16_store(int32_t type, void *to, int64_t i, __mmask16 mask, f32x16 value)
{
    const f32x16 one = f32x16_one_nan(value);
    if (type == TYPE_F32) {
        _mm512_mask_storeu_ps((float *)to + i, mask, one);
        return;
    }
    __m256i halves;
    if (type == TYPE_F16) {
        halves = _mm512_cvtps_ph(one, _MM_FROUND_TO_NEAREST_INT);
    } else {
        const __m512i bits = _mm512_castps_si512(one);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
    }
    _mm256_mask_storeu_epi16((uint16_t *)to + i, mask, halves);
}

/* Same as canon_rsqrt_f32(). */
F32X16_FUNCTION f32x16 f32x16_rsqrt(f32x16 x)
{
    const __mmask16 small = _mm512_cmp_ps_mask(x, F32X16(0x1p-64f), _CMP_LT_OQ);
    const f32x16 scaled = _mm512_mask_mul_ps(x, small, x, F32X16(0x1p64f));
    const f32x16 y = _mm512_div_ps(F32X16(1.0f), _mm512_sqrt_ps(scaled));
    const f32x16 root = _mm512_mul_ps(scaled, y);
    const f32x16 lost = _mm512_mul_ps(_mm512_fmsub_ps(scaled, y, root), y);
    const f32x16 left = _mm512_sub_ps(_mm512_fnmadd_ps(root, y, F32X16(1.0f)), lost);
    const f32x16 fixed = _mm512_fmadd_ps(_mm512_mul_ps(F32X16(0.5f), left), y, y);
    const f32x16 rescaled = _mm512_mask_mul_ps(fixed, small, fixed, F32X16(0x1p32f));
    const __mmask16 positive = _mm512_cmp_ps_mask(x, F32X16(0.0f), _CMP_GT_OQ);
    return _mm512_mask_mov_ps(y, _mm512_mask_cmp_ps_mask(positive, x, F32X16(__builtin_inff()), _CMP_LT_OQ), rescaled);
}

#define DIRECT_LOOP(type, function)                                                                                            \
    for (int64_t i = 0; i < count; i += 16) {                                                                                  \
        const __mmask16 mask = f32x16_mask(count - i);                                                                         \
        f32x16_store(type, to, i, mask, function(f32x16_load(type, from, i, mask)));                                           \
    }
#define DIRECT(name, function)                                                                                                 \
    static void direct_##name(int32_t type, void *to, const void *from, int64_t count)                                         \
    {                                                                                                                          \
        if (type == TYPE_F32)                                                                                                  \
            DIRECT_LOOP(TYPE_F32, function)                                                                                    \
        else if (type == TYPE_F16)                                                                                             \
            DIRECT_LOOP(TYPE_F16, function)                                                                                    \
        else                                                                                                                   \
            DIRECT_LOOP(TYPE_BF16, function)                                                                                   \
    }
DIRECT(rsqrt, f32x16_rsqrt)
DIRECT(exp, f32x16_exp)
DIRECT(tanh, f32x16_tanh)
DIRECT(erf, f32x16_erf)
DIRECT(sigmoid, f32x16_sigmoid)
DIRECT(silu, f32x16_silu)
DIRECT(gelu, f32x16_gelu)
DIRECT(gelu_erf, f32x16_gelu_erf)
#undef DIRECT
#undef DIRECT_LOOP

static bool unary_direct(int32_t op, int32_t type, void *to, const void *from, int64_t count)
{
    static void (*const functions[UNARY_COUNT])(int32_t type, void *to, const void *from, int64_t count) = {
        [UNARY_EXP] = direct_exp,           [UNARY_TANH] = direct_tanh,   [UNARY_ERF] = direct_erf,
        [UNARY_SIGMOID] = direct_sigmoid,   [UNARY_SILU] = direct_silu,   [UNARY_GELU] = direct_gelu,
        [UNARY_GELU_ERF] = direct_gelu_erf, [UNARY_RSQRT] = direct_rsqrt,
    };
    if ((type != TYPE_F32 && type != TYPE_F16 && type != TYPE_BF16) || op >= UNARY_COUNT || !functions[op])
        return false;
    functions[op](type, to, from, count);
    return true;
}

#endif
