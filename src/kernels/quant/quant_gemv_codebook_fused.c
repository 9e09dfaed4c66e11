/* The same with a single column, which the kernel codes itself. */
#include "kernels/quant/quant_gemv_step.h"

#define QUANT_FORMAT(name, type, ...)                                                                                          \
    GEMV_KERNEL(quant_gemv_fused_##name, type, GEMV_FUSED, STAGES_CAN_SPLIT ? QUANT_GEMV_RESIDENT : QUANT_FUSED_RESIDENT(type))
BLOCK_FORMATS_CODEBOOK(QUANT_FORMAT)
#undef QUANT_FORMAT

#define QUANT_FORMAT(name, type, ...) GEMV_STEP_KERNEL(quant_gemv_step_##name, type)
BLOCK_FORMATS_CODEBOOK(QUANT_FORMAT)
#undef QUANT_FORMAT
