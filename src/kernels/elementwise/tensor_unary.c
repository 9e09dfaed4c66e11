/* Operations on one element: one kernel per kind, and a switch over operations that all threads take the same way.
 *
 * Bound by memory for all but the costliest functions; elements.h says how. The loops over elements are inside the cases;
 * COUNT, a constant, is 4 for quads and 1 for elements one by one. Dense f32 has a separate kernel whose cases contain the
 * whole loop, so that nothing comes between the functions and the memory.
 */
#include "kernels/elementwise/elements.h"

#include "arithmetic/integers.h"
#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"
#include "kernels/elementwise/math_shared.h"

#define UNARY_CASE(T, NAME, expression)                                                                                        \
    case UNARY_##NAME:                                                                                                         \
        UNROLL for (int32_t j = 0; j < count; j++)                                                                             \
        {                                                                                                                      \
            const T x = v[j];                                                                                                  \
            v[j] = expression;                                                                                                 \
        }                                                                                                                      \
        break;

DEVICE void unary_f32(int32_t op, float *v, int32_t count, float a, float b)
{
    switch (op) {
#define F(name)                                         canon_##name##_f32
#define UNARY(NAME, name, floats, integers, which)      UNARY_CASE(float, NAME, floats)
#define PARAMETRIC(NAME, name, floats, integers, which) UNARY_CASE(float, NAME, floats)
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
#undef F
#undef UNARY
#undef PARAMETRIC
    default:
        break;
    }
}

DEVICE void unary_f64(int32_t op, double *v, int32_t count, double a, double b)
{
    switch (op) {
#define F(name)                                         canon_##name##_f64
#define UNARY(NAME, name, floats, integers, which)      UNARY_CASE(double, NAME, floats)
#define PARAMETRIC(NAME, name, floats, integers, which) UNARY_CASE(double, NAME, floats)
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
#undef F
#undef UNARY
#undef PARAMETRIC
    default:
        break;
    }
}

DEVICE void unary_i64(int32_t op, int64_t *v, int32_t count, int64_t a, int64_t b)
{
    switch (op) {
#define UNARY(NAME, name, floats, integers, which)      UNARY_CASE(int64_t, NAME, integers)
#define PARAMETRIC(NAME, name, floats, integers, which) UNARY_CASE(int64_t, NAME, integers)
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
#undef UNARY
#undef PARAMETRIC
    default:
        break;
    }
}

