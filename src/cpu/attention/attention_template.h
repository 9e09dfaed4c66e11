/* The loops of attention_loops.h, written once with the vectors of vec.h. One file of each instruction set includes this and
 * defines ATTENTION_LOOPS as the name of its table.
 *
 *   scores   three rows and four keys at a time: 12 pairs of 8 accumulators. A piece of a key is one element for each
 *            accumulator. Vectors of 16 elements have the pieces of two keys, and take four rows and eight keys at a time.
 *   values   four rows and a few vectors of elements at a time. The accumulators are computed one after the other, each a chain
 *            over every eighth key, so that registers hold 4 x 4 sums instead of 8 times as many.
 *
 * Both are compiled twice: `half` is true for keys and values of f16, which become floats when they are loaded.
 */
#ifndef WW_CPU_ATTENTION_ATTENTION_TEMPLATE_H
#define WW_CPU_ATTENTION_ATTENTION_TEMPLATE_H

#include "cpu/attention/attention_loops.h"

#define ATTENTION_INLINE static inline __attribute__((always_inline))

#define VEC_HAS_TWO_PIECES (VEC_LANES == 16)

enum {
    VEC_KEYS = VEC_HAS_TWO_PIECES ? 2 : 1,                           /* keys whose pieces are in one vector */
    KEY_VECS = VEC_HAS_TWO_PIECES ? 1 : ATTENTION_LANES / VEC_LANES, /* vectors per piece */
    SCORE_ROWS = VEC_HAS_TWO_PIECES ? 4 : 3,
    SCORE_KEYS = 4 * VEC_KEYS,
    VALUE_ROWS = 4,
    VALUE_VECS = VEC_LANES >= 8 ? 2 : 4,
    PIECE_APART = ATTENTION_GROUP * ATTENTION_LANES,                    /* floats from a key's piece to its next piece */
    P_STEP = VEC_HAS_TWO_PIECES ? 2 * ATTENTION_LANES : ATTENTION_LANES /* keys whose exponentials are computed together */
};
/* If there are just enough registers, keys are loaded one by one: compilers that load all at once spill sums. */
#if VEC_LANES == 4
#define SCORE_LOAD(from, at, half) vec_keep(load_elements(from, at, half))
#else
#define SCORE_LOAD(from, at, half) load_elements(from, at, half)
#endif
_Static_assert(KEY_VECS *VEC_LANES == VEC_KEYS * ATTENTION_LANES, "a piece is whole vectors, or half of one");

/* Loads elements of keys or values from number `at` on. */
ATTENTION_INLINE vec load_elements(const void *from, int64_t at, bool half)
{
    return half ? vec_load_f16((const uint16_t *)from + at) : vec_load((const float *)from + at);
}

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

#if VEC_HAS_TWO_PIECES
ATTENTION_INLINE vec load_query(const float *from)
{
    return vec_load_half_twice(from);
}

/* Computes the scores of SCORE_KEYS keys from their accumulators. */
ATTENTION_INLINE void fold_keys(const vec sums[SCORE_KEYS / VEC_KEYS][KEY_VECS], float scale, float *to)
{
    vec_fold_halves(&sums[0][0], scale, to);
}
#else
ATTENTION_INLINE vec load_query(const float *from)
{
    return vec_load(from);
}

ATTENTION_INLINE float fold_piece(const vec *sums)
{
#if VEC_LANES == 1
    return attention_fold(sums);
#else
    return vec_fold_lanes(KEY_VECS == 2 ? vec_add(sums[0], sums[KEY_VECS - 1]) : sums[0]);
#endif
}

/* Computes the scores of SCORE_KEYS keys from their accumulators. */
ATTENTION_INLINE void fold_keys(const vec sums[SCORE_KEYS][KEY_VECS], float scale, float *to)
{
#if defined(VEC_FOLDS_FOUR)
    vec each[SCORE_KEYS];
#pragma GCC unroll 8
    for (int32_t j = 0; j < SCORE_KEYS; j++)
        each[j] = KEY_VECS == 2 ? vec_add(sums[j][0], sums[j][KEY_VECS - 1]) : sums[j][0];
    vec_fold_four(each, scale, to);
#else
#pragma GCC unroll 8
    for (int32_t j = 0; j < SCORE_KEYS; j++)
        to[j] = fold_piece(sums[j]) * scale;
#endif
}
#endif

