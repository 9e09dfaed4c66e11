/* The loops of element_loops.h, written once; included by one file of each instruction set, which defines TENSOR_LOOPS as the
 * name of its table. The compiler makes vectors of them; only the conversions of f16 use the set's own instructions. A set that
 * has functions of its own besides says so with TENSOR_DIRECT.
 */
#ifndef WW_CPU_TENSOR_ELEMENT_KERNELS_H
#define WW_CPU_TENSOR_ELEMENT_KERNELS_H

#include "arithmetic/convert.h"
#include "arithmetic/integers.h"
#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"
#include "arithmetic/philox.h"
#include "cpu/tensor/element_loops.h"
#include "arithmetic/operations.h"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LOOP for (int64_t i = 0; i < count; i++)

/* ---- f16 by the set's own instructions: the same bits as arithmetic/convert.h, NaNs apart, which are made one
 * ----------------
 */

/* Sets without such instructions leave `to` alone. NOLINTNEXTLINE(readability-non-const-parameter) */
static int64_t widen_f16_runs(float *to, const uint16_t *from, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4)
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
#else
    (void)to;
    (void)from;
    (void)count;
#endif
    return i;
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
static int64_t narrow_f16_runs(uint16_t *to, const float *from, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    for (; i + 16 <= count; i += 16) {
        const __m512 x = _mm512_loadu_ps(from + i);
        const __m512 one_nan = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
        _mm256_storeu_si256((__m256i *)(to + i), _mm512_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__F16C__)
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    for (; i + 8 <= count; i += 8) {
        const __m256 x = _mm256_loadu_ps(from + i);
        const __m256 one_nan = _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__aarch64__)
    const float32x4_t nan = vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000));
    for (; i + 4 <= count; i += 4) {
        const float32x4_t x = vld1q_f32(from + i);
        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vbslq_f32(vceqq_f32(x, x), x, nan))));
    }
#else
    (void)to;
    (void)from;
    (void)count;
#endif
    return i;
}

/* ---- types to kinds ------------------------------------------------------------------------------------------------------ */

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses */
#define WIDEN(NAME, name, bits)                                                                                                \
    case TYPE_##NAME: {                                                                                                        \
        const bits *x = from;                                                                                                  \
        LOOP to[i] = kind_of_##name(x[i]);                                                                                     \
        break;                                                                                                                 \
    }

static void loop_widen_f32(int32_t type, float *restrict to, const void *restrict from, int64_t count)
{
    if (type == TYPE_F16) {
        const uint16_t *x = from;
        for (int64_t i = widen_f16_runs(to, x, count); i < count; i++)
            to[i] = widen_f16(x[i]);
        return;
    }
    switch (type) {
        WIDEN(BF16, bf16, uint16_t)
        WIDEN(F8E4M3, f8e4m3, uint8_t)
        WIDEN(F32, f32, float)
    default:
        break;
    }
}

static void loop_widen_i64(int32_t type, int64_t *restrict to, const void *restrict from, int64_t count)
{
    switch (type) {
        WIDEN(U8, u8, uint8_t)
        WIDEN(I8, i8, int8_t)
        WIDEN(I16, i16, int16_t)
        WIDEN(U32, u32, uint32_t)
        WIDEN(I32, i32, int32_t)
        WIDEN(I64, i64, int64_t)
    default:
        break;
    }
}

/* ---- kinds to types ------------------------------------------------------------------------------------------------------ */

#define NARROW_CASE(NAME, name, bits, kind)                                                                                    \
    case TYPE_##NAME: {                                                                                                        \
        bits *y = to;                                                                                                          \
        LOOP y[i] = name##_of_##kind(from[i]);                                                                                 \
        break;                                                                                                                 \
    }
#define NARROW_F32(NAME, name, bits, kind) NARROW_CASE(NAME, name, bits, f32)
#define NARROW_F64(NAME, name, bits, kind) NARROW_CASE(NAME, name, bits, f64)
#define NARROW_I64(NAME, name, bits, kind) NARROW_CASE(NAME, name, bits, i64)

/* NOLINTEND(bugprone-macro-parentheses) */

static void narrow_f16_loop(uint16_t *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = narrow_f16_runs(to, from, count); i < count; i++)
        to[i] = narrow_f16(from[i]);
}

static void loop_narrow_f32(int32_t type, void *restrict to, const float *restrict from, int64_t count)
{
    if (type == TYPE_F16) {
        narrow_f16_loop(to, from, count);
        return;
    }
    switch (type) {
        TYPES(NARROW_F32)
    default:
        break;
    }
}

static void loop_narrow_f64(int32_t type, void *restrict to, const double *restrict from, int64_t count)
{
    if (type == TYPE_F16) { /* in two steps, as arithmetic/convert.h has it, the second by the set's own instructions */
        float odd[LOOP_BLOCK];
        LOOP odd[i] = odd_f32(from[i]);
        narrow_f16_loop(to, odd, count);
        return;
    }
    switch (type) {
        TYPES(NARROW_F64)
    default:
        break;
    }
}

