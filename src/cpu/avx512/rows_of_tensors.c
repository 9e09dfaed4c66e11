/* The loops over rows of tensors for AVX-512. */
#include "cpu/avx512/functions.h"
#include "kernels/reduce.h"

static inline void exponentials_direct(float *to, const float *x, int64_t count, float less)
{
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 mask = wide_mask(count - i);
        const wide moved = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), WIDE(less));
        _mm512_mask_storeu_ps(to + i, mask, wide_exponential(moved));
    }
}

/* The instruction for ranges orders -0 below +0 as canon_max_f32 and canon_min_f32 do, and NaN is noted besides. */
enum { RANGE_MIN = 4, RANGE_MAX = 5 };

/* 64 accumulators are four registers. Elements past the end join nothing. */
#define JOIN_FOUR(type, mask_of_j, joined)                                                                                     \
    for (int32_t j = 0; j < 4; j++) {                                                                                          \
        const __mmask16 mask = mask_of_j;                                                                                      \
        const wide element = wide_load(type, x, i + 16 * j, mask);                                                             \
        joined;                                                                                                                \
    }
#define JOIN_WIDE(type, joined)                                                                                                \
    {                                                                                                                          \
        int64_t i = 0;                                                                                                         \
        for (; i + REDUCE_LANES <= count; i += REDUCE_LANES)                                                                   \
            JOIN_FOUR(type, 0xffff, joined)                                                                                    \
        if (i < count)                                                                                                         \
            JOIN_FOUR(type, count - i > 16 * j ? wide_mask(count - i - 16 * j) : 0, joined)                                    \
    }
#define JOIN_SUM(type, which) JOIN_WIDE(type, own[j] = _mm512_mask_add_ps(own[j], mask, own[j], element))
#define JOIN_RANGE(type, which)                                                                                                \
    JOIN_WIDE(type, nans[j] |= _mm512_mask_cmp_ps_mask(mask, element, element, _CMP_UNORD_Q);                                  \
              own[j] = _mm512_mask_range_ps(own[j], mask, own[j], element, which))
#define JOIN_TYPES(JOIN, which)                                                                                                \
    {                                                                                                                          \
        if (type == TYPE_F32)                                                                                                  \
            JOIN(TYPE_F32, which)                                                                                              \
        else if (type == TYPE_F16)                                                                                             \
            JOIN(TYPE_F16, which)                                                                                              \
        else                                                                                                                   \
            JOIN(TYPE_BF16, which)                                                                                             \
    }

static bool join_direct(int32_t op, int32_t type, float *sums, const void *x, int64_t count)
{
    wide own[4];
    __mmask16 nans[4] = {0, 0, 0, 0};
    if (op == REDUCE_PROD || (type != TYPE_F32 && type != TYPE_F16 && type != TYPE_BF16))
        return false;
    for (int32_t j = 0; j < 4; j++)
        own[j] = _mm512_loadu_ps(sums + 16 * j);
    for (int32_t j = 0; j < 4 && op != REDUCE_SUM; j++)
        nans[j] = _mm512_cmp_ps_mask(own[j], own[j], _CMP_UNORD_Q);
    if (op == REDUCE_SUM)
        JOIN_TYPES(JOIN_SUM, 0)
    else if (op == REDUCE_MAX)
        JOIN_TYPES(JOIN_RANGE, RANGE_MAX)
    else
        JOIN_TYPES(JOIN_RANGE, RANGE_MIN)
    for (int32_t j = 0; j < 4; j++)
        _mm512_storeu_ps(sums + 16 * j, _mm512_mask_mov_ps(own[j], nans[j], WIDE(MATH_NAN_F32)));
    return true;
}

#define ROW_LOOPS                            row_loops_avx512
#define JOIN_DIRECT                          join_direct
#define EXPONENTIALS_f32(to, x, count, less) exponentials_direct(to, x, count, less)
#include "cpu/row_kernels.h"
