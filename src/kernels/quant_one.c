/* Products of quantized weights with a single column (quant_few.h), a kernel for each format. */
#include "kernels/quant_few.h"

#define QUANT_FORMAT(name, type)                                                                                               \
    FEW_KERNEL(quant_one_##name, type, true, STAGES_SHARED ? QUANT_FEW_RESIDENT : QUANT_ONE_RESIDENT(type))
QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
