/* Quantizes activations for a gemv, in a separate kernel or inside the fused gemv. quant.h describes the layout,
 * blocks/encode.h the exact codes.
 *
 * A thread has four adjacent elements, which become one word. Eight threads share a block of 32; a team of 32 threads, with two
 * words each, shares a block of 256. Threads find a block's maximum and sums by shuffles.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_ACTIVATIONS_H
#define WW_KERNELS_QUANT_QUANT_GEMV_ACTIVATIONS_H

#include "kernels/quant/quant_gemv_layout.h"
#include "kernels/simt/simt.h"

#include "arithmetic/blocks/encode.h"
#include "arithmetic/blocks/input.h"
#include "arithmetic/convert.h"

typedef struct four_elements {
    float x[4];
} four_elements;

DEVICE four_elements load_four(const float *from)
{
    four_elements four;
    if (((uintptr_t)from & 15) == 0) {
        const f32x4 all = load_f32x4(from);
        four.x[0] = all.x;
        four.x[1] = all.y;
        four.x[2] = all.z;
        four.x[3] = all.w;
        return four;
    }
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        four.x[i] = from[i];
    return four;
}

DEVICE four_elements normed_four(four_elements four, float scale, four_elements weight)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        four.x[i] = input_normed(four.x[i], scale, weight.x[i]);
    return four;
}

DEVICE four_elements gated_four(four_elements four, four_elements up)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        four.x[i] = input_gated(four.x[i], up.x[i]);
    return four;
}

/* Elements 4 * word to 4 * word + 3 of a column, ready to quantize; zeros past the last. */
DEVICE four_elements take_four(const quant_gemv_activations_args *args, uint32_t source, uint32_t word, uint32_t words)
{
    const quant_input *input = &args->input;
    four_elements four = {{0.0f, 0.0f, 0.0f, 0.0f}};
    if (word >= words)
        return four;
    const uint64_t at = source * args->from_stride + (uint64_t)word * 4;
    four = load_four(args->from + at);
    if (input->kind == INPUT_PLAIN)
        return four;
    if (input->kind == INPUT_NORM)
        return normed_four(four, input->scale, load_four(input->weight + (uint64_t)word * 4));
    return gated_four(four, load_four(input->up + at));
}

/* ---- norms --------------------------------------------------------------------------------------------------------------- */

/* The sum of squares of a chunk of at most 4096 elements, in the order of arithmetic/reduce.h, for all QUANT_THREADS threads. A
 * thread has one accumulator and loads QUANT_NORM_EACH of its elements at once. `lanes` has QUANT_NORM_LANES floats. */
DEVICE float chunk_squares(const float *x, uint32_t n, float *lanes)
{
    const uint32_t own = thread_index();
    if (own < QUANT_NORM_LANES) {
        float squares = 0.0f;
        UNROLL_BY(1)
        for (uint32_t first = 0; first < n; first += QUANT_NORM_EACH * QUANT_NORM_LANES) {
            float v[QUANT_NORM_EACH];
            UNROLL
            for (uint32_t j = 0; j < QUANT_NORM_EACH; j++) {
                const uint32_t i = first + j * QUANT_NORM_LANES + own;
                v[j] = i < n ? x[i] : 0.0f;
            }
            UNROLL
            for (uint32_t j = 0; j < QUANT_NORM_EACH; j++)
                squares = fma_f32(v[j], v[j], squares); /* zeros past the last change no sum */
        }
        AT(lanes, own) = squares;
    }
    barrier();
    float sum = AT(lanes, thread_index() % 32) + AT(lanes, thread_index() % 32 + 32);
    UNROLL
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        sum = sum + wave_shuffle_xor_f32(sum, mask);
    barrier();
    return sum;
}

