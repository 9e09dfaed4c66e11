/* Operations on one element: a kernel a kind, the operation a switch that all threads take alike.
 *
 * Bound by memory for all but the costliest functions; elements.h says how that is kept so. The loops over elements are inside
 * the cases; COUNT, a constant, is 4 for chunks and 1 for elements one by one.
 */
#include "kernels/elements.h"

#include "kernels/integers.h"
#include "kernels/math_f32_more.h"
#include "kernels/math_f64_more.h"

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
#include "kernels/parametric.def"
#include "kernels/unary.def"
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
#include "kernels/parametric.def"
#include "kernels/unary.def"
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
#include "kernels/parametric.def"
#include "kernels/unary.def"
#undef UNARY
#undef PARAMETRIC
    default:
        break;
    }
}

#define ONE_BY_ONE(T, kind, A, B)                                                                                              \
    UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)                \
    {                                                                                                                          \
        T x = bits_to_##kind(element_bits(&args, &args.in[0], i), args.in[0].type);                                            \
        unary_##kind(args.op, &x, 1, A, B);                                                                                    \
        element_put(&args, &args.out, i, kind##_to_bits(x, args.out.type));                                                    \
    }

KERNEL(tensor_unary_f32, elementwise_args, ELEMENTWISE_THREADS)
{
    const float a = (float)args.a;
    const float b = (float)args.b;
    if (!tile_in_chunks(&args)) {
        ONE_BY_ONE(float, f32, a, b)
        return;
    }
    const int32_t type = args.in[0].type;
    const int32_t bytes = bytes_f32(type);
    chunk_turns x = chunks_load(&args.in[0], bytes);
    int64_t i = tile_begin() + thread_index() * CHUNK;
    UNROLL_BY(1) for (int32_t turn = 0; turn < TURNS; turn++)
    {
        chunk_f32 y = chunk_to_f32(x.turn[0], type);
        unary_f32(args.op, y.v, CHUNK, a, b);
        chunk_store(args.out.data, i, bytes, f32_to_chunk(y, type));
        chunks_next(&x);
        i += TURN_ELEMENTS;
    }
}

KERNEL(tensor_unary_f64, elementwise_args, ELEMENTWISE_THREADS){ONE_BY_ONE(double, f64, args.a, args.b)}

KERNEL(tensor_unary_i64, elementwise_args, ELEMENTWISE_THREADS)
{
    ONE_BY_ONE(int64_t, i64, args.ia, args.ib)
}
