/* Operations on two elements, and comparisons, whose result is a u8: one kernel per kind, as in tensor_unary.c. */
#include "kernels/elementwise/elements.h"

#include "arithmetic/integers.h"
#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"

#define BINARY_CASE(T, NAME, expression)                                                                                       \
    case BINARY_##NAME:                                                                                                        \
        UNROLL for (int32_t j = 0; j < count; j++)                                                                             \
        {                                                                                                                      \
            const T x = left[j];                                                                                               \
            const T y = right[j];                                                                                              \
            (void)y;                                                                                                           \
            left[j] = expression;                                                                                              \
        }                                                                                                                      \
        break;

DEVICE void binary_f32(int32_t op, float *left, const float *right, int32_t count)
{
    switch (op) {
#define F(name)                                     canon_##name##_f32
#define BINARY(NAME, name, floats, integers, which) BINARY_CASE(float, NAME, floats)
#include "arithmetic/binary.def"
#undef F
#undef BINARY
    default:
        break;
    }
}

DEVICE void binary_f64(int32_t op, double *left, const double *right, int32_t count)
{
    switch (op) {
#define F(name)                                     canon_##name##_f64
#define BINARY(NAME, name, floats, integers, which) BINARY_CASE(double, NAME, floats)
#include "arithmetic/binary.def"
#undef F
#undef BINARY
    default:
        break;
    }
}

DEVICE void binary_i64(int32_t op, int64_t *left, const int64_t *right, int32_t count)
{
    switch (op) {
#define BINARY(NAME, name, floats, integers, which) BINARY_CASE(int64_t, NAME, integers)
#include "arithmetic/binary.def"
#undef BINARY
    default:
        break;
    }
}

#define CMP_FUNCTION(T, kind)                                                                                                  \
    DEVICE uint8_t cmp_##kind(int32_t op, T x, T y)                                                                            \
    {                                                                                                                          \
        const bool less = x < y;                                                                                               \
        const bool equal = x == y;                                                                                             \
        const bool more = x > y;                                                                                               \
        return op == CMP_EQ   ? equal                                                                                          \
               : op == CMP_NE ? !equal                                                                                         \
               : op == CMP_LT ? less                                                                                           \
               : op == CMP_LE ? less || equal                                                                                  \
               : op == CMP_GT ? more                                                                                           \
                              : more || equal;                                                                                 \
    }

CMP_FUNCTION(float, f32)
CMP_FUNCTION(double, f64)
CMP_FUNCTION(int64_t, i64)

#define ONE_BY_ONE(T, kind)                                                                                                    \
    UNROLL_BY(1) for (int64_t i = unit_tile_begin(&args) + thread_index(); i < unit_tile_end(&args); i += ELEMENTWISE_THREADS) \
    {                                                                                                                          \
        T x = bits_to_##kind(element_bits(&args, &args.in[0], i), args.in[0].type);                                            \
        const T y = bits_to_##kind(element_bits(&args, &args.in[1], i), args.in[1].type);                                      \
        if (args.compares) {                                                                                                   \
            ((uint8_t *)args.out.data)[i] = cmp_##kind(args.op, x, y);                                                         \
        } else {                                                                                                               \
            binary_##kind(args.op, &x, &y, 1);                                                                                 \
            element_put(&args, &args.out, i, kind##_to_bits(x, args.out.type));                                                \
        }                                                                                                                      \
    }

/* The last `words` words of a unit. */
DEVICE void bytes_store(uint8_t *to, int32_t words, quad_bits unit)
{
    if (words == 4)
        quad_store(to, 0, 4, unit);
    else if (words == 2)
        *(bits_64 *)to = (uint64_t)unit.word[3] << 32 | unit.word[2];
    else
        *(bits_32 *)to = unit.word[3];
}

KERNEL(tensor_binary_f32, elementwise_args, ELEMENTWISE_THREADS)
{
    if (!tile_in_units(&args)) {
        ONE_BY_ONE(float, f32)
        return;
    }
    const int32_t type = args.in[0].type;
    const int32_t bytes = bytes_f32(type);
    const int32_t each = QUAD * args.unit_quads;
    quad_slots x = units_load(&args, &args.in[0], bytes);
    quad_slots y = units_load(&args, &args.in[1], bytes);
    int64_t i = unit_tile_begin(&args) + (int64_t)thread_index() * each;
    UNROLL_BY(1) for (int32_t slot = 0; slot < SLOTS; slot++)
    {
        quad_bits result = {{0, 0, 0, 0}};
        UNROLL_BY(1) for (int32_t q = 0; q < args.unit_quads; q++)
        {
            quad_f32 left = quad_to_f32(x.slot[0], type);
            const quad_f32 right = quad_to_f32(y.slot[0], type);
            if (args.compares) {
                uint8_t v[QUAD];
                EACH v[j] = cmp_f32(args.op, left.v[j], right.v[j]);
                unit_append(&result, quad_of_8(v), 1);
            } else {
                binary_f32(args.op, left.v, right.v, QUAD);
                unit_append(&result, f32_to_quad(left, type), bytes);
            }
            unit_forward(&x.slot[0], bytes);
            unit_forward(&y.slot[0], bytes);
        }
        if (args.compares)
            bytes_store((uint8_t *)args.out.data + i, args.unit_quads, result);
        else
            quad_store((char *)args.out.data + i * bytes, 0, 4, result);
        quads_next(&x);
        quads_next(&y);
        i += (int64_t)SLOT_ELEMENTS * args.unit_quads;
    }
}

KERNEL(tensor_binary_f64, elementwise_args, ELEMENTWISE_THREADS){ONE_BY_ONE(double, f64)}

KERNEL(tensor_binary_i64, elementwise_args, ELEMENTWISE_THREADS)
{
    ONE_BY_ONE(int64_t, i64)
}
