/* The last blocks of a row for gemv: those after its last whole group, which are stored one after the other as in a file. For
 * example, a row of 576 elements has two groups of eight blocks of 32, and two more blocks. Only for blocks of 32. */
#ifndef WW_CPU_QUANT_GEMV_REST_H
#define WW_CPU_QUANT_GEMV_REST_H

#include "cpu/quant/gemv_activations.h"

/* Activations for these blocks: codes in the order of blocks again. */
typedef struct gemv_rest {
    int8_t codes[BLOCK_GROUP][BLOCK32_ELEMENTS];
    int32_t sums[BLOCK_GROUP];
    float d[BLOCK_GROUP];
} gemv_rest;

DOT_FUNCTION void gemv_rest_prepare(const gemv_small *x, int64_t count, gemv_rest *to)
{
    for (int64_t l = 0; l < count; l++)
        for (int32_t i = 0; i < 8; i++)
            memcpy(to->codes[l] + (int64_t)4 * i, &x->codes[i][l], 4);
    if (count > 0) { /* of all eight blocks: sets load them into registers */
        memcpy(to->sums, x->sums, sizeof to->sums);
        memcpy(to->d, x->d, sizeof to->d);
    }
}

/* Loads an f16 from memory as a float. A set with an instruction for that defines GEMV_HALF first. */
DOT_FUNCTION float gemv_rest_half(const char *from)
{
#if defined(GEMV_HALF)
    return GEMV_HALF(from);
#else
    block_f16 half;
    memcpy(&half, from, sizeof half);
    return block_f32_from_f16(half);
#endif
}

DOT_FUNCTION dot_factors gemv_rest_factors(int32_t type, const char *block)
{
    const float d =
        type == BLOCK_MXFP4 ? block_e8m0_half(((const block_mxfp4 *)(const void *)block)->e) : gemv_rest_half(block);
    return (dot_factors){d, dot_has_min(type) ? gemv_rest_half(block + sizeof(block_f16)) : 0.0f};
}

/* Returns the sum of products of the codes of a block. */
DOT_FUNCTION int32_t gemv_rest_dot(int32_t type, const char *block, const int8_t *activations)
{
    dot_piece piece;
    int8_t codes[BLOCK32_ELEMENTS];
    int32_t sum = 0;
    dot_load(type, block, 0, &piece);
    memcpy(codes, piece.words, sizeof codes);
    for (int32_t i = 0; i < BLOCK32_ELEMENTS; i++)
        sum += codes[i] * activations[i];
    return sum;
}

/* Adds `count` blocks to the accumulators of a row and a column. */
DOT_FUNCTION void gemv_rest_add(int32_t type, const char *blocks, int64_t count, const gemv_rest *x, float *acc)
{
    for (int64_t l = 0; l < count; l++) {
        const char *block = blocks + l * block_bytes(type);
        const int32_t start = dot_offset(type) ? x->sums[l] : 0;
        acc[l] = dot_add(gemv_rest_factors(type, block), x->d[l], start + gemv_rest_dot(type, block, x->codes[l]), x->sums[l],
                         dot_has_min(type), acc[l]);
    }
}

#endif
