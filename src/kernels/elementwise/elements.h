/* Elements for kernels: their addresses, and how they are loaded as bits and converted to the kind that is computed in.
 *
 * There are two ways. One by one: neighbouring threads have neighbouring elements, each located by dividing its number by the
 * dimensions; any layout, any count. By quads of four, if all operands are dense and the block's tile is complete: a thread
 * loads all its quads before it uses the first, and unpacks each by type when its slot comes. All threads take the same branch
 * of the switches over types and operations, which cost nothing compared with memory.
 */
#ifndef WW_KERNELS_ELEMENTWISE_ELEMENTS_H
#define WW_KERNELS_ELEMENTWISE_ELEMENTS_H

#include "kernels/simt/simt.h"

#include "arithmetic/convert.h"
#include "kernels/elementwise/elementwise.h"

enum { QUAD = ELEMENTWISE_QUAD, SLOTS = ELEMENTWISE_SLOTS };

#define EACH UNROLL for (int32_t j = 0; j < QUAD; j++)

/* ---- one by one ---------------------------------------------------------------------------------------------------------- */

DEVICE uint32_t divide_fast(uint32_t n, fast_divisor by)
{
    return ((uint32_t)((uint64_t)n * by.multiplier >> 32) + n) >> by.shift;
}

/* The index of element i in an operand. */
DEVICE int64_t place_of(const elementwise_args *args, const elementwise_operand *operand, int64_t i)
{
    int64_t at = 0;
    if (operand->layout <= LAYOUT_SCALAR)
        return operand->layout == LAYOUT_DENSE ? i : 0;
    if (args->indices_64) {
        uint64_t rest = (uint64_t)i;
        UNROLL_BY(1) for (int32_t d = args->rank - 1; d > 0; d--)
        {
            const uint64_t quotient = rest / (uint64_t)args->shape[d];
            at += (int64_t)(rest - quotient * (uint64_t)args->shape[d]) * operand->strides[d];
            rest = quotient;
        }
        return at + (int64_t)rest * operand->strides[0];
    }
    uint32_t rest = (uint32_t)i;
    UNROLL_BY(1) for (int32_t d = args->rank - 1; d > 0; d--)
    {
        const uint32_t quotient = divide_fast(rest, args->divisors[d]);
        at += (int64_t)(rest - quotient * args->divisors[d].by) * operand->strides[d];
        rest = quotient;
    }
    return at + (int64_t)rest * operand->strides[0];
}

typedef uint64_t __attribute__((may_alias)) bits_64;
typedef uint32_t __attribute__((may_alias)) bits_32;
typedef uint16_t __attribute__((may_alias)) bits_16;

DEVICE int32_t type_bytes(int32_t type)
{
    switch (type) {
    case TYPE_U8:
    case TYPE_I8:
    case TYPE_F8E4M3:
        return 1;
    case TYPE_I16:
    case TYPE_BF16:
    case TYPE_F16:
        return 2;
    case TYPE_I64:
    case TYPE_F64:
        return 8;
    default:
        return 4;
    }
}

DEVICE uint64_t bits_at(const void *data, int64_t at, int32_t bytes)
{
    switch (bytes) {
    case 1:
        return ((const uint8_t *)data)[at];
    case 2:
        return ((const bits_16 *)data)[at];
    case 4:
        return ((const bits_32 *)data)[at];
    default:
        return ((const bits_64 *)data)[at];
    }
}

DEVICE void bits_put(void *data, int64_t at, int32_t bytes, uint64_t bits)
{
    switch (bytes) {
    case 1:
        ((uint8_t *)data)[at] = (uint8_t)bits;
        break;
    case 2:
        ((bits_16 *)data)[at] = (uint16_t)bits;
        break;
    case 4:
        ((bits_32 *)data)[at] = (uint32_t)bits;
        break;
    default:
        ((bits_64 *)data)[at] = bits;
        break;
    }
}

/* 16 bytes of elements. */
DEVICE void unit_copy(void *to, int64_t to_at, const void *from, int64_t from_at)
{
    const u32x4 unit = load_u32x4((const uint32_t *)from + from_at * 4);
    store_f32x4((float *)to + to_at * 4, make_f32x4(canon_bits_float(unit.x), canon_bits_float(unit.y),
                                                    canon_bits_float(unit.z), canon_bits_float(unit.w)));
}

/* Element i of an operand as bits. */
DEVICE uint64_t element_bits(const elementwise_args *args, const elementwise_operand *operand, int64_t i)
{
    return bits_at(operand->data, place_of(args, operand, i), type_bytes(operand->type));
}

DEVICE void element_put(const elementwise_args *args, const elementwise_operand *operand, int64_t i, uint64_t bits)
{
    bits_put(operand->data, place_of(args, operand, i), type_bytes(operand->type), bits);
}

