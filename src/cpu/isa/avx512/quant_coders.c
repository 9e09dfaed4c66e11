/* Encodes and decodes blocks with AVX-512. */
#include "cpu/isa/avx512/avx512.h"

#include "cpu/isa/avx2/quant_dot.h"

#include "cpu/quant/decode.h"

#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_avx512[BLOCK_TYPES] = QUANT_CODERS;
