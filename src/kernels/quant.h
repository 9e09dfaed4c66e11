/* What the kernels for quantized matrices take. */
#ifndef WW_KERNELS_QUANT_H
#define WW_KERNELS_QUANT_H

#include <stdint.h>

enum {
    QUANT_THREADS = 256,
    QUANT_UNIT = 4 /* elements that a thread decodes */
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

#endif
