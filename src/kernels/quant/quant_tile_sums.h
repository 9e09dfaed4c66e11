/* Sums of a tile of a quantized product: parks them until the sums they are added to are complete, writes them, and adds them
 * up if several thread blocks share a tile. The including file first defines TILE_THREADS, TILE_SUMS (results per thread),
 * tile_row(i) and tile_column(i) of result i, and TILE_ROWS (rows of a tile).
 */
#ifndef WW_KERNELS_QUANT_QUANT_TILE_SUMS_H
#define WW_KERNELS_QUANT_QUANT_TILE_SUMS_H

#include "kernels/simt/simt.h"

#include "kernels/quant/quant.h"

DEVICE void tile_clear(float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++)
        acc[i] = 0.0f;
}

/* ---- the end of a class -------------------------------------------------------------------------------------------------- */

DEVICE uint64_t tile_slot(uint64_t tile, uint32_t i)
{
    return (tile * TILE_SUMS + i) * TILE_THREADS + thread_index();
}

/* Class number `done` of this block is complete: adds it to the earlier sums that wait for it, then parks the result. The first
 * level, which is used most, is parked in shared memory if there is room. */
DEVICE void tile_park(const quant_tile_args *args, uint32_t done, bool sums_in_shared, float *shared_sums, float *acc)
{
    const uint64_t block = (uint64_t)block_index_y() * block_count() + block_index();
    uint32_t level = 0;
    if (sums_in_shared && (done & 1)) {
        UNROLL
        for (uint32_t i = 0; i < TILE_SUMS; i++)
            acc[i] = AT(shared_sums, i * TILE_THREADS + thread_index()) + acc[i];
        level = 1;
    }
    for (; done >> level & 1; level++) {
        UNROLL
        for (uint32_t i = 0; i < TILE_SUMS; i++)
            acc[i] = args->parked[tile_slot(block * 3 + level, i)] + acc[i];
    }
    if (done + 1 == args->classes)
        return;
    if (sums_in_shared && level == 0) {
        UNROLL
        for (uint32_t i = 0; i < TILE_SUMS; i++)
            AT(shared_sums, i * TILE_THREADS + thread_index()) = acc[i];
    } else {
        UNROLL
        for (uint32_t i = 0; i < TILE_SUMS; i++)
            args->parked[tile_slot(block * 3 + level, i)] = acc[i];
    }
    tile_clear(acc);
}

/* Where a tile's results go. */
typedef struct tile_target {
    float *y; /* the result of its first row and column */
    uint64_t stride;
    uint32_t rows, columns; /* that exist; may be 0 */
} tile_target;

DEVICE tile_target tile_target_of(float *y, uint64_t stride, uint32_t rows, uint32_t columns, uint32_t across)
{
    const uint32_t row = block_index() / across * TILE_ROWS, column = block_index() % across * QUANT_TILE;
    const tile_target to = {y + column * stride + row, stride, rows > row ? rows - row : 0,
                            columns > column ? columns - column : 0};
    return to;
}

/* Writes result i of this thread. */
DEVICE void tile_put(const tile_target *to, uint32_t i, float value)
{
    const uint32_t row = tile_row(i), column = tile_column(i);
    if (row < to->rows && column < to->columns)
        to->y[column * to->stride + row] = value;
}

DEVICE void tile_finish(const quant_tile_args *args, const float *acc)
{
    const uint64_t block = (uint64_t)block_index_y() * block_count() + block_index();
    const tile_target to = tile_target_of(args->y, args->y_stride, args->rows, args->columns, args->across);
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++)
        if (args->partial)
            args->partial[tile_slot(block, i)] = acc[i];
        else
            tile_put(&to, i, acc[i]);
}

/* ---- thread blocks that shared a tile ----------------------------------------------------------------------------------- */

DEVICE void tile_fold(const quant_tile_fold_args *args)
{
    const tile_target to = tile_target_of(args->y, args->y_stride, args->rows, args->columns, args->across);
    UNROLL_BY(4)
    for (uint32_t n = 0; n < TILE_SUMS / QUANT_FOLD_BLOCKS; n++) {
        const uint32_t i = n * QUANT_FOLD_BLOCKS + block_index_y();
        float part[QUANT_CLASSES];
        UNROLL
        for (uint32_t p = 0; p < QUANT_CLASSES; p++)
            part[p] = p < args->splits ? args->partial[tile_slot((uint64_t)p * block_count() + block_index(), i)] : 0.0f;
        const float two = part[0] + part[1], four = two + (part[2] + part[3]);
        const float eight = four + ((part[4] + part[5]) + (part[6] + part[7]));
        tile_put(&to, i, args->splits == 2 ? two : args->splits == 4 ? four : eight);
    }
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

#if !defined(TILE_KERNEL_HEAD)
#define TILE_KERNEL_HEAD KERNEL_MATRIX
#endif

#define TILE_KERNEL(name, run)                                                                                                 \
    TILE_KERNEL_HEAD(name, quant_tile_args, TILE_THREADS)                                                                      \
    {                                                                                                                          \
        SHARED_DYNAMIC(uint32_t, shared);                                                                                      \
        run;                                                                                                                   \
    }

#define TILE_FOLD_KERNEL(name)                                                                                                 \
    KERNEL(name, quant_tile_fold_args, TILE_THREADS)                                                                           \
    {                                                                                                                          \
        tile_fold(&args);                                                                                                      \
    }

#endif
