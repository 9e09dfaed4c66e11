/* Gemv of quantized weights: y = W x for groups of up to eight columns. Bound by reading the weights, once each.
 *
 * What: quant_gemv_TYPE (quant_gemv.c) for columns that an earlier kernel has quantized (quant_gemv_activations.h); and parts
 * of quant_gemv_one_TYPE (quant_gemv_one.c), which quantizes its one column itself. gpu/quant/quant_plan.c chooses.
 *
 * Bits: as blocks/dot.h says. Block b of a row goes to accumulator b mod 8 by fma, in increasing b; then accumulator j takes in
 * j + 4, j + 2 and j + 1 (gemv_put()). Sums of codes within a block, J and M, are integers, so
 * any instruction may form them in any order. Nothing else in this file can change a bit.
 *
 * Who does what:
 *   thread block  16 rows (a tile) x 8 columns (a group); block_index_y() is the group
 *   team          32 threads and one accumulator (class): team t takes blocks t, t + 8, ... of all 16 rows, so no fma waits
 *                 for another team
 *   thread        rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next: what mma.sync leaves in a thread (gemv_sums)
 *   split-k       with too few rows to fill the device, `splits` thread blocks share a tile, each with some of the classes;
 *                 the teams of the other classes only copy. The last one to finish adds up (gemv_combine_splits()). Not
 *                 where the copy engine fills the stages
 *
 * One pass (gemv_run()): rows come to shared memory some chunks ahead, as they are stored (quant_gemv_stages.h; their layout is
 * quant_gemv_layout.h's). gemv_rounds() multiplies a chunk: for each block gemv_block32() or gemv_kblock(), which call
 * gemv_multiply() for each 32 codes. gemv_finish() adds up the accumulators through shared memory and writes y.
 *
 * Why so: codes are multiplied as bytes, four or more in an instruction, instead of being decoded to floats; tensor cores take
 * 8 columns for the price of one. Loads of 16 bytes at the weights' own alignment need no copy of the matrix in another layout.
 *
 * To change:
 *   a format's codes or scales   quant_words.h (words from a block); a new format also needs its line in quant_gemv.c
 *   the multiply instruction     gemv_multiply() and gemv_multiply_mins(): mma.sync (sm_80 on), dot4 (other chips; four lanes
 *                                share a column of one: quad), and quant_gemv_mfma.h, which replaces this part on CDNA
 *   how rows arrive              quant_gemv_stages.h
 *   when a gemv is chosen, splits, threads, stages      gpu/quant/quant_plan.c
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_H
#define WW_KERNELS_QUANT_QUANT_GEMV_H

#include "arithmetic/convert.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/quant_words.h"

#include "kernels/quant/quant_gemv_stages.h"

typedef struct __attribute__((aligned(8), may_alias)) two_words {
    uint32_t x, y;
} two_words;

/* Results of thread l of a team: rows l / 4 and l / 4 + 8, and for each columns 2 * (l % 4) and 2 * (l % 4) + 1. */
typedef struct gemv_sums {
    int32_t sum[4];
} gemv_sums;

/* A thread of a team, and the column whose codes it feeds to tensor cores; any column in place of padding. `alignment` (WORDS_)
 * of the team's blocks and `single` (one column) are compile-time constants wherever they are used. */
typedef struct gemv_thread {
    uint32_t thread, column, width;
    int32_t alignment;
    bool single, even; /* even: the team's blocks have even numbers */
    bool unrolled;     /* the loop over rounds of a stage is unrolled; also a constant */
    uint32_t flip;     /* quant_gemv_args */
} gemv_thread;

/* Offsets of a thread's rows in a stage. With AMD's matrix units a thread has one row. */
typedef struct gemv_rows {
    uint32_t upper, lower;
} gemv_rows;

/* Result i of a thread belongs to column 2 * (thread % 4) + i % 2. With a single column, half of the results are unused. */
#define GEMV_FOR_RESULTS(i, single)                                                                                            \
    UNROLL                                                                                                                     \
    for (int32_t i = 0; i < 4; i += (single) ? 2 : 1)

