/* Encodes and decodes blocks with AVX2. */
#include "cpu/isa/avx2/avx2.h"

#include "cpu/isa/avx2/quant_dot.h"

#include "cpu/quant/decode.h"

#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_avx2[BLOCK_TYPES] = QUANT_CODERS;
