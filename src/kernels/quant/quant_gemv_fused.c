/* Products of quantized weights with a single column (quant_gemv.h), a kernel for each format. */
#include "kernels/quant/quant_gemv.h"

#define QUANT_FORMAT(name, type, ...)                                                                                          \
    FEW_KERNEL(quant_gemv_fused_##name, type, true, STAGES_SHARED ? QUANT_FEW_RESIDENT : QUANT_ONE_RESIDENT(type))
BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
