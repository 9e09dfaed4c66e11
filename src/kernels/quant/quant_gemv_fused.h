/* A single column that a product codes itself, on the way (quant_gemv.h).
 *
 * The first blocks of threads code it, each its share. All wait until every share is done; who has waited for long, for a block
 * that perhaps does not run yet, does that share, too: whoever does it writes the same. So it does not matter in which order
 * blocks begin, or how many run at a time.
 */
#ifndef WW_KERNELS_QUANT_QUANT_GEMV_FUSED_H
#define WW_KERNELS_QUANT_QUANT_GEMV_FUSED_H

#include "kernels/quant/quant_coder.h"
#include "kernels/quant/quant_stages.h"

#if defined(__AMDGCN__) || defined(__NVPTX__)
enum { FEW_PATIENCE = 4096 }; /* looks, of a microsecond or so each */
#else
enum { FEW_PATIENCE = 1 };
#endif

DEVICE uint32_t few_shares(int32_t type, const quant_gemv_args *args)
{
    const uint32_t wanted = (code_units(dot_activations(type), args->blocks_kept) + 7) / 8;
    const uint32_t most = block_count() < QUANT_SHARES ? block_count() : QUANT_SHARES;
    return wanted < most ? wanted : most;
}

/* By all threads. */
DEVICE void few_code(int32_t type, const quant_gemv_args *args, uint32_t share)
{
    const quant_activations_args coding = {.from = args->x,
                                           .from_stride = 0,
                                           .source = NULL,
                                           .codes = args->codes,
                                           .factors = args->factors,
                                           .sums = args->sums,
                                           .refused = args->refused,
                                           .number = args->number,
                                           .columns = 1,
                                           .places = 1,
                                           .width = 1,
                                           .blocks = args->blocks,
                                           .blocks_kept = args->blocks_kept,
                                           .type = dot_activations(type),
                                           .turn = stage_turn(type),
                                           .apart = 0};
    const uint32_t units = code_units(coding.type, args->blocks_kept), own = thread_index() / QUANT_TEAM;
    UNROLL_BY(1)
    for (uint32_t from = share * 8; from < units; from += few_shares(type, args) * 8) {
        /* A team behind the last does its work once more, lest the threads of a wave part. */
        const uint32_t unit = from + own < units ? from + own : units - 1;
        code_unit(&coding, unit * QUANT_TEAM + thread_index() % QUANT_TEAM);
    }
    memory_fence_device();
    barrier();
    if (thread_index() == 0)
        atomic_store_u32(&args->coded[share], args->turn);
}

/* By all threads: until all shares are done. */
DEVICE void few_await_codes(int32_t type, const quant_gemv_args *args, uint32_t *missing)
{
    const uint32_t shares = few_shares(type, args), mine = thread_index();
    UNROLL_BY(1)
    while (true) {
        if (mine == 0)
            AT(missing, 0) = shares;
        barrier();
        uint32_t looks = 0;
        if (mine < shares)
            while (atomic_load_u32(&args->coded[mine]) != args->turn && looks < FEW_PATIENCE)
                looks++;
        if (looks == FEW_PATIENCE)
            AT(missing, 0) = mine;
        memory_fence_device();
        barrier();
        const uint32_t share = AT(missing, 0);
        barrier();
        if (share == shares)
            return;
        few_code(type, args, share);
    }
}

#endif
