/* Products of a matrix with one column or a few. They are bound by memory: every block group of weights is read once.
 *
 * Lane l of every vector belongs to block l of the group. So one vector has the sums of products of eight blocks, others have
 * their factors, and one fma adds all eight to the accumulators. Codes of weights are used as unsigned numbers. The sums start
 * at the correction for that: minus the offset times the sum of the activations' codes.
 */
#ifndef WW_CPU_QUANT_GEMV_H
#define WW_CPU_QUANT_GEMV_H

#include "cpu/quant/gemv_activations.h"

/* Prefetch distance of the weights in bytes, because hardware prefetchers stop at the end of a page. */
enum { GEMV_PREFETCH = 8192, GEMV_ROWS = 4 };
#ifndef GEMV_PREFETCH_LOCALITY /* 3: into the first-level cache, 2: into the second */
#define GEMV_PREFETCH_LOCALITY 3
#endif

#define UNROLLED _Pragma("GCC unroll 8")

/* ---- a group ------------------------------------------------------------------------------------------------------------- */

typedef struct gemv_group {
    dot_lanes codes[64], scales[16], mins[16];
    dot_floats d, min;
} gemv_group;

DOT_FUNCTION void gemv_unpack(int32_t type, const char *group, gemv_group *out)
{
    const int32_t pieces = dot_pieces(type), subs = sub_blocks(type);
    UNROLLED for (int32_t p = 0; p < pieces; p++) UNROLLED for (int32_t i = 0; i < 8; i++) out->codes[8 * p + i] =
        group_codes(type, group, p, i);
    if (subs > 1)
        _Pragma("GCC unroll 16") for (int32_t r = 0; r < subs; r++)
        {
            out->scales[r] = group_scale(type, group, r);
            if (dot_has_min(type))
                out->mins[r] = group_min(type, group, r);
        }
    out->d = group_factor(type, group);
    if (dot_has_min(type))
        out->min = group_min_factor(type, group);
}

DOT_FUNCTION dot_lanes gemv_dot(int32_t type, dot_lanes sum, dot_lanes weights, const int32_t *activations)
{
    return codes_signed(type) ? dot_signed(sum, weights, dot_load_lanes(activations))
                              : dot_unsigned(sum, weights, dot_load_lanes(activations));
}

/* Adds one group's part to the accumulators of a column. */
DOT_FUNCTION dot_floats gemv_add_small(int32_t type, const gemv_group *group, const gemv_small *x, dot_floats acc)
{
    const dot_floats da = dot_load_floats(x->d);
    dot_lanes j = dot_offset(type) ? dot_load_lanes(x->sums) : (dot_lanes){0};
    UNROLLED for (int32_t i = 0; i < 8; i++) j = gemv_dot(type, j, group->codes[i], x->codes[i]);
    acc = dot_fma(group->d * da, __builtin_convertvector(j, dot_floats), acc);
    if (dot_has_min(type))
        acc = dot_fma(group->min * da, __builtin_convertvector(dot_load_lanes(x->sums), dot_floats), acc);
    return acc;
}

DOT_FUNCTION dot_floats gemv_add_large(int32_t type, const gemv_group *group, const gemv_large *x, dot_floats acc)
{
    const dot_floats da = dot_load_floats(x->d);
    const int32_t subs = sub_blocks(type), words = 64 / subs; /* words per sub-block */
    dot_lanes j = {0}, m = {0};
    _Pragma("GCC unroll 16") for (int32_t r = 0; r < subs; r++)
    {
        dot_lanes sum = dot_offset(type) ? dot_load_lanes(x->sums[r]) : (dot_lanes){0};
        _Pragma("GCC unroll 64") for (int32_t i = 0; i < words; i++) sum =
            gemv_dot(type, sum, group->codes[words * r + i], x->codes[words * r + i]);
        j += subs > 1 ? sum * group->scales[r] : sum;
        if (dot_has_min(type))
            m += group->mins[r] * dot_load_lanes(x->sums[r]);
    }
    acc = dot_fma(group->d * da, __builtin_convertvector(j, dot_floats), acc);
    return dot_has_min(type) ? dot_fma(group->min * da, __builtin_convertvector(m, dot_floats), acc) : acc;
}

