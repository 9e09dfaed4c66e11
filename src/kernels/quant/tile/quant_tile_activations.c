/* Quantizes activations for tiles, or lays out blocks of q8_1 or q8_k. quant.h describes the layout, blocks/encode.h the exact
 * codes. Memory-bound.
 *
 * A team of 32 threads has 1024 elements of a column. Eight lanes share 256 elements, in eight pieces of 32, and have four
 * elements of each piece. They reduce all eight pieces at once, piece i into lane i, so that one lane, not eight, divides by a
 * scale. The teams of a thread block have adjacent columns: the scales of their blocks are collected in shared memory and
 * written without gaps.
 */
#include "kernels/quant/quant.h"
#include "kernels/quant/quant_words.h"

#include "arithmetic/blocks/encode.h"

enum { COLUMN_PIECES = 8, COLUMN_BESIDE = QUANT_COLUMNS + 1 /* no two lanes in the same bank */ };

/* A thread's place. */
typedef struct column_position {
    uint32_t column, unit; /* unit: which 1024 elements of the column */
    uint32_t group, in_group;
    bool exists;
} column_position;

DEVICE column_position column_position_of(const quant_tile_activations_args *args)
{
    const uint32_t column = block_index_y() * QUANT_COLUMNS + thread_index() / QUANT_TEAM;
    const column_position at = {column, block_index(), thread_index() % QUANT_TEAM / 8, thread_index() % 8,
                                column < args->columns};
    return at;
}

/* The lane's first element of a column, and whether its element of piece `i` exists. */
DEVICE uint64_t column_first(const column_position *at)
{
    return (uint64_t)at->unit * 1024 + at->group * 256 + at->in_group * 4;
}

DEVICE bool column_has(const quant_tile_activations_args *args, const column_position *at, uint32_t i)
{
    return at->exists && column_first(at) + i * 32 < args->elements;
}

DEVICE int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

DEVICE int32_t other_lane(int32_t value, uint32_t mask)
{
    return (int32_t)wave_shuffle_xor_u32((uint32_t)value, mask);
}

DEVICE int32_t column_join(bool sum, int32_t a, int32_t b)
{
    return sum ? a + b : larger(a, b);
}

/* Sums or maxima of `count` values over this lane and lane() ^ mask. This lane keeps the first half of them, or the second if
 * its index has the bit `mask`. */
