/* Convolutions of f32 in fast mode with the image in shared memory (conv_shared.h), for matrix units that multiply f32. */
#include "kernels/matmul/conv_shared.h"

KERNEL_RESIDENT(conv_shared_f32, conv_args, CONV_THREADS, 2)
{
    SHARED_DYNAMIC(uint32_t, pixels);
    conv_shared_tile(TYPE_F32, &args, pixels);
}
