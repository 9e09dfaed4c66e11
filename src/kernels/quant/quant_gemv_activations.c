/* Activations coded for a gemv by kernels of their own (quant_gemv_activations.h). */
#include "kernels/quant/quant_gemv_activations.h"

/* It never ends before the kernel queued before it, so that the next one need not wait for both. */
KERNEL(quant_gemv_activations, quant_gemv_activations_args, QUANT_THREADS)
{
    launches_next();
    if (!args.independent)
        launches_wait();
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    quant_gemv_activations_args coding = args;
    coding.input.kind = INPUT_PLAIN;
    code_unit(&coding, thread);
    if (args.independent)
        launches_wait();
}

/* Those that are made and coded at once, behind a norm: a thread block for each column; and gated. */
KERNEL(quant_gemv_norm, quant_gemv_activations_args, QUANT_THREADS)
{
    SHARED(float, lanes, QUANT_NORM_LANES);
    launches_wait();
    launches_next();
    quant_gemv_activations_args coding = args;
    coding.input.kind = INPUT_NORM;
    code_column(&coding, args.blocks * (args.type == BLOCK_Q8_1 ? 32 : 256), block_index(), lanes);
}

KERNEL(quant_gemv_gated, quant_gemv_activations_args, QUANT_THREADS)
{
    launches_wait();
    launches_next();
    quant_gemv_activations_args coding = args;
    coding.input.kind = INPUT_GATED;
    code_unit(&coding, (uint64_t)block_index() * QUANT_THREADS + thread_index());
}
