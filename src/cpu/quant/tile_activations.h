/* Activations for tiles (tiles.h): the codes of 16 columns, block by block in the order of panels. */
#ifndef WW_CPU_QUANT_TILE_ACTIVATIONS_H
#define WW_CPU_QUANT_TILE_ACTIVATIONS_H

#include "cpu/quant/panel.h"

/* Activations of 16 columns for one block. `start`: where sums start if the weights are flipped (tile_vectors.h). */
typedef struct tile_small {
    int8_t codes[TILE_SIDE][32];
    float d[TILE_SIDE], sums[TILE_SIDE]; /* sums of codes: at most 32 * 127, so exact */
    int32_t start[TILE_SIDE];
} tile_small;

typedef struct tile_large {
    int8_t codes[TILE_SIDE][256];
    float d[TILE_SIDE];
    int32_t start[TILE_SIDE];
    int32_t pairs[TILE_SIDE][8]; /* sums of two sub-blocks per word, 16 bits each */
} tile_large;

/* Stores the codes of column c; the columns have `length` codes each. */
DOT_FUNCTION void tile_put_codes(const int8_t *from, int32_t length, int64_t c, int8_t *codes)
{
    if (!TILE_PAIRS) {
        memcpy(codes + c * length, from, (size_t)length);
        return;
    }
    int8_t *to = codes + c / 2 * 2 * length + c % 2 * 8;
    for (int32_t i = 0; i < length; i += 8)
        memcpy(to + (int64_t)2 * i, from + i, 8);
}

DOT_FUNCTION void tile_put_small(const block_q8_1 *block, int64_t c, tile_small *to)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < BLOCK32_ELEMENTS; i++)
        sum += block->codes[i];
    tile_put_codes(block->codes, BLOCK32_ELEMENTS, c, to->codes[0]);
    to->d[c] = block_f32_from_f16(block->d);
    to->sums[c] = (float)sum;
    to->start[c] = -128 * sum;
}

DOT_FUNCTION void tile_put_large(int32_t type, const block_q8_k *block, int64_t c, tile_large *to)
{
    int32_t sum = 0;
    for (int32_t r = 0; r < 16; r++)
        sum += block->sums[r];
    for (int32_t q = 0; q < 8; q++) {
        const int16_t *s = block->sums;
        int16_t two[2] = {0, 0};
        if (sub_blocks(type) == 16) {
            two[0] = s[2 * q];
            two[1] = s[2 * q + 1];
        } else if (q < 4) {
            two[0] = (int16_t)(s[4 * q] + s[4 * q + 1]);
            two[1] = (int16_t)(s[4 * q + 2] + s[4 * q + 3]);
        }
        memcpy(&to->pairs[c][q], two, sizeof two);
    }
    tile_put_codes(block->codes, KBLOCK_ELEMENTS, c, to->codes[0]);
    to->d[c] = block->d;
    to->start[c] = -128 * sum;
}

DOT_FUNCTION void tile_prepare_all(int32_t type, const char *coded, int64_t stride, int64_t columns, int64_t blocks, char *to)
{
    const int small = block_elements(type) == BLOCK32_ELEMENTS;
    if (columns < TILE_SIDE)
        memset(to, 0, (size_t)blocks * (small ? sizeof(tile_small) : sizeof(tile_large)));
    for (int64_t c = 0; c < columns; c++)
        for (int64_t b = 0; b < blocks; b++) {
            const char *from = coded + c * stride;
            const int64_t place = block_place(blocks, b);
            if (small)
                tile_put_small((const block_q8_1 *)(const void *)from + b, c, (tile_small *)(void *)to + place);
            else
                tile_put_large(type, (const block_q8_k *)(const void *)from + b, c, (tile_large *)(void *)to + place);
        }
}

#endif
