/* Convolutions of u8 and u32: a thread computes one output at a time (arithmetic/conv_integer.h). */
#include "kernels/simt/simt.h"

#include "arithmetic/conv_integer.h"

/* GCN and CDNA have fewer scalar registers than there are strides, so they are read again for each output. */
#if defined(__GFX9__)
#define CONV_INTEGER_ARGS (const conv_integer_args *)arguments_again(&args)
#else
#define CONV_INTEGER_ARGS &args
#endif

KERNEL(conv_integer, conv_integer_args, CONV_INTEGER_THREADS)
{
    for (int64_t i = (int64_t)block_index() * CONV_INTEGER_THREADS + thread_index(); i < args.count;
         i += (int64_t)block_count() * CONV_INTEGER_THREADS)
        conv_integer_output(CONV_INTEGER_ARGS, i);
}
