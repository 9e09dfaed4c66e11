/* What both ways to cut a matrix product into blocks share (matmul.c, shared_panels.c): packing, the tiles of a block, and how
 * sums become elements of c.
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
    int64_t block_rows, block_columns;  /* multiples of the tile's, except for a matrix that is smaller */
    int64_t blocks_down, blocks_across; /* of each matrix of the batch */
    char *scratch;                      /* of all workers */
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

/* Packs a slice of a, or of b. `row` is scratch for a row of b that is seen through a window. */
void matmul_panels_of_a(const matmul_work *w, const matmul_slice *slice, char *panels);
void matmul_panels_of_b(const matmul_work *w, const matmul_slice *slice, char *row, char *panels);

/* Bytes of a panel for each of its rows or columns. */
int64_t matmul_panel_step(const matmul_work *w, int64_t depth);

/* A block of c and the panels that one chunk of k adds to it. */
typedef struct matmul_block {
    const char *a, *b;
    int64_t depth;
    int64_t rows, columns;
    char *sums;     /* of the block's first row and column */
    int64_t stride; /* elements from row to row */
    int32_t which;  /* MATMUL_FIRST, MATMUL_LAST */
} matmul_block;

/* All tiles of a block for one chunk. */
void matmul_add_chunk(const matmul_work *w, const matmul_block *block);

/* Writes a row of a block's sums to row `c` of the result: side by side, or by the rows of the output of a window. */
void matmul_put_row(const matmul_work *w, const char *sums, int64_t first_column, int64_t columns, char *c);

#endif
