/* Matrix products of tensors on a GPU: which kernel, in which shape. */
#include "device/matmul_job.h"

#include <string.h>

#include "base/status.h"
#include "gpu/launch.h"
#include "gpu/tensor.h"

enum {
    SIDE_LARGE = 128,
    SIDE_SMALL = 64,
    GRID_Y_MAX = 65535,
    SIDE_COUNT_MAX = INT32_MAX - 2 * SIDE_LARGE, /* rows, columns and steps are counted in 32 bits */
};

static int64_t tiles(int64_t count, int64_t side)
{
    return (count + side - 1) / side;
}

/* ---- how matrices lie ---------------------------------------------------------------------------------------------------- */

/* Is `stride` no obstacle to reading four elements at once? */
static bool in_fours(int64_t count, int64_t stride)
{
    return count <= 1 || stride % 4 == 0;
}

static bool starts_in_fours(const void *data, int32_t element_bytes, const int64_t *batch, const int64_t *strides, int32_t rank)
{
    const uintptr_t bytes = (uintptr_t)element_bytes * 4 < 16 ? (uintptr_t)element_bytes * 4 : 16;
    bool all = (uintptr_t)data % bytes == 0;
    for (int32_t i = 0; i < rank; i++)
        all &= in_fours(batch[i], strides[i]);
    return all;
}

static int32_t how_it_lies(bool starts, int64_t count, int64_t stride, int64_t k, int64_t k_stride)
{
    if (starts && (k_stride == 1 || k == 1) && in_fours(count, stride))
        return MATMUL_LIES_ALONG_K;
    if (starts && (stride == 1 || count == 1) && in_fours(k, k_stride))
        return MATMUL_LIES_ACROSS_K;
    return MATMUL_LIES_APART;
}

static matmul_args args_of(const matmul_job *job)
{
    const int32_t bytes = type_size(job->type);
    matmul_args args = {.a = job->a,
                        .b = job->b,
                        .c = job->c,
                        .type = job->type,
                        .m = job->m,
                        .n = job->n,
                        .k = job->k,
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
    args.a_lies = how_it_lies(starts_in_fours(job->a, bytes, job->batch, job->a_batch, job->batch_rank), job->m, job->a_row,
                              job->k, job->a_column);
    args.b_lies = how_it_lies(starts_in_fours(job->b, bytes, job->batch, job->b_batch, job->batch_rank), job->n, job->b_column,
                              job->k, job->b_row);
    args.c_fours = job->type == TYPE_F64 || job->type == TYPE_I8 ||
                   (job->type == TYPE_F32 && in_fours(job->m, job->c_row) &&
                    starts_in_fours(job->c, bytes, job->batch, job->c_batch, job->batch_rank));
    if (job->window)
        args.window = *job->window;
    return args;
}

/* ---- launching ----------------------------------------------------------------------------------------------------------- */

/* Large tiles where there are enough of them for every compute unit. */
static int64_t side_of(const gpu_device *device, const matmul_job *job)
{
    const bool f32 = job->type == TYPE_F32 || job->type == TYPE_F16 || job->type == TYPE_BF16;
    const int64_t large = tiles(job->m, SIDE_LARGE) * tiles(job->n, SIDE_LARGE) * matmul_batch_count(job);
    return f32 && large >= device->base.info.compute_units && job->m > SIDE_SMALL && job->n > SIDE_SMALL ? SIDE_LARGE
                                                                                                         : SIDE_SMALL;
}

static ww_status launch(gpu_device *device, gpu_stream *queue, const matmul_job *job, matmul_args *args)
{
    const int64_t side = side_of(device, job), across = tiles(job->n, side);
    args->blocks_down = tiles(job->m, side);
    const gpu_grid grid = grid_of_2(args->blocks_down * across, args->batches < GRID_Y_MAX ? args->batches : GRID_Y_MAX);
#define LAUNCH(name) launch_##name(device, queue, grid, MATMUL_THREADS, 0, args)
    if (job->type == TYPE_I8)
        return LAUNCH(matmul_i8_64);
    if (job->type == TYPE_F64)
        return job->window ? LAUNCH(conv_f64_64) : LAUNCH(matmul_f64_64);
    if (side == SIDE_LARGE)
        return job->window ? LAUNCH(conv_f32_128) : LAUNCH(matmul_f32_128);
    return job->window ? LAUNCH(conv_f32_64) : LAUNCH(matmul_f32_64);
#undef LAUNCH
}

static ww_status check_counts(const matmul_job *job)
{
    const matmul_window *w = job->window;
    const bool fits = job->m <= SIDE_COUNT_MAX && job->n <= SIDE_COUNT_MAX && job->k <= SIDE_COUNT_MAX &&
                      tiles(job->m, SIDE_SMALL) * tiles(job->n, SIDE_SMALL) <= INT32_MAX;
    const bool window_fits = !w || (w->in_y <= INT32_MAX / 4 && w->in_x <= INT32_MAX / 4 && w->first_y >= INT32_MIN / 4 &&
                                    w->first_x >= INT32_MIN / 4 && w->first_y <= INT32_MAX / 4 && w->first_x <= INT32_MAX / 4);
    if (fits && window_fits)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED, "a product of %lld x %lld by %lld x %lld on a GPU: rows, columns and steps are at most %d",
                   (long long)job->m, (long long)job->k, (long long)job->k, (long long)job->n, (int)SIDE_COUNT_MAX);
}

/* f16 and bf16 keep the totals of several chunks in f32 beside the results. */
static ww_status take_totals(ww_device *of, const matmul_job *job, buffer *totals)
{
    const bool narrow = job->type == TYPE_F16 || job->type == TYPE_BF16;
    *totals = (buffer){0};
    return narrow && job->k > MATMUL_CHUNK ? tensors_gpu.take(of, (size_t)job->c_elements * sizeof(float), totals) : WW_OK;
}

static ww_status multiply(ww_device *of, const matmul_job *job)
{
    gpu_device *device = gpu_of(of);
    gpu_stream *queue;
    driver_context previous = NULL;
    buffer totals;
    matmul_args args = args_of(job);
    ww_status status = check_counts(job);
    if (status == WW_OK)
        status = take_totals(of, job, &totals);
    if (status != WW_OK)
        return status;
    args.totals = totals.data;
    status = gpu_tensors_enter(device, &queue, &previous);
    if (status == WW_OK) {
        status = launch(device, queue, job, &args);
        status = gpu_tensors_leave(device, previous, status);
    }
    tensors_gpu.give(of, &totals);
    return status;
}

/* Images so many that their outputs cannot be counted in 32 bits are taken a few at a time. */
ww_status gpu_matmul(ww_device *of, const matmul_job *job)
{
    const int64_t outs = job->window ? job->window->outs_y * job->window->outs_x : job->n;
    if (job->n <= SIDE_COUNT_MAX || !job->window || outs > SIDE_COUNT_MAX)
        return multiply(of, job);
    const int64_t images = job->n / outs, at_once = SIDE_COUNT_MAX / outs;
    ww_status status = WW_OK;
    for (int64_t first = 0; first < images && status == WW_OK; first += at_once) {
        matmul_job some = *job;
        some.n = (images - first < at_once ? images - first : at_once) * outs;
        some.b = (const char *)job->b + first * job->window->image_stride * type_size(job->type);
        some.c = (char *)job->c + first * job->window->out_image_stride * type_size(job->type);
        some.c_elements -= first * job->window->out_image_stride;
        status = multiply(of, &some);
    }
    return status;
}