DOT_FUNCTION dot_floats gemv_add(int32_t type, const gemv_group *group, const char *x, dot_floats acc)
{
    return block_elements(type) == BLOCK32_ELEMENTS ? gemv_add_small(type, group, (const gemv_small *)(const void *)x, acc)
                                                    : gemv_add_large(type, group, (const gemv_large *)(const void *)x, acc);
}

/* Stores the first `count` lanes of the sums in the accumulators. Blocks of zeros must not change theirs: -0 plus +0 is +0. */
DOT_FUNCTION void gemv_keep(dot_floats *acc, dot_floats sum, int64_t count)
{
    if (count == BLOCK_GROUP)
        *acc = sum;
    else
        memcpy(acc, &sum, (size_t)count * sizeof(float));
}

DOT_FUNCTION void gemv_add_group(int32_t type, const char *group, const char *activations, int64_t stride, int64_t columns,
                                 int64_t count, dot_floats *acc)
{
#if defined(GEMV_LARGE_GROUP)
    if (block_elements(type) != BLOCK32_ELEMENTS) {
        GEMV_LARGE_GROUP(type, group, activations, stride, columns, count, acc);
        return;
    }
#endif
#if defined(GEMV_LARGE_UNPACKED)
    if (columns > 1 && sub_blocks(type) > 1 && !codes_signed(type)) {
        GEMV_LARGE_UNPACKED large;
        GEMV_LARGE_UNPACK(type, group, &large);
        for (int64_t c = 0; c < columns; c++) {
            const gemv_large *x = (const gemv_large *)(const void *)(activations + c * stride);
            gemv_keep(&acc[c], GEMV_LARGE_ADD(type, &large, x, acc[c]), count);
        }
        return;
    }
#endif
    gemv_group each;
    gemv_unpack(type, group, &each);
    for (int64_t c = 0; c < columns; c++)
        gemv_keep(&acc[c], gemv_add(type, &each, activations + c * stride, acc[c]), count);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* Multiplies some rows, from number `first` on, with the columns of a piece: the activations of a group are in the first-level
 * cache for all of them. The blocks after the last whole group are padded to a group with blocks of zeros. */
DOT_FUNCTION void gemv_some_rows(int32_t type, const quant_gemv *piece, int64_t first, int64_t rows, int64_t columns)
{
    const int64_t whole = piece->blocks / BLOCK_GROUP, rest = piece->blocks % BLOCK_GROUP,
                  group_bytes = (int64_t)BLOCK_GROUP * block_bytes(type);
    const int64_t x_bytes = block_elements(type) == BLOCK32_ELEMENTS ? sizeof(gemv_small) : sizeof(gemv_large);
    dot_floats acc[GEMV_ROWS][GEMV_COLUMNS];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            acc[r][c] = (dot_floats){0};
    for (int64_t e = 0; e < whole + (rest > 0); e++) {
        const char *x = piece->activations + e * x_bytes;
        for (int64_t r = 0; r < rows; r++) {
            const char *group = piece->weights + (first + r) * piece->weights_stride + e * group_bytes;
            for (int32_t at = 0; at < group_bytes; at += 64)
                __builtin_prefetch(group + at + GEMV_PREFETCH, 0, GEMV_PREFETCH_LOCALITY);
            if (e < whole) {
                gemv_add_group(type, group, x, piece->activations_stride, columns, BLOCK_GROUP, acc[r]);
                continue;
            }
            _Alignas(32) char last[GROUP_BYTES_MAX];
            group_of_rest(type, group, rest, last);
            gemv_add_group(type, last, x, piece->activations_stride, columns, rest, acc[r]);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            float sums[8];
            memcpy(sums, &acc[r][c], sizeof sums);
            piece->out[piece->places[c] * piece->out_stride + first + r] = dot_fold(sums);
        }
}

DOT_FUNCTION void gemv_rows(int32_t type, const quant_gemv *piece)
{
#if defined(GEMV_SMALL_ROWS)
    if (block_elements(type) == BLOCK32_ELEMENTS) {
        GEMV_SMALL_ROWS(type, piece);
        return;
    }
#endif
    for (int64_t r = 0; r < piece->rows && piece->columns == 1; r++)
        gemv_some_rows(type, piece, r, 1, 1);
    for (int64_t r = 0; r < piece->rows && piece->columns > 1; r += GEMV_ROWS)
        gemv_some_rows(type, piece, r, piece->rows - r < GEMV_ROWS ? piece->rows - r : GEMV_ROWS, piece->columns);
}

#endif