/* Words `at` and `at` + 4 of a piece of a row; for formats with rotated codes also the factor. */
DEVICE words_two gemv_words(int32_t type, const uint8_t *block, int32_t p, gemv_thread here, int32_t at)
{
    if (QUANT_ROTATES && words_rotated(type))
        return words_rotated_pair(type, here.alignment, here.even, here.flip, block, at);
    words_two two;
    if (block_has_codebook(type)) {
        const nibble_bytes both = words_codebook(type, here.alignment, block, p, at);
        two.x = both.low;
        two.y = both.high;
        two.factor = 0;
        return two;
    }
    two.x = words_quick(type, here.alignment, here.flip, block, p, 0, at);
    two.y = words_quick(type, here.alignment, here.flip, block, p, 1, at);
    two.factor = 0;
    return two;
}

/* The factors of a block whose codes are not rotated. For q4_0 they are 16 times too large until gemv_scale(). */
DEVICE dot_factors gemv_row_factors(int32_t type, const uint8_t *block)
{
    const dot_factors plain = {type == BLOCK_Q4_0 ? words_f16(block) : 0.0f, 0.0f};
    return type == BLOCK_Q4_0 ? plain : words_factors(type, block);
}

/* The activations of one block of weights, in shared memory: 32 codes of a column are eight words. */
typedef struct gemv_columns {
    const uint32_t *codes, *sums;
    const float *factors;
} gemv_columns;

/* The same, `blocks` blocks later. */
DEVICE gemv_columns gemv_columns_behind(int32_t type, gemv_columns from, uint32_t blocks, gemv_thread here)
{
    const uint32_t pieces = (uint32_t)dot_pieces(type), sums = dot_has_min(type) ? pieces * QUANT_GEMV_COLUMNS : 0;
    gemv_columns columns;
    columns.codes = from.codes + blocks * (pieces * here.width * 8);
    columns.sums = from.sums + blocks * sums;
    columns.factors = from.factors + blocks * QUANT_GEMV_COLUMNS;
    return columns;
}

/* Index of words `word` and `word` + 4 of a column. */
DEVICE uint32_t gemv_pair_at(uint32_t column, uint32_t width, uint32_t word)
{
    return (uint32_t)quant_code_begin(0, width, column) + quant_code_word(width, word);
}

/* Blocks of a stage from the first to the last of a class, inclusive. */
DEVICE uint32_t gemv_reach(int32_t type)
{
    return stage_blocks(type) - 7;
}

/* The activations in a stage for the first block of class `number`. */
DEVICE gemv_columns gemv_columns_of(int32_t type, const uint8_t *stage, uint32_t number, gemv_thread here)
{
    const uint32_t pieces = (uint32_t)dot_pieces(type);
    const uint32_t words = pieces * here.width * 8, sums = dot_has_min(type) ? pieces * QUANT_GEMV_COLUMNS : 0;
    gemv_columns columns;
    columns.codes = (const uint32_t *)(const void *)AT_RANGE(stage, stage_codes_at(type) + number * words * 4,
                                                             gemv_reach(type) * words * 4);
    columns.sums =
        (const uint32_t *)(const void *)AT_RANGE(stage, stage_sums_at(type) + number * sums * 4, gemv_reach(type) * sums * 4);
    columns.factors = (const float *)(const void *)AT_RANGE(stage, stage_factors_at(type) + number * QUANT_GEMV_COLUMNS * 4,
                                                            gemv_reach(type) * QUANT_GEMV_COLUMNS * 4);
    return columns;
}

#define GEMV_ONE_AND_A_HALF 0x4b400000 /* the bits of 1.5 * 2^23: adding an integer below 2^22 to them adds it to the float */

/* Codes of q4_0 are multiplied by 16 (quant_words.h), and so are its sums until the end. This is exact, because nothing here
 * comes near underflow or overflow. */
DEVICE float gemv_scale(int32_t type)
{
    return type == BLOCK_Q4_0 ? 0.0625f : 1.0f;
}

#if defined(SIMT_MFMA)

#include "kernels/quant/quant_gemv_mfma.h"

#else

