/* Matrix products of tensors on a GPU: which kernel, in which shape. */
#include "device/matmul_job.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum {
    SIDE_LARGEST = 256,
    SIDE_SMALLEST = 64,
    SIDE_COUNT_MAX = INT32_MAX - 2 * SIDE_LARGEST, /* rows, columns and steps are counted in 32 bits */
};

static int64_t tiles(int64_t count, int64_t side)
{
    return (count + side - 1) / side;
}

/* ---- layouts ------------------------------------------------------------------------------------------------------------- */

/* Returns true if `stride` allows reading four elements at once. */
static bool in_quads(int64_t count, int64_t stride)
{
    return count <= 1 || stride % 4 == 0;
}

static bool starts_in_quads(const void *data, int32_t element_bytes, const int64_t *batch, const int64_t *strides, int32_t rank)
{
    const uintptr_t bytes = (uintptr_t)element_bytes * 4 < 16 ? (uintptr_t)element_bytes * 4 : 16;
    bool all = (uintptr_t)data % bytes == 0;
    for (int32_t i = 0; i < rank; i++)
        all &= in_quads(batch[i], strides[i]);
    return all;
}

static int32_t layout_of(bool starts, int64_t count, int64_t stride, int64_t k, int64_t k_stride)
{
    if (starts && (k_stride == 1 || k == 1) && in_quads(count, stride))
        return MATMUL_ALONG_K;
    if (starts && (stride == 1 || count == 1) && in_quads(k, k_stride))
        return MATMUL_ACROSS_K;
    return MATMUL_STRIDED;
}

static matmul_window_32 window_32_of(const matmul_window *w)
{
    return (matmul_window_32){.taps_y = (int32_t)w->taps_y,
                              .taps_x = (int32_t)w->taps_x,
                              .outs_y = (int32_t)w->outs_y,
                              .outs_x = (int32_t)w->outs_x,
                              .in_y = (int32_t)w->in_y,
                              .in_x = (int32_t)w->in_x,
                              .first_y = (int32_t)w->first_y,
                              .first_x = (int32_t)w->first_x,
                              .step_y = (int32_t)w->step_y,
                              .step_x = (int32_t)w->step_x,
                              .tap_y = (int32_t)w->tap_y,
                              .tap_x = (int32_t)w->tap_x,
                              .image_stride = w->image_stride,
                              .channel_stride = w->channel_stride,
                              .y_stride = w->y_stride,
                              .x_stride = w->x_stride,
                              .out_image_stride = w->out_image_stride,
                              .out_y_stride = w->out_y_stride,
                              .out_x_stride = w->out_x_stride};
}

matmul_args gpu_matmul_args(const matmul_job *job)
{
    const int32_t bytes = type_size(job->type);
    matmul_args args = {.a = job->a,
                        .b = job->b,
                        .c = job->c,
                        .type = job->type,
                        .m = (int32_t)job->m,
                        .n = (int32_t)job->n,
                        .k = (int32_t)job->k,
                        .a_row = job->a_row,
                        .a_column = job->a_column,
                        .b_row = job->b_row,
                        .b_column = job->b_column,
                        .c_row = job->c_row,
                        .batches = matmul_batch_count(job),
                        .batch_rank = job->batch_rank};
    memcpy(args.batch, job->batch, sizeof args.batch);
    memcpy(args.a_batch, job->a_batch, sizeof args.a_batch);
    memcpy(args.b_batch, job->b_batch, sizeof args.b_batch);
    memcpy(args.c_batch, job->c_batch, sizeof args.c_batch);
    args.a_layout = layout_of(starts_in_quads(job->a, bytes, job->batch, job->a_batch, job->batch_rank), job->m, job->a_row,
                              job->k, job->a_column);
    args.b_layout = layout_of(starts_in_quads(job->b, bytes, job->batch, job->b_batch, job->batch_rank), job->n, job->b_column,
                              job->k, job->b_row);
    args.c_quads = job->type == TYPE_F64 || job->type == TYPE_I8 ||
                   (job->type == TYPE_F32 && in_quads(job->m, job->c_row) &&
                    starts_in_quads(job->c, bytes, job->batch, job->c_batch, job->batch_rank));
    if (job->window)
        args.window = window_32_of(job->window);
    return args;
}

/* ---- launching ----------------------------------------------------------------------------------------------------------- */

typedef struct tile_shape {
    int64_t rows, columns;
} tile_shape;

/* Chooses large tiles if there are enough for every compute unit, and wide ones for convolutions with few output channels. */
static tile_shape shape_of(const gpu_device *device, const matmul_job *job)
{
    static const tile_shape by_128 = {128, 128}, by_64_256 = {64, 256}, by_64 = {64, 64};
    const tile_shape *wanted = job->m > by_64.rows ? &by_128 : &by_64_256;
    const int64_t count = tiles(job->m, wanted->rows) * tiles(job->n, wanted->columns) * matmul_batch_count(job);
    const bool f32 = job->type == TYPE_F32 || job->type == TYPE_F16 || job->type == TYPE_BF16;
    const bool exists = f32 && (wanted == &by_128 ? job->n > by_64.columns : job->window != NULL) &&
                        (job->window == NULL || gpu_window_is_marked(job));
    return exists && count >= device->base.info.compute_units ? *wanted : by_64;
}

