/* What the kernels for quantized matrices take. */
#ifndef WW_KERNELS_QUANT_H
#define WW_KERNELS_QUANT_H

#include <stdint.h>

enum {
    QUANT_THREADS = 256,
    QUANT_UNIT = 4,    /* elements that a thread decodes */
    QUANT_OCTET = 8,   /* threads that share a row of weights: one for each accumulator */
    QUANT_COLUMNS = 4, /* of activations at a time */
};

/* quant_decode: rows of blocks to floats. A thread for each QUANT_UNIT elements of a row, units_per_row of them; blocks of
 * QUANT_THREADS. */
typedef struct quant_decode_args {
    const uint8_t *from;
    float *to;           /* count x cols */
    const uint64_t *ids; /* the row of `from` for each row of `to`; NULL: the same */
    uint64_t count, cols, units_per_row;
    uint64_t row_bytes;
    int32_t type, block_elements, block_bytes;
} quant_decode_args;

/* quant_encode_small: a thread for each block of at most 32 elements, and of q8_k. quant_encode_large: as many threads for a
 * block as it has runs, 8 or 16, of the other K formats. Blocks of QUANT_THREADS. */
typedef struct quant_encode_args {
    const float *from;
    uint8_t *to;
    uint64_t count;    /* of blocks */
    uint64_t number;   /* of the first */
    uint64_t *refused; /* lowered to the number of the first block that cannot hold its elements */
    int32_t type;
} quant_encode_args;

/* quant_product: QUANT_OCTET threads for each row, blocks of QUANT_THREADS; block_index_y() chooses QUANT_COLUMNS columns, or
 * one where first_rows is there. quant_product_plain: 16 threads for a row of f32, f16 or bf16 and one column, as canonical dot
 * products. */
typedef struct quant_product_args {
    const uint8_t *weights;
    const uint8_t *activations; /* of the plain kernel: floats */
    float *y;
    const uint64_t *first_rows; /* of each column; NULL: 0 */
    uint64_t rows, columns, first_column;
    uint64_t weights_stride, activations_stride; /* bytes from row to row */
    uint64_t blocks;                             /* of a row; of the plain kernel: elements */
    int32_t type;
} quant_product_args;

#endif