enum { GEMV_MFMA = 0, GEMV_CLASSES = 1, GEMV_LANE_SUMS = 4 };
#if defined(__AMDGCN__) || defined(__NVPTX__)
#define GEMV_ENTRY(kernel, resident) KERNEL_RESIDENT(kernel, quant_gemv_args, GEMV_THREADS, resident)
#else
#define GEMV_ENTRY(kernel, resident) KERNEL_RESIDENT(kernel, quant_gemv_args, QUANT_GEMV_THREADS_MAX, resident)
#endif

/* The f16 before the codes of two rows, for formats with rotated codes. */
typedef struct gemv_factors {
    uint32_t upper, lower;
} gemv_factors;

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800

enum { GEMV_QUADS = 0 };

/* All sums start at `from`. */
DEVICE void gemv_mma_32(int32_t *sums, int32_t from, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                        uint32_t b1)
{
    __asm__(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(from));
}

DEVICE void gemv_mma_16(int32_t *sums, uint32_t a0, uint32_t a1, uint32_t b0)
{
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
            : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
            : "r"(a0), "r"(a1), "r"(b0), "r"(0));
}

/* Multiplies piece p of a block of each row with the same 32 codes of all columns. If each 16 codes have their own scale,
 * first[] is for the first 16 and second[] for the others. Otherwise first[] has all of them, and starts at `from`. */
DEVICE void gemv_multiply(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                          gemv_thread here, int32_t from, gemv_sums *first, gemv_sums *second, gemv_factors *factors)
{
    const int32_t at = (int32_t)(here.thread % 4);
    const two_words b = *(const two_words *)(codes + here.column * 8 + at * 2);
    const words_two a = gemv_words(type, upper, p, here, at), c = gemv_words(type, lower, p, here, at);
    if (words_sub_blocks_of_16(type)) {
        gemv_mma_16(first->sum, a.x, c.x, b.x);
        gemv_mma_16(second->sum, a.y, c.y, b.y);
    } else {
        gemv_mma_32(first->sum, from, a.x, c.x, a.y, c.y, b.x, b.y);
    }
    factors->upper = a.factor;
    factors->lower = c.factor;
}

/* Multiplies minima of 16 elements by the sums of their codes, whose low and high bytes are separate. */
DEVICE void gemv_multiply_mins(int32_t type, const words_scales *upper, const words_scales *lower, const uint32_t *sums,
                               gemv_thread here, gemv_sums *low, gemv_sums *high)
{
    const uint32_t at = here.thread % 4, a0 = words_mins(type, upper, at), a1 = words_mins(type, lower, at);
    const two_words b = *(const two_words *)(sums + here.thread / 4 * 8 + at * 2);
    gemv_mma_16(low->sum, a0, a1, b.x);
    gemv_mma_16(high->sum, a0, a1, b.y);
}

#else

#if defined(__AMDGCN__)

/* With a single column, the four threads of two rows would do the same work. Each does a quarter of it, and they add up. */
enum { GEMV_QUADS = 1 };

/* The sum over four neighbouring lanes, by DPP: it does not use the LDS. */
DEVICE int32_t quad_sum_i32(int32_t value)
{
    value += __builtin_amdgcn_mov_dpp(value, 0xb1, 0xf, 0xf, true);       /* lanes 1, 0, 3, 2 */
    return value + __builtin_amdgcn_mov_dpp(value, 0x4e, 0xf, 0xf, true); /* lanes 2, 3, 0, 1 */
}

DEVICE void gemv_multiply_quad(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                               gemv_thread here, int32_t from, gemv_sums *first, gemv_sums *second, gemv_factors *factors)
{
    const int32_t at = (int32_t)(here.thread % 4);
    const two_words b = *(const two_words *)(codes + at * 2);
    const words_two a = gemv_words(type, upper, p, here, at), c = gemv_words(type, lower, p, here, at);
    const int32_t a_second = dot4_i8(a.y, b.y, 0), c_second = dot4_i8(c.y, b.y, 0);
    if (words_sub_blocks_of_16(type)) {
        first->sum[0] = quad_sum_i32(dot4_i8(a.x, b.x, 0));
        first->sum[2] = quad_sum_i32(dot4_i8(c.x, b.x, 0));
        second->sum[0] = quad_sum_i32(a_second);
        second->sum[2] = quad_sum_i32(c_second);
    } else {
        first->sum[0] = quad_sum_i32(dot4_i8(a.x, b.x, a_second)) + from;
        first->sum[2] = quad_sum_i32(dot4_i8(c.x, b.x, c_second)) + from;
    }
    factors->upper = a.factor;
    factors->lower = c.factor;
}