DEVICE void column_halve(bool sum, int32_t *values, uint32_t count, uint32_t mask)
{
    const bool second = (thread_index() & mask) != 0;
    UNROLL
    for (uint32_t i = 0; i < count / 2; i++) {
        const int32_t a = values[i], b = values[count / 2 + i];
        values[i] = column_join(sum, second ? b : a, other_lane(second ? a : b, mask));
    }
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------------- */

/* Writes this lane's word of its piece `i`, a block of 32. */
DEVICE void column_put_block32_word(const quant_tile_activations_args *args, const column_position *at, uint32_t i,
                                    uint32_t word)
{
    const uint32_t position = quant_position(i, args->blocks_padded) + at->unit * 4 + at->group;
    if (at->exists && QUANT_LAYOUT_OF(args->layout) != QUANT_LAYOUT_TILES)
        args->codes[quant_wgmma_block32_word(at->column, position, args->blocks_padded, at->in_group)] = word;
    else if (at->exists)
        args->codes[((uint64_t)at->column * args->blocks_padded + position) * 8 + at->in_group] = word;
}

/* Writes the factor and sum of block `local` of the unit. */
DEVICE void column_put_block32(const quant_tile_activations_args *args, const column_position *at, float factor, int32_t sum,
                               float *factors, float *sums)
{
    const uint32_t team = thread_index() / QUANT_TEAM, local = thread_index() % QUANT_TEAM;
    AT(factors, local * COLUMN_BESIDE + team) = factor;
    AT(sums, local * COLUMN_BESIDE + team) = (float)sum;
    barrier();
    const uint32_t column = block_index_y() * QUANT_COLUMNS + thread_index() % QUANT_COLUMNS;
    const uint32_t in_unit = thread_index() / QUANT_COLUMNS,
                   position = quant_position(at->unit * 32 + in_unit, args->blocks_padded);
    if (column >= args->columns)
        return;
    const float here = AT(factors, in_unit * COLUMN_BESIDE + thread_index() % QUANT_COLUMNS);
    const float of_codes = AT(sums, in_unit * COLUMN_BESIDE + thread_index() % QUANT_COLUMNS);
    if (QUANT_LAYOUT_OF(args->layout) == QUANT_LAYOUT_WGMMA) {
        ((uint16_t *)args->factors)[quant_wgmma_block32_factor(column, position, args->blocks_padded)] =
            (uint16_t)block_f16_from_f32(here);
        ((float *)args->sums)[quant_tiled_index(column, position, args->blocks_padded, QUANT_TILE)] = of_codes * here;
    } else {
        args->factors[quant_scale_index(position, column, args->columns_padded)] = here;
        ((float *)args->sums)[quant_scale_index(position, column, args->columns_padded)] = of_codes;
    }
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

/* The sums of 16 codes each, sum = low + 128 * high in two bytes: |sum| <= 16 * 127, so that `high` is within +-16 and `low`
 * within -64..63. `sums` are those of this lane's words, one of each piece. */
DEVICE void column_put_sums(int32_t *sums, uint32_t in_group, int8_t *record)
{
    column_halve(true, sums, 8, 2);
    column_halve(true, sums, 4, 1);
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t piece = (in_group & 2) * 2 + (in_group & 1) * 2 + i, sub_block = piece * 2 + in_group / 4;
        const int32_t high = (sums[i] + 64) >> 7;
        record[sub_block] = (int8_t)(sums[i] - high * 128);
        record[16 + sub_block] = (int8_t)high;
    }
}

/* Writes the records of four blocks of all columns here, 16 bytes per thread. */
DEVICE void column_put_records(const quant_tile_activations_args *args, uint32_t unit, const u32x4 *records)
{
    const uint32_t number = thread_index() / 3, part = thread_index() % 3;
    const uint32_t column = block_index_y() * QUANT_COLUMNS + number % QUANT_COLUMNS;
    if (number >= 4 * QUANT_COLUMNS || column >= args->columns)
        return;
    const uint32_t position = quant_position(unit * 4 + number / QUANT_COLUMNS, args->blocks_padded);
    ((u32x4 *)args->sums)[quant_record_part(args->layout, column, position, args->blocks_padded, part)] =
        AT(records, thread_index());
}

/* Writes this lane's word of piece `i` of the block at `position`. */
DEVICE void column_put_kblock_word(const quant_tile_activations_args *args, const column_position *at, uint32_t position,
                                   uint32_t i, uint32_t word)
{
    if (!at->exists)
        return;
    if (QUANT_LAYOUT_OF(args->layout) != QUANT_LAYOUT_TILES)
        args->codes[quant_wgmma_kblock_word(at->column, position, args->blocks_padded, 1, i * 8 + at->in_group)] = word;
    else
        args->codes[(((uint64_t)at->column * args->blocks_padded + position) * 8 + i) * 8 + at->in_group] = word;
}

/* ---- floats to codes ----------------------------------------------------------------------------------------------------- */

/* A lane's part of 256 elements. */
typedef struct column_part {
    float x[COLUMN_PIECES][4];
} column_part;

DEVICE void column_take_floats(const quant_tile_activations_args *args, const column_position *at, column_part *part)
{
    const float *from = (const float *)args->from + at->column * args->from_stride + column_first(at);
    const bool aligned = (((uintptr_t)args->from | args->from_stride * 4) & 15) == 0;
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        f32x4 four = {0.0f, 0.0f, 0.0f, 0.0f};
        if (column_has(args, at, i)) {
            if (aligned) {
                four = load_f32x4_readonly(from + i * 32);
            } else {
                four.x = from[i * 32];
                four.y = from[i * 32 + 1];
                four.z = from[i * 32 + 2];
                four.w = from[i * 32 + 3];
            }
        }
        part->x[i][0] = four.x;
        part->x[i][1] = four.y;
        part->x[i][2] = four.z;
        part->x[i][3] = four.w;
    }
}

DEVICE float column_half(int32_t type, uint16_t bits)
{
    return type == BLOCK_BF16 ? block_f32_from_bf16(bits) : words_f16_from(bits);
}

DEVICE void column_take_halves(const quant_tile_activations_args *args, const column_position *at, column_part *part)
{
    const uint16_t *from = (const uint16_t *)args->from + at->column * args->from_stride + column_first(at);
    const bool aligned = (((uintptr_t)args->from | args->from_stride * 2) & 7) == 0;
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        uint64_t four = 0;
        if (column_has(args, at, i)) {
            if (aligned)
                four = *(const uint64_t *)(const void *)(from + i * 32);
            else
                four = from[i * 32] | (uint64_t)from[i * 32 + 1] << 16 | (uint64_t)from[i * 32 + 2] << 32 |
                       (uint64_t)from[i * 32 + 3] << 48;
        }
        UNROLL
        for (uint32_t c = 0; c < 4; c++)
            part->x[i][c] = column_half(args->from_type, (uint16_t)(four >> 16 * c));
    }
}

