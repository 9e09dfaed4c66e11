/* Packing, the tiles of a block, and how sums become elements of c: for both ways to cut a matrix product into pieces. */
#include "cpu/matmul/block.h"

#include <string.h>

#include "base/memory.h"

enum { TILE_BYTES_MAX = MATMUL_ROWS_MAX * MATMUL_COLUMNS_MAX * 4 };

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
static void put_span(const matmul_work *w, const char *sums, int64_t count, char *to)
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
        put_span(w, sums, columns, c + first_column * bytes);
        return;
    }
    for (int64_t done = 0; done < columns;) {
        const int64_t n = first_column + done, x = n % window->outs_x, y = n / window->outs_x % window->outs_y;
        const int64_t image = n / window->outs_x / window->outs_y, count = matmul_smaller(window->outs_x - x, columns - done);
        char *to = c + (image * window->out_image_stride + y * window->out_y_stride + x * window->out_x_stride) * bytes;
        if (window->out_x_stride == 1)
            put_span(w, sums + done * from_bytes, count, to);
        else
            for (int64_t i = 0; i < count; i++)
                put_span(w, sums + (done + i) * from_bytes, 1, to + i * window->out_x_stride * bytes);
        done += count;
    }
}
