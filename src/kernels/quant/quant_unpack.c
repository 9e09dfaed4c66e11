/* Weights unpacked for tiles (quant_unpack.h): formats whose codes are numbers. */
#include "kernels/quant/quant_unpack.h"

UNPACK_KERNEL(quant_unpack_block32, BLOCK_FORMATS_LINEAR, UNPACK_BLOCK32)
UNPACK_KERNEL(quant_unpack_kblock, BLOCK_FORMATS_LINEAR, UNPACK_KBLOCK)
