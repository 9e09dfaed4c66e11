/* Coding and decoding blocks with avx512. */
#include "cpu/quant/quant_kernels.h"

const quant_coder quant_coders_avx512[BLOCK_TYPES] = QUANT_CODERS;