/* The factor of a norm for a column of n elements, at most QUANT_NORM_MAX. All threads call it and get the factor. */
DEVICE float norm_scale(const float *x, uint32_t n, float eps, float *lanes)
{
    enum { CHUNK = QUANT_NORM_CHUNK };
    if (n <= CHUNK)
        return input_scale(chunk_squares(x, n, lanes), (float)n, eps);
    float even = 0.0f, odd = 0.0f; /* four chunks are folded 2, 1 */
    UNROLL_BY(1)
    for (uint32_t c = 0; c < 2; c++) {
        const uint32_t first = c * CHUNK, second = first + 2 * CHUNK;
        float sum = chunk_squares(x + first, n - first < CHUNK ? n - first : CHUNK, lanes);
        if (second < n)
            sum = sum + chunk_squares(x + second, n - second < CHUNK ? n - second : CHUNK, lanes);
        even = c == 0 ? sum : even;
        odd = c == 0 ? odd : sum;
    }
    return input_scale(even + odd, (float)n, eps);
}

/* ---- codes --------------------------------------------------------------------------------------------------------------- */

/* Packs four codes, each in the lowest byte of its word. */
DEVICE uint32_t pack_codes(const int32_t *codes)
{
#if defined(SIMT_SELECT_BYTES) /* 12 is 0 */
    return SIMT_SELECT_BYTES((uint32_t)codes[1], (uint32_t)codes[0], 0x0c0c0400u) |
           SIMT_SELECT_BYTES((uint32_t)codes[3], (uint32_t)codes[2], 0x04000c0cu);
#else
    return (uint32_t)(codes[0] & 255) | (uint32_t)(codes[1] & 255) << 8 | (uint32_t)(codes[2] & 255) << 16 |
           (uint32_t)(codes[3] & 255) << 24;
#endif
}

/* Stores codes 2 * `two` and 2 * `two` + 1 of a block at their places after rotating runs of 2 * `around` + 2 codes by two. */
DEVICE void put_rotated(uint16_t *block, uint32_t width, uint32_t two, uint32_t around, uint32_t codes)
{
    const uint32_t to = (two & ~around) | ((two - 1) & around), word = to / 2;
    block[quant_code_word(width, word) * 2 + to % 2] = (uint16_t)codes;
}

/* Stores word `word` of piece `piece`, 32 codes, of a column. */
DEVICE void put_codes(const quant_gemv_activations_args *args, uint32_t column, uint32_t pieces, uint32_t piece, uint32_t word,
                      uint32_t codes)
{
    uint32_t *block = args->codes + quant_code_begin((uint64_t)(column / QUANT_GEMV_COLUMNS) * pieces + piece, args->width,
                                                     column % QUANT_GEMV_COLUMNS);
    if (QUANT_ROTATES && args->rotation != QUANT_ROTATE_NONE && piece % 2 == 0) {
        put_rotated((uint16_t *)block, args->width, word * 2, args->rotation / 2 - 1, codes);
        put_rotated((uint16_t *)block, args->width, word * 2 + 1, args->rotation / 2 - 1, codes >> 16);
    } else {
        block[quant_code_word(args->width, word)] = codes;
    }
}

/* Stores the sum of half a piece. The first thread of each half calls it. */
DEVICE void put_sum(const quant_gemv_activations_args *args, uint32_t column, uint32_t pieces, uint32_t piece, uint32_t half,
                    int32_t sum)
{
    const uint64_t at =
        ((uint64_t)(column / QUANT_GEMV_COLUMNS) * pieces + piece) * QUANT_GEMV_COLUMNS + column % QUANT_GEMV_COLUMNS;
    ((int16_t *)args->sums)[at * 2 + half] = (int16_t)sum;
}

/* The same for K blocks: sum = low + 128 * high in two bytes. |sum| <= 16 * 127, so that `high` is within +-16 and `low`
 * within -64..63. */
