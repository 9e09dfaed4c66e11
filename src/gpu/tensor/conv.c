/* Convolutions in fast mode on a GPU: which kernel for matrix units, in which shape. If there are as many outputs as inputs,
 * shared memory holds the image, and the weights are arranged for that first (kernels/matmul/conv_shared.h). Otherwise each
 * output loads what it sees (kernels/matmul/conv_fast.c); on AMD's chips that is written to memory first
 * (src/gpu/tensor/matmul_fast.c).
 */
#include "device/matmul_job.h"

#include <math.h>

#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum {
    FAST_DOWN = 64,
    FAST_ACROSS = 256,
    FAST_ACROSS_MIN = 64,
    BLOCKS_WANTED = 3, /* blocks per unit, which hide each other's latency */
};

static int64_t tiles(int64_t count, int64_t side)
{
    return (count + side - 1) / side;
}

bool gpu_window_is_marked(const matmul_job *job)
{
    const matmul_window *w = job->window;
    const double far = (double)job->k / (double)(w->taps_y * w->taps_x) * (double)w->channel_stride +
                       fabs((double)(w->taps_y * w->tap_y * w->y_stride)) + fabs((double)(w->taps_x * w->tap_x * w->x_stride));
    return w->taps_y <= MATMUL_MARKED_TAPS && w->taps_x <= MATMUL_MARKED_TAPS && far < INT32_MAX;
}

/* ---- as each output sees it ---------------------------------------------------------------------------------------------- */

/* Returns true if rows of weights can be read 16 bytes at a time. */
static bool weights_in_pieces(const matmul_job *job)
{
    const int64_t each = 16 / type_size(job->type);
    bool all = (uintptr_t)job->a % 16 == 0 && job->a_row % each == 0;
    for (int32_t i = 0; i < job->batch_rank; i++)
        all &= job->a_batch[i] % each == 0;
    return all;
}

static ww_status launch_window(gpu_stream *stream, const matmul_job *job, matmul_args *args)
{
    const int64_t down = tiles(job->m, FAST_DOWN), across = tiles(job->n, FAST_ACROSS);
    args->blocks_down = (int32_t)down;
    args->a_layout = weights_in_pieces(job) ? MATMUL_ALONG_K : MATMUL_STRIDED;
    const int64_t y_max = gpu_blocks_y_max(stream->device);
    const gpu_grid grid = grid_of_2(down * across, args->batches < y_max ? args->batches : y_max);
    return job->type == TYPE_F16    ? launch_conv_fast_f16(stream, grid, MATMUL_THREADS, 0, args)
           : job->type == TYPE_BF16 ? launch_conv_fast_bf16(stream, grid, MATMUL_THREADS, 0, args)
                                    : launch_conv_fast_f32(stream, grid, MATMUL_THREADS, 0, args);
}

/* ---- with the image held ------------------------------------------------------------------------------------------------- */

/* How far the taps reach in one direction, relative to the first tap. */
static void reach_of(int64_t taps, int64_t tap, int64_t *min, int64_t *max)
{
    const int64_t far = (taps - 1) * tap;
    *min = far < 0 ? far : 0;
    *max = far > 0 ? far : 0;
}

/* How a convolution is divided into blocks. */
typedef struct shared_plan {
    int64_t columns;   /* outputs of a block */
    int64_t threads;   /* of a block */
    int64_t pixels;    /* that a block's outputs see */
    int64_t shift_min; /* smallest offset of a tap, relative to the first tap */
    int64_t together;  /* taps whose weights are in shared memory at a time; 0 if there is no room */
} shared_plan;

/* Bytes of shared memory, with the weights of `together` taps. */
static size_t shared_bytes(const shared_plan *plan)
{
    return (size_t)(plan->pixels + 1 + plan->together * FAST_DOWN) * CONV_SLAB_BYTES;
}

/* Returns the number of taps whose weights fit beside the pixels. NVIDIA's chips have room for all that are used at a time. If
 * a wave has 32 outputs, up to `wanted` blocks share a unit's memory, as long as each has room for two taps. */
static int64_t taps_together(const gpu_device *device, const matmul_window *w, int64_t pixels, int64_t wanted)
{
    const int64_t taps = min_i64(CONV_TAPS_SHARED, w->taps_y * w->taps_x), bytes = device->base.info.shared_bytes_per_block;
    int64_t room = 0;
    if (device->capabilities.conv_all_taps)
        return CONV_TAPS_SHARED;
    for (; wanted > 0 && room < min_i64(2, taps); wanted--)
        room = (bytes / wanted / CONV_SLAB_BYTES - pixels - 1) / FAST_DOWN;
    return min_i64(taps, room);
}

static shared_plan plan_of(const gpu_device *device, const matmul_job *job, int64_t columns)
{
    const matmul_window *w = job->window;
    const bool halves = device->capabilities.conv_halves;
    int64_t y_min, y_max, x_min, x_max;
    reach_of(w->taps_y, w->tap_y, &y_min, &y_max);
    reach_of(w->taps_x, w->tap_x, &x_min, &x_max);
    shared_plan plan = {.columns = columns, .threads = halves ? 2 * columns : columns};
    plan.shift_min = y_min * w->in_x + x_min;
    plan.pixels = columns + y_max * w->in_x + x_max - plan.shift_min;
    const int64_t blocks = tiles(job->m, FAST_DOWN) * tiles(job->n, columns), units = device->base.info.compute_units;
    plan.together = taps_together(device, w, plan.pixels, halves ? min_i64(BLOCKS_WANTED, tiles(blocks, units)) : 1);
    return plan;
}

