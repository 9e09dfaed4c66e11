/* Convolutions of f32 in fast mode with the image in shared memory (conv_shared.h), for matrix units that multiply f32. */
#include "kernels/matmul/conv_shared.h"

CONV_SHARED(f32, TYPE_F32)
