/* Functions of 16-bit types by their half forms (half_f32.h): whole tiles of dense elements, one loop per function.
 *
 * Each element moves two bytes in and two out, in which time a chip computes about 25 operations: fewer than a function of f32
 * takes, and more than a half form does. tensor_unary.c handles the rest of the tiles.
 */
#include "kernels/elementwise/elements.h"

#include "arithmetic/math/half_f32.h"

/* All slots of a thread; the next unit is loaded while one is computed. */
#define HALF_SLOTS(expression)                                                                                                 \
    UNROLL_BY(1) for (int32_t left = SLOTS; left > 0; left--)                                                                  \
    {                                                                                                                          \
        unit_f32 unit = unit_to_f32(now, type);                                                                                \
        from += 8 * ELEMENTWISE_THREADS;                                                                                       \
        if (left > 1)                                                                                                          \
            now = quad_load(from, 0, 4);                                                                                       \
        EACH_OF_UNIT                                                                                                           \
        {                                                                                                                      \
            const float x = unit.v[j];                                                                                         \
            unit.v[j] = expression;                                                                                            \
        }                                                                                                                      \
        UNROLL for (int32_t w = 0; w < 4; w++) SETTLE_TWO(unit.v[2 * w], unit.v[2 * w + 1]);                                   \
        quad_store(to, 0, 4, f32_to_unit(unit, type));                                                                         \
        to += 8 * ELEMENTWISE_THREADS;                                                                                         \
    }

#define HALF_CASE(NAME, expression)                                                                                            \
    case UNARY_##NAME:                                                                                                         \
        HALF_SLOTS(expression)                                                                                                 \
        break;

#define HALF_CASES                                                                                                             \
    const int half = type == TYPE_F16;                                                                                         \
    switch (args.op) {                                                                                                         \
        HALF_CASE(RECIP, half_recip_f32(x))                                                                                    \
        HALF_CASE(SQRT, half_sqrt_f32(x, half))                                                                                \
        HALF_CASE(RSQRT, half_rsqrt_f32(x))                                                                                    \
        HALF_CASE(EXP, half_exp_f32(x, half))                                                                                  \
        HALF_CASE(TANH, half_tanh_f32(x, half))                                                                                \
        HALF_CASE(SIGMOID, half_sigmoid_bf16_f32(x))                                                                           \
        HALF_CASE(SILU, half_silu_f32(x, half))                                                                                \
        HALF_CASE(GELU, half_gelu_f32(x, half))                                                                                \
        HALF_CASE(LOG, half_log_f32(x, half))                                                                                  \
    default:                                                                                                                   \
        break;                                                                                                                 \
    }

KERNEL_RESIDENT(tensor_unary_half, elementwise_args, ELEMENTWISE_THREADS, 8)
{
    launches_wait();
    launches_next();
    const int64_t begin = unit_tile_begin(&args) + (int64_t)thread_index() * 8;
    const uint16_t *from = (const uint16_t *)IN_GLOBAL(uint16_t, args.in[0].data) + begin;
    uint16_t *to = (uint16_t *)IN_GLOBAL(uint16_t, args.out.data) + begin;
    quad_bits now = quad_load(from, 0, 4);
    if (args.in[0].type == TYPE_F16)
        WITH_TYPE(TYPE_F16, HALF_CASES)
    else
        WITH_TYPE(TYPE_BF16, HALF_CASES)
}