DEVICE void put_sum_bytes(const quant_gemv_activations_args *args, uint32_t column, uint32_t block, uint32_t sub_block,
                          int32_t sum)
{
    const uint64_t at = quant_code_begin((uint64_t)(column / QUANT_GEMV_COLUMNS) * args->blocks_padded + block,
                                         QUANT_GEMV_COLUMNS, column % QUANT_GEMV_COLUMNS);
    int8_t *bytes = (int8_t *)(args->sums + at);
    const uint32_t word = quant_code_word(QUANT_GEMV_COLUMNS, sub_block / 4) * 4;
    const int32_t high = (sum + 64) >> 7;
    bytes[word + sub_block % 4] = (int8_t)(sum - high * 128);
    bytes[word + 4 + sub_block % 4] = (int8_t)high;
}

DEVICE void put_factor(const quant_gemv_activations_args *args, uint32_t column, uint32_t source, uint32_t block, float factor,
                       bool bad)
{
    const uint64_t at = ((uint64_t)(column / QUANT_GEMV_COLUMNS) * args->blocks_padded + block) * QUANT_GEMV_COLUMNS +
                        column % QUANT_GEMV_COLUMNS;
    args->factors[at] = bad ? __builtin_nanf("") : factor;
    if (bad && args->refused)
        atomic_min_u64(args->refused, args->first_block + (uint64_t)source * args->blocks + block);
}

