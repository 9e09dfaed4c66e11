/* pow and atan2 of dense f16 and bf16, by whole tiles, from bounds (half_bounds_f32.h). tensor_binary.c handles the rest.
 *
 * If the bounds of an element do not agree, the canonical form computes it, element by element in a separate loop: one element
 * in some hundreds, so a wave rarely goes there, and then usually once.
 */
#include "kernels/elementwise/binary_tiles.h"

#include "arithmetic/math/half_bounds_f32.h"

/* A bit for each element of a unit whose half word in `open` is all ones, not 0. */
DEVICE uint32_t open_elements(const uint32_t open[4])
{
    const uint32_t low = (open[0] & 0x00020001u) | (open[1] & 0x00080004u);
    const uint32_t high = (open[2] & 0x00200010u) | (open[3] & 0x00800040u);
    return ((low | high) | (low | high) >> 16) & 255u;
}

/* A unit of results. */
#define HALF_SLOT(bounds_of, canonical)                                                                                        \
    const unit_f32 x = unit_to_f32(x_unit, type);                                                                              \
    const unit_f32 y = unit_to_f32(y_unit, type);                                                                              \
    uint32_t open[4];                                                                                                          \
    UNROLL for (int32_t w = 0; w < 4; w++)                                                                                     \
    {                                                                                                                          \
        const math_bounds_f32 a = bounds_of(x.v[2 * w], y.v[2 * w], type == TYPE_F16);                                         \
        const math_bounds_f32 b = bounds_of(x.v[2 * w + 1], y.v[2 * w + 1], type == TYPE_F16);                                 \
        result.word[w] = narrow_pair(a.value, b.value, type);                                                                  \
        open[w] = pairs_differ(narrow_numbers(a.low, b.low, type), narrow_numbers(a.high, b.high, type), type);                \
    }                                                                                                                          \
    if ((open[0] | open[1] | open[2] | open[3]) != 0)                                                                          \
        UNROLL_BY(1) for (uint32_t some = open_elements(open); some != 0; some &= some - 1)                                    \
        {                                                                                                                      \
            const uint32_t j = (uint32_t)__builtin_ctz(some);                                                                  \
            element_to_unit(&result, j, canonical(element_of_unit(x_unit, j, type), element_of_unit(y_unit, j, type), 0),      \
                            type);                                                                                             \
        }

#define HALF_CASES                                                                                                             \
    if (args.op == BINARY_POW) {                                                                                               \
        BINARY_TILE_SLOTS(HALF_SLOT(math_pow_bounds_f32, POW_BY_TABLE))                                                        \
    } else {                                                                                                                   \
        BINARY_TILE_SLOTS(HALF_SLOT(math_atan2_bounds_f32, math_atan2_f32))                                                    \
    }

KERNEL_RESIDENT(tensor_pow_atan2_half, elementwise_args, ELEMENTWISE_THREADS, 5)
{
    BINARY_TILE_BEGIN
    if (args.in[0].type == TYPE_F16)
        WITH_TYPE(TYPE_F16, HALF_CASES)
    else
        WITH_TYPE(TYPE_BF16, HALF_CASES)
}
