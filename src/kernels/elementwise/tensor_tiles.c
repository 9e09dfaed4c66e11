/* Operations that cost nothing compared with memory: sums, products, comparisons, signs, for f32, f16 and bf16.
 *
 * A thread loads 16 bytes of every operand, several times, and has no decisions to make after that: each operation has separate
 * code for each type. Blocks take whole tiles; tensor_unary.c and tensor_binary.c, which have all operations, handle the rest.
 */
#include "kernels/elementwise/elements.h"

#include "arithmetic/math/f32.h"

/* The results of four comparisons in a word. */
DEVICE void truths_store(void *out, int64_t i, const bool *truths, int32_t type)
{
    uint32_t words[2] = {0, 0};
    UNROLL for (int32_t j = 0; j < unit_elements(type); j++) words[j / 4] |= (uint32_t)truths[j] << (8 * (j % 4));
    if (type == TYPE_F32)
        *(bits_32 *)((uint8_t *)out + i) = words[0];
    else
        *(bits_64 *)((uint8_t *)out + i) = (uint64_t)words[1] << 32 | words[0];
}

/* Where the thread's unit of slot t starts. */
DEVICE int64_t unit_at(const elementwise_args *args, int32_t type, int32_t t)
{
    return unit_tile_begin(args) + ((int32_t)thread_index() + t * ELEMENTWISE_THREADS) * (int64_t)unit_elements(type);
}

#define EACH_SLOT UNROLL for (int32_t t = 0; t < SLOTS; t++)

/* Runs the code for the type. */
#define BY_TYPE(given, statement)                                                                                              \
    if ((given) == TYPE_F32)                                                                                                   \
        WITH_TYPE(TYPE_F32, statement)                                                                                         \
    else if ((given) == TYPE_F16)                                                                                              \
        WITH_TYPE(TYPE_F16, statement)                                                                                         \
    else                                                                                                                       \
        WITH_TYPE(TYPE_BF16, statement)

/* ---- one operand, of 16 bits --------------------------------------------------------------------------------------------- */

#define UNARY_SLOTS(expression)                                                                                                \
    EACH_SLOT                                                                                                                  \
    {                                                                                                                          \
        unit_f32 unit = unit_to_f32(all.slot[t], type);                                                                        \
        EACH_OF_UNIT                                                                                                           \
        {                                                                                                                      \
            const float x = unit.v[j];                                                                                         \
            unit.v[j] = expression;                                                                                            \
        }                                                                                                                      \
        quad_store((uint16_t *)args.out.data + unit_at(&args, type, t), 0, 4, f32_to_unit(unit, type));                        \
    }

#define TILE_UNARY_CASE(NAME, expression)                                                                                      \
    case UNARY_##NAME:                                                                                                         \
        UNARY_SLOTS(expression)                                                                                                \
        break;

#define TILE_UNARY_CASES                                                                                                       \
    const quad_slots all = units_load(&args, &args.in[0], 2);                                                                  \
    switch (args.op) {                                                                                                         \
        TILE_UNARY_CASE(ABS, canon_abs_f32(x))                                                                                 \
        TILE_UNARY_CASE(NEG, -x)                                                                                               \
        TILE_UNARY_CASE(SQR, x *x)                                                                                             \
        TILE_UNARY_CASE(RELU, canon_relu_f32(x))                                                                               \
        TILE_UNARY_CASE(AFFINE, canon_fma_f32(x, a, b))                                                                        \
    default:                                                                                                                   \
        break;                                                                                                                 \
    }

KERNEL(tensor_tiles_unary, elementwise_args, ELEMENTWISE_THREADS)
{
    launches_wait();
    launches_next();
    const float a = (float)args.a;
    const float b = (float)args.b;
    if (args.in[0].type == TYPE_F16)
        WITH_TYPE(TYPE_F16, TILE_UNARY_CASES)
    else
        WITH_TYPE(TYPE_BF16, TILE_UNARY_CASES)
}

/* ---- two operands -------------------------------------------------------------------------------------------------------- */

#define BINARY_SLOTS(expression)                                                                                               \
    EACH_SLOT                                                                                                                  \
    {                                                                                                                          \
        unit_f32 unit = unit_to_f32(left.slot[t], type);                                                                       \
        const unit_f32 other = unit_to_f32(right.slot[t], type);                                                               \
        EACH_OF_UNIT                                                                                                           \
        {                                                                                                                      \
            const float x = unit.v[j];                                                                                         \
            const float y = other.v[j];                                                                                        \
            unit.v[j] = expression;                                                                                            \
        }                                                                                                                      \
        quad_store((char *)args.out.data + unit_at(&args, type, t) * (type == TYPE_F32 ? 4 : 2), 0, 4,                         \
                   f32_to_unit(unit, type));                                                                                   \
    }

#define TILE_BINARY_CASE(NAME, expression)                                                                                     \
    case BINARY_##NAME:                                                                                                        \
        BINARY_SLOTS(expression)                                                                                               \
        break;

#define TILE_OPERANDS                                                                                                          \
    const quad_slots left = units_load(&args, &args.in[0], type == TYPE_F32 ? 4 : 2);                                          \
    const quad_slots right = units_load(&args, &args.in[1], type == TYPE_F32 ? 4 : 2);

#define TILE_BINARY_CASES                                                                                                      \
    TILE_OPERANDS                                                                                                              \
    switch (args.op) {                                                                                                         \
        TILE_BINARY_CASE(ADD, x + y)                                                                                           \
        TILE_BINARY_CASE(SUB, x - y)                                                                                           \
        TILE_BINARY_CASE(MUL, x *y)                                                                                            \
        TILE_BINARY_CASE(MAXIMUM, canon_max_f32(x, y))                                                                         \
        TILE_BINARY_CASE(MINIMUM, canon_min_f32(x, y))                                                                         \
    default:                                                                                                                   \
        break;                                                                                                                 \
    }

KERNEL(tensor_tiles_binary, elementwise_args, ELEMENTWISE_THREADS)
{
    launches_wait();
    launches_next();
    BY_TYPE(args.in[0].type, TILE_BINARY_CASES)
}

DEVICE void compare_tile(const elementwise_args *args, int32_t type)
{
    const int32_t bytes = type == TYPE_F32 ? 4 : 2;
    const quad_slots left = units_load(args, &args->in[0], bytes);
    const quad_slots right = units_load(args, &args->in[1], bytes);
    switch (args->op) {
#define CMP(NAME, name, operator)                                                                                              \
    case CMP_##NAME:                                                                                                           \
        EACH_SLOT                                                                                                              \
        {                                                                                                                      \
            const unit_f32 x = unit_to_f32(left.slot[t], type);                                                                \
            const unit_f32 y = unit_to_f32(right.slot[t], type);                                                               \
            bool truths[UNIT_MAX];                                                                                             \
            EACH_OF_UNIT truths[j] = x.v[j] operator y.v[j];                                                                   \
            truths_store(args->out.data, unit_at(args, type, t), truths, type);                                                \
        }                                                                                                                      \
        break;
#include "arithmetic/cmp.def"
#undef CMP
    default:
        break;
    }
}

KERNEL(tensor_tiles_cmp, elementwise_args, ELEMENTWISE_THREADS)
{
    launches_wait();
    launches_next();
    if (args.in[0].type == TYPE_F32)
        compare_tile(&args, TYPE_F32);
    else if (args.in[0].type == TYPE_F16)
        compare_tile(&args, TYPE_F16);
    else
        compare_tile(&args, TYPE_BF16);
}
