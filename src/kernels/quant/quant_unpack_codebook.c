/* Weights unpacked for tiles (quant_unpack.h): formats whose codes are places in a codebook. */
#include "kernels/quant/quant_unpack.h"

UNPACK_KERNEL(quant_unpack_codebook_block32, BLOCK_FORMATS_CODEBOOK, UNPACK_BLOCK32)
UNPACK_KERNEL(quant_unpack_codebook_kblock, BLOCK_FORMATS_CODEBOOK, UNPACK_KBLOCK)