static void loop_narrow_i64(int32_t type, void *restrict to, const int64_t *restrict from, int64_t count)
{
    if (type == TYPE_F16) { /* in two steps, as arithmetic/convert.h has it, the second by the set's own instructions */
        float odd[LOOP_BLOCK];
        LOOP odd[i] = odd_f32(odd_f64(from[i]));
        narrow_f16_loop(to, odd, count);
        return;
    }
    switch (type) {
        TYPES(NARROW_I64)
    default:
        break;
    }
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-macro-parentheses): labels, and choices that are bits */
/* Functions with a branch for few elements: all by the form without one, which becomes vectors, then the few once more. */
#define FAR_CASE(OP, near_value, far, value)                                                                                   \
    case OP: {                                                                                                                 \
        int any = 0;                                                                                                           \
        LOOP                                                                                                                   \
        {                                                                                                                      \
            any |= far;                                                                                                        \
            to[i] = near_value;                                                                                                \
        }                                                                                                                      \
        for (int64_t i = 0; any && i < count; i++)                                                                             \
            if (far)                                                                                                           \
                to[i] = value;                                                                                                 \
        return;                                                                                                                \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#define ONE_CASE(T, OP, expression)                                                                                            \
    case OP:                                                                                                                   \
        LOOP                                                                                                                   \
        {                                                                                                                      \
            const T x = in[i];                                                                                                 \
            to[i] = expression;                                                                                                \
        }                                                                                                                      \
        break;

#define TWO_CASE(T, OP, expression)                                                                                            \
    case OP:                                                                                                                   \
        LOOP                                                                                                                   \
        {                                                                                                                      \
            const T x = left[i];                                                                                               \
            const T y = right[i];                                                                                              \
            (void)y;                                                                                                           \
            to[i] = expression;                                                                                                \
        }                                                                                                                      \
        break;

#define UNARY(NAME, name, floats, integers, which)      ONE_CASE(float, UNARY_##NAME, one_nan_f32(floats))
#define PARAMETRIC(NAME, name, floats, integers, which) ONE_CASE(float, UNARY_##NAME, one_nan_f32(floats))
#define BINARY(NAME, name, floats, integers, which)     TWO_CASE(float, BINARY_##NAME, one_nan_f32(floats))
#define F(name)                                         canon_##name##_f32
static void loop_unary_f32(int32_t op, float *restrict to, const float *restrict in, int64_t count, float a, float b)
{
    switch (op) {
        FAR_CASE(UNARY_SIN, one_nan_f32(canon_sin_near_f32(in[i])), MATH_SIN_FAR_F32(in[i]), one_nan_f32(canon_sin_f32(in[i])))
        FAR_CASE(UNARY_COS, one_nan_f32(canon_cos_near_f32(in[i])), MATH_SIN_FAR_F32(in[i]), one_nan_f32(canon_cos_f32(in[i])))
    default:
        break;
    }
    switch (op) {
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
    default:
        break;
    }
}

static void loop_binary_f32(int32_t op, float *restrict to, const float *restrict left, const float *restrict right,
                            int64_t count)
{
    switch (op) {
        FAR_CASE(BINARY_REM, one_nan_f32(canon_rem_near_f32(left[i], right[i])), MATH_REM_FAR_F32(left[i], right[i]),
                 one_nan_f32(canon_rem_f32(left[i], right[i])))
    default:
        break;
    }
    switch (op) {
#include "arithmetic/binary.def"
    default:
        break;
    }
}
#undef UNARY
#undef PARAMETRIC
#undef BINARY
#undef F

#define UNARY(NAME, name, floats, integers, which)      ONE_CASE(double, UNARY_##NAME, one_nan_f64(floats))
#define PARAMETRIC(NAME, name, floats, integers, which) ONE_CASE(double, UNARY_##NAME, one_nan_f64(floats))
#define BINARY(NAME, name, floats, integers, which)     TWO_CASE(double, BINARY_##NAME, one_nan_f64(floats))
#define F(name)                                         canon_##name##_f64
static void loop_unary_f64(int32_t op, double *restrict to, const double *restrict in, int64_t count, double a, double b)
{
    switch (op) {
        FAR_CASE(UNARY_SIN, one_nan_f64(canon_sin_near_f64(in[i])), MATH_SIN_FAR_F64(in[i]), one_nan_f64(canon_sin_f64(in[i])))
        FAR_CASE(UNARY_COS, one_nan_f64(canon_cos_near_f64(in[i])), MATH_SIN_FAR_F64(in[i]), one_nan_f64(canon_cos_f64(in[i])))
    default:
        break;
    }
    switch (op) {
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
    default:
        break;
    }
}

static void loop_binary_f64(int32_t op, double *restrict to, const double *restrict left, const double *restrict right,
                            int64_t count)
{
    switch (op) {
        FAR_CASE(BINARY_REM, one_nan_f64(canon_rem_near_f64(left[i], right[i])), MATH_REM_FAR_F64(left[i], right[i]),
                 one_nan_f64(canon_rem_f64(left[i], right[i])))
    default:
        break;
    }
    switch (op) {
#include "arithmetic/binary.def"
    default:
        break;
    }
}
#undef UNARY
#undef PARAMETRIC
#undef BINARY
#undef F

#define UNARY(NAME, name, floats, integers, which)      ONE_CASE(int64_t, UNARY_##NAME, integers)
#define PARAMETRIC(NAME, name, floats, integers, which) ONE_CASE(int64_t, UNARY_##NAME, integers)
#define BINARY(NAME, name, floats, integers, which)     TWO_CASE(int64_t, BINARY_##NAME, integers)
static void loop_unary_i64(int32_t op, int64_t *restrict to, const int64_t *restrict in, int64_t count, int64_t a, int64_t b)
{
    switch (op) {
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
    default:
        break;
    }
}

static void loop_binary_i64(int32_t op, int64_t *restrict to, const int64_t *restrict left, const int64_t *restrict right,
                            int64_t count)
{
    switch (op) {
#include "arithmetic/binary.def"
    default:
        break;
    }
}
#undef UNARY
#undef PARAMETRIC
#undef BINARY

/* ---- comparisons and choices --------------------------------------------------------------------------------------------- */

#define CMP_LOOP(T, kind)                                                                                                      \
    static void loop_cmp_##kind(int32_t op, uint8_t *restrict to, const T *left, const T *right, int64_t count)                \
    {                                                                                                                          \
        switch (op) {                                                                                                          \
            CMP_CASES                                                                                                          \
        default:                                                                                                               \
            break;                                                                                                             \
        }                                                                                                                      \
    }
#define CMP_CASE(OP, operator)                                                                                                 \
    case OP:                                                                                                                   \
        LOOP to[i] = left[i] operator right[i];                                                                                \
        break;
#define CMP_CASES                                                                                                              \
    CMP_CASE(CMP_EQ, ==) CMP_CASE(CMP_NE, !=) CMP_CASE(CMP_LT, <) CMP_CASE(CMP_LE, <=) CMP_CASE(CMP_GT, >) CMP_CASE(CMP_GE, >=)
CMP_LOOP(float, f32)
CMP_LOOP(double, f64)
CMP_LOOP(int64_t, i64)

#define WHERE_LOOP(bits)                                                                                                       \
    static void loop_where_##bits(uint##bits##_t *restrict to, const int64_t *condition, const uint##bits##_t *yes,            \
                                  const uint##bits##_t *no, int64_t count)                                                     \
    {                                                                                                                          \
        LOOP to[i] = condition[i] != 0 ? yes[i] : no[i];                                                                       \
    }
WHERE_LOOP(8)
WHERE_LOOP(16)
WHERE_LOOP(32)
WHERE_LOOP(64)

/* ---- random numbers
 * ---------------------------------------------------------------------------------------------------------- */

static void loop_random_f32(int32_t what, float *restrict to, uint64_t seed, uint64_t number, float a, float b)
{
    for (int64_t i = 0; i < LOOP_BLOCK / 4; i++) {
        const random_four made = random_block_f32(what, seed, number + (uint64_t)i, a, b);
        for (int32_t j = 0; j < 4; j++)
            to[4 * i + j] = made.v[j];
    }
}

static void loop_random_f64(int32_t what, double *restrict to, uint64_t seed, uint64_t number, double a, double b)
{
    for (int64_t i = 0; i < LOOP_BLOCK / 2; i++) {
        const random_two made = random_block_f64(what, seed, number + (uint64_t)i, a, b);
        to[2 * i] = made.v[0];
        to[2 * i + 1] = made.v[1];
    }
}

const tensor_loops TENSOR_LOOPS = {
    .widen_f32 = loop_widen_f32,
    .widen_i64 = loop_widen_i64,
    .narrow_f32 = loop_narrow_f32,
    .narrow_f64 = loop_narrow_f64,
    .narrow_i64 = loop_narrow_i64,
#ifdef TENSOR_DIRECT
    .unary_direct = TENSOR_DIRECT,
#endif
    .unary_f32 = loop_unary_f32,
    .unary_f64 = loop_unary_f64,
    .unary_i64 = loop_unary_i64,
    .binary_f32 = loop_binary_f32,
    .binary_f64 = loop_binary_f64,
    .binary_i64 = loop_binary_i64,
    .cmp_f32 = loop_cmp_f32,
    .cmp_f64 = loop_cmp_f64,
    .cmp_i64 = loop_cmp_i64,
    .where_8 = loop_where_8,
    .where_16 = loop_where_16,
    .where_32 = loop_where_32,
    .where_64 = loop_where_64,
    .random_f32 = loop_random_f32,
    .random_f64 = loop_random_f64,
};

#endif
