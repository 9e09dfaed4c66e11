/* Convolutions of f32, f16 and bf16 as the matrix products they are: the weights times the image seen through a window. */
#include "kernels/matmul_f32.h"

#include "kernels/matmul_tile.h"

/* scratch allowed: conv_f32_128: on gfx9 some scalars wait in lanes of vector registers, not in memory; on sm_80 one register
 * scratch allowed: conv_f32_64: likewise on gfx9 */
KERNEL_RESIDENT(conv_f32_128, matmul_args, MATMUL_THREADS, 2)
{
    SHARED(float, slices, 4 * MATMUL_STEPS * (128 + MATMUL_PAD));
    const matmul_shape shape = {128, true};
    matmul_block(shape, &args, slices);
}

KERNEL_RESIDENT(conv_f32_64, matmul_args, MATMUL_THREADS, 2)
{
    SHARED(float, slices, 4 * MATMUL_STEPS * (64 + MATMUL_PAD));
    const matmul_shape shape = {64, true};
    matmul_block(shape, &args, slices);
}
