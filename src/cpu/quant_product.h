/* Products of quantized weights with quantized activations for one instruction set: the table of both ways for every format
 * (kernels/blocks_dot.h says what the products are), compiled for the set that the including file is compiled for.
 */
#ifndef WW_CPU_QUANT_PRODUCT_H
#define WW_CPU_QUANT_PRODUCT_H

#include "cpu/quant_few.h"
#include "cpu/quant_tiles.h"

#define QUANT_PRODUCT(name, type)                                                                                              \
    static void few_prepare_##name(const void *coded, int64_t blocks, void *to)                                                \
    {                                                                                                                          \
        few_prepare_all(type, coded, blocks, to);                                                                              \
    }                                                                                                                          \
    static void few_##name(const quant_few *piece)                                                                             \
    {                                                                                                                          \
        few_rows(type, piece);                                                                                                 \
    }                                                                                                                          \
    static void tile_prepare_##name(const void *coded, int64_t stride, int64_t columns, int64_t blocks, void *to)              \
    {                                                                                                                          \
        tile_prepare_all(type, coded, stride, columns, blocks, to);                                                            \
    }                                                                                                                          \
    static void panel_##name(const char *const rows[TILE_SIDE], int64_t blocks, void *to)                                      \
    {                                                                                                                          \
        panel_fill(type, rows, blocks, to);                                                                                    \
    }                                                                                                                          \
    static void tiles_##name(const quant_tiles *piece)                                                                         \
    {                                                                                                                          \
        tiles_all(type, piece);                                                                                                \
    }
QUANT_PRODUCT(q4_0, BLOCK_Q4_0)
QUANT_PRODUCT(q4_1, BLOCK_Q4_1)
QUANT_PRODUCT(q5_0, BLOCK_Q5_0)
QUANT_PRODUCT(q5_1, BLOCK_Q5_1)
QUANT_PRODUCT(q8_0, BLOCK_Q8_0)
QUANT_PRODUCT(q8_1, BLOCK_Q8_1)
QUANT_PRODUCT(q2_k, BLOCK_Q2_K)
QUANT_PRODUCT(q3_k, BLOCK_Q3_K)
QUANT_PRODUCT(q4_k, BLOCK_Q4_K)
QUANT_PRODUCT(q5_k, BLOCK_Q5_K)
QUANT_PRODUCT(q6_k, BLOCK_Q6_K)
QUANT_PRODUCT(q8_k, BLOCK_Q8_K)
#undef QUANT_PRODUCT

#define QUANT_ENTRY(name, size)                                                                                                \
    {.few_prepare = few_prepare_##name,                                                                                        \
     .few = few_##name,                                                                                                        \
     .tile_prepare = tile_prepare_##name,                                                                                      \
     .panel = panel_##name,                                                                                                    \
     .tiles = tiles_##name,                                                                                                    \
     .few_bytes = sizeof(few_##size),                                                                                          \
     .tile_bytes = sizeof(tile_##size),                                                                                        \
     .panel_bytes = sizeof(panel_##size)}
#define QUANT_PRODUCTS                                                                                                         \
    {                                                                                                                          \
        [BLOCK_Q4_0] = QUANT_ENTRY(q4_0, small), [BLOCK_Q4_1] = QUANT_ENTRY(q4_1, small),                                      \
        [BLOCK_Q5_0] = QUANT_ENTRY(q5_0, small), [BLOCK_Q5_1] = QUANT_ENTRY(q5_1, small),                                      \
        [BLOCK_Q8_0] = QUANT_ENTRY(q8_0, small), [BLOCK_Q8_1] = QUANT_ENTRY(q8_1, small),                                      \
        [BLOCK_Q2_K] = QUANT_ENTRY(q2_k, large), [BLOCK_Q3_K] = QUANT_ENTRY(q3_k, large),                                      \
        [BLOCK_Q4_K] = QUANT_ENTRY(q4_k, large), [BLOCK_Q5_K] = QUANT_ENTRY(q5_k, large),                                      \
        [BLOCK_Q6_K] = QUANT_ENTRY(q6_k, large), [BLOCK_Q8_K] = QUANT_ENTRY(q8_k, large),                                      \
    }

#endif