/* The work of the busiest unit, in outputs: loading a pixel takes about half of the time of an output. */
static int64_t cost_of(const gpu_device *device, const matmul_job *job, const shared_plan *plan)
{
    const int64_t blocks = tiles(job->m, FAST_DOWN) * tiles(job->n, plan->columns);
    return tiles(blocks, device->base.info.compute_units) * (plan->columns + plan->pixels / 2);
}

/* 256 outputs per block or, if a wave has 32 outputs, the number that gives the busiest unit the least work. */
static shared_plan plan_shared(const gpu_device *device, const matmul_job *job)
{
    shared_plan best = plan_of(device, job, FAST_ACROSS);
    for (int64_t columns = FAST_ACROSS / 2; best.threads > FAST_ACROSS && columns >= FAST_ACROSS_MIN; columns /= 2) {
        const shared_plan plan = plan_of(device, job, columns);
        if (plan.together > 0 && (best.together <= 0 || cost_of(device, job, &plan) < cost_of(device, job, &best)))
            best = plan;
    }
    return best;
}

/* Except on NVIDIA's chips, kernels find a block's pixels by 32-bit offsets from its first image. */
static bool images_are_near(const gpu_device *device, const matmul_job *job, const shared_plan *plan)
{
    const matmul_window *w = job->window;
    const int64_t images = plan->pixels / (w->in_y * w->in_x) + 2;
    return device->capabilities.conv_all_taps ||
           (w->image_stride >= 0 &&
            (double)images * (double)w->image_stride + (double)(w->in_y * w->in_x) < INT32_MAX / (double)type_size(job->type));
}

static bool fits_shared(const gpu_device *device, const matmul_job *job)
{
    const matmul_window *w = job->window;
    const bool same = w->step_y == 1 && w->step_x == 1 && w->outs_y == w->in_y && w->outs_x == w->in_x;
    const bool dense = w->x_stride == 1 && w->y_stride == w->in_x && w->out_x_stride == 1 && w->out_y_stride == w->in_x &&
                       w->in_y < INT32_MAX / w->in_x;
    if (!same || !dense || matmul_batch_count(job) != 1)
        return false;
    const shared_plan plan = plan_shared(device, job);
    return plan.pixels <= CONV_PIXELS_MAX && plan.together > 0 && images_are_near(device, job, &plan) &&
           (int64_t)shared_bytes(&plan) <= device->base.info.shared_bytes_per_block;
}

bool gpu_conv_can_be_fast(const gpu_device *device, const matmul_job *job)
{
    const bool possible = job->fast && job->window && job->type != TYPE_F64 && job->type != TYPE_I8 && job->a_column == 1 &&
                          gpu_window_is_marked(job);
    return possible &&
           (device->capabilities.sm_80_code || (gpu_has_matrix_units(device, job->type) && fits_shared(device, job)));
}

static conv_args shared_args(const shared_plan *plan, const matmul_job *job, const matmul_args *product)
{
    const matmul_window *w = job->window;
    const int64_t taps = w->taps_y * w->taps_x, channels = job->k / taps;
    const int64_t slabs = tiles(channels, CONV_SLAB_BYTES / type_size(job->type));
    conv_args args = {.product = *product,
                      .pieces = tiles(job->m, FAST_DOWN) * slabs * taps * FAST_DOWN * (CONV_SLAB_BYTES / 16),
                      .channels = (int32_t)channels,
                      .slabs = (int32_t)slabs,
                      .taps = (int32_t)taps,
                      .pixels = (int32_t)plan->pixels,
                      .shift_min = (int32_t)plan->shift_min,
                      .pairs = w->in_y * w->in_x % 2 == 0 && w->out_image_stride % 2 == 0 && job->c_row % 2 == 0 &&
                               (uintptr_t)job->c % 4 == 0,
                      .together = (int32_t)plan->together,
                      .columns = (int32_t)plan->columns};
    args.product.blocks_down = (int32_t)tiles(job->m, FAST_DOWN);
    return args;
}

static ww_status launch_shared(gpu_stream *stream, const matmul_job *job, const shared_plan *plan, const conv_args *args)
{
    const gpu_grid arranged = grid_of(tiles(args->pieces, MATMUL_THREADS));
    const gpu_grid grid = grid_of(args->product.blocks_down * tiles(job->n, plan->columns));
    const uint32_t threads = (uint32_t)plan->threads;
    const ww_status status = launch_conv_arrange(stream, arranged, MATMUL_THREADS, 0, args);
    if (status != WW_OK)
        return status;
    return job->type == TYPE_F16    ? launch_conv_shared_f16(stream, grid, threads, shared_bytes(plan), args)
           : job->type == TYPE_BF16 ? launch_conv_shared_bf16(stream, grid, threads, shared_bytes(plan), args)
                                    : launch_conv_shared_f32(stream, grid, threads, shared_bytes(plan), args);
}

ww_status gpu_conv_fast(ww_device *base, const matmul_job *job, matmul_args *args)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    buffer weights = {0};
    conv_args shared = {0};
    const bool in_shared = fits_shared(device, job);
    const shared_plan plan = in_shared ? plan_shared(device, job) : (shared_plan){0};
    if (in_shared)
        shared = shared_args(&plan, job, args);
    ww_status status = tensors_gpu.alloc(base, (size_t)shared.pieces * 16, &weights);
    if (status != WW_OK)
        return status;
    shared.weights = weights.data;
    status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK) {
        status = in_shared ? launch_shared(stream, job, &plan, &shared) : launch_window(stream, job, args);
        status = gpu_tensors_leave(device, previous, status);
    }
    tensors_gpu.release(base, &weights);
    return status;
}
