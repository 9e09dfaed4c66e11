/* Convolutions of f16 and bf16 in fast mode with the image in shared memory (conv_shared.h), and weights of all types arranged
 * for that. */
#include "kernels/matmul/conv_shared.h"

KERNEL(conv_arrange, conv_args, MATMUL_THREADS)
{
    if (args.product.type == TYPE_F32)
        arrange(TYPE_F32, &args);
    else
        arrange(TYPE_F16, &args); /* only bits are moved */
}

KERNEL_RESIDENT(conv_shared_f16, conv_args, CONV_THREADS, 2)
{
    SHARED_DYNAMIC(uint32_t, pixels);
    conv_shared_tile(TYPE_F16, &args, pixels);
}

KERNEL_RESIDENT(conv_shared_bf16, conv_args, CONV_THREADS, 2)
{
    SHARED_DYNAMIC(uint32_t, pixels);
    conv_shared_tile(TYPE_BF16, &args, pixels);
}
