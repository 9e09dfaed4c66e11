/* Coding and decoding blocks with avx512. */
#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_avx512[BLOCK_TYPES] = QUANT_CODERS;
