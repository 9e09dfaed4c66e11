/* Products of codes, one at a time: the reference for the others. */
#include <string.h>

#include "cpu/isa/scalar/scalar.h"

static bool present(void)
{
    return true;
}

static void one(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out)
{
    for (int32_t r = 0; r < row_count; r++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < padded; i++)
            sum += query[i] * rows[r * padded + i];
        out[r] = sum;
    }
}

static void one_high(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded, int32_t *out)
{
    const int32_t half = padded / 2;
    for (int32_t r = 0; r < row_count; r++, highs += half) {
        int32_t sum = 0;
        for (int32_t i = 0; i < half; i++)
            sum += query[i] * (int8_t)(highs[i] & 0xf0) + query[half + i] * (int8_t)(highs[i] << 4 & 0xf0);
        out[r] = sum;
    }
}

static void pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    memcpy(packed, codes, (size_t)GROUP * (size_t)padded);
}

static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++, packed += GROUP * padded + GROUP_BIAS) {
        for (int32_t q = 0; q < GROUP; q++) {
            int32_t column[UNIT_ROWS];
            one(packed + q * padded, prepared, row_count, padded, column);
            for (int32_t r = 0; r < row_count; r++)
                out[(g * UNIT_ROWS + r) * GROUP + q] = column[r];
        }
    }
}

const screen_products products_scalar = {
    .name = "scalar", .present = present, .code_bytes = 1, .one = one, .one_high = one_high, .pack = pack, .groups = groups};
