/* pow and atan2 of dense f32, f16 and bf16, by whole tiles: one loop per operation and type, with nothing but the function
 * itself between the loads and the stores. tensor_binary.c handles the rest of the tiles and everything else; 16-bit types have
 * a shorter way on chips with their own functions, tensor_pow_atan2_half.c. CDNA computes two numbers at a time where it can:
 * that, and no table for most 16-bit powers, keeps them near the memory's speed. */
#include "kernels/elementwise/binary_tiles.h"

#include "arithmetic/math/half_bounds_f32.h"

/* The quad of a unit that starts at element 4 * number. */
DEVICE quad_bits quad_of_unit(quad_bits unit, int32_t number)
{
    const quad_bits second = {{unit.word[2], unit.word[3], 0, 0}};
    return number == 0 ? unit : second;
}

DEVICE void quad_to_unit(quad_bits *unit, int32_t number, quad_bits quad, int32_t type)
{
    if (type == TYPE_F32) {
        *unit = quad;
    } else {
        unit->word[2 * number] = quad.word[0];
        unit->word[2 * number + 1] = quad.word[1];
    }
}

/* The bits of the smallest and the largest magnitude: a NaN is larger than all numbers. */
typedef struct size_range {
    uint32_t min, max;
} size_range;

DEVICE void size_take(size_range *of, float x)
{
    const uint32_t size = canon_float_bits(x) & 0x7fffffffu;
    of->min = size < of->min ? size : of->min;
    of->max = size > of->max ? size : of->max;
}

/* Whether all pairs of two quads are plain. Pairs of 16-bit types are checked together; for pow, those of two units. */
DEVICE bool pow_plain(const quad_f32 *x, const quad_f32 *y, int32_t type)
{
    bool plain = true;
    (void)type;
    EACH plain = plain & MATH_POW_PLAIN_F32(x->v[j], y->v[j]);
    return plain;
}

DEVICE bool pow_unit_plain(const unit_f32 *x, const unit_f32 *y, int32_t type)
{
    size_range of_x = {0x7fffffffu, 0}, of_y = of_x;
    EACH_OF_UNIT
    {
        size_take(&of_x, x->v[j]);
        size_take(&of_y, y->v[j]);
    }
    return of_x.min >= 0x00800000u && of_x.max < 0x7f800000u && of_y.max < canon_float_bits(0x1p22f);
}

DEVICE bool atan2_plain(const quad_f32 *y, const quad_f32 *x, int32_t type)
{
    size_range of = {0x7fffffffu, 0};
    bool plain = true;
    if (type == TYPE_F32) {
        EACH plain = plain & MATH_ATAN2_PLAIN_F32(y->v[j], x->v[j]);
        return plain;
    }
    EACH
    {
        const uint32_t y_size = canon_float_bits(y->v[j]) & 0x7fffffffu;
        const uint32_t x_size = canon_float_bits(x->v[j]) & 0x7fffffffu;
        size_take(&of, canon_bits_float(y_size > x_size ? y_size : x_size));
    }
    return of.min >= canon_float_bits(0x1p-62f) && of.max <= canon_float_bits(0x1p124f);
}

/* A bit for each half of four words that is not 0. */
DEVICE uint32_t halves_set(const uint32_t words[4])
{
    uint32_t set = 0;
    UNROLL for (int32_t w = 0; w < 4; w++) set |=
        ((words[w] & 0xffffu) != 0 ? 1u << 2 * w : 0u) | (words[w] >> 16 != 0 ? 2u << 2 * w : 0u);
    return set;
}

/* Computes a unit of results. If all elements of a quad are plain, the function skips its handling of special values. */
#define COSTLY_SLOT(is_plain, function)                                                                                        \
    UNROLL for (int32_t c = 0; c < unit_elements(type) / QUAD; c++)                                                            \
    {                                                                                                                          \
        quad_f32 x = quad_to_f32(quad_of_unit(x_unit, c), type);                                                               \
        const quad_f32 y = quad_to_f32(quad_of_unit(y_unit, c), type);                                                         \
        if (is_plain(&x, &y, type))                                                                                            \
            EACH x.v[j] = function(x.v[j], y.v[j], type == TYPE_F32 ? MATH_PLAIN : MATH_PLAIN_16);                             \
        else                                                                                                                   \
            EACH x.v[j] = function(x.v[j], y.v[j], 0);                                                                         \
        quad_to_unit(&result, c, f32_to_quad(x, type), type);                                                                  \
    }

/* Powers of a unit of a 16-bit type, all plain, by bounds (half_bounds_f32.h). A bit is set for each element whose bounds round
 * to different numbers: one of 1400 of f16, of 9000 of bf16. */
