/* Converts every type to every type: one kernel per kind of the source, with a switch over the type of the result. By quads if
 * both are floats of up to 32 bits.
 */
#include "kernels/elementwise/elements.h"

#define CAST_CASE(NAME, name, kind)                                                                                            \
    case TYPE_##NAME: {                                                                                                        \
        const __typeof__(name##_of_##kind(x)) value = name##_of_##kind(x);                                                     \
        bits_put(args.out.data, at, (int32_t)sizeof value, name##_bits(value));                                                \
        break;                                                                                                                 \
    }

/* The bits that bits_put() stores, for each type. */
DEVICE uint64_t f32_bits(float value)
{
    return canon_float_bits(value);
}
DEVICE uint64_t f64_bits(double value)
{
    return f64_to_bits(value, TYPE_F64);
}
#define u8_bits
#define i8_bits  (uint64_t)
#define i16_bits (uint64_t)
#define i32_bits (uint64_t)
#define i64_bits (uint64_t)
#define u32_bits
#define bf16_bits
#define f16_bits
#define f8e4m3_bits

#define ONE_BY_ONE(T, kind)                                                                                                    \
    UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)                \
    {                                                                                                                          \
        const T x = bits_to_##kind(element_bits(&args, &args.in[0], i), args.in[0].type);                                      \
        const int64_t at = place_of(&args, &args.out, i);                                                                      \
        switch (args.out.type) {                                                                                               \
            CAST_CASE(U8, u8, kind)                                                                                            \
            CAST_CASE(U32, u32, kind)                                                                                          \
            CAST_CASE(I16, i16, kind)                                                                                          \
            CAST_CASE(I32, i32, kind)                                                                                          \
            CAST_CASE(I64, i64, kind)                                                                                          \
            CAST_CASE(BF16, bf16, kind)                                                                                        \
            CAST_CASE(F16, f16, kind)                                                                                          \
            CAST_CASE(F32, f32, kind)                                                                                          \
            CAST_CASE(F64, f64, kind)                                                                                          \
            CAST_CASE(F8E4M3, f8e4m3, kind)                                                                                    \
            CAST_CASE(I8, i8, kind)                                                                                            \
        default:                                                                                                               \
            break;                                                                                                             \
        }                                                                                                                      \
    }

KERNEL(tensor_cast_f32, elementwise_args, ELEMENTWISE_THREADS)
{
    if (!tile_in_quads(&args)) {
        ONE_BY_ONE(float, f32)
        return;
    }
    const int32_t from = args.in[0].type;
    const int32_t to = args.out.type;
    quad_slots x = quads_load(&args.in[0], bytes_f32(from));
    int64_t i = tile_begin() + thread_index() * QUAD;
    UNROLL_BY(1) for (int32_t slot = 0; slot < SLOTS; slot++)
    {
        quad_store(args.out.data, i, bytes_f32(to), f32_to_quad(quad_to_f32(x.slot[0], from), to));
        quads_next(&x);
        i += SLOT_ELEMENTS;
    }
}

KERNEL(tensor_cast_f64, elementwise_args, ELEMENTWISE_THREADS){ONE_BY_ONE(double, f64)}

KERNEL(tensor_cast_i64, elementwise_args, ELEMENTWISE_THREADS)
{
    ONE_BY_ONE(int64_t, i64)
}
