/* Coding and decoding blocks with no instruction set in particular. */
#define QUANT_SCALAR
#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_scalar[BLOCK_TYPES] = QUANT_CODERS;