/* Computes the scores of `rows` rows, from row `first` on, with SCORE_KEYS keys, from key `key` on. */
ATTENTION_INLINE void score_tile(const attention_tile *tile, int32_t first, int32_t rows, int32_t key, bool half)
{
    int64_t k = attention_key_place(tile->head_size, key, 0);
    const int32_t pieces = tile->head_size / ATTENTION_LANES;
    vec sums[SCORE_ROWS][SCORE_KEYS / VEC_KEYS][KEY_VECS];
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int32_t j = 0; j < SCORE_KEYS / VEC_KEYS; j++)
#pragma GCC unroll 8
            for (int32_t v = 0; v < KEY_VECS; v++)
                sums[r][j][v] = vec_zero();
    for (int32_t piece = 0; piece < pieces; piece++, k += PIECE_APART) {
#pragma GCC unroll 8
        for (int32_t v = 0; v < KEY_VECS; v++) {
            vec q[SCORE_ROWS];
#pragma GCC unroll 8
            for (int32_t r = 0; r < rows; r++)
                q[r] = load_query(tile->q[first + r] + piece * ATTENTION_LANES + v * VEC_LANES);
#pragma GCC unroll 8
            for (int32_t j = 0; j < SCORE_KEYS / VEC_KEYS; j++) {
                const vec x = SCORE_LOAD(tile->keys, k + j * VEC_KEYS * ATTENTION_LANES + v * VEC_LANES, half);
#pragma GCC unroll 8
                for (int32_t r = 0; r < rows; r++)
                    sums[r][j][v] = vec_fma(q[r], x, sums[r][j][v]);
            }
        }
    }
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++)
        fold_keys(sums[r], tile->scale, tile->p + (first + r) * ATTENTION_CHUNK + key);
}

/* Computes m_c, the exponentials and l_c of one row whose p are scores, P_STEP keys at a time. If a step starts before the
 * visible keys or ends after them, a visible score replaces the others when the maximum is computed, and +0 when the
 * exponentials are added: accumulators are not negative, so that does not change them. */
static void exponentials(const attention_tile *tile, int32_t row)
{
    float *p = tile->p + row * ATTENTION_CHUNK, sums[ATTENTION_LANES] = {0};
    const attention_range seen = tile->seen[row];
    const int32_t first = seen.first / P_STEP * P_STEP;
    const int32_t end = (seen.end + P_STEP - 1) / P_STEP * P_STEP;
    for (int32_t j = seen.first; tile->cap > 0.0f && j < seen.end; j++)
        p[j] = attention_capped(p[j], tile->cap);
    for (int32_t j = seen.first; tile->slopes && j < seen.end; j++)
        p[j] = attention_sloped(p[j], tile->slopes[row], tile->positions[row] - j);
    for (int32_t j = first; j < seen.first; j++)
        p[j] = p[seen.first];
    for (int32_t j = seen.end; j < end; j++)
        p[j] = p[seen.first];
    vec largest[KEY_VECS];
    for (int32_t v = 0; v < KEY_VECS; v++)
        largest[v] = vec_load(p + first + v * VEC_LANES);
    for (int32_t j = first; j < end; j += P_STEP)
        for (int32_t v = 0; v < KEY_VECS; v++)
            largest[v] = vec_max(largest[v], vec_load(p + j + v * VEC_LANES));
    for (int32_t v = 1; v < KEY_VECS; v++)
        largest[0] = vec_max(largest[0], largest[v]);
    const float highest = vec_largest(largest[0]);
    for (int32_t j = first; j < end; j++)
        p[j] = row_exponential_f32(p[j], highest);
    for (int32_t j = first; j < seen.first; j++)
        p[j] = 0.0f;
    for (int32_t j = seen.end; j < end; j++)
        p[j] = 0.0f;
    for (int32_t j = first; j < end; j += ATTENTION_LANES)
        for (int32_t a = 0; a < ATTENTION_LANES; a++)
            sums[a] += p[j + a];
    tile->largest[row] = highest;
    tile->sums[row] = attention_fold(sums);
}

