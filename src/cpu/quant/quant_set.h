/* Encoding, decoding and multiplying blocks on the CPU: the tables that an instruction set fills, one entry for each format. */
#ifndef WW_CPU_QUANT_QUANT_SET_H
#define WW_CPU_QUANT_QUANT_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "arithmetic/blocks/blocks.h"

typedef struct quant_coder {
    /* Encodes floats as `count` consecutive blocks. Returns the index of the first that cannot be encoded, or count. */
    int64_t (*encode)(const float *from, void *to, int64_t count);
    /* Converts a row of `count` blocks from a file's layout to this backend's (cpu/quant/layout.h), in place; and back,
     * elsewhere. */
    void (*arrange)(void *row, int64_t count);
    void (*restore)(const void *row, void *blocks, int64_t count);
    /* Decodes a row in this backend's layout to floats. */
    void (*decode)(const void *row, float *to, int64_t count);
} quant_coder;

/* ---- products: gemv or tiles, which give the same bits (cpu/quant/product.c says which when) ----------------------------- */

enum {
    GEMV_COLUMNS = 8, /* maximum in one call of `gemv` */
    TILE_SIDE = 16    /* rows of a panel, columns of a tile */
};

/* Rows of weights, and some prepared rows of activations. */
typedef struct quant_gemv {
    const char *weights;
    int64_t weights_stride; /* bytes from row to row, here and below */
    int64_t rows, blocks;   /* blocks of a row */
    const char *activations;
    int64_t activations_stride, columns;
    const int64_t *places; /* column c here is column places[c] of the result */
    float *out;            /* out[places[c] * out_stride + row] */
    int64_t out_stride;
} quant_gemv;

/* A panel and some tiles. */
typedef struct quant_tiles {
    const void *panel;
    int64_t rows, blocks; /* rows to compute, 1..16 */
    const char *tiles;
    int64_t columns;
    float *sums; /* TILE_SUMS floats for each tile */
    const int64_t *places;
    float *out; /* as above, for the panel's first row */
    int64_t out_stride;
} quant_tiles;

enum { TILE_SUMS = 3 * TILE_SIDE * TILE_SIDE };

typedef struct quant_product {
    /* Prepares `blocks` blocks of one column, encoded as q8_1 or q8_k, for `gemv`: gemv_bytes for every eight blocks, rounded
     * up. */
    void (*gemv_prepare)(const void *coded, int64_t blocks, void *to);
    void (*gemv)(const quant_gemv *piece);

    /* Prepares blocks of up to 16 columns, `stride` bytes apart, for `tiles`: tile_bytes for each block, ordered as panels
     * are. */
    void (*tile_prepare)(const void *coded, int64_t stride, int64_t columns, int64_t blocks, void *to);
    /* Unpacks sixteen rows of weights, panel_bytes for each block: first blocks 0, 8, 16, ..., then 1, 9, ... */
    void (*panel)(const char *const rows[TILE_SIDE], int64_t blocks, void *to);
    void (*tiles)(const quant_tiles *piece);
    int32_t gemv_bytes, tile_bytes, panel_bytes;
} quant_product;

/* One of an instruction set's ways to work on blocks. */
typedef struct quant_set {
    const char *name;              /* NULL ends a list */
    bool (*present)(void);         /* returns true if the machine supports it, besides the instruction set; NULL: always */
    const quant_coder *coders;     /* BLOCK_TYPES of them, by format; unused numbers are empty */
    const quant_product *products; /* BLOCK_TYPES of them, by format */
    int32_t gemv_columns_max,
        gemv_columns_max_kblock;       /* columns up to which gemv is faster than tiles, for blocks of 32 and of 256 */
    void (*tiles_begin)(int32_t type); /* called around a thread's calls of `tiles`; may be NULL */
    void (*tiles_end)(void);
} quant_set;

#endif
