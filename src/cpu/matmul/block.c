/* Packs panels, computes the tiles of a block, and converts sums to elements of c: for both ways to divide a matrix product. */
#include "cpu/matmul/block.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

enum { TILE_BYTES_MAX = MATMUL_ROWS_MAX * MATMUL_COLUMNS_MAX * 4 };

/* Where the sums of a tile are, rows `stride` elements apart. */
typedef struct tile_sums {
    char *c;
    int64_t stride;
} tile_sums;

/* Computes one tile of a block from the panels at a and b. */
static void tile(const matmul_work *w, const matmul_block *block, const char *a, const char *b, tile_sums sums)
{
    char *c = sums.c;
    const int64_t stride = sums.stride;
    const int64_t depth = block->depth;
    const int32_t which = block->which;
    if (w->packing == MATMUL_BF16_PAIRS)
        w->tiles->fast_bf16((const uint16_t *)(const void *)a, (const uint16_t *)(const void *)b,
                            matmul_packed_depth(w->packing, depth), (float *)(void *)c, stride, which);
    else if (w->packing == TYPE_F64)
        w->tiles->f64((const double *)(const void *)a, (const double *)(const void *)b, depth, (double *)(void *)c, stride,
                      which);
    else if (w->packing == TYPE_I8)
        w->tiles->i8((const int16_t *)(const void *)a, (const int16_t *)(const void *)b, divide_up_i64(depth, 2),
                     (int32_t *)(void *)c, stride, which);
    else
        w->tiles->f32((const float *)(const void *)a, (const float *)(const void *)b, depth, (float *)(void *)c, stride, which);
}

/* The tile at row i and column j extends past the edge: it is computed in scratch memory, then the rows and columns that exist
 * are copied. */
static void tile_at_edge(const matmul_work *w, const matmul_block *block, int64_t i, int64_t j)
{
    _Alignas(64) char whole[TILE_BYTES_MAX];
    const int64_t bytes = matmul_sum_bytes(w->job->type), step = matmul_panel_step(w, block->depth);
    const int64_t rows = min_i64(block->rows - i, w->shape.rows);
    const size_t columns_bytes = (size_t)(min_i64(block->columns - j, w->shape.columns) * bytes);
    char *c = block->sums + (i * block->stride + j) * bytes;
    if (!(block->which & MATMUL_FIRST)) {
        memset(whole, 0, sizeof whole);
        for (int64_t r = 0; r < rows; r++)
            memcpy(whole + r * w->shape.columns * bytes, c + r * block->stride * bytes, columns_bytes);
    }
    tile(w, block, block->a + i * step, block->b + j * step, (tile_sums){whole, w->shape.columns});
    for (int64_t r = 0; r < rows; r++)
        memcpy(c + r * block->stride * bytes, whole + r * w->shape.columns * bytes, columns_bytes);
}

int64_t matmul_panel_step(const matmul_work *w, int64_t depth)
{
    return matmul_packed_depth(w->packing, depth) * matmul_packed_bytes(w->packing);
}

/* Prefetches into the second-level cache. */
static void prefetch(const char *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += CACHE_LINE_BYTES)
        __builtin_prefetch(from + at, 0, 2);
}

void matmul_add_chunk(const matmul_work *w, const matmul_block *block)
{
    const int64_t step = matmul_panel_step(w, block->depth);
    const int64_t bytes = matmul_sum_bytes(w->job->type);
    const int64_t share = divide_up_i64(step * w->shape.columns, divide_up_i64(block->rows, w->shape.rows));
    for (int64_t j = 0; j < block->columns; j += w->shape.columns) {
        for (int64_t i = 0; i < block->rows; i += w->shape.rows) {
            const char *b_panel = block->b + j * step;
            prefetch(b_panel + step * w->shape.columns + i / w->shape.rows * share, share);
            if (i + w->shape.rows <= block->rows && j + w->shape.columns <= block->columns)
                tile(w, block, block->a + i * step, b_panel,
                     (tile_sums){block->sums + (i * block->stride + j) * bytes, block->stride});
            else
                tile_at_edge(w, block, i, j);
        }
    }
}

void matmul_panels_of_a(const matmul_work *w, const matmul_slice *slice, char *panels)
{
    const matmul_job *job = w->job;
    const int64_t offset = slice->matrix + slice->first * job->a_row + slice->first_k * job->a_column;
    const matmul_source s = {.data = (const char *)job->a + offset * matmul_source_bytes(job->type),
                             .stride = job->a_row,
                             .k_stride = job->a_column,
                             .count = slice->count,
                             .depth = slice->depth};
    if (w->packing == MATMUL_BF16_PAIRS)
        matmul_pack_a_pairs(&s, (uint16_t *)(void *)panels);
    else
        matmul_pack(w->tiles, job->type, &s, w->shape.rows, panels);
}

void matmul_panels_of_b(const matmul_work *w, const matmul_slice *slice, char *row, char *panels)
{
    const matmul_job *job = w->job;
    const char *data = (const char *)job->b + slice->matrix * matmul_source_bytes(job->type);
    if (job->window) {
        const matmul_window_source s = {.window = job->window,
                                        .type = job->type,
                                        .data = data,
                                        .first_n = slice->first,
                                        .count = slice->count,
                                        .first_k = slice->first_k,
                                        .depth = slice->depth};
        matmul_pack_window(&s, w->shape.columns, row, panels);
        return;
    }
    const int64_t offset = slice->first * job->b_column + slice->first_k * job->b_row;
    const matmul_source s = {.data = data + offset * matmul_source_bytes(job->type),
                             .stride = job->b_column,
                             .k_stride = job->b_row,
                             .count = slice->count,
                             .depth = slice->depth};
    if (w->packing == MATMUL_BF16_PAIRS)
        matmul_pack_b_pairs(&s, (uint16_t *)(void *)panels);
    else
        matmul_pack(w->tiles, job->type, &s, w->shape.columns, panels);
}

/* Writes adjacent sums as elements of c. */
static void put_span(const matmul_work *w, const char *sums, int64_t count, char *to)
{
    if (w->job->type == TYPE_F16)
        w->tiles->narrow_f16((uint16_t *)(void *)to, (const float *)(const void *)sums, count);
    else if (w->job->type == TYPE_BF16)
        w->tiles->narrow_bf16((uint16_t *)(void *)to, (const float *)(const void *)sums, count);
    else
        memcpy(to, sums, (size_t)(count * matmul_sum_bytes(w->job->type)));
}

void matmul_put_row(const matmul_work *w, const char *sums, int64_t first_column, int64_t columns, char *c)
{
    const matmul_window *window = w->job->window;
    const int64_t bytes = matmul_result_bytes(w->job->type), from_bytes = matmul_sum_bytes(w->job->type);
    if (!window) {
        put_span(w, sums, columns, c + first_column * bytes);
        return;
    }
    for (int64_t done = 0; done < columns;) {
        const int64_t n = first_column + done, x = n % window->outs_x, y = n / window->outs_x % window->outs_y;
        const int64_t image = n / window->outs_x / window->outs_y, count = min_i64(window->outs_x - x, columns - done);
        char *to = c + (image * window->out_image_stride + y * window->out_y_stride + x * window->out_x_stride) * bytes;
        if (window->out_x_stride == 1)
            put_span(w, sums + done * from_bytes, count, to);
        else
            for (int64_t i = 0; i < count; i++)
                put_span(w, sums + (done + i) * from_bytes, 1, to + i * window->out_x_stride * bytes);
        done += count;
    }
}
