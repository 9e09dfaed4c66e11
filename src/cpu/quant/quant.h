/* Quantized storage on the CPU: coding, decoding and multiplying blocks, a table for each instruction set. */
#ifndef WW_CPU_QUANT_QUANT_H
#define WW_CPU_QUANT_QUANT_H

#include <stdint.h>
#include <string.h>

#include "arithmetic/blocks/blocks.h"
#include "cpu/cpu.h"
#include "device/quant_jobs.h"

extern const quant_backend cpu_quants;

/* The block formats: as names of functions and types have them, their number, and small for blocks of 32, large for 256. */
#define QUANT_FORMATS(FORMAT)                                                                                                  \
    FORMAT(q4_0, BLOCK_Q4_0, small)                                                                                            \
    FORMAT(q4_1, BLOCK_Q4_1, small)                                                                                            \
    FORMAT(q5_0, BLOCK_Q5_0, small)                                                                                            \
    FORMAT(q5_1, BLOCK_Q5_1, small)                                                                                            \
    FORMAT(q8_0, BLOCK_Q8_0, small)                                                                                            \
    FORMAT(q8_1, BLOCK_Q8_1, small)                                                                                            \
    FORMAT(q2_k, BLOCK_Q2_K, large)                                                                                            \
    FORMAT(q3_k, BLOCK_Q3_K, large)                                                                                            \
    FORMAT(q4_k, BLOCK_Q4_K, large)                                                                                            \
    FORMAT(q5_k, BLOCK_Q5_K, large)                                                                                            \
    FORMAT(q6_k, BLOCK_Q6_K, large)                                                                                            \
    FORMAT(q8_k, BLOCK_Q8_K, large)

typedef struct quant_coder {
    /* Encodes `count` blocks of floats one behind the other; returns the first that cannot be, or count. */
    int64_t (*encode)(const float *from, void *to, int64_t count);
    /* A row of `count` blocks from how they are in a file to how they lie here (quant_layout.h), in place; and back, elsewhere.
     */
    void (*arrange)(void *row, int64_t count);
    void (*restore)(const void *row, void *blocks, int64_t count);
    /* A row as it lies here to floats. */
    void (*decode)(const void *row, float *to, int64_t count);
} quant_coder;

/* By format; entries that are no format are empty. */
extern const quant_coder quant_coders_scalar[BLOCK_TYPES], quant_coders_avx2[BLOCK_TYPES], quant_coders_avx512[BLOCK_TYPES],
    quant_coders_neon[BLOCK_TYPES];

/* ---- products -------------------------------------------------------------------------------------------------------------
 * Two ways, which give the same bits. With few columns each row of weights is read once, group by group. With many, 16 rows are
 * unpacked into a panel, and 16 columns, a tile, at a time meet it.
 */

enum {
    GEMV_COLUMNS = 8, /* at most in one call of `few` */
    TILE_SIDE = 16    /* rows of a panel, columns of a tile */
};

/* Rows of weights times some rows of activations, prepared. */
typedef struct quant_gemv {
    const char *weights;
    int64_t weights_stride; /* bytes from row to row, here and below */
    int64_t rows, blocks;   /* blocks of a row */
    const char *activations;
    int64_t activations_stride, columns;
    const int64_t *places; /* column c is column places[c] of the result */
    float *out;            /* out[places[c] * out_stride + row] */
    int64_t out_stride;
} quant_gemv;

/* A panel times some tiles. */
typedef struct quant_tiles {
    const void *panel;
    int64_t rows, blocks; /* rows that count, 1..16 */
    const char *tiles;
    int64_t columns;
    float *sums; /* TILE_SUMS floats for each tile */
    const int64_t *places;
    float *out; /* as above, of the panel's first row */
    int64_t out_stride;
} quant_tiles;

enum { TILE_SUMS = 3 * TILE_SIDE * TILE_SIDE };

typedef struct quant_product {
    /* Activations, `blocks` of one column coded as q8_1 or q8_k, for `few`: gemv_bytes for each eight blocks begun. */
    void (*gemv_prepare)(const void *coded, int64_t blocks, void *to);
    void (*gemv)(const quant_gemv *piece);

    /* Blocks of up to 16 columns, `stride` bytes apart, for `tiles`: tile_bytes for each block, ordered as panels are. */
    void (*tile_prepare)(const void *coded, int64_t stride, int64_t columns, int64_t blocks, void *to);
    /* Sixteen rows of weights, unpacked: panel_bytes for each block; first all blocks of number 0, 8, 16, ..., then 1, 9, ...
     */
    void (*panel)(const char *const rows[TILE_SIDE], int64_t blocks, void *to);
    void (*tiles)(const quant_tiles *piece);
    int32_t gemv_bytes, tile_bytes, panel_bytes;
} quant_product;

extern const quant_product quant_products_scalar[BLOCK_TYPES], quant_products_avx2[BLOCK_TYPES],
    quant_products_vnni[BLOCK_TYPES], quant_products_amx[BLOCK_TYPES], quant_products_neon[BLOCK_TYPES],
    quant_products_dotprod[BLOCK_TYPES], quant_products_i8mm[BLOCK_TYPES];

/* What an instruction set has for quantized matrices; some have several ways. */
typedef struct quant_set {
    const char *isa, *name;
    bool (*present)(void); /* beside the instruction set itself; NULL: always */
    const quant_coder *coders;
    const quant_product *products;
    int32_t gemv_most, gemv_most_large; /* columns that are few, with blocks of 32 and of 256 */
    void (*tiles_begin)(int32_t type);  /* around a thread's calls of `tiles`; may be NULL */
    void (*tiles_end)(void);
} quant_set;

/* Those of this build, for each instruction set the best first; ends with one whose name is NULL. */
extern const quant_set quant_sets[];

/* The one that a device uses. */
const quant_set *quant_set_of(const cpu_device *cpu);

void quant_amx_begin(int32_t type);
void quant_amx_end(void);

ww_status cpu_quant_product(ww_device *device, const quant_product_job *job);

/* The same with another set than the device's: what a test wants. */
ww_status quant_product_with(cpu_device *cpu, const quant_set *set, const quant_product_job *job);

#endif
