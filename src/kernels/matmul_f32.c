/* Matrix products of f32, f16 and bf16, in tiles of 128 x 128 for large ones and 64 x 64 for the others. */
#include "kernels/matmul_f32.h"

#include "kernels/matmul_tile.h"

/* scratch allowed: matmul_f32_128: on gfx9 some scalars wait in lanes of vector registers, not in memory; none in the loop over
 * steps */

KERNEL_RESIDENT(matmul_f32_128, matmul_args, MATMUL_THREADS, 2)
{
    SHARED(float, slices, 4 * MATMUL_STEPS * (128 + MATMUL_PAD));
    const matmul_shape shape = {128, false};
    matmul_block(shape, &args, slices);
}

KERNEL_RESIDENT(matmul_f32_64, matmul_args, MATMUL_THREADS, 2)
{
    SHARED(float, slices, 4 * MATMUL_STEPS * (64 + MATMUL_PAD));
    const matmul_shape shape = {64, false};
    matmul_block(shape, &args, slices);
}
