/* Coding and decoding blocks with avx2. */
#include "cpu/quant/quant_kernels.h"

const quant_coder quant_coders_avx2[BLOCK_TYPES] = QUANT_CODERS;
