/* The loops over rows of tensors for AVX-512. Sums and extremes are written with intrinsics; the compiler vectorizes the
 * rest. */
#include "cpu/tensor/row_loops.h"
#include "arithmetic/reduce.h"
#include "cpu/isa/avx512/element_functions.h"

/* ---- joining elements in their own type -------------------------------------------------------------------------------------
 * Four registers hold the 64 accumulators. The range instruction orders -0 below +0, like canon_max_f32 and canon_min_f32, but
 * ignores NaN. So NaNs are recorded separately: if either of two elements is NaN, an accumulator becomes NaN at the end, and
 * one NaN makes the whole result NaN.
 */

enum { RANGE_MIN = 4, RANGE_MAX = 5 };
enum { AHEAD = 1024 }; /* elements: the hardware prefetcher stops at the end of a page */

typedef struct four {
    f32x16 v[4];
    __mmask16 nan[2];
} four;

/* Joins elements i .. i + 63 of a row of which `left` remain; nothing is joined for those past the end. */
F32X16_FUNCTION void join_four(int32_t op, int32_t type, four *own, const void *x, int64_t i, int64_t left)
{
    f32x16 element[4];
    __mmask16 mask[4];
    for (int32_t j = 0; j < 4; j++) {
        mask[j] = left >= REDUCE_LANES ? (__mmask16)0xffff : left > 16 * j ? f32x16_mask(left - 16 * j) : (__mmask16)0;
        element[j] = f32x16_load(type, x, i + 16 * j, mask[j]);
    }
    for (int32_t j = 0; j < 4; j++)
        own->v[j] = op == REDUCE_SUM   ? _mm512_mask_add_ps(own->v[j], mask[j], own->v[j], element[j])
                    : op == REDUCE_MAX ? _mm512_mask_range_ps(own->v[j], mask[j], own->v[j], element[j], RANGE_MAX)
                                       : _mm512_mask_range_ps(own->v[j], mask[j], own->v[j], element[j], RANGE_MIN);
    for (int32_t j = 0; j < 2 && op != REDUCE_SUM; j++)
        own->nan[j] |= _mm512_cmp_ps_mask(element[2 * j], element[2 * j + 1], _CMP_UNORD_Q);
}

F32X16_FUNCTION void join_all(int32_t op, int32_t type, float *sums, const void *x, int64_t count)
{
    four own = {.nan = {0, 0}};
    int64_t i = 0;
    for (int32_t j = 0; j < 4; j++)
        own.v[j] = _mm512_loadu_ps(sums + 16 * j);
    for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
        const char *ahead = (const char *)x + (i + AHEAD) * (type == TYPE_F32 ? 4 : 2);
        for (int32_t line = 0; line < (type == TYPE_F32 ? 4 : 2); line++)
            _mm_prefetch(ahead + 64 * line, _MM_HINT_T0);
        join_four(op, type, &own, x, i, REDUCE_LANES);
    }
    if (i < count)
        join_four(op, type, &own, x, i, count - i);
    for (int32_t j = 0; j < 2; j++) /* only lanes with a NaN are set */
        own.v[2 * j] = _mm512_mask_mov_ps(own.v[2 * j], own.nan[j], F32X16(MATH_NAN_F32));
    for (int32_t j = 0; j < 4; j++)
        _mm512_storeu_ps(sums + 16 * j, own.v[j]);
}

static bool sums_have_nan(const float *sums)
{
    int any = 0;
    for (int32_t j = 0; j < REDUCE_LANES; j += 16)
        any |= _mm512_cmp_ps_mask(_mm512_loadu_ps(sums + j), _mm512_loadu_ps(sums + j), _CMP_UNORD_Q);
    return any != 0;
}

#define JOIN_TYPES(op)                                                                                                         \
    {                                                                                                                          \
        if (type == TYPE_F32)                                                                                                  \
            join_all(op, TYPE_F32, sums, x, count);                                                                            \
        else if (type == TYPE_F16)                                                                                             \
            join_all(op, TYPE_F16, sums, x, count);                                                                            \
        else                                                                                                                   \
            join_all(op, TYPE_BF16, sums, x, count);                                                                           \
    }

