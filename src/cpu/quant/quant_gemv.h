/* Products with few columns: every octet of weights is read once from memory, which is what the time goes to.
 *
 * Lane l of every vector belongs to block l of the octet, so that the sums of products of eight blocks stand in one vector,
 * with their factors beside them, and one fma adds all eight to the accumulators. Codes of weights are from 0 up; what that
 * adds, the offset times the sum of the activations' codes, the sums begin with.
 */
#ifndef WW_CPU_QUANT_QUANT_GEMV_H
#define WW_CPU_QUANT_QUANT_GEMV_H

#include "cpu/quant/quant_gemv_codes.h"
#if defined(QUANT_VNNI)
#include "cpu/isa/avx512/quant_gemv.h"
#endif

/* How far ahead weights are asked for: processors stop guessing at the end of a page. */
enum { FEW_AHEAD = 8192, FEW_ROWS = 4 };

#define UNROLLED _Pragma("GCC unroll 8")

/* ---- an octet -------------------------------------------------------------------------------------------------------------
 */

typedef struct few_octet {
    dot_lanes codes[64], scales[16], mins[16];
    dot_floats d, min;
} few_octet;

DOT_FUNCTION void few_unpack(int32_t type, const char *octet, few_octet *out)
{
    const int32_t pieces = dot_pieces(type), runs = runs_of(type);
    UNROLLED for (int32_t p = 0; p < pieces; p++) UNROLLED for (int32_t i = 0; i < 8; i++) out->codes[8 * p + i] =
        octet_codes(type, octet, p, i);
    if (runs > 1)
        _Pragma("GCC unroll 16") for (int32_t r = 0; r < runs; r++)
        {
            out->scales[r] = octet_scale(type, octet, r);
            if (dot_has_min(type))
                out->mins[r] = octet_min(type, octet, r);
        }
    out->d = octet_factor(type, octet);
    if (dot_has_min(type))
        out->min = octet_min_factor(type, octet);
}

DOT_FUNCTION dot_lanes few_dot(int32_t type, dot_lanes sum, dot_lanes weights, const int32_t *activations)
{
    return codes_signed(type) ? dot_signed(sum, weights, dot_take(activations))
                              : dot_unsigned(sum, weights, dot_take(activations));
}

/* Adds one octet's part to the accumulators of a column. */
DOT_FUNCTION dot_floats few_add_small(int32_t type, const few_octet *octet, const few_small *x, dot_floats acc)
{
    const dot_floats da = dot_take_floats(x->d);
    dot_lanes j = dot_offset(type) ? dot_take(x->sums) : (dot_lanes){0};
    UNROLLED for (int32_t i = 0; i < 8; i++) j = few_dot(type, j, octet->codes[i], x->codes[i]);
    acc = dot_fma(octet->d * da, __builtin_convertvector(j, dot_floats), acc);
    if (dot_has_min(type))
        acc = dot_fma(octet->min * da, __builtin_convertvector(dot_take(x->sums), dot_floats), acc);
    return acc;
}

DOT_FUNCTION dot_floats few_add_large(int32_t type, const few_octet *octet, const few_large *x, dot_floats acc)
{
    const dot_floats da = dot_take_floats(x->d);
    const int32_t runs = runs_of(type), words = 64 / runs; /* of a run */
    dot_lanes j = {0}, m = {0};
    _Pragma("GCC unroll 16") for (int32_t r = 0; r < runs; r++)
    {
        dot_lanes sum = dot_offset(type) ? dot_take(x->sums[r]) : (dot_lanes){0};
        _Pragma("GCC unroll 64") for (int32_t i = 0; i < words; i++) sum =
            few_dot(type, sum, octet->codes[words * r + i], x->codes[words * r + i]);
        j += runs > 1 ? sum * octet->scales[r] : sum;
        if (dot_has_min(type))
            m += octet->mins[r] * dot_take(x->sums[r]);
    }
    acc = dot_fma(octet->d * da, __builtin_convertvector(j, dot_floats), acc);
    return dot_has_min(type) ? dot_fma(octet->min * da, __builtin_convertvector(m, dot_floats), acc) : acc;
}

