/* Products of quantized weights with quantized activations for one instruction set: the table of both ways for every format
 * (arithmetic/blocks/dot.h says what the products are), compiled for the instruction set of the including file.
 */
#ifndef WW_CPU_QUANT_PRODUCT_TEMPLATE_H
#define WW_CPU_QUANT_PRODUCT_TEMPLATE_H

#include "cpu/quant/gemv.h"
#include "cpu/quant/tiles.h"

#define QUANT_PRODUCT(name, type, size, ...)                                                                                   \
    static void gemv_prepare_##name(const void *coded, int64_t blocks, void *to)                                               \
    {                                                                                                                          \
        gemv_prepare_all(type, coded, blocks, to);                                                                             \
    }                                                                                                                          \
    static void gemv_##name(const quant_gemv *piece)                                                                           \
    {                                                                                                                          \
        gemv_rows(type, piece);                                                                                                \
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
BLOCK_FORMATS(QUANT_PRODUCT)
#undef QUANT_PRODUCT

#define QUANT_ENTRY(name, type, size, ...)                                                                                     \
    [type] = {.gemv_prepare = gemv_prepare_##name,                                                                             \
              .gemv = gemv_##name,                                                                                             \
              .tile_prepare = tile_prepare_##name,                                                                             \
              .panel = panel_##name,                                                                                           \
              .tiles = tiles_##name,                                                                                           \
              .gemv_bytes = sizeof(gemv_##size),                                                                               \
              .tile_bytes = sizeof(tile_##size),                                                                               \
              .panel_bytes = sizeof(panel_##size)},
/* The table of a set, to initialise an array of quant_product. */
#define QUANT_PRODUCTS {BLOCK_FORMATS(QUANT_ENTRY)}

#endif
