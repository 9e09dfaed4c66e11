/* The scoring functions of an instruction set, written once with the vectors that its vec.h defines. One file of each set
 * includes this after vec.h.
 *
 * The 64 canonical accumulators are four times 16 lanes. A tile has R rows by Q queries in registers. For each pair it computes
 * the 16 lanes (g0+g2)+(g1+g3), which are the canonical fold by 32 and by 16. A transposing tree then folds the lanes of
 * sixteen pairs together, which costs a small part of folding them one by one.
 */
#ifndef WW_CPU_ISA_SCORE_TEMPLATE_H
#define WW_CPU_ISA_SCORE_TEMPLATE_H

#include <float.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "cpu/isa/isa.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define ONCE   _Pragma("GCC unroll 1")

enum {
    VECS = CANON_LANES / VEC_LANES,
    FOLDED = 16,                            /* lanes of a pair before the last folds, and pairs that are folded together */
    TILE_LANES = VEC_TILE_VECS * VEC_LANES, /* lanes accumulated at once: all 64 or a quarter */
    TILE_ROWS = 4,
    TILE_QUERIES = 3,
    PREFETCH_FLOATS = 1024, /* how far ahead the rows of a single query are prefetched */
};

INLINE vec accumulate(bool l2, vec a, vec b, vec acc)
{
    if (!l2)
        return vec_fma(a, b, acc);
    const vec t = vec_sub(a, b);
    return vec_fma(t, t, acc);
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

/* Loads elements of a row of f32, f16 or bf16 as floats; the type is a constant. */
INLINE vec load_row(int32_t type, const void *rows, int64_t element)
{
    if (type == ROW_F16)
        return vec_load_f16((const uint16_t *)rows + element);
    if (type == ROW_BF16)
        return vec_load_bf16((const uint16_t *)rows + element);
    return vec_load((const float *)rows + element);
}

/* Some rows and queries of `padded` elements each, and where the 16 lanes of each pair go. */
typedef struct score_tile {
    const float *queries;
    const void *rows;
    int32_t padded;
    int64_t ahead; /* prefetch distance in elements; 0: no prefetches */
    float *out;    /* out[q * out_stride + r * FOLDED] for the pair (r, q) */
    int out_stride;
} score_tile;

/* Accumulates TILE_LANES of the 64 lanes of R x Q pairs, from lane `first` on, and stores 16 for each: all lanes folded by 32
 * and 16, or the quarter that was accumulated. R, Q, l2 and the rows' type are constants. */
INLINE void tile_pass(int R, int Q, bool l2, int32_t type, const score_tile *t, int first)
{
    const bool line = type == ROW_F32 || first % (2 * FOLDED) == 0; /* true if a cache line of a row starts here */
    vec acc[TILE_ROWS][TILE_QUERIES][VEC_TILE_VECS];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int q = 0; q < Q; q++) UNROLL for (int v = 0; v < VEC_TILE_VECS; v++)
        acc[r][q][v] = vec_zero();
    for (int32_t i = first; i < t->padded; i += CANON_LANES) {
        UNROLL for (int v = 0; v < VEC_TILE_VECS; v++)
        {
            vec row[TILE_ROWS];
            UNROLL for (int r = 0; r < R; r++)
            {
                const int64_t at = (int64_t)r * t->padded + i + v * VEC_LANES;
                row[r] = load_row(type, t->rows, at);
                if (Q > 1)
                    row[r] = vec_keep(row[r]);
                if (t->ahead != 0 && v * VEC_LANES % FOLDED == 0 && line)
                    __builtin_prefetch((const char *)t->rows + (at + t->ahead) * (int64_t)row_type_bytes(type));
            }
            UNROLL for (int q = 0; q < Q; q++)
            {
                const vec query = vec_keep(vec_load(t->queries + (int64_t)q * t->padded + i + v * VEC_LANES));
                UNROLL for (int r = 0; r < R; r++) acc[r][q][v] = accumulate(l2, query, row[r], acc[r][q][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++)
    {
        UNROLL for (int q = 0; q < Q; q++)
        {
            UNROLL for (int lanes = TILE_LANES / 2; lanes >= FOLDED; lanes /= 2)
                UNROLL for (int v = 0; v < lanes / VEC_LANES; v++) acc[r][q][v] =
                    vec_add(acc[r][q][v], acc[r][q][v + lanes / VEC_LANES]);
            UNROLL for (int v = 0; v < FOLDED / VEC_LANES; v++)
                vec_store(t->out + q * t->out_stride + r * FOLDED + v * VEC_LANES, acc[r][q][v]);
        }
    }
}

INLINE void tile(int R, int Q, bool l2, int32_t type, const score_tile *t)
{
    if (TILE_LANES == CANON_LANES) {
        tile_pass(R, Q, l2, type, t, 0);
        return;
    }
    float quarter[CANON_LANES / FOLDED][TILE_QUERIES * TILE_ROWS * FOLDED];
    score_tile pass = *t;
    pass.out_stride = R * FOLDED;
    ONCE for (int g = 0; g < CANON_LANES / FOLDED; g++)
    {
        pass.out = quarter[g];
        tile_pass(R, Q, l2, type, &pass, g * FOLDED);
    }
    for (int q = 0; q < Q; q++) {
        for (int i = 0; i < R * FOLDED; i += VEC_LANES) {
            const int at = q * R * FOLDED + i;
            const vec even = vec_add(vec_load(quarter[0] + at), vec_load(quarter[2] + at));
            const vec odd = vec_add(vec_load(quarter[1] + at), vec_load(quarter[3] + at));
            vec_store(t->out + q * t->out_stride + i, vec_add(even, odd));
        }
    }
}

/* The sums of Q queries, from number `first` on, with all rows: tiles of R x Q, then of 1 x Q, sixteen rows at a time. */
INLINE void sums_of(int R, int Q, bool l2, int32_t type, const sums_job *job, int32_t first, int64_t ahead)
{
    const int64_t row_bytes = (int64_t)job->padded * (int64_t)row_type_bytes(type);
    float lanes[TILE_QUERIES][FOLDED * FOLDED];
    score_tile t = {.queries = job->queries + (int64_t)first * job->padded,
                    .padded = job->padded,
                    .ahead = ahead,
                    .out_stride = FOLDED * FOLDED};
    if (job->row_count % FOLDED != 0)
        memset(lanes, 0, sizeof lanes); /* rows past the last are folded with the others */
    for (int32_t begin = 0; begin < job->row_count; begin += FOLDED) {
        const int32_t count = job->row_count - begin < FOLDED ? job->row_count - begin : FOLDED;
        const char *from = (const char *)job->rows + begin * row_bytes;
        int32_t r = 0;
        for (; r + R <= count; r += R) {
            t.rows = from + r * row_bytes;
            t.out = lanes[0] + r * FOLDED;
            tile(R, Q, l2, type, &t);
        }
        for (; r < count; r++) {
            t.rows = from + r * row_bytes;
            t.out = lanes[0] + r * FOLDED;
            tile(1, Q, l2, type, &t);
        }
        for (int q = 0; q < Q; q++)
            vec_fold(lanes[q], job->sums + (first + q) * SUMS_ROWS_MAX + begin);
    }
}

/* The first queries prefetch the rows of the next block, which follow those of this one. A single query, bound by memory,
 * prefetches a fixed distance ahead. */
INLINE void sums_for(bool l2, const sums_job *job)
{
    const int64_t block = (int64_t)job->row_count * job->padded;
    const int32_t count = job->query_count;
    int32_t q = 0;
    if (count >= 3) {
        sums_of(2, 3, l2, ROW_F32, job, 0, block);
        for (q = 3; q + 3 <= count; q += 3)
            sums_of(2, 3, l2, ROW_F32, job, q, 0);
    }
    if (count - q == 2)
        sums_of(2, 2, l2, ROW_F32, job, q, 0);
    else if (count == 1)
        sums_of(4, 1, l2, ROW_F32, job, 0, PREFETCH_FLOATS);
    else if (count - q == 1)
        sums_of(4, 1, l2, ROW_F32, job, q, 0);
}

static void sums(const sums_job *job)
{
    if (job->metric == CANON_L2)
        sums_for(true, job);
    else
        sums_for(false, job);
}

static void sums_of_bytes(int32_t type, const sums_job *job);

/* One query and rows of another type. f16 and bf16 go by tiles like f32; rows of bytes are too short for that to be faster. */
static void sums_typed(int32_t type, const sums_job *job)
{
    const bool l2 = job->metric == CANON_L2;
    if (type == ROW_F16 && l2)
        sums_of(4, 1, true, ROW_F16, job, 0, 2 * PREFETCH_FLOATS);
    else if (type == ROW_F16)
        sums_of(4, 1, false, ROW_F16, job, 0, 2 * PREFETCH_FLOATS);
    else if (type == ROW_BF16 && l2)
        sums_of(4, 1, true, ROW_BF16, job, 0, 2 * PREFETCH_FLOATS);
    else if (type == ROW_BF16)
        sums_of(4, 1, false, ROW_BF16, job, 0, 2 * PREFETCH_FLOATS);
    else
        sums_of_bytes(type, job);
}

/* ---- filters: which rows can still be better than a query's worst result ------------------------------------------------- */

/* A cosine is better than t only if its sum is above t times the norms in real arithmetic, since rounding keeps order. The
 * limit is lower than t by 2^-20 of t, more than the roundings here; FLT_MIN covers products too small for that, the bound of
 * 2^127 keeps the product finite, and a row whose norm is 0 has the score 0 whatever its sum, so it always passes. */
INLINE uint32_t filter_cosine(vec sum, vec limit, vec norms)
{
    const vec bound = vec_min(vec_fma(limit, norms, vec_set(-FLT_MIN)), vec_set(0x1p127f));
    return vec_greater(sum, bound) | ~vec_greater(norms, vec_zero());
}

INLINE uint32_t filter_sums_vec(int32_t metric, const float *sums_, float limit, float query_norm, const float *row_norms)
{
    const vec sum = vec_load(sums_);
    if (metric == CANON_L2)
        return ~vec_greater(sum, vec_set(limit));
    if (metric == CANON_DOT)
        return vec_greater(sum, vec_set(limit));
    return filter_cosine(sum, vec_set(limit), vec_mul(vec_set(query_norm), vec_load(row_norms)));
}

/* A lower bound of the squared distance from the dot product, as in scalar/scalar.c. */
INLINE uint32_t filter_dots_vec(const float *dots, float limit, float query_square, const float *row_norms, float slack)
{
    const vec row_norm = vec_load(row_norms);
    const vec norms = vec_min(vec_add(vec_set(query_square), vec_mul(row_norm, row_norm)), vec_set(FLT_MAX));
    const vec bound = vec_fma(vec_set(-2.0f), vec_load(dots), vec_mul(norms, vec_set(1.0f - slack)));
    return ~vec_greater(bound, vec_set(limit + FLT_MIN));
}

/* The filter of one query; metric and by_dots are constants. */
typedef struct row_filter {
    int32_t metric;
    bool by_dots;
    float limit, query_norm, slack;
} row_filter;

INLINE uint32_t filter_vec(const row_filter *f, const float *values, const float *row_norms)
{
    if (f->by_dots)
        return filter_dots_vec(values, f->limit, f->query_norm * f->query_norm, row_norms, f->slack);
    return filter_sums_vec(f->metric, values, f->limit, f->query_norm, row_norms);
}

INLINE uint64_t filter(const row_filter *f, const float *values, int32_t row_count, const float *row_norms)
{
    const uint32_t lanes = (UINT32_C(1) << VEC_LANES) - 1;
    uint64_t rows = 0;
    int32_t r = 0;
    for (; r + VEC_LANES <= row_count; r += VEC_LANES)
        rows |= (uint64_t)(filter_vec(f, values + r, row_norms + r) & lanes) << r;
    if (r < row_count) {
        float norms[VEC_LANES] = {0}; /* memory may end after the last norm */
        for (int32_t i = r; i < row_count; i++)
            norms[i - r] = row_norms[i];
        const uint32_t rest = (UINT32_C(1) << (row_count - r)) - 1;
        rows |= (uint64_t)(filter_vec(f, values + r, norms) & rest) << r;
    }
    return rows;
}

static uint64_t filter_sums(int32_t metric, const float *sums_, int32_t row_count, float limit, float query_norm,
                            const float *row_norms)
{
    if (metric == CANON_L2)
        return filter(&(row_filter){CANON_L2, false, limit, query_norm, 0.0f}, sums_, row_count, row_norms);
    if (metric == CANON_DOT)
        return filter(&(row_filter){CANON_DOT, false, limit, query_norm, 0.0f}, sums_, row_count, row_norms);
    return filter(&(row_filter){CANON_COSINE, false, limit, query_norm, 0.0f}, sums_, row_count, row_norms);
}

static uint64_t filter_dots(const float *dots, int32_t row_count, float limit, float query_norm, const float *row_norms,
                            float slack)
{
    return filter(&(row_filter){CANON_L2, true, limit, query_norm, slack}, dots, row_count, row_norms);
}

/* ---- pairs of any length, and storing rows ------------------------------------------------------------------------------- */

INLINE void clear(vec acc[VECS])
{
    UNROLL for (int v = 0; v < VECS; v++) acc[v] = vec_zero();
}

INLINE void accumulate_64(bool l2, const float *a, const float *b, vec acc[VECS])
{
    UNROLL for (int v = 0; v < VECS; v++) acc[v] =
        accumulate(l2, vec_load(a + v * VEC_LANES), vec_load(b + v * VEC_LANES), acc[v]);
}

/* The canonical fold. */
INLINE float fold(vec acc[VECS])
{
    UNROLL for (int s = VECS / 2; s >= 1; s /= 2) UNROLL for (int v = 0; v < s; v++) acc[v] = vec_add(acc[v], acc[v + s]);
    return vec_fold_lanes(acc[0]);
}

INLINE float pair(bool l2, const float *a, const float *b, int64_t n)
{
    vec acc[VECS];
    clear(acc);
    int64_t i = 0;
    for (; i + CANON_LANES <= n; i += CANON_LANES)
        accumulate_64(l2, a + i, b + i, acc);
    if (i < n) {
        float rest_a[CANON_LANES] = {0}, rest_b[CANON_LANES] = {0};
        memcpy(rest_a, a + i, (size_t)(n - i) * sizeof *a);
        memcpy(rest_b, b + i, (size_t)(n - i) * sizeof *b);
        accumulate_64(l2, rest_a, rest_b, acc);
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
    vec acc[VECS];
    clear(acc);
    int32_t i = 0;
    for (; i + CANON_LANES <= n; i += CANON_LANES) {
        UNROLL for (int v = 0; v < VECS; v++)
        {
            const vec x = vec_load(from + i + v * VEC_LANES);
            vec_store(row + i + v * VEC_LANES, x);
            acc[v] = vec_fma(x, x, acc[v]);
        }
    }
    if (i < n) {
        memcpy(row + i, from + i, (size_t)(n - i) * sizeof *row);
        memset(row + n, 0, (size_t)(i + CANON_LANES - n) * sizeof *row);
        accumulate_64(false, row + i, row + i, acc);
    }
    return fold(acc);
}

/* ---- rows of other types: bound by memory, one at a time with all 64 accumulators in registers --------------------------- */

/* Loads 64 elements from number `i` on as floats. The type is a constant, except that it may be either kind of bytes. */
INLINE void load_typed(int32_t type, const void *from, int64_t i, vec to[VECS])
{
    const int step = FOLDED / VEC_LANES; /* vectors of 16 elements */
    UNROLL for (int v = 0; v < VECS; v += step)
    {
        const int64_t at = i + v * VEC_LANES;
        if (type == ROW_F16)
            vec_widen_f16((const uint16_t *)from + at, to + v);
        else if (type == ROW_BF16)
            vec_widen_bf16((const uint16_t *)from + at, to + v);
        else
            vec_widen_bytes((const int8_t *)from + at, row_type_offset(type), to + v);
    }
}

INLINE void widen_as(int32_t type, const void *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i += CANON_LANES) {
        vec x[VECS];
        load_typed(type, from, i, x);
        UNROLL for (int v = 0; v < VECS; v++) vec_store(to + i + v * VEC_LANES, x[v]);
    }
}

static void widen(int32_t type, const void *from, float *to, int64_t n)
{
    if (type == ROW_F16)
        widen_as(ROW_F16, from, to, n);
    else if (type == ROW_BF16)
        widen_as(ROW_BF16, from, to, n);
    else
        widen_as(type, from, to, n);
}

/* The type, except for bytes, and l2 are constants. */
INLINE float pair_as(int32_t type, bool l2, const typed_pair *pair)
{
    const int32_t bytes = type == ROW_F16 || type == ROW_BF16 ? 2 : 1;
    vec acc[VECS];
    clear(acc);
    for (int32_t i = 0; i < pair->padded; i += CANON_LANES) {
        vec x[VECS];
        load_typed(type, pair->row, i, x);
        for (int32_t b = 0; pair->ahead != 0 && b < CANON_LANES * bytes; b += 64)
            __builtin_prefetch((const char *)pair->row + i * bytes + b + pair->ahead);
        UNROLL for (int v = 0; v < VECS; v++) acc[v] = accumulate(l2, vec_load(pair->query + i + v * VEC_LANES), x[v], acc[v]);
    }
    return fold(acc);
}

static float pair_typed(const typed_pair *pair)
{
    if (pair->type == ROW_F16)
        return pair->l2 ? pair_as(ROW_F16, true, pair) : pair_as(ROW_F16, false, pair);
    if (pair->type == ROW_BF16)
        return pair->l2 ? pair_as(ROW_BF16, true, pair) : pair_as(ROW_BF16, false, pair);
    return pair->l2 ? pair_as(pair->type, true, pair) : pair_as(pair->type, false, pair);
}

static void sums_of_bytes(int32_t type, const sums_job *job)
{
    typed_pair pair = {.type = type,
                       .l2 = job->metric == CANON_L2,
                       .padded = job->padded,
                       .ahead = PREFETCH_BYTES,
                       .query = job->queries,
                       .row = job->rows};
    for (int32_t r = 0; r < job->row_count; r++) {
        job->sums[r] = pair_typed(&pair);
        pair.row = (const char *)pair.row + job->padded;
    }
}

#include "cpu/isa/screen_template.h"

/* The functions of this file and of screen_template.h, for the table of the set. */
#define VEC_KERNELS                                                                                                            \
    .dot = dot, .squares = squares, .store = store, .sums = sums, .widen = widen, .sums_typed = sums_typed,                    \
    .pair_typed = pair_typed, .filter_sums = filter_sums, .filter_dots = filter_dots, .encode = encode,                        \
    .store_encoded = store_encoded, .bound_strips = bound_strips, .filter_strips = filter_strips,                              \
    .filter_leads = filter_leads, .filter_rows = filter_rows, .filter_one = filter_one

#endif
