/* Convolutions of f16 and bf16 in fast mode with the image in shared memory (conv_shared.h). */
#include "kernels/matmul/conv_shared.h"

CONV_SHARED(f16, TYPE_F16)
CONV_SHARED(bf16, TYPE_BF16)
