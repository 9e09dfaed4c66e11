/* What the kernels for quantized matrices take. */
#ifndef WW_KERNELS_QUANT_H
#define WW_KERNELS_QUANT_H

#include <stdint.h>

enum {
    QUANT_THREADS = 256,
    QUANT_UNIT = 4,    /* elements that a thread decodes */
    QUANT_TEAM = 32,   /* threads that work together in products: a wave, or half of one */
    QUANT_CLASSES = 8, /* accumulators of a result: that of block b is number b % 8 */
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

/* quant_activations: columns of floats become codes (blocks_encode.h: q8_1 or q8_k) in planes as the products want them. A team
 * of 32 threads for 128 elements of a column, or for a block of 256; blocks of QUANT_THREADS. Elements behind a column's last,
 * and columns that are not there, are coded as zeros. A block that cannot be coded has the factor NaN.
 *
 * Columns are taken in groups of `group`. Of group g, block at place p, column c of the group:
 *     factors[(g * blocks_kept + p) * group + c]                           f32
 *     sums[(g * pieces + piece) * group + c]                               of each 32 codes: two i16, of the first 16 and the
 * rest For few columns (group 8) place p is block p, and codes come as tensor cores want them: 32 codes of 8 columns together,
 * of each column the words 0 4 1 5 2 6 3 7. For tiles, each column has its codes in a row, and the blocks of one accumulator
 * follow each other: place p is block p % (blocks_kept / 8) * 8 + p / (blocks_kept / 8). */
typedef struct quant_activations_args {
    const float *from;
    uint64_t from_stride;   /* floats from column to column */
    const uint32_t *source; /* the column of `from` in each place, UINT32_MAX for none; NULL: the same */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused; /* lowered to the number of the first block that cannot be coded; NULL: nobody asks */
    uint64_t number;   /* of the first */
    uint32_t columns;  /* of `from` */
    uint32_t places;   /* of columns, a multiple of group */
    uint32_t group;
    uint32_t blocks, blocks_kept; /* of a column; kept is what there is room for, a multiple of 4, of 16 for tiles */
    int32_t type;                 /* BLOCK_Q8_1 or BLOCK_Q8_K */
    int32_t tiles;                /* not 0: for tiles */
} quant_activations_args;

/* quant_few_TYPE: QUANT_FEW_ROWS rows of weights times QUANT_FEW_COLUMNS columns for each block of QUANT_THREADS;
 * block_index_y() and first_group choose the group of columns. */
enum { QUANT_FEW_ROWS = 16, QUANT_FEW_COLUMNS = 8 };

typedef struct quant_few_args {
    const uint8_t *weights;
    uint64_t weights_stride; /* bytes from row to row */
    const uint32_t *codes;
    const float *factors;
    const uint32_t *sums;
    const uint32_t *source;     /* as in quant_activations */
    const uint64_t *first_rows; /* of each group: the row of the weights that is its row 0; NULL: 0 */
    float *y;
    uint64_t rows;
    uint32_t columns, first_group;
    uint32_t blocks, blocks_kept;
} quant_few_args;

/* The formats that have products of their own: QUANT_FORMAT(name, type). */
#define QUANT_FORMATS(QUANT_FORMAT)                                                                                            \
    QUANT_FORMAT(q4_0, BLOCK_Q4_0)                                                                                             \
    QUANT_FORMAT(q4_1, BLOCK_Q4_1)                                                                                             \
    QUANT_FORMAT(q5_0, BLOCK_Q5_0)                                                                                             \
    QUANT_FORMAT(q5_1, BLOCK_Q5_1)                                                                                             \
    QUANT_FORMAT(q8_0, BLOCK_Q8_0)                                                                                             \
    QUANT_FORMAT(q8_1, BLOCK_Q8_1)                                                                                             \
    QUANT_FORMAT(q2_k, BLOCK_Q2_K)                                                                                             \
    QUANT_FORMAT(q3_k, BLOCK_Q3_K)                                                                                             \
    QUANT_FORMAT(q4_k, BLOCK_Q4_K)                                                                                             \
    QUANT_FORMAT(q5_k, BLOCK_Q5_K)                                                                                             \
    QUANT_FORMAT(q6_k, BLOCK_Q6_K)                                                                                             \
    QUANT_FORMAT(q8_k, BLOCK_Q8_K)

/* quant_product_plain: 16 threads for a row of f32, f16 or bf16 and one column, as canonical dot products; block_index_y()
 * chooses the column. */
typedef struct quant_product_args {
    const uint8_t *weights;
    const float *x;
    float *y;
    const uint64_t *first_rows; /* of each column; NULL: 0 */
    uint64_t rows, columns, first_column;
    uint64_t weights_stride; /* bytes from row to row */
    uint64_t cols;
    int32_t type;
} quant_product_args;

#endif
