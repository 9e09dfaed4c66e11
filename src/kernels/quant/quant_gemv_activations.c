/* Activations coded for a gemv by a kernel of its own (quant_gemv_activations.h). */
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
