/* Columns of activations coded by a kernel of their own (quant_coder.h). */
#include "kernels/quant/quant_coder.h"

/* It never ends before what is in front of it, so that what comes behind need not wait for that as well. */
KERNEL(quant_activations, quant_activations_args, QUANT_THREADS)
{
    launches_next();
    if (!args.apart)
        launches_wait();
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    code_unit(&args, thread);
    if (args.apart)
        launches_wait();
}
