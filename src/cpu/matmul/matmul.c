/* Matrix products on the CPU. Which way when:
 *
 *   shared panels    large products: at least 2^26 multiplications, 128 rows and 128 columns (shared_panels.c). All threads
 *                    pack a and b once, share the panels, and step through k together.
 *   blocks           all others, and convolutions, whose b is seen through a window. c is divided into blocks. One thread
 *                    computes a block, for all of k. Blocks of the same row or column pack the same panels again; in exchange
 *                    threads never wait for each other.
 *   caller's thread  the same for fewer than 2^16 multiplications.
 *
 * All pack chunks of MATMUL_CHUNK steps and add tiles chunk by chunk (block.c), so the bits depend neither on the way nor on
 * the size of blocks. Fast products of bf16 use the tile unit if the set has one (matmul_tiles.fast_bf16) and are not
 * canonical.
 */
#include "base/integers.h"
#include "base/memory.h"
#include "cpu/matmul/block.h"
#include "cpu/matmul/shared_panels.h"
#include "cpu/tensor/tensor.h"

enum {
    BLOCK_ROWS = 448,        /* of 512 steps of f32: 0.9 MB, for the second-level cache */
    BLOCK_COLUMNS = 1024,    /* 2 MB, read once for each panel of a */
    ITEMS_A_THREAD = 3,      /* minimum from LARGE_STEPS on, so that threads finish at nearly the same time */
    LARGE_STEPS = 1 << 28,   /* multiplications */
    SMALL_STEPS = 64 * 1024, /* products of fewer multiplications are too short to wake a thread */
};

static matmul_shape shape_of(const matmul_tiles *tiles, int32_t type)
{
    if (type == MATMUL_BF16_PAIRS)
        return (matmul_shape){MATMUL_FAST_SIDE, MATMUL_FAST_SIDE};
    return type == TYPE_F64 ? tiles->shape_f64 : type == TYPE_I8 ? tiles->shape_i8 : tiles->shape_f32;
}

/* Computes one block of one matrix of the batch. */
static void work_block(void *context, int64_t item, int32_t worker)
{
    const matmul_work *w = context;
    const matmul_job *job = w->job;
    const int64_t in_matrix = w->blocks_down * w->blocks_across;
    const matmul_place place = matmul_place_of(job, item / in_matrix);
    const int64_t first_row = item % in_matrix % w->blocks_down * w->block_rows;
    const int64_t first_column = item % in_matrix / w->blocks_down * w->block_columns;
    const int64_t rows = min_i64(job->m - first_row, w->block_rows), columns = min_i64(job->n - first_column, w->block_columns);
    char *a = w->scratch + (size_t)worker * w->worker_bytes, *b = a + w->a_bytes, *row = b + w->b_bytes;
    char *result = (char *)job->c + (place.c + first_row * job->c_row) * matmul_result_bytes(job->type);
    char *sums = w->through_scratch ? row + w->row_bytes : result + first_column * matmul_sum_bytes(job->type);
    const int64_t stride = w->through_scratch ? w->block_columns : job->c_row;
    matmul_block block = {.a = a, .b = b, .rows = rows, .columns = columns, .sums = sums, .stride = stride};
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_begin();
    for (int64_t k = 0; k == 0 || k < job->k; k += MATMUL_CHUNK) {
        const int64_t depth = min_i64(job->k - k, MATMUL_CHUNK);
        matmul_panels_of_b(w, &(matmul_slice){place.b, first_column, columns, k, depth}, row, b);
        matmul_panels_of_a(w, &(matmul_slice){place.a, first_row, rows, k, depth}, a);
        block.depth = depth;
        block.which = (k == 0 ? MATMUL_FIRST : 0) | (k + MATMUL_CHUNK >= job->k ? MATMUL_LAST : 0);
        matmul_add_chunk(w, &block);
    }
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_end();
    if (w->through_scratch)
        for (int64_t r = 0; r < rows; r++)
            matmul_put_row(w, sums + r * stride * matmul_sum_bytes(job->type), first_column, columns,
                           result + r * job->c_row * matmul_result_bytes(job->type));
}

/* Chooses blocks that fit in the caches, or smaller ones so that every thread has some, all of nearly the same size. */
static void cut_blocks(matmul_work *w, int64_t batch, int64_t wanted)
{
    const matmul_job *job = w->job;
    int64_t down = divide_up_i64(job->m, BLOCK_ROWS), across = divide_up_i64(job->n, BLOCK_COLUMNS);
    while (batch * down * across < wanted) {
        const int64_t rows = divide_up_i64(job->m, down), columns = divide_up_i64(job->n, across);
        if (columns >= rows && columns > 2 * w->shape.columns)
            across++;
        else if (rows > 2 * w->shape.rows)
            down++;
        else
            break;
    }
    w->block_rows = round_up_i64(divide_up_i64(job->m, down), w->shape.rows);
    w->block_columns = round_up_i64(divide_up_i64(job->n, across), w->shape.columns);
    w->blocks_down = divide_up_i64(job->m, w->block_rows);
    w->blocks_across = divide_up_i64(job->n, w->block_columns);
}

static size_t lines(int64_t bytes)
{
    return (size_t)round_up_i64(bytes, CACHE_LINE_BYTES);
}

ww_status matmul_run(ww_device *device, const matmul_tiles *tiles, const matmul_job *job)
{
    const int64_t batch = matmul_batch_count(job);
    if (batch == 0 || job->m == 0 || job->n == 0)
        return WW_OK;
    const bool fast = job->fast && job->type == TYPE_BF16 && !job->window && tiles->fast_present && tiles->fast_present();
    const int32_t packing = fast ? MATMUL_BF16_PAIRS : job->type;
    matmul_work w = {.tiles = tiles, .job = job, .packing = packing, .shape = shape_of(tiles, packing)};
    w.through_scratch = job->window || job->type == TYPE_F16 || job->type == TYPE_BF16;
    if (matmul_is_large(&w))
        return matmul_shared_panels(device, &w);
    pool *threads = ((cpu_device *)device)->pool;
    const double steps = (double)batch * (double)job->m * (double)job->n * (double)(job->k + 1);
    const int32_t workers = steps < SMALL_STEPS ? 1 : pool_threads(threads);
    cut_blocks(&w, batch, (int64_t)(steps < LARGE_STEPS || workers == 1 ? 1 : ITEMS_A_THREAD) * workers);
    const int64_t depth = min_i64(matmul_packed_depth(packing, job->k), MATMUL_CHUNK), packed = matmul_packed_bytes(packing);
    w.a_bytes = lines(w.block_rows * depth * packed);
    w.b_bytes = lines(w.block_columns * depth * packed);
    w.row_bytes = job->window ? lines(w.block_columns * packed) : 0;
    w.worker_bytes = w.a_bytes + w.b_bytes + w.row_bytes +
                     (w.through_scratch ? lines(w.block_rows * w.block_columns * matmul_sum_bytes(job->type)) : 0);
    buffer scratch;
    const ww_status status = cpu_tensor_alloc(device, (size_t)workers * w.worker_bytes, &scratch);
    if (status != WW_OK)
        return status;
    w.scratch = scratch.data;
    const int64_t items = batch * w.blocks_down * w.blocks_across;
    if (workers == 1)
        pool_run_here(items, work_block, &w);
    else
        pool_run(threads, items, work_block, NULL, &w);
    cpu_tensor_free(device, &scratch);
    return WW_OK;
}

ww_status cpu_matmul(ww_device *device, const matmul_job *job)
{
    return matmul_run(device, ((cpu_device *)device)->isa->matmul, job);
}
