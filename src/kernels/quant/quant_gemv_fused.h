/* A single column that a gemv codes itself (quant_gemv.h).
 *
 * The first thread blocks code it, each its share. All wait until every share is done. One that has waited long, for a thread
 * block that may not be running yet, does that share itself: everyone writes the same bytes. So neither the order in which
 * thread blocks begin nor how many run at a time matters.
 *
 * In a step of a model, where the column is what the kernel before it has written, every thread block codes all of it instead,
 * for itself, and nobody waits. What is coded may be the column behind a norm, or gated by another.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_FUSED_H
#define WW_KERNELS_QUANT_QUANT_GEMV_FUSED_H

#include "kernels/quant/quant_gemv_activations.h"
#include "kernels/quant/quant_gemv_stages.h"

#if defined(__AMDGCN__) || defined(__NVPTX__)
enum { GEMV_PATIENCE = 4096 }; /* looks, of a microsecond or so each */
#else
enum { GEMV_PATIENCE = 1 };
#endif

DEVICE uint32_t gemv_coding_shares(int32_t type, const quant_gemv_args *args)
{
    const uint32_t wanted = (code_units(dot_activations(type), args->blocks_padded) + 7) / 8;
    const uint32_t most = block_count() < QUANT_CODING_SHARES ? block_count() : QUANT_CODING_SHARES;
    return wanted < most ? wanted : most;
}

/* What coding the column takes. */
DEVICE quant_gemv_activations_args gemv_coding(int32_t type, const quant_gemv_args *args, quant_input input)
{
    const quant_gemv_activations_args coding = {.from = args->x,
                                                .from_stride = 0,
                                                .source = NULL,
                                                .codes = args->codes,
                                                .factors = args->factors,
                                                .sums = args->sums,
                                                .refused = args->refused,
                                                .first_block = args->first_block,
                                                .columns = 1,
                                                .columns_padded = 1,
                                                .width = 1,
                                                .blocks = args->blocks,
                                                .blocks_padded = args->blocks_padded,
                                                .type = dot_activations(type),
                                                .rotation = stage_rotation(type),
                                                .independent = 0,
                                                .input = input};
    return coding;
}

/* All of the column, by all threads; `lanes` are QUANT_NORM_LANES floats of shared memory. */
DEVICE void gemv_code_whole(int32_t type, const quant_gemv_args *args, float *lanes)
{
    const quant_gemv_activations_args coding = gemv_coding(type, args, args->input);
    code_column(&coding, args->blocks * (uint32_t)block_length(type), 0, lanes);
    stages_written();
    barrier();
}

/* Where this thread block's codes are, of a column that each has for itself. */
DEVICE void gemv_own(quant_gemv_args *args)
{
    const uint64_t from = args->x ? (uint64_t)block_index() * args->own_words : 0;
    args->codes += from;
    args->sums += from;
    args->factors += from;
}

/* By all threads. */
DEVICE void gemv_code_share(int32_t type, const quant_gemv_args *args, uint32_t share)
{
    const quant_input plain = {NULL, NULL, 0.0f, 0.0f, INPUT_PLAIN, 0};
    const quant_gemv_activations_args coding = gemv_coding(type, args, plain);
    const uint32_t units = code_units(coding.type, args->blocks_padded), own = thread_index() / QUANT_TEAM;
    UNROLL_BY(1)
    for (uint32_t from = share * 8; from < units; from += gemv_coding_shares(type, args) * 8) {
        /* A team past the last unit repeats that one, so that the threads of a wave do not diverge. */
        const uint32_t unit = from + own < units ? from + own : units - 1;
        code_unit(&coding, unit * QUANT_TEAM + thread_index() % QUANT_TEAM);
    }
    memory_fence_device();
    barrier();
    if (thread_index() == 0)
        atomic_store_u32(&args->shares_done[share], args->sequence);
}

/* By all threads: until all shares are done. */
DEVICE void gemv_await_codes(int32_t type, const quant_gemv_args *args, uint32_t *missing)
{
    const uint32_t shares = gemv_coding_shares(type, args), mine = thread_index();
    UNROLL_BY(1)
    while (true) {
        if (mine == 0)
            AT(missing, 0) = shares;
        barrier();
        uint32_t looks = 0;
        if (mine < shares)
            while (atomic_load_u32(&args->shares_done[mine]) != args->sequence && looks < GEMV_PATIENCE)
                looks++;
        if (looks == GEMV_PATIENCE)
            AT(missing, 0) = mine;
        memory_fence_device();
        barrier();
        const uint32_t share = AT(missing, 0);
        barrier();
        if (share == shares)
            return;
        gemv_code_share(type, args, share);
    }
}

#endif
