/* Canonical matrix products on the CPU: c is cut into blocks, each the work of one thread from the first step of k to the last.
 *
 * For each chunk of k a block packs its piece of b and of a and computes its tiles. Packing is repeated by the blocks that
 * share a row or a column of blocks; in exchange threads never wait for each other. Large products are another matter
 * (matmul_large.c). The size of blocks has no influence on the bits.
 */
#include "base/memory.h"
#include "cpu/matmul/block.h"
#include "cpu/matmul/shared_panels.h"
#include "cpu/tensor/tensor.h"

enum {
    BLOCK_ROWS = 448,        /* of 512 steps of f32: 0.9 MB, for the second-level cache */
    BLOCK_COLUMNS = 1024,    /* 2 MB that pass by once for each panel of a */
    ITEMS_A_THREAD = 3,      /* at least, of large products: the last to finish is not far behind the others */
    LARGE_STEPS = 1 << 28,   /* multiplications */
    SMALL_STEPS = 64 * 1024, /* products of fewer multiplications are not worth waking a thread */
};

static matmul_shape shape_of(const matmul_tiles *tiles, int32_t type)
{
    if (type == MATMUL_BF16_PAIRS)
        return (matmul_shape){MATMUL_FAST_SIDE, MATMUL_FAST_SIDE};
    return type == TYPE_F64 ? tiles->shape_f64 : type == TYPE_I8 ? tiles->shape_i8 : tiles->shape_f32;
}

/* One block of one matrix of the batch. */
static void work_block(void *context, int64_t item, int32_t worker)
{
    const matmul_work *w = context;
    const matmul_job *job = w->job;
    const int64_t in_matrix = w->blocks_down * w->blocks_across;
    const matmul_place place = matmul_place_of(job, item / in_matrix);
    const int64_t first_row = item % in_matrix % w->blocks_down * w->block_rows;
    const int64_t first_column = item % in_matrix / w->blocks_down * w->block_columns;
    const int64_t rows = matmul_smaller(job->m - first_row, w->block_rows),
                  columns = matmul_smaller(job->n - first_column, w->block_columns);
    char *a = w->scratch + (size_t)worker * w->worker_bytes, *b = a + w->a_bytes, *row = b + w->b_bytes;
    char *result = (char *)job->c + (place.c + first_row * job->c_row) * matmul_result_bytes(job->type);
    char *sums = w->through_scratch ? row + w->row_bytes : result + first_column * matmul_sum_bytes(job->type);
    const int64_t stride = w->through_scratch ? w->block_columns : job->c_row;
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_begin();
    for (int64_t k = 0; k == 0 || k < job->k; k += MATMUL_CHUNK) {
        const int64_t depth = matmul_smaller(job->k - k, MATMUL_CHUNK);
        const int32_t which = (k == 0 ? MATMUL_FIRST : 0) | (k + MATMUL_CHUNK >= job->k ? MATMUL_LAST : 0);
        matmul_panels_of_b(w, place.b, first_column, k, depth, columns, row, b);
        matmul_panels_of_a(w, place.a + first_row * job->a_row, k, depth, rows, a);
        matmul_block(w, a, b, depth, rows, columns, sums, stride, which);
    }
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_end();
    if (w->through_scratch)
        for (int64_t r = 0; r < rows; r++)
            matmul_put_row(w, sums + r * stride * matmul_sum_bytes(job->type), first_column, columns,
                           result + r * job->c_row * matmul_result_bytes(job->type));
}

/* Blocks as large as the caches like, or smaller, so that every thread has some; all of nearly the same size. */
static void cut_blocks(matmul_work *w, int64_t batch, int64_t wanted)
{
    const matmul_job *job = w->job;
    int64_t down = matmul_cut(job->m, BLOCK_ROWS), across = matmul_cut(job->n, BLOCK_COLUMNS);
    while (batch * down * across < wanted) {
        const int64_t rows = matmul_cut(job->m, down), columns = matmul_cut(job->n, across);
        if (columns >= rows && columns > 2 * w->shape.columns)
            across++;
        else if (rows > 2 * w->shape.rows)
            down++;
        else
            break;
    }
    w->block_rows = matmul_rounded_up(matmul_cut(job->m, down), w->shape.rows);
    w->block_columns = matmul_rounded_up(matmul_cut(job->n, across), w->shape.columns);
    w->blocks_down = matmul_cut(job->m, w->block_rows);
    w->blocks_across = matmul_cut(job->n, w->block_columns);
}

static size_t lines(int64_t bytes)
{
    return (size_t)matmul_rounded_up(bytes, CACHE_LINE_BYTES);
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
        return matmul_large_run(device, &w);
    pool *threads = ((cpu_device *)device)->pool;
    const double steps = (double)batch * (double)job->m * (double)job->n * (double)(job->k + 1);
    const int32_t workers = steps < SMALL_STEPS ? 1 : pool_threads(threads);
    cut_blocks(&w, batch, (int64_t)(steps < LARGE_STEPS || workers == 1 ? 1 : ITEMS_A_THREAD) * workers);
    const int64_t depth = matmul_smaller(matmul_packed_depth(packing, job->k), MATMUL_CHUNK),
                  packed = matmul_packed_bytes(packing);
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
