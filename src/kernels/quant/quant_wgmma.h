/* Tiles of quantized products multiplied from shared memory (matrix_wgmma.h): the results of a tile that each thread has.
 * WGMMA_TEAMS teams of 128 threads own 64 rows x 128 columns each.
 */
#ifndef WW_KERNELS_QUANT_QUANT_WGMMA_H
#define WW_KERNELS_QUANT_QUANT_WGMMA_H

#include "kernels/simt/matrix_wgmma.h"

#include "arithmetic/blocks/blocks.h"
#include "kernels/quant/quant.h"
#include "kernels/simt/ring.h"

enum { TILE_THREADS = WGMMA_TEAMS * WGMMA_TEAM, TILE_ROWS = QUANT_TILE, TILE_SUMS = WGMMA_SUMS };

/* The first row of this team's results in the tile. */
DEVICE uint32_t tile_first_row(void)
{
    return thread_index() / WGMMA_TEAM * WGMMA_QUERIES;
}

/* Row and column of result j * 4 + i * 2 + c. */
DEVICE uint32_t tile_row(uint32_t i)
{
    return tile_first_row() + wgmma_query(i / 2 % 2);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return wgmma_row(i / 4, i % 2);
}

#include "kernels/quant/quant_tile_sums.h"

#endif