DEVICE void gemv_multiply_mins_quad(int32_t type, const words_scales *upper, const words_scales *lower, const uint32_t *sums,
                                    gemv_thread here, gemv_sums *low, gemv_sums *high)
{
    const uint32_t at = here.thread % 4, a = words_mins(type, upper, at), c = words_mins(type, lower, at);
    const two_words b = *(const two_words *)(sums + gemv_pair_at(0, QUANT_GEMV_COLUMNS, at));
    low->sum[0] = quad_sum_i32(dot4_i8(a, b.x, 0));
    low->sum[2] = quad_sum_i32(dot4_i8(c, b.x, 0));
    high->sum[0] = quad_sum_i32(dot4_i8(a, b.y, 0));
    high->sum[2] = quad_sum_i32(dot4_i8(c, b.y, 0));
}

#else

enum { GEMV_QUADS = 0 };
#define gemv_multiply_quad(...)
#define gemv_multiply_mins_quad(...)

#endif

DEVICE void gemv_multiply(int32_t type, const uint8_t *upper, const uint8_t *lower, int32_t p, const uint32_t *codes,
                          gemv_thread here, int32_t from, gemv_sums *first, gemv_sums *second, gemv_factors *factors)
{
    if (GEMV_QUADS && here.single) {
        gemv_multiply_quad(type, upper, lower, p, codes, here, from, first, second, factors);
        return;
    }
    const uint32_t column = here.thread % 4 * 2 % here.width, next = column + (here.width > 1 ? 1 : 0);
    const bool sub_blocks_of_16 = words_sub_blocks_of_16(type);
    GEMV_FOR_RESULTS(i, here.single)
    {
        first->sum[i] = from;
        second->sum[i] = 0;
    }
    UNROLL
    for (int32_t at = 0; at < 4; at++) {
        const words_two a = gemv_words(type, upper, p, here, at), c = gemv_words(type, lower, p, here, at);
        GEMV_FOR_RESULTS(i, here.single)
        {
            const two_words b = *(const two_words *)(codes + gemv_pair_at(i % 2 ? next : column, here.width, (uint32_t)at));
            int32_t *rest = sub_blocks_of_16 ? &second->sum[i] : &first->sum[i];
            first->sum[i] = dot4_i8(i < 2 ? a.x : c.x, b.x, first->sum[i]);
            *rest = dot4_i8(i < 2 ? a.y : c.y, b.y, *rest);
        }
        factors->upper = a.factor;
        factors->lower = c.factor;
    }
}

DEVICE void gemv_multiply_mins(int32_t type, const words_scales *upper, const words_scales *lower, const uint32_t *sums,
                               gemv_thread here, gemv_sums *low, gemv_sums *high)
{
    if (GEMV_QUADS && here.single) {
        gemv_multiply_mins_quad(type, upper, lower, sums, here, low, high);
        return;
    }
    GEMV_FOR_RESULTS(i, here.single)
    {
        low->sum[i] = high->sum[i] = 0;
        UNROLL
        for (uint32_t at = 0; at < 4; at++) {
            const uint32_t column = here.thread % 4 * 2 + (uint32_t)i % 2;
            const two_words b = *(const two_words *)(sums + gemv_pair_at(column, QUANT_GEMV_COLUMNS, at));
            const uint32_t a = words_mins(type, i < 2 ? upper : lower, at);
            low->sum[i] = dot4_i8(a, b.x, low->sum[i]);
            high->sum[i] = dot4_i8(a, b.y, high->sum[i]);
        }
    }
}

#endif