#define ONE_BY_ONE(T, kind, A, B)                                                                                              \
    UNROLL_BY(1) for (int64_t i = unit_tile_begin(&args) + thread_index(); i < unit_tile_end(&args); i += ELEMENTWISE_THREADS) \
    {                                                                                                                          \
        T x = bits_to_##kind(element_bits(&args, &args.in[0], i), args.in[0].type);                                            \
        unary_##kind(args.op, &x, 1, A, B);                                                                                    \
        element_put(&args, &args.out, i, kind##_to_bits(x, args.out.type));                                                    \
    }

KERNEL(tensor_unary_f32, elementwise_args, ELEMENTWISE_THREADS)
{
    const float a = (float)args.a;
    const float b = (float)args.b;
    if (!tile_in_units(&args)) {
        ONE_BY_ONE(float, f32, a, b)
        return;
    }
    const int32_t type = args.in[0].type;
    const int32_t bytes = bytes_f32(type);
    quad_slots x = units_load(&args, &args.in[0], bytes);
    int64_t i = unit_tile_begin(&args) + (int64_t)thread_index() * QUAD * args.unit_quads;
    UNROLL_BY(1) for (int32_t slot = 0; slot < SLOTS; slot++)
    {
        quad_bits result = {{0, 0, 0, 0}};
        UNROLL_BY(1) for (int32_t q = 0; q < args.unit_quads; q++)
        {
            quad_f32 y = quad_to_f32(x.slot[0], type);
            unary_f32(args.op, y.v, QUAD, a, b);
            unit_append(&result, f32_to_quad(y, type), bytes);
            unit_forward(&x.slot[0], bytes);
        }
        quad_store((char *)args.out.data + i * bytes, 0, 4, result);
        quads_next(&x);
        i += (int64_t)SLOT_ELEMENTS * args.unit_quads;
    }
}

/* ---- dense f32 ----------------------------------------------------------------------------------------------------------- */

/* All slots of a thread in a whole tile; the next quad is loaded while one is computed. `compute` makes y4 from x4. */
#define DENSE_SLOTS(compute)                                                                                                   \
    UNROLL_BY(1) for (int32_t left = SLOTS; left > 0; left--)                                                                  \
    {                                                                                                                          \
        const quad_f32 x4 = quad_to_f32(now, TYPE_F32);                                                                        \
        quad_f32 y4;                                                                                                           \
        from += SLOT_ELEMENTS;                                                                                                 \
        if (left > 1)                                                                                                          \
            now = quad_load(from, 0, 4);                                                                                       \
        compute;                                                                                                               \
        quad_store(to, 0, 4, f32_to_quad(y4, TYPE_F32));                                                                       \
        to += SLOT_ELEMENTS;                                                                                                   \
    }

#define DENSE_BEGIN                                                                                                            \
    const int64_t begin = unit_tile_begin(&args) + (int64_t)thread_index() * QUAD;                                             \
    const float *from = (const float *)IN_GLOBAL(float, args.in[0].data) + begin;                                              \
    float *to = (float *)IN_GLOBAL(float, args.out.data) + begin;                                                              \
    quad_bits now = quad_load(from, 0, 4)

#define DENSE_EACH(expression)                                                                                                 \
    EACH                                                                                                                       \
    {                                                                                                                          \
        const float x = x4.v[j];                                                                                               \
        y4.v[j] = expression;                                                                                                  \
    }

/* sin and cos: the near range for all four, unless one lies outside. */
#define DENSE_NEAR(name)                                                                                                       \
    bool far = false;                                                                                                          \
    EACH far |= MATH_SIN_FAR_F32(x4.v[j]);                                                                                     \
    if (far)                                                                                                                   \
        EACH y4.v[j] = canon_##name##_f32(x4.v[j]);                                                                            \
    else                                                                                                                       \
        EACH y4.v[j] = canon_##name##_near_f32(x4.v[j])

DEVICE bool quad_in_range(quad_f32 x, math_pow_range_f32 range)
{
    uint32_t min = range.max;
    uint32_t max = range.min;
    EACH
    {
        const uint32_t size = canon_float_bits(x.v[j]) & 0x7fffffffu;
        min = size < min ? size : min;
        max = size > max ? size : max;
    }
    return min >= range.min && max <= range.max;
}

/* powf without its handling of special values and the ends of the range, for all slots. Quads that need it are loaded and
 * computed again at the end. */
#define DENSE_POWF                                                                                                             \
    uint32_t waiting = 0;                                                                                                      \
    UNROLL for (int32_t t = 0; t < SLOTS; t++)                                                                                 \
    {                                                                                                                          \
        const quad_f32 x4 = quad_to_f32(now, TYPE_F32);                                                                        \
        quad_bits y4;                                                                                                          \
        if (t + 1 < SLOTS)                                                                                                     \
            now = quad_load(from + (t + 1) * SLOT_ELEMENTS, 0, 4);                                                             \
        if (quad_in_range(x4, range)) {                                                                                        \
            EACH                                                                                                               \
            {                                                                                                                  \
                math_pow_bits_f32 bits = math_pow_bits_of_f32(x4.v[j], 1);                                                     \
                SETTLE(bits.rest);                                                                                             \
                y4.word[j] = canon_float_bits(math_pow_normal_f32(x4.v[j], bits, a, POW_ENTRY(bits)));                         \
            }                                                                                                                  \
            quad_store(to + t * SLOT_ELEMENTS, 0, 4, y4);                                                                      \
        } else {                                                                                                               \
            waiting |= 1u << t;                                                                                                \
        }                                                                                                                      \
    }                                                                                                                          \
    UNROLL_BY(1) for (; waiting != 0; waiting &= waiting - 1)                                                                  \
    {                                                                                                                          \
        const int32_t at = __builtin_ctz(waiting) * SLOT_ELEMENTS;                                                             \
        quad_f32 y4 = quad_to_f32(quad_load(from + at, 0, 4), TYPE_F32);                                                       \
        EACH y4.v[j] = POW_BY_TABLE(y4.v[j], a, 0);                                                                            \
        quad_store(to + at, 0, 4, f32_to_quad(y4, TYPE_F32));                                                                  \
    }

/* Two kernels: the functions that need few registers, so that more waves wait for memory together, and the others. */
#define UNARY(NAME, name, floats, integers, which)                                                                             \
    case UNARY_##NAME:                                                                                                         \
        if (UNARY_IS_CHEAP(UNARY_##NAME) == CHEAP)                                                                             \
            DENSE_SLOTS(DENSE_EACH(floats))                                                                                    \
        break;
#define PARAMETRIC UNARY
#define F(name)    canon_##name##_f32

#define CHEAP 1
KERNEL_RESIDENT(tensor_unary_cheap, elementwise_args, ELEMENTWISE_THREADS, 8)
{
    launches_wait();
    launches_next();
    const float a = (float)args.a;
    const float b = (float)args.b;
    DENSE_BEGIN;
    switch (args.op) {
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
    default:
        break;
    }
}

#undef CHEAP
#define CHEAP 0
KERNEL_RESIDENT(tensor_unary_costly, elementwise_args, ELEMENTWISE_THREADS, 8)
{
    launches_wait();
    launches_next();
    const float a = (float)args.a;
    const float b = (float)args.b;
    (void)b; /* only cheap functions use it */
    DENSE_BEGIN;
    if (args.op == UNARY_GELU_ERF) {
        SHARED(f32x4, table, 2 * MATH_NORMAL_COLUMN);
        normal_fill(AT_RANGE(table, 0, 2 * MATH_NORMAL_COLUMN));
        DENSE_SLOTS(DENSE_EACH(math_gelu_erf_f32(x, normal_entry(AT_RANGE(table, 2 * math_normal_interval_f32(x), 2)))))
        return;
    }
    if (args.op == UNARY_POWF) {
        POW_TABLE;
        const math_pow_range_f32 range = math_pow_range_of_f32(a);
        DENSE_POWF
        return;
    }
    if (args.op == UNARY_SIN) {
        DENSE_SLOTS(DENSE_NEAR(sin))
        return;
    }
    if (args.op == UNARY_COS) {
        DENSE_SLOTS(DENSE_NEAR(cos))
        return;
    }
    switch (args.op) {
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
    default:
        break;
    }
}

#undef CHEAP
#undef F
#undef UNARY
#undef PARAMETRIC

/* ---- f64 and integers ---------------------------------------------------------------------------------------------------- */

KERNEL(tensor_unary_f64, elementwise_args, ELEMENTWISE_THREADS){ONE_BY_ONE(double, f64, args.a, args.b)}

KERNEL(tensor_unary_i64, elementwise_args, ELEMENTWISE_THREADS)
{
    ONE_BY_ONE(int64_t, i64, args.ia, args.ib)
}
