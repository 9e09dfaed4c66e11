/* Gemv of quantized weights with up to eight columns (quant_gemv.h), one kernel per format. */
#define GEMV_THREADS QUANT_GEMV_THREADS
#include "kernels/quant/quant_gemv.h"

#define QUANT_FORMAT(name, type, ...) GEMV_KERNEL(quant_gemv_##name, type, GEMV_MANY, QUANT_GEMV_RESIDENT)
BLOCK_FORMATS_LINEAR(QUANT_FORMAT)
#undef QUANT_FORMAT