/* ---- bits to kinds and back ---------------------------------------------------------------------------------------------- */

DEVICE float bits_to_f32(uint64_t bits, int32_t type)
{
    switch (type) {
    case TYPE_BF16:
        return widen_bf16((uint16_t)bits);
    case TYPE_F16:
        return widen_f16((uint16_t)bits);
    case TYPE_F8E4M3:
        return widen_f8e4m3((uint8_t)bits);
    default:
        return canon_bits_float((uint32_t)bits);
    }
}

DEVICE double bits_to_f64(uint64_t bits, int32_t type)
{
    double value;
    (void)type;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

DEVICE int64_t bits_to_i64(uint64_t bits, int32_t type)
{
    switch (type) {
    case TYPE_I8:
        return (int8_t)bits;
    case TYPE_I16:
        return (int16_t)bits;
    case TYPE_I32:
        return (int32_t)bits;
    default:
        return (int64_t)bits; /* the upper bits of unsigned types are zero */
    }
}

/* Conversions between types of the same kind, which arithmetic needs. */
DEVICE uint64_t f32_to_bits(float x, int32_t type)
{
    switch (type) {
    case TYPE_BF16:
        return narrow_bf16(x);
    case TYPE_F16:
        return narrow_f16(x);
    case TYPE_F8E4M3:
        return narrow_f8e4m3(x);
    default:
        return canon_float_bits(one_nan_f32(x));
    }
}

DEVICE uint64_t f64_to_bits(double x, int32_t type)
{
    uint64_t bits;
    const double value = one_nan_f64(x);
    (void)type;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

DEVICE uint64_t i64_to_bits(int64_t x, int32_t type)
{
    (void)type; /* the low bits are stored */
    return (uint64_t)x;
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

enum { SLOT_ELEMENTS = ELEMENTWISE_THREADS * QUAD };

DEVICE int64_t tile_begin(void)
{
    return (int64_t)block_index() * ELEMENTWISE_TILE;
}

DEVICE int64_t tile_end(const elementwise_args *args)
{
    const int64_t end = tile_begin() + ELEMENTWISE_TILE;
    return end < args->count ? end : args->count;
}

/* Whether this block may use quads. */
DEVICE bool tile_in_quads(const elementwise_args *args)
{
    return args->quads == QUADS_DENSE && tile_begin() + ELEMENTWISE_TILE <= args->count;
}

/* A quad of elements of 1, 2 or 4 bytes is the first 4, 8 or 16 bytes of this. */
typedef struct quad_bits {
    uint32_t word[4];
} quad_bits;

typedef struct quad_f32 {
    float v[QUAD];
} quad_f32;

DEVICE quad_bits quad_load(const void *data, int64_t first, int32_t bytes)
{
    quad_bits quad = {{0, 0, 0, 0}};
    const char *from = (const char *)data + first * bytes;
    if (bytes == 4) {
        const u32x4 words = load_u32x4((const uint32_t *)from);
        quad.word[0] = words.x;
        quad.word[1] = words.y;
        quad.word[2] = words.z;
        quad.word[3] = words.w;
    } else if (bytes == 2) {
        const uint64_t pair = *(const bits_64 *)from;
        quad.word[0] = (uint32_t)pair;
        quad.word[1] = (uint32_t)(pair >> 32);
    } else {
        quad.word[0] = *(const bits_32 *)from;
    }
    return quad;
}

DEVICE void quad_store(void *data, int64_t first, int32_t bytes, quad_bits quad)
{
    char *to = (char *)data + first * bytes;
    if (bytes == 4)
        store_f32x4((float *)to, make_f32x4(canon_bits_float(quad.word[0]), canon_bits_float(quad.word[1]),
                                            canon_bits_float(quad.word[2]), canon_bits_float(quad.word[3])));
    else if (bytes == 2)
        *(bits_64 *)to = (uint64_t)quad.word[1] << 32 | quad.word[0];
    else
        *(bits_32 *)to = quad.word[0];
}

/* All the quads of this thread. */
typedef struct quad_slots {
    quad_bits slot[SLOTS];
} quad_slots;

DEVICE quad_slots quads_load(const elementwise_operand *operand, int32_t bytes)
{
    quad_slots all;
    UNROLL for (int32_t t = 0; t < SLOTS; t++) all.slot[t] =
        quad_load(operand->data, tile_begin() + thread_index() * QUAD + t * SLOT_ELEMENTS, bytes);
    return all;
}

/* Moves the next slot's quad to the front, so that a loop over slots needs no index into registers. */
DEVICE void quads_next(quad_slots *all)
{
    UNROLL for (int32_t t = 1; t < SLOTS; t++) all->slot[t - 1] = all->slot[t];
}

DEVICE int32_t bytes_f32(int32_t type)
{
    return type == TYPE_F32 ? 4 : type == TYPE_F8E4M3 ? 1 : 2;
}

DEVICE quad_f32 quad_to_f32(quad_bits bits, int32_t type)
{
    quad_f32 quad;
    if (type == TYPE_F32)
        EACH quad.v[j] = canon_bits_float(bits.word[j]);
    else if (type == TYPE_F16)
        EACH quad.v[j] = widen_f16((uint16_t)(bits.word[j / 2] >> (16 * (j % 2))));
    else if (type == TYPE_BF16)
        EACH quad.v[j] = widen_bf16((uint16_t)(bits.word[j / 2] >> (16 * (j % 2))));
    else
        EACH quad.v[j] = widen_f8e4m3((uint8_t)(bits.word[0] >> (8 * j)));
    return quad;
}

/* Narrows two numbers to 16 bits in a word, the first in the lower half. */
DEVICE uint32_t narrow_pair_f16(float low, float high)
{
#ifdef SIMT_NARROW_PAIR_F16
    return SIMT_NARROW_PAIR_F16(low, high);
#else
    return (uint32_t)narrow_f16(low) | (uint32_t)narrow_f16(high) << 16;
#endif
}

DEVICE uint32_t narrow_pair_bf16(float low, float high)
{
#ifdef SIMT_NARROW_PAIR_BF16
    return SIMT_NARROW_PAIR_BF16(low, high);
#else
    return (uint32_t)narrow_bf16(low) | (uint32_t)narrow_bf16(high) << 16;
#endif
}

DEVICE uint32_t narrow_pair(float low, float high, int32_t type)
{
    return type == TYPE_F16 ? narrow_pair_f16(low, high) : narrow_pair_bf16(low, high);
}

/* Narrows one number, if the bits of a NaN do not matter. */
DEVICE uint32_t narrow_number(float x, int32_t type)
{
    const uint32_t bits = canon_float_bits(x);
#ifdef SIMT_NARROW_NUMBER_F16
    const uint32_t half = SIMT_NARROW_NUMBER_F16(x);
#else
    const uint32_t half = narrow_f16(x);
#endif
    return type == TYPE_F16 ? half : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

/* The same for two numbers. */
DEVICE uint32_t narrow_numbers(float low, float high, int32_t type)
{
#ifdef SIMT_PAIRS_OF_16
    return type == TYPE_F16 ? simt_narrow_numbers_f16(low, high) : simt_narrow_numbers_bf16(low, high);
#else
    return narrow_pair(low, high, type);
#endif
}

/* Sets all bits of each half in which the numbers of two words differ or one is NaN. */
DEVICE uint32_t pairs_differ(uint32_t a, uint32_t b, int32_t type)
{
#ifdef SIMT_PAIRS_OF_16
    return type == TYPE_F16 ? simt_pairs_differ_f16(a, b) : simt_pairs_differ_bf16(a, b);
#else
    uint32_t differ = 0;
    UNROLL for (int32_t shift = 0; shift < 32; shift += 16)
    {
        const uint16_t a_half = (uint16_t)(a >> shift);
        const uint16_t b_half = (uint16_t)(b >> shift);
        const bool same = type == TYPE_F16 ? widen_f16(a_half) == widen_f16(b_half) : widen_bf16(a_half) == widen_bf16(b_half);
        differ |= same ? 0u : 0xffffu << shift;
    }
    return differ;
#endif
}

DEVICE quad_bits quad_of_8(const uint8_t *v)
{
    const quad_bits bits = {{(uint32_t)v[0] | (uint32_t)v[1] << 8 | (uint32_t)v[2] << 16 | (uint32_t)v[3] << 24, 0, 0, 0}};
    return bits;
}

DEVICE quad_bits f32_to_quad(quad_f32 quad, int32_t type)
{
    quad_bits bits = {{0, 0, 0, 0}};
    uint8_t v8[QUAD];
    if (type == TYPE_F32) {
        EACH bits.word[j] = canon_float_bits(one_nan_f32(quad.v[j]));
        return bits;
    }
    if (type == TYPE_F16 || type == TYPE_BF16) {
        bits.word[0] = narrow_pair(quad.v[0], quad.v[1], type);
        bits.word[1] = narrow_pair(quad.v[2], quad.v[3], type);
        return bits;
    }
    EACH v8[j] = narrow_f8e4m3(quad.v[j]);
    return quad_of_8(v8);
}

/* ---- tiles of units: 16 bytes of every operand at a time ----------------------------------------------------------------- */
/* A unit is one, two or four quads, depending on the size of its elements. */

DEVICE int64_t unit_tile_begin(const elementwise_args *args)
{
    return args->first + (int64_t)block_index() * ELEMENTWISE_TILE * args->unit_quads;
}

DEVICE int64_t unit_tile_end(const elementwise_args *args)
{
    const int64_t end = unit_tile_begin(args) + (int64_t)ELEMENTWISE_TILE * args->unit_quads;
    return end < args->count ? end : args->count;
}

DEVICE bool tile_in_units(const elementwise_args *args)
{
    return args->quads == QUADS_DENSE && unit_tile_begin(args) + (int64_t)ELEMENTWISE_TILE * args->unit_quads <= args->count;
}

/* Loads the unit of this operand that starts at element i of the job. */
DEVICE quad_bits unit_load(const elementwise_args *args, const elementwise_operand *operand, int64_t i, int32_t bytes)
{
    const int64_t at = place_of(args, operand, i);
    if (operand->layout == LAYOUT_SCALAR || operand->layout == LAYOUT_REPEATED) {
        const uint32_t times = bytes == 4 ? 1u : bytes == 2 ? 0x10001u : 0x1010101u;
        const uint32_t all = (uint32_t)bits_at(operand->data, at, bytes) * times;
        const quad_bits unit = {{all, all, all, all}};
        return unit;
    }
    return quad_load((const char *)operand->data + at * bytes, 0, 4);
}

DEVICE quad_slots units_load(const elementwise_args *args, const elementwise_operand *operand, int32_t bytes)
{
    const int32_t each = QUAD * args->unit_quads;
    quad_slots all;
    UNROLL for (int32_t t = 0; t < SLOTS; t++) all.slot[t] =
        unit_load(args, operand, unit_tile_begin(args) + ((int32_t)thread_index() + t * ELEMENTWISE_THREADS) * each, bytes);
    return all;
}

/* Drops the first quad of a unit and moves the next one forward. */
DEVICE void unit_forward(quad_bits *unit, int32_t bytes)
{
    unit->word[0] = bytes == 2 ? unit->word[2] : unit->word[1];
    unit->word[1] = bytes == 2 ? unit->word[3] : unit->word[2];
    unit->word[2] = unit->word[3];
}

/* Appends a quad to a unit. After the last one, the unit is complete. */
DEVICE void unit_append(quad_bits *unit, quad_bits quad, int32_t bytes)
{
    if (bytes == 4) {
        *unit = quad;
        return;
    }
    unit->word[0] = bytes == 2 ? unit->word[2] : unit->word[1];
    unit->word[1] = bytes == 2 ? unit->word[3] : unit->word[2];
    unit->word[2] = bytes == 2 ? quad.word[0] : unit->word[3];
    unit->word[3] = bytes == 2 ? quad.word[1] : quad.word[0];
}

/* On chips with instructions for two numbers, keeps two of them in adjacent registers. */
#ifndef SETTLE_TWO
#define SETTLE_TWO(first, second) ((void)0)
#endif

/* ---- units in registers -------------------------------------------------------------------------------------------------- */

enum { UNIT_MAX = 8 };

typedef struct unit_f32 {
    float v[UNIT_MAX];
} unit_f32;

/* Elements of a unit: `type` is a constant. */
DEVICE int32_t unit_elements(int32_t type)
{
    return type == TYPE_F32 ? 4 : 8;
}

DEVICE unit_f32 unit_to_f32(quad_bits bits, int32_t type)
{
    unit_f32 unit;
    UNROLL for (int32_t j = 0; j < unit_elements(type); j++)
    {
        const uint16_t half = (uint16_t)(bits.word[j / 2] >> (16 * (j % 2)));
        unit.v[j] = type == TYPE_F32   ? canon_bits_float(bits.word[j % 4])
                    : type == TYPE_F16 ? widen_f16(half)
                                       : widen_bf16(half);
    }
    return unit;
}

DEVICE quad_bits f32_to_unit(unit_f32 unit, int32_t type)
{
    quad_bits bits;
    UNROLL for (int32_t w = 0; w < 4; w++) bits.word[w] =
        type == TYPE_F32 ? canon_float_bits(one_nan_f32(unit.v[w])) : narrow_pair(unit.v[2 * w], unit.v[2 * w + 1], type);
    return bits;
}

#define EACH_OF_UNIT UNROLL for (int32_t j = 0; j < unit_elements(type); j++)

/* `statement` sees TYPE as the constant `type`. */
#define WITH_TYPE(TYPE, statement)                                                                                             \
    {                                                                                                                          \
        const int32_t type = TYPE;                                                                                             \
        statement                                                                                                              \
    }

#endif