/* How many pieces to unroll. Chips without a dot4 instruction use many instructions instead, and all pieces of a block would
 * not fit in registers. AMD's compilers load all pieces ahead and spill on RDNA 3 and 4; two at a time keep the loads busy. */
#if defined(SIMT_DOT4_IS_LONG)
#define GEMV_UNROLL UNROLL_BY(1)
#elif defined(__NVPTX__)
#define GEMV_UNROLL UNROLL
#else
#define GEMV_UNROLL UNROLL_BY(2)
#endif

/* J of a block of many pieces. */
DEVICE void gemv_sum_codes(int32_t type, const uint8_t *upper, const uint8_t *lower, const words_scales *upper_scales,
                           const words_scales *lower_scales, const uint32_t *codes, gemv_thread here, gemv_sums *j)
{
    const bool scaled = type != BLOCK_Q8_K, sub_blocks_of_16 = words_sub_blocks_of_16(type);
    GEMV_UNROLL
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        gemv_sums first, second;
        gemv_factors none;
        gemv_multiply(type, upper, lower, p, codes + (uint32_t)p * here.width * 8, here, 0, &first, &second, &none);
        const int32_t sub_block = sub_blocks_of_16 ? 2 * p : p;
        GEMV_FOR_RESULTS(i, here.single)
        {
            const words_scales *s = i < 2 ? upper_scales : lower_scales;
            j->sum[i] += scaled ? words_byte(s->scales, sub_block) * first.sum[i] : first.sum[i];
            if (sub_blocks_of_16)
                j->sum[i] += words_byte(s->scales, sub_block + 1) * second.sum[i];
        }
    }
    GEMV_FOR_RESULTS(i, here.single)
    j->sum[i] >>= words_shift(type);
}

/* M of a block. */
DEVICE void gemv_sum_mins(int32_t type, const words_scales *upper_scales, const words_scales *lower_scales,
                          const uint32_t *sums, gemv_thread here, gemv_sums *m)
{
    if (dot_pieces(type) == 1) {
        const two_words both = *(const two_words *)(sums + here.thread % 4 * 2);
        GEMV_FOR_RESULTS(i, here.single)
        m->sum[i] = (int16_t)(i % 2 ? both.y : both.x) + (int16_t)((i % 2 ? both.y : both.x) >> 16);
        return;
    }
    gemv_sums low, high;
    gemv_multiply_mins(type, upper_scales, lower_scales, sums, here, &low, &high);
    GEMV_FOR_RESULTS(i, here.single)
    m->sum[i] = low.sum[i] + 128 * high.sum[i];
}

DEVICE void gemv_block32(int32_t type, const uint8_t *upper, const uint8_t *lower, gemv_columns columns, gemv_thread here,
                         float *acc)
{
    const f32x2 da = load_f32x2(columns.factors + here.thread % 4 * 2);
    gemv_sums j, m = {{0, 0, 0, 0}}, none;
    gemv_factors heads;
    gemv_multiply(type, upper, lower, 0, columns.codes, here, GEMV_ONE_AND_A_HALF, &j, &none, &heads);
    dot_factors d_upper = {words_f16_from((uint16_t)heads.upper), 0.0f},
                d_lower = {words_f16_from((uint16_t)heads.lower), 0.0f};
    if (!QUANT_ROTATES || !words_rotated(type)) {
        d_upper = gemv_row_factors(type, upper);
        d_lower = gemv_row_factors(type, lower);
    }
    if (dot_has_min(type))
        gemv_sum_mins(type, NULL, NULL, columns.sums, here, &m);
    GEMV_FOR_RESULTS(i, here.single)
    {
        const dot_factors d = i < 2 ? d_upper : d_lower;
        const float factor = i % 2 ? da.y : da.x, of_j = canon_bits_float((uint32_t)j.sum[i]) - 12582912.0f;
        acc[i] = fma_f32(d.d * factor, of_j, acc[i]);
        if (dot_has_min(type))
            acc[i] = fma_f32(d.min * factor, (float)m.sum[i], acc[i]);
    }
}

