/* The same where rows are few, for chips on which the copy engine brings stages to quant_few.c: of an octet of blocks only
 * those of some accumulators are wanted, so many small copies that threads make them faster.
 */
#define STAGES_BY_THREADS
#include "kernels/quant_few.h"

#define QUANT_FORMAT(name, type) FEW_KERNEL(quant_split_##name, type)
QUANT_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
