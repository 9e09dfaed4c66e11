/* Activations that are made and coded for a gemv at once (quant_gemv_activations.h): behind a norm, and gated. */
#include "kernels/quant/quant_gemv_activations.h"

/* A thread block for each column. */
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