DEVICE void gemv_kblock(int32_t type, const uint8_t *upper, const uint8_t *lower, gemv_columns columns, gemv_thread here,
                        float *acc)
{
    const f32x2 da = load_f32x2(columns.factors + here.thread % 4 * 2);
    gemv_sums j = {{0, 0, 0, 0}}, m = {{0, 0, 0, 0}};
    const words_scales upper_scales = words_scales_aligned(type, here.alignment, upper),
                       lower_scales = words_scales_aligned(type, here.alignment, lower);
    gemv_sum_codes(type, upper, lower, &upper_scales, &lower_scales, columns.codes, here, &j);
    if (dot_has_min(type))
        gemv_sum_mins(type, &upper_scales, &lower_scales, columns.sums, here, &m);
    const dot_factors d_upper = words_factors(type, upper), d_lower = words_factors(type, lower);
    GEMV_FOR_RESULTS(i, here.single)
    {
        const dot_factors d = i < 2 ? d_upper : d_lower;
        const float factor = i % 2 ? da.y : da.x;
        acc[i] = fma_f32(d.d * factor, (float)j.sum[i], acc[i]);
        if (dot_has_min(type))
            acc[i] = fma_f32(d.min * factor, (float)m.sum[i], acc[i]);
    }
}

/* A thread's work in a stage: the first block of its team in both of its rows, and the activations for it. */
typedef struct gemv_position {
    const uint8_t *upper, *lower;
    gemv_columns columns;
} gemv_position;

/* Multiplies the block `blocks` blocks after that. */
DEVICE void gemv_block(int32_t type, const gemv_position *at, uint32_t blocks, gemv_thread here, float *acc)
{
    const uint32_t bytes = (uint32_t)block_bytes(type), pieces = (uint32_t)dot_pieces(type);
    const gemv_columns columns = gemv_columns_behind(type, at->columns, blocks, here);
    if (pieces == 1)
        gemv_block32(type, at->upper + blocks * bytes, at->lower + blocks * bytes, columns, here, acc);
    else
        gemv_kblock(type, at->upper + blocks * bytes, at->lower + blocks * bytes, columns, here, acc);
}

/* The rounds of a stage; in the last stage only the blocks that exist. */
DEVICE void gemv_rounds(int32_t type, const quant_gemv_args *args, const uint8_t *stage, uint32_t blocks, gemv_rows rows,
                        gemv_thread here, float *acc)
{
    const uint32_t team = stage_thread() / QUANT_TEAM, bytes = (uint32_t)block_bytes(type);
    gemv_position at;
    if (STAGES_CAN_SPLIT && !stage_has_class(args, team))
        return;
    at.upper = AT_RANGE(stage, rows.upper + team * bytes, gemv_reach(type) * bytes);
    at.lower = AT_RANGE(stage, rows.lower + team * bytes, gemv_reach(type) * bytes);
    at.columns = gemv_columns_of(type, stage, team, here);
    if (here.unrolled && blocks >= stage_blocks(type)) {
        UNROLL
        for (uint32_t o = 0; o < stage_rounds(type); o++)
            gemv_block(type, &at, o * 8, here, acc);
        return;
    }
    const uint32_t end = here.unrolled || blocks < stage_blocks(type) ? blocks : stage_blocks(type);
    UNROLL_BY(1)
    for (uint32_t block = team; block < end; block += 8)
        gemv_block(type, &at, block - team, here, acc);
}

