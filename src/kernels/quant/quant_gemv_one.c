/* Gemv of quantized weights with one column, one kernel per format. The kernel quantizes the column itself, after a norm or
 * gate if wanted, and can add results to y. So a product of a model's step is one launch.
 *
 *   quant_gemv_stay.h    sm_90a: the copy engine brings rows, and kernels start before the previous one has ended
 *   quant_gemv_direct.h  AMD chips with MFMA, and gfx10 or newer: without either
 *
 * Other chips use quant_gemv_TYPE after a kernel that quantizes the column (quant_plan.c). The emulator has both forms.
 */
#define GEMV_THREADS QUANT_GEMV_THREADS
#if !defined(__NVPTX__)
#include "kernels/quant/quant_gemv_direct.h"
#endif
#if !defined(__AMDGCN__)
#include "kernels/quant/quant_gemv_stay.h"
#endif

#if defined(__NVPTX__)
#define ONE_RUN(type) gemv_stay(type, &args, shared, staged, arrivals)
#elif defined(__AMDGCN__)
#define ONE_RUN(type) direct_run(type, &args, shared, staged, ticket)
#else
#define ONE_RUN(type)                                                                                                          \
    (args.stays ? gemv_stay(type, &args, shared, staged, arrivals) : direct_run(type, &args, shared, staged, ticket))
#endif

#define QUANT_FORMAT(name, type, ...)                                                                                          \
    GEMV_ENTRY(quant_gemv_one_##name, QUANT_GEMV_RESIDENT)                                                                     \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED_DYNAMIC(uint8_t, staged); /* the same, by bytes */                                                              \
        SHARED(uint64_t, arrivals, 2 * STAGES_MAX);                                                                            \
        SHARED(uint32_t, ticket, 1);                                                                                           \
        (void)arrivals;                                                                                                        \
        (void)ticket;                                                                                                          \
        ONE_RUN(type);                                                                                                         \
    }
BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
