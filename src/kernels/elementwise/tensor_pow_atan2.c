/* pow and atan2 of dense f32, f16 and bf16, by whole tiles: a loop an operation and type, so that nothing but the function
 * itself stands between the loads and the stores. What is left of the tiles, and everything else, is for tensor_binary.c;
 * 16-bit types have a shorter way where a chip has functions of its own, tensor_pow_atan2_half.c.
 */
#include "kernels/elementwise/binary_tiles.h"

/* The quad of a unit that begins with element 4 * number. */
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

/* A unit of results. Where all elements of a quad are plain, the function is spared its care for special values. */
#define COSTLY_SLOT(is_plain, function)                                                                                        \
    UNROLL for (int32_t c = 0; c < unit_elements(type) / QUAD; c++)                                                            \
    {                                                                                                                          \
        quad_f32 x = quad_to_f32(quad_of_unit(x_unit, c), type);                                                               \
        const quad_f32 y = quad_to_f32(quad_of_unit(y_unit, c), type);                                                         \
        bool plain = true;                                                                                                     \
        EACH plain = plain & is_plain(x.v[j], y.v[j]);                                                                         \
        if (plain)                                                                                                             \
            EACH x.v[j] = function(x.v[j], y.v[j], 1);                                                                         \
        else                                                                                                                   \
            EACH x.v[j] = function(x.v[j], y.v[j], 0);                                                                         \
        quad_to_unit(&result, c, f32_to_quad(x, type), type);                                                                  \
    }

#define COSTLY_CASES                                                                                                           \
    if (args.op == BINARY_POW) {                                                                                               \
        BINARY_TILE_SLOTS(COSTLY_SLOT(MATH_POW_PLAIN_F32, POW_BY_TABLE))                                                       \
    } else {                                                                                                                   \
        BINARY_TILE_SLOTS(COSTLY_SLOT(MATH_ATAN2_PLAIN_F32, math_atan2_f32))                                                   \
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