/* Writes the accumulators to shared memory, where they are added up. */
DEVICE void gemv_meet(float *meeting, bool single, const float *acc)
{
    const uint32_t team = stage_thread() / QUANT_TEAM, thread = thread_index() % QUANT_TEAM;
    if (GEMV_QUADS && single) { /* neighbouring lanes have the same values and would write them to one bank */
        if (thread % 4 == 0) {
            AT(meeting, team * QUANT_GEMV_RESULTS + thread / 4) = acc[0];
            AT(meeting, team * QUANT_GEMV_RESULTS + thread / 4 + 8) = acc[2];
        }
        return;
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        AT(meeting, (team * QUANT_GEMV_COLUMNS + thread % 4 * 2 + i % 2) * QUANT_GEMV_ROWS + thread / 4 + i / 2 * 8) = acc[i];
}

#endif

/* Whether the loop is compiled once per alignment of blocks, or once each for one column, eight, and any other number. AMD
 * chips combine two words in one instruction, so alignment matters little. Their load instructions have room for a constant
 * offset in shared memory, while scalar registers are few. A single column that is not quantized yet has its own kernel
 * (quant_gemv_one.c). */
#if defined(__AMDGCN__)
enum { GEMV_KNOWS_ALIGNMENT = 0, GEMV_KNOWS_WIDTH = 1, GEMV_PAIRS = 1 };
#else
enum { GEMV_KNOWS_ALIGNMENT = 1, GEMV_KNOWS_WIDTH = 0, GEMV_PAIRS = 0 };
#endif

/* Adds up the accumulators of result t: row t % 16 of column t / 16. */
DEVICE void gemv_put(int32_t type, const quant_gemv_args *args, uint32_t group, float *sum, uint32_t t)
{
    UNROLL
    for (uint32_t s = 4; s > 0; s /= 2) {
        UNROLL
        for (uint32_t c = 0; c < s; c++)
            sum[c] = sum[c] + sum[c + s];
    }
    const uint32_t padded_column = group * QUANT_GEMV_COLUMNS + t / QUANT_GEMV_ROWS;
    const uint32_t column = args->source ? args->source[padded_column] : padded_column;
    const uint64_t row = (uint64_t)stage_tile(args) * QUANT_GEMV_ROWS + t % QUANT_GEMV_ROWS;
    if (column < args->columns && row < args->rows) {
        const uint64_t at = column * args->rows + row;
        const float product = sum[0] * gemv_scale(type);
        args->y[at] = args->adds ? one_nan_f32(args->y[at] + product) : product;
    }
}

/* Writes the accumulators of this split to memory. The last split to finish adds up all. All threads call it. */
DEVICE void gemv_combine_splits(int32_t type, const quant_gemv_args *args, uint32_t group, const float *meeting,
                                uint32_t *ticket)
{
    const uint32_t t = thread_index(), tile = block_index_y() * (block_count() / args->splits) + stage_tile(args);
    float *all = args->partial + (uint64_t)tile * QUANT_CLASSES * QUANT_GEMV_RESULTS;
    const uint32_t count = QUANT_CLASSES / args->splits * QUANT_GEMV_RESULTS, first = stage_split(args) * count;
    for (uint32_t i = first + t; i < first + count; i += GEMV_THREADS)
        all[i] = AT(meeting, i);
    memory_fence_device();
    barrier();
    if (t == 0)
        AT(ticket, 0) = atomic_add_u32(&args->ready[tile], 1);
    barrier();
    memory_fence_device();
    if (AT(ticket, 0) == args->splits - 1 && t < QUANT_GEMV_RESULTS) {
        args->ready[tile] = 0; /* for the next launch */
        float sum[QUANT_CLASSES];
        UNROLL
        for (uint32_t c = 0; c < QUANT_CLASSES; c++)
            sum[c] = all[c * QUANT_GEMV_RESULTS + t];
        gemv_put(type, args, group, sum, t);
    }
}

/* Adds up the eight accumulators of each result. */
DEVICE void gemv_finish(int32_t type, const quant_gemv_args *args, uint32_t group, float *meeting, uint32_t *ticket,
                        const float *acc)
{
    gemv_meet(meeting, args->width == 1, acc);
    barrier();
    if (STAGES_CAN_SPLIT && args->splits > 1) {
        gemv_combine_splits(type, args, group, meeting, ticket);
    } else if (thread_index() < QUANT_GEMV_RESULTS) {
        float sum[QUANT_CLASSES];
        UNROLL
        for (uint32_t c = 0; c < QUANT_CLASSES; c++)
            sum[c] = AT(meeting, c * QUANT_GEMV_RESULTS + thread_index());
        gemv_put(type, args, group, sum, thread_index());
    }
}

/* For blocks of unknown alignment. WORDS_PAIRED for q6_k would need more registers than gfx1030 has. */
DEVICE int32_t gemv_alignment(int32_t type)
{
    return GEMV_PAIRS && type != BLOCK_Q6_K ? WORDS_PAIRED : WORDS_ANYWHERE;
}

/* ---- a kernel ------------------------------------------------------------------------------------------------------------ */

/* Multiplies all chunks. `alignment` and `width` (0: unknown) are constants here. */
DEVICE void gemv_chunks(int32_t type, const quant_gemv_args *args, const uint8_t *staged, gemv_rows rows, gemv_thread here,
                        int32_t alignment, uint32_t width, stage_ring *stages, float *acc)
{
    here.alignment = alignment;
    here.single = width == 1;
    here.column = width == 1 ? 0 : here.thread / 4 % args->width;
    here.width = width ? width : args->width;
    here.unrolled = !GEMV_KNOWS_WIDTH || width;
    if (GEMV_KNOWS_WIDTH)
        stages_know_width(stages, here.width);
    UNROLL_BY(1)
    while (stages->chunk < stages->chunks) {
        const uint32_t left = args->blocks - stages->chunk * stage_blocks(type), at = stages_take(type, stages);
        gemv_rounds(type, args, AT_RANGE(staged, at, stages->bytes), left, rows, here, acc);
        stages_give(type, stages);
    }
}

/* The fields that are known from the start; columns and alignment are set later. */
DEVICE gemv_thread gemv_thread_of(const quant_gemv_args *args)
{
    gemv_thread here;
    here.thread = thread_index() % QUANT_TEAM;
    here.even = thread_index() / QUANT_TEAM % 2 == 0;
    here.flip = args->flip;
    return here;
}

DEVICE void gemv_clear(float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < GEMV_CLASSES * GEMV_LANE_SUMS; i++)
        acc[i] = 0.0f;
}

