/* Matrix products of f32, f16 and bf16, in tiles of 128 x 128 for large ones and 64 x 64 for the others. */
#include "kernels/matmul/matmul_f32.h"

#include "kernels/matmul/matmul_tile.h"

MATMUL_KERNEL(matmul_f32_128, 128, 128, 16)
MATMUL_KERNEL(matmul_f32_64, 64, 64, 16)