/* Loads the lane's elements; zeros past the last. */
DEVICE void column_take(const quant_tile_activations_args *args, const column_position *at, column_part *part)
{
    if (args->from_type == BLOCK_F32)
        column_take_floats(args, at, part);
    else
        column_take_halves(args, at, part);
}

DEVICE int32_t column_largest_of(const float *four)
{
    return larger(larger(magnitude_bits(four[0]), magnitude_bits(four[1])),
                  larger(magnitude_bits(four[2]), magnitude_bits(four[3])));
}

DEVICE uint32_t pack_codes(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return (a & 255) | (b & 255) << 8 | (c & 255) << 16 | d << 24;
}

/* ---- blocks of 32: as encode_q8_1 ---------------------------------------------------------------------------------------- */

/* Same as block_round_away(), for numbers within +-127.5. It adds slightly less than a half: sums of exact halves still round
 * up to the next integer, and those of the floats just below them do not. For NaN and infinity the byte is arbitrary. */
DEVICE uint32_t column_round_away(float x)
{
    const float nearly = canon_bits_float((canon_float_bits(x) & 0x80000000u) | 0x3effffffu);
    const float low = x > -127.0f ? x : -127.0f, within = low < 127.0f ? low : 127.0f;
    return (uint32_t)(int32_t)(within + nearly);
}

DEVICE void column_refuse(const quant_tile_activations_args *args, uint32_t column, uint32_t block)
{
    if (args->refused)
        atomic_min_u64(args->refused, args->first_block + (uint64_t)column * args->blocks + block);
}

DEVICE void column_code_block32(const quant_tile_activations_args *args, float *factors, float *sums)
{
    const column_position at = column_position_of(args);
    column_part part;
    column_take(args, &at, &part);
    int32_t found[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++)
        found[i] = column_largest_of(part.x[i]);
    column_halve(false, found, 8, 4);
    column_halve(false, found, 4, 2);
    column_halve(false, found, 2, 1);
    const int32_t largest = found[0]; /* of piece number `in_group` */
    const float d = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(d);
    const uint32_t half = block_f16_from_f32(d);
    const bool bad = largest >= BLOCK_INFINITE || block_f16_bad(half);
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        const float scale = wave_shuffle_f32(inverse, (lane() & ~7u) | i);
        const uint32_t word = pack_codes(column_round_away(part.x[i][0] * scale), column_round_away(part.x[i][1] * scale),
                                         column_round_away(part.x[i][2] * scale), column_round_away(part.x[i][3] * scale));
        found[i] = dot4_i8(word, 0x01010101u, 0);
        column_put_block32_word(args, &at, i, word);
    }
    column_halve(true, found, 8, 4);
    column_halve(true, found, 4, 2);
    column_halve(true, found, 2, 1);
    const uint32_t block = at.unit * 32 + at.group * 8 + at.in_group;
    if (at.exists && bad)
        column_refuse(args, at.column, block);
    column_put_block32(args, &at, bad ? __builtin_nanf("") : block_f32_from_f16(half), found[0], factors, sums);
}

DEVICE int32_t column_largest(const column_part *part)
{
    int32_t largest = 0;
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++)
        largest = larger(largest, column_largest_of(part->x[i]));
    UNROLL
    for (uint32_t mask = 4; mask > 0; mask /= 2)
        largest = larger(largest, other_lane(largest, mask));
    return largest;
}

/* Same as encode_q8_k, except that codes and factor do not take their sign from the first element of the largest magnitude.
 * Roundings are symmetric, so the product of code and factor is the same. */