DEVICE int32_t largest_of_four(const four_elements *four)
{
    int32_t largest = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const int32_t magnitude = magnitude_bits(four->x[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

DEVICE int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

DEVICE int32_t other_lane(int32_t value, uint32_t mask)
{
    return (int32_t)wave_shuffle_xor_u32((uint32_t)value, mask);
}

/* The sum of sixteen codes: those in this thread's word and in the words of three neighbours. */
DEVICE int32_t sum_codes(uint32_t codes)
{
    int32_t sum = dot4_i8(codes, 0x01010101u, 0);
    sum += other_lane(sum, 1);
    return sum + other_lane(sum, 2);
}

/* What a thread quantizes and where the result goes: column `source` of x to padded column `column`. Each column has `pieces`
 * pieces of 32 codes; `block` is the block of the thread's first word. `sums`, a constant: also store sums of codes. */
typedef struct code_place {
    uint32_t column, source, pieces, block;
    bool sums;
} code_place;

/* ---- blocks of 32 -------------------------------------------------------------------------------------------------------- */

/* The largest magnitude of a block of 32; eight threads have four elements each. */
DEVICE int32_t largest_of_block32(const four_elements *four)
{
    int32_t largest = largest_of_four(four);
    largest = larger(largest, other_lane(largest, 1));
    largest = larger(largest, other_lane(largest, 2));
    return larger(largest, other_lane(largest, 7)); /* each four lanes already have the same */
}

/* Bits of 65520 * 127, the smallest magnitude for which the factor of a block overflows f16. */
#define BLOCK32_TOO_LARGE 0x4afdf020

/* For chips that multiply two floats in one instruction. */
typedef float two_floats __attribute__((vector_size(8)));

DEVICE uint32_t code_four(const four_elements *four, float inverse)
{
    int32_t codes[4];
    UNROLL
    for (uint32_t i = 0; i < 4; i += 2) {
        const two_floats two = {four->x[i], four->x[i + 1]}, both = {inverse, inverse}, scaled = two * both;
        codes[i] = block_round_away_quick(scaled[0]);
        codes[i + 1] = block_round_away_quick(scaled[1]);
    }
    return pack_codes(codes);
}

/* Same as encode_q8_1, except that blocks whose factor is 0 as f16 get zero codes, so codes need no clamp. Eight threads share
 * a block, and each has one word of each of `words` blocks, 1 or 2, which are `further` apart. With two blocks a thread divides
 * for one of them: the first four threads for the first block. */
DEVICE void code_block32(const quant_gemv_activations_args *args, code_place to, uint32_t words, uint32_t further,
                         uint32_t thread, const four_elements *four)
{
    const bool second = words > 1 && (thread & 4) != 0;
    const int32_t of_first = largest_of_block32(&four[0]), of_last = words > 1 ? largest_of_block32(&four[1]) : of_first;
    const int32_t largest = second ? of_last : of_first;
    const float d = block_by_127(canon_bits_float((uint32_t)largest)), inverse = d >= 0x1p-126f ? 1.0f / d : 0.0f;
    const float other = words > 1 ? wave_shuffle_xor_f32(inverse, 7) : inverse;
    UNROLL
    for (uint32_t h = 0; h < words; h++) {
        const uint32_t codes = code_four(&four[h], second == (h == 1) ? inverse : other);
        put_codes(args, to.column, to.pieces, to.block + h * further, thread % 8, codes);
        if (to.sums) {
            const int32_t sum = sum_codes(codes);
            if (thread % 4 == 0)
                put_sum(args, to.column, to.pieces, to.block + h * further, thread / 4 % 2, sum);
        }
    }
    if (thread % (words == 1 ? 8 : 4) == 0)
        put_factor(args, to.column, to.source, to.block + (second ? further : 0), widen_f16(narrow_f16(d)),
                   largest >= BLOCK32_TOO_LARGE);
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

/* Twice the index of the first of four elements with the largest magnitude, plus 1 if it is negative. */
DEVICE uint32_t extreme_of_four(const four_elements *four, uint32_t first, int32_t largest)
{
    uint32_t found = UINT32_MAX;
    UNROLL
    for (uint32_t i = 4; i-- > 0;)
        found = magnitude_bits(four->x[i]) == largest ? (first + i) * 2 + (canon_float_bits(four->x[i]) >> 31) : found;
    return found;
}

/* The same for a K block, whose elements are in 32 threads, eight each. */
DEVICE uint32_t extreme_of_kblock(const four_elements *four, uint32_t thread, int32_t largest)
{
    uint32_t extreme = extreme_of_four(&four[1], 128 + thread * 4, largest);
    const uint32_t before = extreme_of_four(&four[0], thread * 4, largest);
    extreme = before < extreme ? before : extreme;
    UNROLL
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        const uint32_t other = wave_shuffle_xor_u32(extreme, mask);
        extreme = other < extreme ? other : extreme;
    }
    return extreme;
}

/* Whether the first element with the largest magnitude is negative. The order matters only if there are such elements of both
 * signs. */
DEVICE bool extreme_is_negative(const four_elements *four, uint32_t thread, int32_t positive, int32_t negative)
{
    if (wave_ballot(positive == negative) == 0)
        return negative > positive;
    const uint32_t extreme = extreme_of_kblock(four, thread, negative);
    return positive == negative ? (extreme & 1) != 0 : negative > positive;
}

/* Same as encode_q8_k. Compared as signed integers, the largest bits of floats belong to the largest number that is not
 * negative; compared as unsigned integers, to the negative number of the largest magnitude. */
DEVICE void code_kblock(const quant_gemv_activations_args *args, code_place to, uint32_t own, const four_elements *four)
{
    int32_t highest = (int32_t)canon_float_bits(four[0].x[0]);
    uint32_t lowest = canon_float_bits(four[0].x[0]);
    UNROLL
    for (uint32_t i = 1; i < 8; i++) {
        const uint32_t bits = canon_float_bits(four[i / 4].x[i % 4]);
        highest = larger(highest, (int32_t)bits);
        lowest = bits > lowest ? bits : lowest;
    }
    UNROLL
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        const uint32_t next = wave_shuffle_xor_u32(lowest, mask);
        highest = larger(highest, other_lane(highest, mask));
        lowest = next > lowest ? next : lowest;
    }
    SETTLE(highest); /* keeps max3 from reading another lane, which only real cards execute */
    const int32_t positive = larger(highest, 0), negative = (int32_t)lowest < 0 ? (int32_t)(lowest & 0x7fffffffu) : 0;
    const int32_t largest = larger(positive, negative);
    const float magnitude = canon_bits_float((uint32_t)largest);
    const bool minus = extreme_is_negative(four, own, positive, negative);
    const float inverse = largest > 0x03800000 ? -127.0f / (minus ? -magnitude : magnitude) : 0.0f;
    UNROLL
    for (uint32_t h = 0; h < 2; h++) {
        int32_t codes[4];
        UNROLL
        for (uint32_t i = 0; i < 4; i++) /* the lowest byte is the code */
            codes[i] = (int32_t)canon_float_bits(four[h].x[i] * inverse + 0x1.8p23f);
        const uint32_t packed = pack_codes(codes);
        put_codes(args, to.column, to.pieces, to.block * 8 + h * 4 + own / 8, own % 8, packed);
        if (to.sums) {
            const int32_t sum = sum_codes(packed);
            if (own % 4 == 0)
                put_sum_bytes(args, to.column, to.block, h * 8 + own / 4, sum);
        }
    }
    if (own == 0)
        put_factor(args, to.column, to.source, to.block, block_inverse(inverse), largest >= BLOCK_INFINITE);
}

/* Units of a column that teams handle. */
DEVICE uint32_t code_units(int32_t type, uint32_t blocks_padded)
{
    return type == BLOCK_Q8_1 ? (blocks_padded + 3) / 4 : blocks_padded;
}

/* A team quantizes unit `unit` of a column: four blocks of 32, or a K block. */
DEVICE void code_unit(const quant_gemv_activations_args *args, code_place to, uint32_t unit, uint32_t thread)
{
    four_elements four[2];
    if (args->type == BLOCK_Q8_1) {
        four[0] = take_four(args, to.source, unit * 32 + thread, args->blocks * 8);
        to.pieces = args->blocks_padded;
        to.block = unit * 4 + thread / 8;
        code_block32(args, to, 1, 0, thread, four);
    } else {
        four[0] = take_four(args, to.source, unit * 64 + thread, args->blocks * 64);
        four[1] = take_four(args, to.source, unit * 64 + 32 + thread, args->blocks * 64);
        to.pieces = args->blocks_padded * 8;
        to.block = unit;
        code_kblock(args, to, thread, four);
    }
}

/* QUANT_THREADS threads quantize a whole column of n elements. `lanes` is QUANT_NORM_LANES floats of shared memory. */
DEVICE void code_column(const quant_gemv_activations_args *args, uint32_t n, uint32_t column, bool sums, float *lanes)
{
    const code_place to = {column, column, 0, 0, sums};
    const uint32_t units = code_units(args->type, args->blocks_padded), own = thread_index() / QUANT_TEAM;
    quant_gemv_activations_args coding = *args;
    if (args->input.kind == INPUT_NORM)
        coding.input.scale = norm_scale(args->from + column * args->from_stride, n, args->input.eps, lanes);
    UNROLL_BY(1)
    for (uint32_t from = 0; from < units; from += QUANT_THREADS / QUANT_TEAM) {
        /* A team past the last unit repeats that one, so that the threads of a wave do not diverge. */
        const uint32_t unit = from + own < units ? from + own : units - 1;
        code_unit(&coding, to, unit, thread_index() % QUANT_TEAM);
    }
}

/* The arguments of these functions for the one column of quant_gemv_one_TYPE, with weights of `type`. */
DEVICE quant_gemv_activations_args one_coding(int32_t type, const quant_gemv_args *args, uint32_t *codes, uint32_t *sums,
                                              float *factors)
{
    const quant_gemv_activations_args coding = {.from = args->x,
                                                .from_stride = 0,
                                                .source = NULL,
                                                .codes = codes,
                                                .factors = factors,
                                                .sums = sums,
                                                .refused = args->refused,
                                                .first_block = args->first_block,
                                                .columns = 1,
                                                .columns_padded = 1,
                                                .width = 1,
                                                .blocks = args->blocks,
                                                .blocks_padded = args->blocks_padded,
                                                .type = dot_activations(type),
                                                .rotation = stage_rotation(type),
                                                .independent = 0,
                                                .coded = 0,
                                                .unused = 0,
                                                .input = args->input};
    return coding;
}

#endif