DOT_FUNCTION dot_floats few_add(int32_t type, const few_octet *octet, const char *x, dot_floats acc)
{
    return block_elements(type) == BLOCK_SMALL ? few_add_small(type, octet, (const few_small *)(const void *)x, acc)
                                               : few_add_large(type, octet, (const few_large *)(const void *)x, acc);
}

/* An octet with the columns of a piece: the first `count` lanes of the accumulators take part. Blocks of zeros must not touch
 * theirs: adding nothing to -0 makes it +0. */
DOT_FUNCTION void few_take(dot_floats *acc, dot_floats sum, int64_t count)
{
    if (count == OCTET)
        *acc = sum;
    else
        memcpy(acc, &sum, (size_t)count * sizeof(float));
}

DOT_FUNCTION void few_add_octet(int32_t type, const char *octet, const char *activations, int64_t stride, int64_t columns,
                                int64_t count, dot_floats *acc)
{
#if defined(QUANT_VNNI)
    if (columns > 1 && runs_of(type) > 1) {
        wide_large large;
        wide_unpack(type, octet, &large);
        for (int64_t c = 0; c < columns; c++)
            few_take(&acc[c], wide_add_large(type, &large, (const few_large *)(const void *)(activations + c * stride), acc[c]),
                     count);
        return;
    }
#endif
    few_octet each;
    few_unpack(type, octet, &each);
    for (int64_t c = 0; c < columns; c++)
        few_take(&acc[c], few_add(type, &each, activations + c * stride, acc[c]), count);
}

/* ---- rows -----------------------------------------------------------------------------------------------------------------
 */

/* Some rows from number `first` on with the columns of a piece: the activations of an octet are in the first-level cache for
 * all of them. The blocks behind the last octet are an octet with blocks of zeros. */
DOT_FUNCTION void few_some_rows(int32_t type, const quant_gemv *piece, int64_t first, int64_t rows, int64_t columns)
{
    const int64_t whole = piece->blocks / OCTET, rest = piece->blocks % OCTET, octet_bytes = (int64_t)OCTET * block_bytes(type);
    const int64_t x_bytes = block_elements(type) == BLOCK_SMALL ? sizeof(few_small) : sizeof(few_large);
    dot_floats acc[FEW_ROWS][FEW_COLUMNS];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            acc[r][c] = (dot_floats){0};
    for (int64_t e = 0; e < whole + (rest > 0); e++) {
        const char *x = piece->activations + e * x_bytes;
        for (int64_t r = 0; r < rows; r++) {
            const char *octet = piece->weights + (first + r) * piece->weights_stride + e * octet_bytes;
            for (int32_t at = 0; at < octet_bytes; at += 64)
                __builtin_prefetch(octet + at + FEW_AHEAD);
            if (e < whole) {
                few_add_octet(type, octet, x, piece->activations_stride, columns, OCTET, acc[r]);
                continue;
            }
            _Alignas(32) char last[OCTET_BYTES_MAX];
            octet_of_rest(type, octet, rest, last);
            few_add_octet(type, last, x, piece->activations_stride, columns, rest, acc[r]);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            float sums[8];
            memcpy(sums, &acc[r][c], sizeof sums);
            piece->out[piece->places[c] * piece->out_stride + first + r] = dot_fold(sums);
        }
}

DOT_FUNCTION void few_rows(int32_t type, const quant_gemv *piece)
{
#if defined(QUANT_VNNI)
    if (block_elements(type) == BLOCK_SMALL) {
        wide_rows(type, piece);
        return;
    }
#endif
    for (int64_t r = 0; r < piece->rows && piece->columns == 1; r++)
        few_some_rows(type, piece, r, 1, 1);
    for (int64_t r = 0; r < piece->rows && piece->columns > 1; r += FEW_ROWS)
        few_some_rows(type, piece, r, piece->rows - r < FEW_ROWS ? piece->rows - r : FEW_ROWS, piece->columns);
}

#endif
