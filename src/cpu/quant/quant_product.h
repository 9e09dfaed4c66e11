/* Products of quantized weights with quantized activations for one instruction set: the table of both ways for every format
 * (arithmetic/blocks/dot.h says what the products are), compiled for the set that the including file is compiled for.
 */
#ifndef WW_CPU_QUANT_QUANT_PRODUCT_H
#define WW_CPU_QUANT_QUANT_PRODUCT_H

#include "cpu/quant/quant_gemv.h"
#include "cpu/quant/quant_tiles.h"

#define QUANT_PRODUCT(name, type, size)                                                                                        \
    static void few_prepare_##name(const void *coded, int64_t blocks, void *to)                                                \
    {                                                                                                                          \
        few_prepare_all(type, coded, blocks, to);                                                                              \
    }                                                                                                                          \
    static void few_##name(const quant_gemv *piece)                                                                            \
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
QUANT_FORMATS(QUANT_PRODUCT)
#undef QUANT_PRODUCT

#define QUANT_ENTRY(name, type, size)                                                                                          \
    [type] = {.few_prepare = few_prepare_##name,                                                                               \
              .few = few_##name,                                                                                               \
              .tile_prepare = tile_prepare_##name,                                                                             \
              .panel = panel_##name,                                                                                           \
              .tiles = tiles_##name,                                                                                           \
              .few_bytes = sizeof(few_##size),                                                                                 \
              .tile_bytes = sizeof(tile_##size),                                                                               \
              .panel_bytes = sizeof(panel_##size)},
/* The table of a set: what an array of quant_product is initialised with. */
#define QUANT_PRODUCTS {QUANT_FORMATS(QUANT_ENTRY)}

#endif
