/* Large matrix products on the CPU: all threads pack panels once, and share them.
 *
 * c is divided into plates, only to bound the memory. A plate takes one step for each chunk of k and one more. In each step,
 * threads multiply blocks of the previous chunk, and then pack the next chunk, a few panels at a time. So a thread without a
 * block packs, and none waits long for the last block. Blocks are taken along rows of blocks: their panels of a stay in the
 * second-level cache of each core while the panels of b are read.
 */
#include "cpu/matmul/shared_panels.h"

#include "base/integers.h"
#include "base/memory.h"
#include "cpu/tensor/tensor.h"

enum {
    PLATE_SIDE = 4096,
    BLOCK_BYTES = 896 << 10, /* panels of a: less than half of a second-level cache of 2 MB */
    PANELS_TOGETHER = 4,     /* panels of b in a block; also panels of a or b that a thread packs at a time */
    LARGE_STEPS = 1 << 26,   /* multiplications: half a millisecond of one core */
    LARGE_SIDE = 128 /* of c: if it is smaller, panels are used only a few times, and are better packed where they are used */
};

typedef struct plate {
    const matmul_work *w;
    matmul_place place;
    int64_t first_row, first_column, rows, columns;
    int64_t block_rows, block_columns, blocks_down, blocks_across;
    int64_t packs_a, packs_b; /* pieces that are packed at a time */
    int64_t chunk, chunks;    /* the chunk being packed; the previous one is multiplied */
    char *a[2], *b[2];        /* panels of even and of odd chunks */
    char *sums;               /* c itself, or separate memory */
    int64_t stride;
} plate;

bool matmul_is_large(const matmul_work *w)
{
    const matmul_job *job = w->job;
    return !job->window && job->m >= LARGE_SIDE && job->n >= LARGE_SIDE &&
           (double)job->m * (double)job->n * (double)job->k >= LARGE_STEPS;
}

static int64_t chunk_depth(const plate *p, int64_t chunk)
{
    return min_i64(p->w->job->k - chunk * MATMUL_CHUNK, MATMUL_CHUNK);
}

static void multiply_item(const plate *p, int64_t item)
{
    const matmul_work *w = p->w;
    const matmul_job *job = w->job;
    const int64_t chunk = p->chunk - 1, depth = chunk_depth(p, chunk), step = matmul_panel_step(w, depth);
    const int64_t row = item / p->blocks_across * p->block_rows, column = item % p->blocks_across * p->block_columns;
    const int64_t rows = min_i64(p->rows - row, p->block_rows);
    const int64_t columns = min_i64(p->columns - column, p->block_columns);
    const int32_t which = (chunk == 0 ? MATMUL_FIRST : 0) | (chunk + 1 == p->chunks ? MATMUL_LAST : 0);
    char *sums = p->sums + (row * p->stride + column) * matmul_sum_bytes(job->type);
    const matmul_block block = {.a = p->a[chunk % 2] + row * step,
                                .b = p->b[chunk % 2] + column * step,
                                .depth = depth,
                                .rows = rows,
                                .columns = columns,
                                .sums = sums,
                                .stride = p->stride,
                                .which = which};
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_begin();
    matmul_add_chunk(w, &block);
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_end();
    if (!w->through_scratch || !(which & MATMUL_LAST))
        return;
    char *result = (char *)job->c + (p->place.c + (p->first_row + row) * job->c_row) * matmul_result_bytes(job->type);
    for (int64_t r = 0; r < rows; r++)
        matmul_put_row(w, sums + r * p->stride * matmul_sum_bytes(job->type), p->first_column + column, columns,
                       result + r * job->c_row * matmul_result_bytes(job->type));
}

static void pack_item(const plate *p, int64_t item)
{
    const matmul_work *w = p->w;
    const int64_t k = p->chunk * MATMUL_CHUNK, depth = chunk_depth(p, p->chunk), step = matmul_panel_step(w, depth);
    if (item < p->packs_b) {
        const int64_t together = (int64_t)PANELS_TOGETHER * w->shape.columns, column = item * together;
        const matmul_slice slice = {p->place.b, p->first_column + column, min_i64(p->columns - column, together), k, depth};
        matmul_panels_of_b(w, &slice, NULL, p->b[p->chunk % 2] + column * step);
    } else {
        const int64_t together = (int64_t)PANELS_TOGETHER * w->shape.rows, row = (item - p->packs_b) * together;
        const matmul_slice slice = {p->place.a, p->first_row + row, min_i64(p->rows - row, together), k, depth};
        matmul_panels_of_a(w, &slice, p->a[p->chunk % 2] + row * step);
    }
}