static ww_status launch(gpu_stream *stream, const matmul_job *job, matmul_args *args)
{
    gpu_device *device = stream->device;
    const tile_shape shape = shape_of(device, job);
    const int64_t down = tiles(job->m, shape.rows), across = tiles(job->n, shape.columns);
    args->blocks_down = (int32_t)down;
    const int64_t y_max = gpu_blocks_y_max(device);
    const gpu_grid grid = grid_of_2(down * across, args->batches < y_max ? args->batches : y_max);
#define LAUNCH(name) launch_##name(stream, grid, MATMUL_THREADS, 0, args)
    if (job->type == TYPE_I8)
        return LAUNCH(matmul_i8_64);
    if (job->type == TYPE_F64)
        return job->window ? LAUNCH(conv_f64_64) : LAUNCH(matmul_f64_64);
    if (shape.rows == 128)
        return job->window ? LAUNCH(conv_f32_128) : LAUNCH(matmul_f32_128);
    if (shape.columns == 256)
        return LAUNCH(conv_f32_64_256);
    return job->window ? LAUNCH(conv_f32_64) : LAUNCH(matmul_f32_64);
#undef LAUNCH
}

/* A window along one dimension. */
typedef struct window_line {
    int64_t first, step, outs, tap, taps, in;
} window_line;

/* Returns true if every position of the window, and each part of it, fits in 32 bits. */
static bool fits_32_bits(window_line w)
{
    const double far =
        fabs((double)w.first) + fabs((double)w.step) * (double)(w.outs + 1) + fabs((double)w.tap) * (double)(w.taps + 1);
    return far < INT32_MAX && w.in < INT32_MAX && w.outs < INT32_MAX && w.taps < INT32_MAX;
}

static ww_status check_counts(const matmul_job *job)
{
    const matmul_window *w = job->window;
    const bool fits = job->m <= SIDE_COUNT_MAX && job->n <= SIDE_COUNT_MAX && job->k <= SIDE_COUNT_MAX &&
                      tiles(job->m, SIDE_SMALLEST) * tiles(job->n, SIDE_SMALLEST) <= INT32_MAX;
    const bool window_fits =
        !w || (fits_32_bits((window_line){w->first_y, w->step_y, w->outs_y, w->tap_y, w->taps_y, w->in_y}) &&
               fits_32_bits((window_line){w->first_x, w->step_x, w->outs_x, w->tap_x, w->taps_x, w->in_x}));
    if (fits && window_fits)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "a product of %lld x %lld by %lld x %lld on a GPU: rows, columns and steps are at most %d",
                   (long long)job->m, (long long)job->k, (long long)job->k, (long long)job->n, (int)SIDE_COUNT_MAX);
}

/* Allocates f32 totals for f16 and bf16 products of several chunks. */
static ww_status alloc_totals(ww_device *base, const matmul_job *job, buffer *totals)
{
    const bool narrow = job->type == TYPE_F16 || job->type == TYPE_BF16;
    *totals = (buffer){0};
    return narrow && job->k > MATMUL_CHUNK ? tensors_gpu.alloc(base, (size_t)job->c_elements * sizeof(float), totals) : WW_OK;
}

static ww_status multiply(ww_device *base, const matmul_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    buffer totals;
    matmul_args args = gpu_matmul_args(job);
    bool done = false;
    ww_status status = job->fast ? gpu_matmul_blas(device, job, &done) : WW_OK;
    if (done || status != WW_OK)
        return status;
    status = check_counts(job);
    if (status == WW_OK && gpu_conv_can_be_fast(device, job))
        return gpu_conv_fast(base, job, &args);
    if (status == WW_OK && gpu_conv_by_im2col(device, job))
        return gpu_conv_im2col(base, job);
    if (status == WW_OK && gpu_matmul_can_be_fast(device, job))
        return gpu_matmul_fast(base, job, &args);
    if (status == WW_OK)
        status = alloc_totals(base, job, &totals);
    if (status != WW_OK)
        return status;
    args.totals = totals.data;
    status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK)
        status = gpu_tensors_leave(device, previous, launch(stream, job, &args));
    tensors_gpu.release(base, &totals);
    return status;
}

/* Handles a few images at a time if 32 bits cannot count their outputs. */
ww_status gpu_matmul(ww_device *base, const matmul_job *job)
{
    const int64_t outs = job->window ? job->window->outs_y * job->window->outs_x : job->n;
    if (job->n <= SIDE_COUNT_MAX || !job->window || outs > SIDE_COUNT_MAX)
        return multiply(base, job);
    const int64_t images = job->n / outs, at_once = SIDE_COUNT_MAX / outs;
    ww_status status = WW_OK;
    for (int64_t first = 0; first < images && status == WW_OK; first += at_once) {
        matmul_job some = *job;
        some.n = (images - first < at_once ? images - first : at_once) * outs;
        some.b = (const char *)job->b + first * job->window->image_stride * type_size(job->type);
        some.c = (char *)job->c + first * job->window->out_image_stride * type_size(job->type);
        some.c_elements -= first * job->window->out_image_stride;
        status = multiply(base, &some);
    }
    return status;
}
