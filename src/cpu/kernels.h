/* The kernels of an instruction set, written once over the 16-lane vector that its vec.h defines; included by one file of
 * each set, after vec.h.
 *
 * The 64 canonical accumulators are four groups of 16 lanes. A tile is R rows by Q queries held in registers: it makes, for
 * each pair, the 16 lanes (g0+g2)+(g1+g3), which is the canonical fold by 32 and by 16. The lanes of sixteen pairs are then
 * folded together by a transposing tree, which costs a small part of folding them one by one.
 */
#ifndef WW_CPU_KERNELS_H
#define WW_CPU_KERNELS_H

#include <float.h>
#include <string.h>

#include "cpu/isa.h"
#include "kernels/canon.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define ONCE   _Pragma("GCC unroll 1")

enum {
    LANES = 16,
    GROUPS = CANON_LANES / LANES,
    TILE_ROWS = 4,
    TILE_QUERIES = 3,
    AHEAD_FLOATS = 1024, /* how far before their use the rows of a single query are asked from memory */
};

INLINE vec accumulate(bool l2, vec a, vec b, vec acc)
{
    if (!l2)
        return vec_fma(a, b, acc);
    const vec t = vec_sub(a, b);
    return vec_fma(t, t, acc);
}

/* ---- tiles ----------------------------------------------------------------------------------------------------------------
 */

/* Accumulates VEC_TILE_GROUPS of the four groups, from group `first` on, of R x Q pairs, and stores the 16 lanes of pair
 * (r, q) at out[q * out_stride + r * LANES]: the fold of all four groups, or the one group. R, Q and l2 are constants. */
