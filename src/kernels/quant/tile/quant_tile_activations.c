/* Activations to codes, for products by tiles (quant.h says where they go; blocks/encode.h what they are, to the bit). Bound by
 * memory. What a piece of 32 has in common is found for eight pieces at once (quant_tile_columns.h), so that a scale is divided
 * by once, not by each of its lanes.
 */
#include "kernels/quant/tile/quant_tile_columns.h"

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

/* Zeros behind the last element. */
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

/* As block_round_away(), but of numbers within +-127.5: what is added is less than a half by so little that sums of halves are
 * rounded up to the next integer, and those of the floats before them are not. What is not finite makes any byte. */
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

KERNEL(quant_tile_activations_block32, quant_tile_activations_args, QUANT_THREADS)
{
    SHARED(float, factors, 32 * COLUMN_BESIDE);
    SHARED(float, sums, 32 * COLUMN_BESIDE);
    launches_wait();
    launches_next();
    const column_position at = column_position_of(&args);
    column_part part;
    column_take(&args, &at, &part);
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
        column_put_block32_word(&args, &at, i, word);
    }
    column_halve(true, found, 8, 4);
    column_halve(true, found, 4, 2);
    column_halve(true, found, 2, 1);
    const uint32_t block = at.unit * 32 + at.group * 8 + at.in_group;
    if (at.exists && bad)
        column_refuse(&args, at.column, block);
    column_put_block32(&args, &at, bad ? __builtin_nanf("") : block_f32_from_f16(half), found[0], factors, sums);
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

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

/* As encode_q8_k, but for the sign that codes and factor have there from the first of the largest elements: roundings are
 * symmetric, so whoever multiplies both finds the same. */
KERNEL(quant_tile_activations_kblock, quant_tile_activations_args, QUANT_THREADS)
{
    SHARED(u32x4, records, 4 * QUANT_COLUMNS * QUANT_RECORD / 4);
    launches_wait();
    launches_next();
    const column_position at = column_position_of(&args);
    column_part part;
    column_take(&args, &at, &part);
    const int32_t largest = column_largest(&part);
    const float inverse = largest > 0x03800000 ? 127.0f / canon_bits_float((uint32_t)largest) : 0.0f;
    const uint32_t block = at.unit * 4 + at.group, position = quant_position(block, args.blocks_padded);
    int32_t sums[COLUMN_PIECES];
    UNROLL
    for (uint32_t i = 0; i < COLUMN_PIECES; i++) {
        uint32_t codes[4];
        UNROLL
        for (uint32_t c = 0; c < 4; c++)
            codes[c] = canon_float_bits(part.x[i][c] * inverse + 0x1.8p23f); /* whose lowest byte is the integer's */
        const uint32_t word = pack_codes(codes[0], codes[1], codes[2], codes[3]);
        sums[i] = dot4_i8(word, 0x01010101u, 0);
        if (!at.exists)
            continue;
        if (QUANT_LAYOUT_OF(args.layout) != QUANT_LAYOUT_TILES)
            args.codes[quant_wgmma_kblock_word(at.column, position, args.blocks_padded, 1, i * 8 + at.in_group)] = word;
        else
            args.codes[(((uint64_t)at.column * args.blocks_padded + position) * 8 + i) * 8 + at.in_group] = word;
    }
    const uint32_t number = at.group * QUANT_COLUMNS + thread_index() / QUANT_TEAM;
    u32x4 *record = AT_RANGE(records, number * (QUANT_RECORD / 4), QUANT_RECORD / 4);
    column_put_sums(sums, at.in_group, (int8_t *)record);
    const bool bad = largest >= BLOCK_INFINITE;
    if (at.in_group < 4)
        ((float *)record)[8 + at.in_group] = at.in_group > 0 ? 0.0f : bad ? __builtin_nanf("") : block_inverse(inverse);
    if (at.in_group == 0 && at.exists && bad)
        column_refuse(&args, at.column, block);
    barrier();
    column_put_records(&args, at.unit, records);
}
