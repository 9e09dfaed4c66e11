/* Coding and decoding blocks with avx2. */
#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_avx2[BLOCK_TYPES] = QUANT_CODERS;