/* Prefetches the f16 values of SCORE_KEYS keys: each accumulator reads every eighth key, an order that processors do not
 * predict. */
ATTENTION_INLINE void prefetch_values(const attention_tile *tile, int32_t key)
{
    const int32_t bytes = tile->head_size * (int32_t)sizeof(uint16_t);
    const char *from = (const char *)tile->values + (int64_t)key * bytes;
    for (int32_t at = 0; at < SCORE_KEYS * bytes; at += 64)
        __builtin_prefetch(from + at);
}

ATTENTION_INLINE void score_rows(const attention_tile *tile, bool half)
{
    int32_t first = ATTENTION_CHUNK, end = 0;
    for (int32_t r = 0; r < tile->rows; r++) {
        first = tile->seen[r].first < first ? tile->seen[r].first : first;
        end = tile->seen[r].end > end ? tile->seen[r].end : end;
    }
    for (int32_t key = first / SCORE_KEYS * SCORE_KEYS; key < end; key += SCORE_KEYS) {
        int32_t r = 0;
        if (half)
            prefetch_values(tile, key);
        for (; r + SCORE_ROWS <= tile->rows; r += SCORE_ROWS)
            score_tile(tile, r, SCORE_ROWS, key, half);
        if (SCORE_ROWS > 3 && tile->rows - r == 3)
            score_tile(tile, r, 3, key, half);
        else if (tile->rows - r == 2)
            score_tile(tile, r, 2, key, half);
        else if (tile->rows - r == 1)
            score_tile(tile, r, 1, key, half);
    }
}