DEVICE void column_code_kblock(const quant_tile_activations_args *args, u32x4 *records)
{
    const column_position at = column_position_of(args);
    column_part part;
    column_take(args, &at, &part);
    const int32_t largest = column_largest(&part);
    const float inverse = largest > 0x03800000 ? 127.0f / canon_bits_float((uint32_t)largest) : 0.0f;
    const uint32_t block = at.unit * 4 + at.group, position = quant_position(block, args->blocks_padded);
    int32_t sums[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        uint32_t codes[4];
        UNROLL
        for (uint32_t c = 0; c < 4; c++)
            codes[c] = canon_float_bits(part.x[i][c] * inverse + 0x1.8p23f); /* the lowest byte is that of the integer */
        const uint32_t word = pack_codes(codes[0], codes[1], codes[2], codes[3]);
        sums[i] = dot4_i8(word, 0x01010101u, 0);
        column_put_kblock_word(args, &at, position, i, word);
    }
    const uint32_t number = at.group * QUANT_COLUMNS + thread_index() / QUANT_TEAM;
    u32x4 *record = AT_RANGE(records, number * (QUANT_RECORD / 4), QUANT_RECORD / 4);
    column_put_sums(sums, at.in_group, (int8_t *)record);
    const bool bad = largest >= BLOCK_INFINITE;
    if (at.in_group < 4)
        ((float *)record)[8 + at.in_group] = at.in_group > 0 ? 0.0f : bad ? __builtin_nanf("") : block_inverse(inverse);
    if (at.in_group == 0 && at.exists && bad)
        column_refuse(args, at.column, block);
    barrier();
    column_put_records(args, at.unit, records);
}
/* ---- columns that are already quantized ---------------------------------------------------------------------------------- */

/* Block `block` of this thread's column, of `bytes` bytes. A flag instead of a null address marks a block that does not exist:
 * clang 19 loads from null on NVIDIA chips in spite of the test. */
typedef struct coded_block {
    const uint8_t *bytes;
    bool present;
} coded_block;

DEVICE coded_block coded_block_of(const quant_tile_activations_args *args, const column_position *at, uint32_t block,
                                  uint32_t bytes)
{
    const bool present = at->exists && block < args->blocks;
    const uint64_t offset = present ? at->column * args->from_stride + (uint64_t)block * bytes : 0;
    return (coded_block){(const uint8_t *)args->from + offset, present};
}

DEVICE uint32_t coded_word(coded_block block, uint32_t word)
{
    return block.present ? ((const uint32_t *)(const void *)block.bytes)[1 + word] : 0;
}

DEVICE void column_lay_block32(const quant_tile_activations_args *args, float *factors, float *sums)
{
    const column_position at = column_position_of(args);
    const uint32_t first = at.unit * 32 + at.group * 8;
    int32_t found[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        const uint32_t word = coded_word(coded_block_of(args, &at, first + i, sizeof(block_q8_1)), at.in_group);
        found[i] = dot4_i8(word, 0x01010101u, 0);
        column_put_block32_word(args, &at, i, word);
    }
    column_halve(true, found, 8, 4);
    column_halve(true, found, 4, 2);
    column_halve(true, found, 2, 1);
    const coded_block own = coded_block_of(args, &at, first + at.in_group, sizeof(block_q8_1));
    column_put_block32(args, &at, own.present ? words_f16(own.bytes) : 0.0f, found[0], factors, sums);
}

DEVICE void column_lay_kblock(const quant_tile_activations_args *args, u32x4 *records)
{
    const column_position at = column_position_of(args);
    const uint32_t number = at.unit * 4 + at.group, position = quant_position(number, args->blocks_padded);
    const coded_block block = coded_block_of(args, &at, number, sizeof(block_q8_k));
    int32_t sums[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        const uint32_t word = coded_word(block, i * 8 + at.in_group);
        sums[i] = dot4_i8(word, 0x01010101u, 0);
        column_put_kblock_word(args, &at, position, i, word);
    }
    const uint32_t place = at.group * QUANT_COLUMNS + thread_index() / QUANT_TEAM;
    u32x4 *record = AT_RANGE(records, place * (QUANT_RECORD / 4), QUANT_RECORD / 4);
    column_put_sums(sums, at.in_group, (int8_t *)record);
    if (at.in_group < 4)
        ((float *)record)[8 + at.in_group] =
            at.in_group > 0 || !block.present ? 0.0f : *(const float *)(const void *)block.bytes;
    barrier();
    column_put_records(args, at.unit, records);
}

/* ---- all ----------------------------------------------------------------------------------------------------------------- */

KERNEL(quant_tile_activations_block32, quant_tile_activations_args, QUANT_THREADS)
{
    SHARED(float, factors, 32 * COLUMN_BESIDE);
    SHARED(float, sums, 32 * COLUMN_BESIDE);
    launches_wait();
    launches_next();
    if (args.from_type == BLOCK_Q8_1)
        column_lay_block32(&args, factors, sums);
    else
        column_code_block32(&args, factors, sums);
}

KERNEL(quant_tile_activations_kblock, quant_tile_activations_args, QUANT_THREADS)
{
    SHARED(u32x4, records, 4 * QUANT_COLUMNS * QUANT_RECORD / 4);
    launches_wait();
    launches_next();
    if (args.from_type == BLOCK_Q8_K)
        column_lay_kblock(&args, records);
    else
        column_code_kblock(&args, records);
}