static bool join_direct(int32_t op, int32_t type, float *sums, const void *x, int64_t count)
{
    if (op == REDUCE_PROD || (type != TYPE_F32 && type != TYPE_F16 && type != TYPE_BF16))
        return false;
    if (op == REDUCE_SUM)
        JOIN_TYPES(REDUCE_SUM)
    else if (sums_have_nan(sums)) /* the instruction would lose the NaN, and the result is known */
        return true;
    else if (op == REDUCE_MAX)
        JOIN_TYPES(REDUCE_MAX)
    else
        JOIN_TYPES(REDUCE_MIN)
    return true;
}

/* ---- sums of many rows ------------------------------------------------------------------------------------------------------
 * Rows are prefetched across their ends, and sums are folded in registers, so nothing waits between two rows.
 */

/* Adds elements i .. i + 63 of a row of which `left` remain. */
F32X16_FUNCTION void add_four(int32_t type, f32x16 sums[4], const void *row, int64_t i, int64_t left)
{
    for (int32_t j = 0; j < 4; j++) {
        const __mmask16 mask = left >= REDUCE_LANES ? (__mmask16)0xffff
                               : left > 16 * j      ? f32x16_mask(left - 16 * j)
                                                    : (__mmask16)0;
        sums[j] = _mm512_mask_add_ps(sums[j], mask, sums[j], f32x16_load(type, row, i + 16 * j, mask));
    }
}

F32X16_FUNCTION float folded_sum(const f32x16 sums[4])
{
    const f32x16 all = _mm512_add_ps(_mm512_add_ps(sums[0], sums[2]), _mm512_add_ps(sums[1], sums[3]));
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

F32X16_FUNCTION void sum_all_rows(int32_t type, float *out, const char *x, int64_t apart, int64_t rows, int64_t count)
{
    const int64_t size = type == TYPE_F32 ? 4 : 2;
    for (int64_t row = 0; row < rows; row++, x += apart) {
        f32x16 sums[4] = {F32X16(0.0f), F32X16(0.0f), F32X16(0.0f), F32X16(0.0f)};
        int64_t i = 0;
        for (; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
            for (int64_t line = 0; line < REDUCE_LANES * size; line += 64)
                _mm_prefetch(x + (i + AHEAD) * size + line, _MM_HINT_T0);
            add_four(type, sums, x, i, REDUCE_LANES);
        }
        if (i < count)
            add_four(type, sums, x, i, count - i);
        out[row] = folded_sum(sums);
    }
}

static bool sum_rows(int32_t type, float *out, const void *x, int64_t stride, int64_t rows, int64_t count)
{
    if (type == TYPE_F32)
        sum_all_rows(TYPE_F32, out, x, stride * 4, rows, count);
    else if (type == TYPE_F16)
        sum_all_rows(TYPE_F16, out, x, stride * 2, rows, count);
    else if (type == TYPE_BF16)
        sum_all_rows(TYPE_BF16, out, x, stride * 2, rows, count);
    else
        return false;
    return true;
}

/* Sums of columns: row i of f16 or bf16 is added to lane i mod 64. */
#define EACH_ROW_SUM(type)                                                                                                     \
    for (int64_t row = 0; row < rows; row++) {                                                                                 \
        float *own = sums + row % REDUCE_LANES * columns;                                                                      \
        const void *from = (const uint16_t *)x + row * stride;                                                                 \
        prefetch_row((const char *)from + stride * 2, columns * 2);                                                            \
        for (int64_t c = 0; c < columns; c += 16) {                                                                            \
            const __mmask16 mask = f32x16_mask(columns - c);                                                                   \
            const f32x16 sum = _mm512_maskz_loadu_ps(mask, own + c);                                                           \
            _mm512_mask_storeu_ps(own + c, mask, _mm512_add_ps(sum, f32x16_load(type, from, c, mask)));                        \
        }                                                                                                                      \
    }

static bool each_row_direct(int32_t op, int32_t type, float *sums, const void *x, int64_t stride, int64_t rows, int64_t columns)
{
    if (op != REDUCE_SUM || (type != TYPE_F16 && type != TYPE_BF16))
        return false;
    if (type == TYPE_F16)
        EACH_ROW_SUM(TYPE_F16)
    else
        EACH_ROW_SUM(TYPE_BF16)
    return true;
}

#define ROW_LOOPS       row_loops_avx512
#define JOIN_DIRECT     join_direct
#define EACH_ROW_DIRECT each_row_direct
#define SUM_ROWS        sum_rows
#include "cpu/tensor/row_loops_template.h"
