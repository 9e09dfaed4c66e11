/* Coding and decoding blocks with neon. */
#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_neon[BLOCK_TYPES] = QUANT_CODERS;
