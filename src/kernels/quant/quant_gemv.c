/* Products of quantized weights with up to eight columns (quant_gemv.h), a kernel for each format. */
#include "kernels/quant/quant_gemv.h"

#define QUANT_FORMAT(name, type, ...) FEW_KERNEL(quant_gemv_##name, type, false, QUANT_FEW_RESIDENT)
BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
