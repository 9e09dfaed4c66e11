/* Encodes and decodes blocks on every machine: groups are unpacked and decoded element by element. */
#include "arithmetic/blocks/decode.h"
#include "cpu/isa/scalar/scalar.h"
#include "cpu/quant/layout.h"

static void group_decode(int32_t type, const char *group, float *to)
{
    char blocks[GROUP_BYTES_MAX] = {0};
    group_deinterleave(type, group, blocks);
    for (int32_t i = 0; i < BLOCK_GROUP * block_elements(type); i++)
        to[i] = decode_element(type, blocks + i / block_elements(type) * block_bytes(type), i % block_elements(type));
}

#include "cpu/quant/coder_template.h"

const quant_coder quant_coders_scalar[BLOCK_TYPES] = QUANT_CODERS;
