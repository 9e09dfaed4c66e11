/* Convolutions of f32, f16 and bf16 as matrix products: the weights times the image seen through a window. */
#include "kernels/matmul/matmul_f32.h"

#include "kernels/matmul/matmul_tile.h"

CONV_KERNEL(conv_f32_128, 128, 128, 16, true)
CONV_KERNEL(conv_f32_64_256, 64, 256, 32, true)
CONV_KERNEL(conv_f32_64, 64, 64, 16, false)
