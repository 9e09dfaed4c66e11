/* Canonical matrix products on the CPU: c is cut into blocks, each the work of one thread from the first step of k to the last.
 *
 * For each chunk of k a block packs its piece of b and of a and computes its tiles. Packing is repeated by the blocks that
 * share a row or a column of blocks; in exchange threads never wait for each other. Large products are another matter
 * (matmul_large.c). The size of blocks has no influence on the bits.
 */
#include "cpu/matmul_work.h"

#include <string.h>

#include "base/memory.h"
#include "cpu/tensor.h"

enum {
    BLOCK_ROWS = 448,        /* of 512 steps of f32: 0.9 MB, for the second-level cache */
    BLOCK_COLUMNS = 1024,    /* 2 MB that pass by once for each panel of a */
    ITEMS_A_THREAD = 3,      /* at least, of large products: the last to finish is not far behind the others */
    LARGE_STEPS = 1 << 28,   /* multiplications */
    SMALL_STEPS = 64 * 1024, /* products of fewer multiplications are not worth waking a thread */
    TILE_BYTES_MAX = MATMUL_ROWS_MAX * MATMUL_COLUMNS_MAX * 4,
};

static matmul_shape shape_of(const matmul_tiles *tiles, int32_t type)
{
    if (type == MATMUL_BF16_PAIRS)
        return (matmul_shape){MATMUL_FAST_SIDE, MATMUL_FAST_SIDE};
    return type == TYPE_F64 ? tiles->shape_f64 : type == TYPE_I8 ? tiles->shape_i8 : tiles->shape_f32;
}

static void tile(const matmul_work *w, const char *a, const char *b, int64_t depth, char *c, int64_t stride, int32_t which)
{
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_bf16((const uint16_t *)(const void *)a, (const uint16_t *)(const void *)b,
                            matmul_packed_depth(w->packing, depth), (float *)(void *)c, stride, which);
    else if (w->packing == TYPE_F64)
        w->tiles->f64((const double *)(const void *)a, (const double *)(const void *)b, depth, (double *)(void *)c, stride,
                      which);
    else if (w->packing == TYPE_I8)
        w->tiles->i8((const int16_t *)(const void *)a, (const int16_t *)(const void *)b, (depth + 1) / 2, (int32_t *)(void *)c,
                     stride, which);
    else
        w->tiles->f32((const float *)(const void *)a, (const float *)(const void *)b, depth, (float *)(void *)c, stride, which);
}

/* A tile that hangs over the edge: computed beside, and what counts of it copied. */
static void tile_at_edge(const matmul_work *w, const char *a, const char *b, int64_t depth, char *c, int64_t stride,
                         int64_t rows, int64_t columns, int32_t which)
{
    _Alignas(64) char whole[TILE_BYTES_MAX];
    const int64_t bytes = matmul_sum_bytes(w->job->type), columns_bytes = columns * bytes;
    if (!(which & MATMUL_FIRST)) {
        memset(whole, 0, sizeof whole);
        for (int64_t r = 0; r < rows; r++)
            memcpy(whole + r * w->shape.columns * bytes, c + r * stride * bytes, (size_t)columns_bytes);
    }
    tile(w, a, b, depth, whole, w->shape.columns, which);
    for (int64_t r = 0; r < rows; r++)
        memcpy(c + r * stride * bytes, whole + r * w->shape.columns * bytes, (size_t)columns_bytes);
}

int64_t matmul_panel_step(const matmul_work *w, int64_t depth)
{
    return matmul_packed_depth(w->packing, depth) * matmul_packed_bytes(w->packing);
}

/* Asks memory for bytes that are read later on, for the second-level cache. */
static void ask(const char *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += CACHE_LINE_BYTES)
        __builtin_prefetch(from + at, 0, 2);
}

