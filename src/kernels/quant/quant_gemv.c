/* Gemv of quantized weights with up to eight quantized columns (quant_gemv.h): one kernel per format. */
#define GEMV_THREADS QUANT_GEMV_THREADS
#include "kernels/quant/quant_gemv.h"

#define QUANT_FORMAT(name, type, ...)                                                                                          \
    GEMV_ENTRY(quant_gemv_##name, QUANT_GEMV_RESIDENT)                                                                         \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        SHARED_DYNAMIC(uint8_t, staged); /* the same, by bytes */                                                              \
        SHARED(uint64_t, arrivals, 2 * STAGES_MAX);                                                                            \
        SHARED(uint32_t, ticket, 1);                                                                                           \
        gemv_run(type, &args, shared, staged, arrivals, ticket);                                                               \
    }
BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