INLINE void tile_pass(int R, int Q, bool l2, const float *queries, const float *rows, int32_t padded, int first, float *out,
                      int out_stride)
{
    vec acc[TILE_ROWS][TILE_QUERIES][VEC_TILE_GROUPS];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int q = 0; q < Q; q++) UNROLL for (int g = 0; g < VEC_TILE_GROUPS; g++)
        acc[r][q][g] = vec_zero();
    for (int32_t i = first * LANES; i < padded; i += CANON_LANES) {
        UNROLL for (int g = 0; g < VEC_TILE_GROUPS; g++)
        {
            vec row[TILE_ROWS];
            UNROLL for (int r = 0; r < R; r++)
            {
                const float *at = rows + (int64_t)r * padded + i + g * LANES;
                row[r] = vec_load(at);
                if (Q == 1)
                    __builtin_prefetch(at + AHEAD_FLOATS);
            }
            UNROLL for (int q = 0; q < Q; q++)
            {
                const vec query = vec_load(queries + (int64_t)q * padded + i + g * LANES);
                UNROLL for (int r = 0; r < R; r++) acc[r][q][g] = accumulate(l2, query, row[r], acc[r][q][g]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int q = 0; q < Q; q++)
        {
#if VEC_TILE_GROUPS == 4
            acc[r][q][0] = vec_add(vec_add(acc[r][q][0], acc[r][q][2]), vec_add(acc[r][q][1], acc[r][q][3]));
#endif
            vec_store(out + q * out_stride + r * LANES, acc[r][q][0]);
        }
    }
}

INLINE void tile(int R, int Q, bool l2, const float *queries, const float *rows, int32_t padded, float *out, int out_stride)
{
#if VEC_TILE_GROUPS == 4
    tile_pass(R, Q, l2, queries, rows, padded, 0, out, out_stride);
#else
    float part[GROUPS][TILE_QUERIES * TILE_ROWS * LANES];
    ONCE for (int g = 0; g < GROUPS; g++) tile_pass(R, Q, l2, queries, rows, padded, g, part[g], R * LANES);
    for (int q = 0; q < Q; q++) {
        for (int r = 0; r < R; r++) {
            const int at = (q * R + r) * LANES;
            const vec even = vec_add(vec_load(part[0] + at), vec_load(part[2] + at));
            const vec odd = vec_add(vec_load(part[1] + at), vec_load(part[3] + at));
            vec_store(out + q * out_stride + r * LANES, vec_add(even, odd));
        }
    }
#endif
}

/* The sums of Q queries and all rows: tiles of R x Q, then of 1 x Q, sixteen rows at a time. */
INLINE void sums_of(int R, int Q, bool l2, const float *queries, const float *rows, int32_t row_count, int32_t padded,
                    float *sums)
{
    float lanes[TILE_QUERIES][LANES * LANES];
    if (row_count % LANES != 0)
        memset(lanes, 0, sizeof lanes); /* folded with the rest where there are no rows */
    for (int32_t begin = 0; begin < row_count; begin += LANES) {
        const int32_t count = row_count - begin < LANES ? row_count - begin : LANES;
        const float *from = rows + (int64_t)begin * padded;
        int32_t r = 0;
        for (; r + R <= count; r += R)
            tile(R, Q, l2, queries, from + (int64_t)r * padded, padded, lanes[0] + r * LANES, LANES * LANES);
        for (; r < count; r++)
            tile(1, Q, l2, queries, from + (int64_t)r * padded, padded, lanes[0] + r * LANES, LANES * LANES);
        for (int q = 0; q < Q; q++)
            vec_fold(lanes[q], sums + q * SUMS_ROWS_MAX + begin);
    }
}

INLINE void sums_for(bool l2, const float *queries, int32_t query_count, const float *rows, int32_t row_count, int32_t padded,
                     float *sums)
{
    int32_t q = 0;
    for (; q + 3 <= query_count; q += 3)
        sums_of(2, 3, l2, queries + (int64_t)q * padded, rows, row_count, padded, sums + q * SUMS_ROWS_MAX);
    if (query_count - q == 2)
        sums_of(2, 2, l2, queries + (int64_t)q * padded, rows, row_count, padded, sums + q * SUMS_ROWS_MAX);
    if (query_count - q == 1)
        sums_of(4, 1, l2, queries + (int64_t)q * padded, rows, row_count, padded, sums + q * SUMS_ROWS_MAX);
}

static void sums(int32_t metric, const float *queries, int32_t query_count, const float *rows, int32_t row_count,
                 int32_t padded, float *out)
{
    if (metric == CANON_L2)
        sums_for(true, queries, query_count, rows, row_count, padded, out);
    else
        sums_for(false, queries, query_count, rows, row_count, padded, out);
}

/* ---- sifting --------------------------------------------------------------------------------------------------------------
 */

/* A cosine is better than t only if its sum is above t times the norms in real arithmetic, since rounding keeps order. The
 * limit is t less 2^-20 of it, more than the roundings here; FLT_MIN covers products too small for that, the bound of 2^127
 * keeps the product finite, and a row whose norm is 0 has the score 0 whatever its sum, so it always passes. */
INLINE uint32_t sift_cosine(vec sum, vec limit, vec norms)
{
    const vec bound = vec_min(vec_fma(limit, norms, vec_set(-FLT_MIN)), vec_set(0x1p127f));
    return vec_greater(sum, bound) | (~vec_greater(norms, vec_zero()) & 0xffff);
}

static uint64_t sift(int32_t metric, const float *sums_, int32_t row_count, float limit, float query_norm,
                     const float *row_norms)
{
    uint64_t rows = 0;
    for (int32_t r = 0; r < row_count; r += LANES) {
        const vec sum = vec_load(sums_ + r);
        uint32_t better;
        if (metric == CANON_L2) {
            better = ~vec_greater(sum, vec_set(limit)) & 0xffff;
        } else if (metric == CANON_DOT) {
            better = vec_greater(sum, vec_set(limit));
        } else {
            float norms[LANES] = {0};
            const int32_t count = row_count - r < LANES ? row_count - r : LANES;
            memcpy(norms, row_norms + r, (size_t)count * sizeof *norms);
            better = sift_cosine(sum, vec_set(limit), vec_mul(vec_set(query_norm), vec_load(norms)));
        }
        rows |= (uint64_t)better << r;
    }
    return row_count == SUMS_ROWS_MAX ? rows : rows & ((UINT64_C(1) << row_count) - 1);
}

/* ---- pairs of any length, and rows on their way in -------------------------------------------------------------------------
 */

/* The canonical fold of four groups. */
INLINE float fold(const vec acc[GROUPS])
{
    float lanes[LANES];
    vec_store(lanes, vec_add(vec_add(acc[0], acc[2]), vec_add(acc[1], acc[3])));
    for (int s = LANES / 2; s >= 1; s /= 2)
        for (int j = 0; j < s; j++)
            lanes[j] = lanes[j] + lanes[j + s];
    return lanes[0];
}

INLINE void accumulate_run(bool l2, const float *a, const float *b, vec acc[GROUPS])
{
    UNROLL for (int g = 0; g < GROUPS; g++) acc[g] = accumulate(l2, vec_load(a + g * LANES), vec_load(b + g * LANES), acc[g]);
}

INLINE float pair(bool l2, const float *a, const float *b, int64_t n)
{
    vec acc[GROUPS] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    int64_t i = 0;
    for (; i + CANON_LANES <= n; i += CANON_LANES)
        accumulate_run(l2, a + i, b + i, acc);
    if (i < n) {
        float rest_a[CANON_LANES] = {0}, rest_b[CANON_LANES] = {0};
        memcpy(rest_a, a + i, (size_t)(n - i) * sizeof *a);
        memcpy(rest_b, b + i, (size_t)(n - i) * sizeof *b);
        accumulate_run(l2, rest_a, rest_b, acc);
    }
    return fold(acc);
}

static float dot(const float *a, const float *b, int64_t n)
{
    return pair(false, a, b, n);
}

static float squares(const float *a, const float *b, int64_t n)
{
    return pair(true, a, b, n);
}

static float store(float *row, const float *from, int32_t n)
{
    vec acc[GROUPS] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    int32_t i = 0;
    for (; i + CANON_LANES <= n; i += CANON_LANES) {
        UNROLL for (int g = 0; g < GROUPS; g++)
        {
            const vec x = vec_load(from + i + g * LANES);
            vec_store(row + i + g * LANES, x);
            acc[g] = vec_fma(x, x, acc[g]);
        }
    }
    if (i < n) {
        memcpy(row + i, from + i, (size_t)(n - i) * sizeof *row);
        memset(row + n, 0, (size_t)(i + CANON_LANES - n) * sizeof *row);
        accumulate_run(false, row + i, row + i, acc);
    }
    return fold(acc);
}

const instruction_set VEC_SET_TABLE;
const instruction_set VEC_SET_TABLE = {
    .name = VEC_SET_NAME, .present = vec_present, .dot = dot, .squares = squares, .store = store, .sums = sums, .sift = sift};

#endif
