/* The loops of element_loops.h, written once. One file of each instruction set includes this and defines ELEMENT_LOOPS as the
 * name of its table. The compiler vectorizes them; only the conversions of f16 use the set's own instructions. A set with
 * functions of its own defines UNARY_DIRECT.
 */
#ifndef WW_CPU_TENSOR_ELEMENT_LOOPS_TEMPLATE_H
#define WW_CPU_TENSOR_ELEMENT_LOOPS_TEMPLATE_H

#include "arithmetic/integers.h"
#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"
#include "arithmetic/operations.h"
#include "arithmetic/philox.h"
#include "cpu/isa/convert_half.h"
#include "cpu/tensor/element_loops.h"

#define LOOP for (int64_t i = 0; i < count; i++)

/* ---- types to kinds ------------------------------------------------------------------------------------------------------ */

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */
#define WIDEN(NAME, name, bits)                                                                                                \
    case TYPE_##NAME: {                                                                                                        \
        const bits *x = from;                                                                                                  \
        LOOP to[i] = kind_of_##name(x[i]);                                                                                     \
        break;                                                                                                                 \
    }

static void loop_widen_f32(int32_t type, float *restrict to, const void *restrict from, int64_t count)
{
    if (type == TYPE_F16) {
        widen_f16_many(to, from, count);
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

/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-macro-parentheses): labels, and choices that are bits */
/* Functions with a slow branch for far arguments: first all elements without the branch, which vectorizes, then the far ones
 * again. */
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

#define ONE_CASE(OP, expression)                                                                                               \
    case OP:                                                                                                                   \
        LOOP                                                                                                                   \
        {                                                                                                                      \
            const T x = in[i];                                                                                                 \
            to[i] = expression;                                                                                                \
        }                                                                                                                      \
        break;

#define TWO_CASE(OP, expression)                                                                                               \
    case OP:                                                                                                                   \
        LOOP                                                                                                                   \
        {                                                                                                                      \
            const T x = left[i];                                                                                               \
            const T y = right[i];                                                                                              \
            (void)y;                                                                                                           \
            to[i] = expression;                                                                                                \
        }                                                                                                                      \
        break;

/* ---- the kinds ----------------------------------------------------------------------------------------------------------- */

#define FLOAT_KIND
#define T         float
#define OF(name)  name##_f32
#define FAR(name) MATH_##name##_FAR_F32
#include "cpu/tensor/element_loops_by_kind.h"
#undef T
#undef OF
#undef FAR

#define T         double
#define OF(name)  name##_f64
#define FAR(name) MATH_##name##_FAR_F64
#define ODD_F32   odd_f32
#include "cpu/tensor/element_loops_by_kind.h"
#undef T
#undef OF
#undef FAR
#undef ODD_F32
#undef FLOAT_KIND

#define T          int64_t
#define OF(name)   name##_i64
#define ODD_F32(x) odd_f32(odd_f64(x))
#include "cpu/tensor/element_loops_by_kind.h"
#undef T
#undef OF
#undef ODD_F32

/* ---- choices ------------------------------------------------------------------------------------------------------------- */

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

/* ---- random numbers ------------------------------------------------------------------------------------------------------ */

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

const element_loops ELEMENT_LOOPS = {
    .widen_f32 = loop_widen_f32,
    .widen_i64 = loop_widen_i64,
    .narrow_f32 = loop_narrow_f32,
    .narrow_f64 = loop_narrow_f64,
    .narrow_i64 = loop_narrow_i64,
#ifdef UNARY_DIRECT
    .unary_direct = UNARY_DIRECT,
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
