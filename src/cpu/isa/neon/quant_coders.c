/* Encodes and decodes blocks with NEON. */
#include "cpu/isa/neon/neon.h"

#include "cpu/isa/neon/quant_dot.h"
#include "cpu/isa/neon/quant_encode.h"

#include "cpu/quant/decode.h"

#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_neon[BLOCK_TYPES] = QUANT_CODERS;
