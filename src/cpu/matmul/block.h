/* What the two ways to cut a matrix product into pieces share (matmul.c, matmul_large.c): packing, the tiles of a block, and
 * how sums become elements of c.
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
    int64_t block_rows, block_columns;  /* multiples of the tile's, but for a matrix that is smaller */
    int64_t blocks_down, blocks_across; /* of each matrix of the batch */
    char *scratch;                      /* of all workers */
    size_t worker_bytes, a_bytes, b_bytes, row_bytes;
    bool through_scratch; /* sums go through memory of the worker: c is of a narrower type, or its columns are apart */
} matmul_work;

static inline int64_t matmul_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t matmul_cut(int64_t count, int64_t pieces)
{
    return (count + pieces - 1) / pieces;
}

static inline int64_t matmul_rounded_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Bytes of a sum. */
static inline int64_t matmul_sum_bytes(int32_t type)
{
    return type == TYPE_F64 ? 8 : 4;
}

/* Packs rows of a, the first at `offset` elements, or columns of b of the matrix there; steps first_k.. of them. `row` is
 * scratch for a row of b through a window. */
void matmul_panels_of_a(const matmul_work *w, int64_t offset, int64_t first_k, int64_t depth, int64_t rows, char *panels);
void matmul_panels_of_b(const matmul_work *w, int64_t offset, int64_t first_column, int64_t first_k, int64_t depth,
                        int64_t columns, char *row, char *panels);

/* Bytes of a panel for each of its rows or columns. */
int64_t matmul_panel_step(const matmul_work *w, int64_t depth);

/* All tiles of a block for one chunk. `c` is where the block's sums are. */
void matmul_block(const matmul_work *w, const char *a, const char *b, int64_t depth, int64_t rows, int64_t columns, char *c,
                  int64_t stride, int32_t which);

/* A row of a block's sums goes to its places in row `c` of the result: all in a row, or by the rows of the output of a window.
 */
void matmul_put_row(const matmul_work *w, const char *sums, int64_t first_column, int64_t columns, char *c);

#endif
