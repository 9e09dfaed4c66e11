/* Shared by both ways to divide a matrix product into blocks (matmul.c, shared_panels.c): packing, the tiles of a block, and
 * converting sums to elements of c.
 */
#ifndef WW_CPU_MATMUL_BLOCK_H
#define WW_CPU_MATMUL_BLOCK_H

#include <stddef.h>

#include "cpu/matmul/matmul.h"

typedef struct matmul_work {
    const matmul_tiles *tiles;
    const matmul_job *job;
    int32_t packing; /* the type, or MATMUL_BF16_PAIRS */
    matmul_shape shape;
    int64_t block_rows, block_columns;  /* multiples of the tile's, unless the matrix is smaller */
    int64_t blocks_down, blocks_across; /* of each matrix of the batch */
    char *scratch;                      /* for all workers */
    size_t worker_bytes, a_bytes, b_bytes, row_bytes;
    bool through_scratch; /* sums go through the worker's memory, because c has a narrower type or its columns are not adjacent
                           */
} matmul_work;

/* Bytes of a sum. */
static inline int64_t matmul_sum_bytes(int32_t type)
{
    return type == TYPE_F64 ? 8 : 4;
}

/* Some rows of a, or columns of b, of one matrix of the batch, and some steps of k. */
typedef struct matmul_slice {
    int64_t matrix;         /* offset of the matrix, in elements */
    int64_t first, count;   /* rows of a, or columns of b */
    int64_t first_k, depth; /* steps */
} matmul_slice;

/* Packs a slice of a, or of b. `row` is scratch memory for a row of b that is seen through a window. */
void matmul_panels_of_a(const matmul_work *w, const matmul_slice *slice, char *panels);
void matmul_panels_of_b(const matmul_work *w, const matmul_slice *slice, char *row, char *panels);

/* Returns the bytes of a panel per row or column. */
int64_t matmul_panel_step(const matmul_work *w, int64_t depth);

/* A block of c and the panels of one chunk of k that are added to it. */
typedef struct matmul_block {
    const char *a, *b;
    int64_t depth;
    int64_t rows, columns;
    char *sums;     /* of the block's first row and column */
    int64_t stride; /* elements from row to row */
    int32_t which;  /* MATMUL_FIRST, MATMUL_LAST */
} matmul_block;

/* Computes all tiles of a block for one chunk. */
void matmul_add_chunk(const matmul_work *w, const matmul_block *block);

/* Writes a row of a block's sums to row `c` of the result: contiguously, or to the rows of the output of a window. */
void matmul_put_row(const matmul_work *w, const char *sums, int64_t first_column, int64_t columns, char *c);

#endif
