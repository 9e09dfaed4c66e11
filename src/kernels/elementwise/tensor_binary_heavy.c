/* pow and atan2 of dense f32, f16 and bf16, by whole tiles: a loop an operation and type, so that nothing but the function
 * itself stands between the loads and the stores. What is left of the tiles, and everything else, is for tensor_binary.c;
 * 16-bit types have a shorter way where a chip has functions of its own, tensor_binary_short.c.
 */
#include "kernels/elementwise/binary_tiles.h"

/* The chunk of a unit that begins with element 4 * number. */
DEVICE chunk_bits chunk_of_unit(chunk_bits unit, int32_t number)
{
    const chunk_bits second = {{unit.word[2], unit.word[3], 0, 0}};
    return number == 0 ? unit : second;
}

DEVICE void chunk_to_unit(chunk_bits *unit, int32_t number, chunk_bits chunk, int32_t type)
{
    if (type == TYPE_F32) {
        *unit = chunk;
    } else {
        unit->word[2 * number] = chunk.word[0];
        unit->word[2 * number + 1] = chunk.word[1];
    }
}

/* A unit of results. Where all elements of a chunk are plain, the function is spared its care for special values. */
#define HEAVY_TURN(is_plain, function)                                                                                         \
    UNROLL for (int32_t c = 0; c < unit_elements(type) / CHUNK; c++)                                                           \
    {                                                                                                                          \
        chunk_f32 x = chunk_to_f32(chunk_of_unit(x_unit, c), type);                                                            \
        const chunk_f32 y = chunk_to_f32(chunk_of_unit(y_unit, c), type);                                                      \
        bool plain = true;                                                                                                     \
        EACH plain = plain & is_plain(x.v[j], y.v[j]);                                                                         \
        if (plain)                                                                                                             \
            EACH x.v[j] = function(x.v[j], y.v[j], 1);                                                                         \
        else                                                                                                                   \
            EACH x.v[j] = function(x.v[j], y.v[j], 0);                                                                         \
        chunk_to_unit(&result, c, f32_to_chunk(x, type), type);                                                                \
    }

#define HEAVY_CASES                                                                                                            \
    if (args.op == BINARY_POW) {                                                                                               \
        BINARY_TILE_TURNS(HEAVY_TURN(MATH_POW_PLAIN_F32, POW_BY_TABLE))                                                        \
    } else {                                                                                                                   \
        BINARY_TILE_TURNS(HEAVY_TURN(MATH_ATAN2_PLAIN_F32, math_atan2_f32))                                                    \
    }

KERNEL_RESIDENT(tensor_binary_heavy, elementwise_args, ELEMENTWISE_THREADS, 4)
{
    BINARY_TILE_BEGIN
    if (args.in[0].type == TYPE_F32)
        WITH_TYPE(TYPE_F32, HEAVY_CASES)
    else if (args.in[0].type == TYPE_F16)
        WITH_TYPE(TYPE_F16, HEAVY_CASES)
    else
        WITH_TYPE(TYPE_BF16, HEAVY_CASES)
}