static void work_item(void *context, int64_t item, int32_t worker)
{
    const plate *p = context;
    const int64_t blocks = p->chunk > 0 ? p->blocks_down * p->blocks_across : 0;
    (void)worker;
    if (item < blocks)
        multiply_item(p, item);
    else
        pack_item(p, item - blocks);
}

static void run_plate(pool *threads, plate *p)
{
    const matmul_work *w = p->w;
    const int64_t rows_max = BLOCK_BYTES / matmul_panel_step(w, MATMUL_CHUNK), down = divide_up_i64(p->rows, rows_max);
    p->block_rows = round_up_i64(divide_up_i64(p->rows, down), w->shape.rows);
    p->block_columns = (int64_t)PANELS_TOGETHER * w->shape.columns;
    p->blocks_down = divide_up_i64(p->rows, p->block_rows);
    p->blocks_across = divide_up_i64(p->columns, p->block_columns);
    p->packs_a = divide_up_i64(p->rows, (int64_t)PANELS_TOGETHER * w->shape.rows);
    p->packs_b = divide_up_i64(p->columns, (int64_t)PANELS_TOGETHER * w->shape.columns);
    p->chunks = divide_up_i64(w->job->k, MATMUL_CHUNK);
    for (p->chunk = 0; p->chunk <= p->chunks; p->chunk++) {
        const int64_t items =
            (p->chunk > 0 ? p->blocks_down * p->blocks_across : 0) + (p->chunk < p->chunks ? p->packs_a + p->packs_b : 0);
        if (pool_threads(threads) == 1)
            pool_run_here(items, work_item, p);
        else
            pool_run(threads, items, work_item, NULL, p);
    }
}

/* Computes plates one after the other, for each matrix of the batch. */
static void run_plates(pool *threads, plate *p)
{
    const matmul_work *w = p->w;
    const matmul_job *job = w->job;
    const int64_t batch = matmul_batch_count(job);
    for (int64_t number = 0; number < batch; number++) {
        p->place = matmul_place_of(job, number);
        for (p->first_column = 0; p->first_column < job->n; p->first_column += PLATE_SIDE)
            for (p->first_row = 0; p->first_row < job->m; p->first_row += PLATE_SIDE) {
                p->rows = min_i64(job->m - p->first_row, PLATE_SIDE);
                p->columns = min_i64(job->n - p->first_column, PLATE_SIDE);
                if (!w->through_scratch)
                    p->sums = (char *)job->c +
                              (p->place.c + p->first_row * job->c_row + p->first_column) * matmul_sum_bytes(job->type);
                run_plate(threads, p);
            }
    }
}

ww_status matmul_shared_panels(ww_device *device, const matmul_work *w)
{
    const matmul_job *job = w->job;
    const int64_t rows = round_up_i64(min_i64(job->m, PLATE_SIDE), w->shape.rows);
    const int64_t columns = round_up_i64(min_i64(job->n, PLATE_SIDE), w->shape.columns);
    const int64_t step = matmul_panel_step(w, min_i64(job->k, MATMUL_CHUNK));
    const int64_t a_bytes = round_up_i64(rows * step, CACHE_LINE_BYTES);
    const int64_t b_bytes = round_up_i64(columns * step, CACHE_LINE_BYTES);
    const int64_t sums_bytes = w->through_scratch ? rows * columns * matmul_sum_bytes(job->type) : 0;
    buffer scratch;
    const ww_status status = cpu_tensor_alloc(device, (size_t)(2 * (a_bytes + b_bytes) + sums_bytes), &scratch);
    if (status != WW_OK)
        return status;
    char *a = scratch.data, *b = a + 2 * a_bytes;
    plate p = {.w = w, .a = {a, a + a_bytes}, .b = {b, b + b_bytes}, .stride = job->c_row};
    if (w->through_scratch) {
        p.sums = b + 2 * b_bytes;
        p.stride = columns;
    }
    run_plates(((cpu_device *)device)->pool, &p);
    cpu_tensor_free(device, &scratch);
    return WW_OK;
}
