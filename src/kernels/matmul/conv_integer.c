/* Convolutions of u8 and u32: a thread makes an output at a time (arithmetic/conv_integer.h). */
#include "kernels/simt/simt.h"

#include "arithmetic/conv_integer.h"

KERNEL(conv_integer, conv_integer_args, CONV_INTEGER_THREADS)
{
    for (int64_t i = (int64_t)block_index() * CONV_INTEGER_THREADS + thread_index(); i < args.count;
         i += (int64_t)block_count() * CONV_INTEGER_THREADS)
        conv_integer_output(&args, i);
}
