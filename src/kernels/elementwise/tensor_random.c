/* Writes random numbers to dense memory: a thread computes the elements of one counter block. */
#include "kernels/elementwise/elements.h"

#include "arithmetic/philox.h"
#include "kernels/elementwise/random.h"

DEVICE void random_floats(const random_args *args)
{
    const int64_t block = (int64_t)block_index() * RANDOM_THREADS + thread_index();
    const int64_t first = block * 4;
    if (first >= args->count)
        return;
    const random_four made =
        random_block_f32(args->what, args->seed, args->first_block + (uint64_t)block, (float)args->a, (float)args->b);
    if (first + 4 <= args->count) { /* the output starts at the start of its storage, which is aligned */
        quad_f32 quad;
        EACH quad.v[j] = made.v[j];
        quad_store(args->to, first, bytes_f32(args->type), f32_to_quad(quad, args->type));
        return;
    }
    UNROLL for (int32_t j = 0; j < 4; j++) if (first + j < args->count)
        bits_put(args->to, first + j, type_bytes(args->type), f32_to_bits(made.v[j], args->type));
}

DEVICE void random_doubles(const random_args *args)
{
    const int64_t block = (int64_t)block_index() * RANDOM_THREADS + thread_index();
    const int64_t first = block * 2;
    if (first >= args->count)
        return;
    const random_two made = random_block_f64(args->what, args->seed, args->first_block + (uint64_t)block, args->a, args->b);
    UNROLL for (int32_t j = 0; j < 2; j++) if (first + j < args->count)
        bits_put(args->to, first + j, 8, f64_to_bits(made.v[j], args->type));
}

KERNEL(tensor_random, random_args, RANDOM_THREADS)
{
    if (args.type == TYPE_F64)
        random_doubles(&args);
    else
        random_floats(&args);
}