void matmul_block(const matmul_work *w, const char *a, const char *b, int64_t depth, int64_t rows, int64_t columns, char *c,
                  int64_t stride, int32_t which)
{
    const int64_t step = matmul_panel_step(w, depth);
    const int64_t bytes = matmul_sum_bytes(w->job->type);
    const int64_t share = matmul_cut(step * w->shape.columns, matmul_cut(rows, w->shape.rows));
    for (int64_t j = 0; j < columns; j += w->shape.columns) {
        for (int64_t i = 0; i < rows; i += w->shape.rows) {
            const char *a_panel = a + i * step, *b_panel = b + j * step;
            char *at = c + (i * stride + j) * bytes;
            ask(b_panel + step * w->shape.columns + i / w->shape.rows * share, share);
            const int64_t rows_here = matmul_smaller(rows - i, w->shape.rows),
                          columns_here = matmul_smaller(columns - j, w->shape.columns);
            if (rows_here == w->shape.rows && columns_here == w->shape.columns)
                tile(w, a_panel, b_panel, depth, at, stride, which);
            else
                tile_at_edge(w, a_panel, b_panel, depth, at, stride, rows_here, columns_here, which);
        }
    }
}

void matmul_panels_of_a(const matmul_work *w, int64_t offset, int64_t first_k, int64_t depth, int64_t rows, char *panels)
{
    const matmul_job *job = w->job;
    const matmul_source s = {.data = (const char *)job->a + (offset + first_k * job->a_column) * matmul_source_bytes(job->type),
                             .stride = job->a_row,
                             .k_stride = job->a_column,
                             .count = rows,
                             .depth = depth};
    if (w->packing == MATMUL_BF16_PAIRS)
        matmul_pack_a_pairs(&s, (uint16_t *)(void *)panels);
    else
        matmul_pack(w->tiles, job->type, &s, w->shape.rows, panels);
}

void matmul_panels_of_b(const matmul_work *w, int64_t offset, int64_t first_column, int64_t first_k, int64_t depth,
                        int64_t columns, char *row, char *panels)
{
    const matmul_job *job = w->job;
    const char *data = (const char *)job->b + offset * matmul_source_bytes(job->type);
    if (job->window) {
        matmul_pack_window(job->type, job->window, data, first_column, columns, first_k, depth, w->shape.columns, row, panels);
        return;
    }
    const matmul_source s = {.data =
                                 data + (first_column * job->b_column + first_k * job->b_row) * matmul_source_bytes(job->type),
                             .stride = job->b_column,
                             .k_stride = job->b_row,
                             .count = columns,
                             .depth = depth};
    if (w->packing == MATMUL_BF16_PAIRS)
        matmul_pack_b_pairs(&s, (uint16_t *)(void *)panels);
    else
        matmul_pack(w->tiles, job->type, &s, w->shape.columns, panels);
}

/* A run of sums, as elements of c. */
static void put_run(const matmul_work *w, const char *sums, int64_t count, char *to)
{
    if (w->job->type == TYPE_F16)
        w->tiles->narrow_f16((const float *)(const void *)sums, (uint16_t *)(void *)to, count);
    else if (w->job->type == TYPE_BF16)
        w->tiles->narrow_bf16((const float *)(const void *)sums, (uint16_t *)(void *)to, count);
    else
        memcpy(to, sums, (size_t)(count * matmul_sum_bytes(w->job->type)));
}

void matmul_put_row(const matmul_work *w, const char *sums, int64_t first_column, int64_t columns, char *c)
{
    const matmul_window *window = w->job->window;
    const int64_t bytes = matmul_result_bytes(w->job->type), from_bytes = matmul_sum_bytes(w->job->type);
    if (!window) {
        put_run(w, sums, columns, c + first_column * bytes);
        return;
    }
    for (int64_t done = 0; done < columns;) {
        const int64_t n = first_column + done, x = n % window->outs_x, y = n / window->outs_x % window->outs_y;
        const int64_t image = n / window->outs_x / window->outs_y, count = matmul_smaller(window->outs_x - x, columns - done);
        char *to = c + (image * window->out_image_stride + y * window->out_y_stride + x * window->out_x_stride) * bytes;
        if (window->out_x_stride == 1)
            put_run(w, sums + done * from_bytes, count, to);
        else
            for (int64_t i = 0; i < count; i++)
                put_run(w, sums + (done + i) * from_bytes, 1, to + i * window->out_x_stride * bytes);
        done += count;
    }
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
    const ww_status status = cpu_tensor_take(device, (size_t)workers * w.worker_bytes, &scratch);
    if (status != WW_OK)
        return status;
    w.scratch = scratch.data;
    const int64_t items = batch * w.blocks_down * w.blocks_across;
    if (workers == 1)
        pool_run_here(items, work_block, &w);
    else
        pool_run(threads, items, work_block, NULL, &w);
    cpu_tensor_give(device, &scratch);
    return WW_OK;
}
