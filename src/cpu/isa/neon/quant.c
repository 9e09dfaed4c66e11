/* Coding and decoding blocks with neon. */
#include "cpu/quant/quant_kernels.h"

const quant_coder quant_coders_neon[BLOCK_TYPES] = QUANT_CODERS;