DEVICE uint32_t pow_by_bounds(const unit_f32 *x, const unit_f32 *y, int32_t type, quad_bits *result)
{
    const uint32_t nan = type == TYPE_F16 ? 0x7e00u : 0x7fc0u;
    uint32_t open[4];
    UNROLL for (int32_t w = 0; w < 4; w++)
    {
        math_ends_f32 a = math_pow_ends_f32(x->v[2 * w], y->v[2 * w], type == TYPE_F16);
        math_ends_f32 b = math_pow_ends_f32(x->v[2 * w + 1], y->v[2 * w + 1], type == TYPE_F16);
        SETTLE_TWO(a.low, b.low);
        SETTLE_TWO(a.high, b.high);
        const uint32_t a_low = a.none ? nan : narrow_number(a.low, type);
        const uint32_t b_low = b.none ? nan : narrow_number(b.low, type);
        const uint32_t a_high = a.none ? nan : narrow_number(a.high, type);
        const uint32_t b_high = b.none ? nan : narrow_number(b.high, type);
        result->word[w] = a_high | b_high << 16;
        open[w] = result->word[w] ^ (a_low | b_low << 16);
    }
    return (open[0] | open[1] | open[2] | open[3]) != 0 ? halves_set(open) : 0;
}

DEVICE float pow_by_table_at(const f32x4 *table, float x, float y, int plain)
{
    return math_pow_of_f32(x, y, pow_entry(table + math_pow_interval_f32(math_pow_bits_of_f32(x, plain))), plain);
}

/* Computes the elements that the bounds leave open, one by one. */
DEVICE void pow_of_open(const f32x4 *table, uint32_t open, quad_bits x_unit, quad_bits y_unit, int32_t type, quad_bits *result)
{
    UNROLL_BY(1) for (; open != 0; open &= open - 1)
    {
        const uint32_t j = (uint32_t)__builtin_ctz(open);
        const float x = element_of_unit(x_unit, j, type), y = element_of_unit(y_unit, j, type);
        element_to_unit(result, j, pow_by_table_at(table, x, y, MATH_PLAIN), type);
    }
}

/* A unit with numbers that are not plain. */
DEVICE void pow_of_any(const f32x4 *table, const unit_f32 *x, const unit_f32 *y, int32_t type, quad_bits *result)
{
    UNROLL for (int32_t c = 0; c < 2; c++)
    {
        quad_f32 quad;
        EACH quad.v[j] = pow_by_table_at(table, x->v[QUAD * c + j], y->v[QUAD * c + j], 0);
        quad_to_unit(result, c, f32_to_quad(quad, type), type);
    }
}

/* A unit of powers of a 16-bit type. */
#define POW_SLOT_OF_16                                                                                                         \
    const unit_f32 x = unit_to_f32(x_unit, type), y = unit_to_f32(y_unit, type);                                               \
    const f32x4 *table = AT_RANGE(pow_table, 0, MATH_POW_COLUMN);                                                              \
    if (pow_unit_plain(&x, &y, type))                                                                                          \
        pow_of_open(table, pow_by_bounds(&x, &y, type, &result), x_unit, y_unit, type, &result);                               \
    else                                                                                                                       \
        pow_of_any(table, &x, &y, type, &result);

/* Not for NVIDIA's chips, which have no registers for bounds with four thread blocks; from sm_80 on they use the other kernel.
 */
#if defined(__NVPTX__)
#define POW_HAS_BOUNDS(type) 0
#else
#define POW_HAS_BOUNDS(type) ((type) != TYPE_F32)
#endif

#define COSTLY_CASES                                                                                                           \
    if (args.op == BINARY_POW && !POW_HAS_BOUNDS(type)) {                                                                      \
        BINARY_TILE_SLOTS(COSTLY_SLOT(pow_plain, POW_BY_TABLE))                                                                \
    }                                                                                                                          \
    if (args.op == BINARY_POW && POW_HAS_BOUNDS(type)) {                                                                       \
        BINARY_TILE_SLOTS(POW_SLOT_OF_16)                                                                                      \
    }                                                                                                                          \
    if (args.op != BINARY_POW) {                                                                                               \
        BINARY_TILE_SLOTS(COSTLY_SLOT(atan2_plain, math_atan2_f32))                                                            \
    }

KERNEL_RESIDENT(tensor_pow_atan2, elementwise_args, ELEMENTWISE_THREADS, 4)
{
    BINARY_TILE_BEGIN
    if (args.in[0].type == TYPE_F32)
        WITH_TYPE(TYPE_F32, COSTLY_CASES)
    else if (args.in[0].type == TYPE_F16)
        WITH_TYPE(TYPE_F16, COSTLY_CASES)
    else
        WITH_TYPE(TYPE_BF16, COSTLY_CASES)
}
