/* Checks whether weights are finite by the factors of their blocks: codes are integers, and the largest code of any format
 * times the largest f16 is far below the largest f32.
 */
#include <stdint.h>
#include <string.h>

#include "gguf/load.h"

/* Where a block's f16 factors are. */
typedef struct factor_places {
    int32_t count;
    int32_t at[2]; /* bytes */
} factor_places;

static bool find_places(ww_quant_type type, factor_places *out)
{
    switch (type) {
    case WW_QUANT_Q4_0:
    case WW_QUANT_Q5_0:
    case WW_QUANT_Q8_0:
    case WW_QUANT_IQ4_NL:
    case WW_QUANT_IQ4_XS:
        *out = (factor_places){1, {0}};
        return true;
    case WW_QUANT_Q4_1:
    case WW_QUANT_Q5_1:
    case WW_QUANT_Q4_K:
    case WW_QUANT_Q5_K:
        *out = (factor_places){2, {0, 2}};
        return true;
    case WW_QUANT_Q2_K: /* after 16 scales and 64 bytes of codes */
        *out = (factor_places){2, {80, 82}};
        return true;
    case WW_QUANT_Q3_K: /* after 32, 64 and 12 bytes */
        *out = (factor_places){1, {108}};
        return true;
    case WW_QUANT_Q6_K: /* after 128, 64 and 16 bytes */
        *out = (factor_places){1, {208}};
        return true;
    default:
        return false;
    }
}

/* Returns true if no exponent of these 16-bit floats is all ones. */
static bool are_finite_16(const unsigned char *bytes, size_t count, uint32_t exponent)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        bad |= (uint32_t)((bits & exponent) == exponent);
    }
    return bad == 0;
}

static bool are_finite_32(const unsigned char *bytes, size_t count)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        bad |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return bad == 0;
}

bool gguf_finite(ww_quant_type type, const unsigned char *blocks, size_t bytes)
{
    const size_t block_bytes = (size_t)ww_quant_block_bytes(type);
    factor_places places;
    uint32_t bad = 0;
    if (type == WW_QUANT_F32)
        return are_finite_32(blocks, bytes / sizeof(uint32_t));
    if (type == WW_QUANT_F16 || type == WW_QUANT_BF16)
        return are_finite_16(blocks, bytes / sizeof(uint16_t), type == WW_QUANT_F16 ? 0x7c00 : 0x7f80);
    if (!find_places(type, &places))
        return false;
    for (size_t at = 0; at + block_bytes <= bytes; at += block_bytes)
        for (int32_t f = 0; f < places.count; f++) {
            uint16_t bits;
            memcpy(&bits, blocks + at + places.at[f], sizeof bits);
            bad |= (uint32_t)((bits & 0x7c00) == 0x7c00);
        }
    return bad == 0;
}