DEVICE void gemv_run(int32_t type, const quant_gemv_args *args, uint32_t *shared, const uint8_t *staged, uint64_t *arrivals,
                     uint32_t *ticket)
{
    const uint32_t group = args->first_group + block_index_y();
    const uint32_t chunks = (args->blocks + stage_blocks(type) - 1) / stage_blocks(type);
    float acc[GEMV_CLASSES * GEMV_LANE_SUMS];
    stage_ring stages;
    const gemv_thread here = gemv_thread_of(args);
    if (args->source) { /* an earlier kernel writes it; unused groups have no columns */
        launches_wait();
        if (args->source[(uint64_t)group * QUANT_GEMV_COLUMNS] == UINT32_MAX)
            return;
    }
    gemv_clear(acc);
    stages_begin(type, args, group, chunks, shared, arrivals, &stages);
    stages_rows(type, &stages); /* rows never change, so loads can start before the previous kernel has ended */
    launches_wait();
    launches_next();
    stages_columns(type, &stages);
    const gemv_rows rows = {stage_row(type, args, group, GEMV_MFMA ? lane() % 16 : here.thread / 4),
                            GEMV_MFMA ? 0 : stage_row(type, args, group, here.thread / 4 + 8)};
    if (GEMV_KNOWS_WIDTH && args->width == 1)
        gemv_chunks(type, args, staged, rows, here, gemv_alignment(type), 1, &stages, acc);
    else if (GEMV_KNOWS_WIDTH && args->width == QUANT_GEMV_COLUMNS)
        gemv_chunks(type, args, staged, rows, here, gemv_alignment(type), QUANT_GEMV_COLUMNS, &stages, acc);
    else if (!GEMV_KNOWS_ALIGNMENT || !(words_rotated(type) || type == BLOCK_Q6_K) || !args->aligned)
        gemv_chunks(type, args, staged, rows, here, gemv_alignment(type), 0, &stages, acc);
    else if (here.even)
        gemv_chunks(type, args, staged, rows, here, WORDS_EVEN, 0, &stages, acc);
    else
        gemv_chunks(type, args, staged, rows, here, WORDS_ODD, 0, &stages, acc);
    barrier();
    gemv_finish(type, (const quant_gemv_args *)arguments_again(args), group, (float *)(void *)shared, ticket, acc);
}

#endif