static void scores(const attention_tile *tile)
{
    if (tile->half)
        score_rows(tile, true);
    else
        score_rows(tile, false);
    for (int32_t r = 0; r < tile->rows; r++)
        exponentials(tile, r);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

typedef struct value_sums {
    vec v[VALUE_ROWS][VALUE_VECS];
} value_sums;

/* Some rows and vectors of elements that are computed together. */
typedef struct value_part {
    int32_t first, rows; /* of the tile */
    int32_t at, vecs;    /* elements of a head */
    bool half;
} value_part;

ATTENTION_INLINE void value_step(const attention_tile *tile, value_part part, int32_t row, int32_t key, vec *sums)
{
    const vec p = vec_set(tile->p[row * ATTENTION_CHUNK + key]);
    const int64_t x = (int64_t)key * tile->head_size + part.at;
#pragma GCC unroll 8
    for (int32_t v = 0; v < part.vecs; v++)
        sums[v] = vec_fma(p, load_elements(tile->values, x + v * VEC_LANES, part.half), sums[v]);
}

/* The first key from `from` on that goes to accumulator `lane`. */
ATTENTION_INLINE int32_t key_of_lane(int32_t from, int32_t lane)
{
    return from + ((lane - from) & (ATTENTION_LANES - 1));
}

/* Computes one accumulator of each row: first keys that only some rows see, then those that all see, then the rest. */
ATTENTION_INLINE value_sums value_chain(const attention_tile *tile, attention_range all, value_part part, int32_t lane)
{
    const int32_t first = part.first, rows = part.rows, vecs = part.vecs;
    value_sums sums;
#pragma GCC unroll 8
    /* Initialise all: the compiler does not know which stay unused, and unused ones cost nothing. */
    for (int32_t r = 0; r < VALUE_ROWS; r++)
#pragma GCC unroll 8
        for (int32_t v = 0; v < VALUE_VECS; v++)
            sums.v[r][v] = vec_zero();
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++) {
        const attention_range seen = tile->seen[first + r];
        const int32_t end = seen.end < all.first ? seen.end : all.first;
        for (int32_t j = key_of_lane(seen.first, lane); j < end; j += ATTENTION_LANES)
            value_step(tile, part, first + r, j, sums.v[r]);
    }
    const float *p = tile->p + first * ATTENTION_CHUNK;
    for (int32_t j = key_of_lane(all.first, lane); j < all.end; j += ATTENTION_LANES) {
        const int64_t x = (int64_t)j * tile->head_size + part.at;
        vec y[VALUE_VECS];
#pragma GCC unroll 8
        for (int32_t v = 0; v < vecs; v++)
            y[v] = load_elements(tile->values, x + v * VEC_LANES, part.half);
#pragma GCC unroll 8
        for (int32_t r = 0; r < rows; r++) {
            const vec by = vec_set(p[r * ATTENTION_CHUNK + j]);
#pragma GCC unroll 8
            for (int32_t v = 0; v < vecs; v++)
                sums.v[r][v] = vec_fma(by, y[v], sums.v[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++)
        for (int32_t j = key_of_lane(all.end, lane); j < tile->seen[first + r].end; j += ATTENTION_LANES)
            value_step(tile, part, first + r, j, sums.v[r]);
    return sums;
}

ATTENTION_INLINE void value_add(value_sums *to, const value_sums *more, int32_t rows, int32_t vecs)
{
#pragma GCC unroll 8
    for (int32_t r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int32_t v = 0; v < vecs; v++)
            to->v[r][v] = vec_add(to->v[r][v], more->v[r][v]);
}

/* Computes the results of a part. The accumulators are computed in the order in which they are folded: (0 + 4) + (2 + 6) and
 * (1 + 5) + (3 + 7). */
ATTENTION_INLINE void value_tile(const attention_tile *tile, value_part part)
{
    const int32_t first = part.first, rows = part.rows, vecs = part.vecs;
    attention_range all = tile->seen[first];
    for (int32_t r = 1; r < rows; r++) {
        const attention_range seen = tile->seen[first + r];
        all.first = seen.first > all.first ? seen.first : all.first;
        all.end = seen.end < all.end ? seen.end : all.end;
    }
    if (all.end < all.first) { /* rows without a common key are processed alone */
        all.first = ATTENTION_CHUNK;
        all.end = ATTENTION_CHUNK;
    }
    value_sums half[2];
    for (int32_t odd = 0; odd < 2; odd++) {
        half[odd] = value_chain(tile, all, part, odd);
        value_sums other = value_chain(tile, all, part, odd + 4);
        value_add(&half[odd], &other, rows, vecs);
        value_sums quarter = value_chain(tile, all, part, odd + 2);
        other = value_chain(tile, all, part, odd + 6);
        value_add(&quarter, &other, rows, vecs);
        value_add(&half[odd], &quarter, rows, vecs);
    }
    value_add(&half[0], &half[1], rows, vecs);
    for (int32_t r = 0; r < rows; r++)
        for (int32_t v = 0; v < vecs; v++)
            vec_store(tile->out[first + r] + part.at + v * VEC_LANES, half[0].v[r][v]);
}

ATTENTION_INLINE void value_heads(const attention_tile *tile, int32_t first, int32_t rows, bool half)
{
    int32_t at = 0;
    for (; at + VALUE_VECS * VEC_LANES <= tile->head_size; at += VALUE_VECS * VEC_LANES)
        value_tile(tile, (value_part){first, rows, at, VALUE_VECS, half});
    for (; at + VEC_LANES <= tile->head_size; at += VEC_LANES)
        value_tile(tile, (value_part){first, rows, at, 1, half});
    if (at < tile->head_size) /* half a vector is left: some elements before it are computed again, with the same bits */
        value_tile(tile, (value_part){first, rows, tile->head_size - VEC_LANES, 1, half});
}

/* Each is a separate function: if another function is inlined next to it, compilers spill sums. */
#define VALUE_FUNCTION(rows)                                                                                                   \
    static __attribute__((noinline)) void values_f32_##rows(const attention_tile *tile, int32_t first)                         \
    {                                                                                                                          \
        value_heads(tile, first, rows, false);                                                                                 \
    }                                                                                                                          \
    static __attribute__((noinline)) void values_f16_##rows(const attention_tile *tile, int32_t first)                         \
    {                                                                                                                          \
        value_heads(tile, first, rows, true);                                                                                  \
    }
VALUE_FUNCTION(1)
VALUE_FUNCTION(2)
VALUE_FUNCTION(3)
VALUE_FUNCTION(4)
#undef VALUE_FUNCTION

static void values(const attention_tile *tile)
{
    typedef void (*value_function)(const attention_tile *tile, int32_t first);
    static const value_function of_rows[2][VALUE_ROWS] = {{values_f32_1, values_f32_2, values_f32_3, values_f32_4},
                                                          {values_f16_1, values_f16_2, values_f16_3, values_f16_4}};
    for (int32_t r = 0; r < tile->rows; r += VALUE_ROWS) {
        const int32_t rows = tile->rows - r < VALUE_ROWS ? tile->rows - r : VALUE_ROWS;
        of_rows[tile->half][rows - 1](tile, r);
    }
}

/* ---- merging, rope, conversions ------------------------------------------------------------------------------------------ */

static void merge(const attention_parts *parts)
{
    const float *part = parts->first;
    float highest = part[0], l = 0.0f;
    float o[ATTENTION_HEAD_MAX] = {0};
    for (int32_t c = 1; c < parts->count; c++)
        highest = row_larger_f32(highest, part[c * parts->apart]);
    for (int32_t c = 0; c < parts->count; c++, part += parts->apart) {
        const float f = row_exponential_f32(part[0], highest);
        const float *x = part + ATTENTION_PART_SUMS;
        l = canon_fma_f32(f, part[1], l);
        for (int32_t i = 0; i < parts->head_size; i++)
            o[i] = canon_fma_f32(f, x[i], o[i]);
    }
    for (int32_t i = 0; i < parts->head_size; i++)
        parts->out[i] = parts->sink ? attention_result_with_sink(o[i], l, highest, *parts->sink) : attention_result(o[i], l);
}

static void rope(const attention_turn *turn)
{
    const int32_t half = turn->rope == ATTENTION_ROPE_NONE ? 0 : turn->half;
    const float *x = turn->from;
    float *to = turn->to;
    if (turn->rope == ATTENTION_ROPE_HALVES)
        for (int32_t i = 0; i < half; i++) {
            const float a = x[i], b = x[i + half];
            to[i] = row_turn_first_f32(a, b, turn->cosines[i], turn->sines[i]);
            to[i + half] = row_turn_second_f32(a, b, turn->cosines[i], turn->sines[i]);
        }
    else
        for (int32_t i = 0; i < half; i++) {
            const float a = x[2 * i], b = x[2 * i + 1];
            to[2 * i] = row_turn_first_f32(a, b, turn->cosines[i], turn->sines[i]);
            to[2 * i + 1] = row_turn_second_f32(a, b, turn->cosines[i], turn->sines[i]);
        }
    for (int32_t i = 2 * half; i < turn->head_size; i++)
        to[i] = x[i];
}

static void widen(int32_t type, float *to, const void *from, int64_t count)
{
    if (type == ATTENTION_F16)
        for (int64_t i = 0; i < count; i += VEC_LANES) {
            const int64_t at = i + VEC_LANES <= count ? i : count - VEC_LANES; /* half a vector may be left */
            vec_store(to + at, vec_load_f16((const uint16_t *)from + at));
        }
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)((const int8_t *)from)[i];
}

static void narrow(uint16_t *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = narrow_f16(from[i]);
}

const attention_loops ATTENTION_LOOPS = {
    .scores = scores, .values = values, .merge = merge, .rope = rope, .widen = widen, .narrow_f16 = narrow};

#endif
