/* softmax, norms, rotary embedding and sorting on a GPU. */
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* Returns true if kernels that hold a row in registers can do it, if it is not too long. */
static bool in_registers(const rows_job *job)
{
    return type_kind(job->type) == KIND_F32 && job->type != TYPE_F8E4M3 && (job->weight != NULL || job->bias == NULL);
}

/* Returns true if rows can be processed by pairs, 64 elements at a time. */
static bool in_pairs(const rows_job *job)
{
    const uintptr_t begins = (uintptr_t)job->x | (uintptr_t)job->out | (uintptr_t)job->weight | (uintptr_t)job->bias;
    return in_registers(job) && job->n <= ROW_REGISTERS_MAX && job->n % REDUCE_LANES == 0 &&
           begins % (uintptr_t)(2 * type_size(job->type)) == 0;
}

/* ---- 16-bit types, 32 lanes to a row ------------------------------------------------------------------------------------ */

/* Shared memory for weights and biases, beside a row for each 32 lanes: as f32 if there is room. */
static int64_t affine_bytes(const rows_job *job)
{
    const int64_t each = job->n <= ROW_PART_4096 ? (int64_t)sizeof(float) : type_size(job->type);
    return job->op == ROW_SOFTMAX ? 0 : 2 * each * job->n;
}

/* The number of threads of a block that fit. */
static int32_t wave_threads(const gpu_device *device, const rows_job *job)
{
    const int64_t rows = (device->base.info.shared_bytes_per_block - affine_bytes(job)) / (job->n * type_size(job->type));
    const int64_t threads = rows / 2 * 2 * ROW_PAIR_LANES; /* whole waves of 32 or 64 lanes */
    const int32_t threads_max = job->op == ROW_SOFTMAX    ? ROW_PART_4096_RESIDENT
                                : job->n <= ROW_PART_4096 ? ROW_WAVE_THREADS
                                                          : ROW_WAVE_THREADS_2;
    return (int32_t)(threads < threads_max ? threads : threads_max);
}

/* Returns true if every 32 lanes have several rows. */
static bool by_waves(const gpu_device *device, const rows_job *job)
{
    const int64_t chunks = (job->n + ROW_PART_4096 - 1) / ROW_PART_4096, units = device->base.info.compute_units;
    const bool length =
        job->op == ROW_SOFTMAX ? job->n == ROW_PART_4096 : chunks <= ROW_WAVE_CHUNKS && job->n % ROW_WAVE_MULTIPLE == 0;
    return device->capabilities.sm_80_code && job->type != TYPE_F32 && length && (uintptr_t)job->x % 16 == 0 &&
           job->rows < INT32_MAX / 2 && wave_threads(device, job) >= ROW_WAVE_THREADS_MIN &&
           job->rows >= 2 * units * (wave_threads(device, job) / ROW_PAIR_LANES);
}

static ww_status launch_waves(gpu_stream *stream, const rows_job *job, const row_args *args)
{
    gpu_device *device = stream->device;
    const int32_t threads = wave_threads(device, job);
    const size_t bytes = (size_t)(affine_bytes(job) + threads / ROW_PAIR_LANES * job->n * type_size(job->type));
    const gpu_grid grid = grid_early(grid_of(device->base.info.compute_units));
    return job->op == ROW_SOFTMAX    ? launch_tensor_softmax_wave(stream, grid, threads, bytes, args)
           : job->n <= ROW_PART_4096 ? launch_tensor_norm_wave(stream, grid, threads, bytes, args)
                                     : launch_tensor_norm_wave_2(stream, grid, threads, bytes, args);
}

/* ---- by pairs ------------------------------------------------------------------------------------------------------------ */

/* A long row has a block to itself; several short rows share one. */
typedef struct pair_shape {
    int32_t threads;
    int64_t blocks;
} pair_shape;

static pair_shape shape_of(const rows_job *job, int64_t part)
{
    const int64_t parts = (job->n + part - 1) / part, each = parts == 1 ? ROW_PAIR_THREADS_MIN / ROW_PAIR_LANES : 1;
    return (pair_shape){parts == 1 ? ROW_PAIR_THREADS_MIN : (int32_t)parts * ROW_PAIR_LANES, (job->rows + each - 1) / each};
}

/* Returns true if blocks go from row to row: for 16-bit types, if each has several rows. */
static bool row_by_row(const gpu_device *device, const rows_job *job, pair_shape shape, int64_t resident)
{
    return device->capabilities.sm_80_code && job->type != TYPE_F32 && (uintptr_t)job->x % 16 == 0 &&
           job->rows < INT32_MAX / 2 && shape.blocks >= 2 * resident;
}

/* Launches the kernel in which 32 lanes handle several rows, or one row of more than half the elements that they hold. */
static ww_status launch_short(gpu_stream *stream, const rows_job *job, const row_args *args)
{
    const int64_t each = ROW_SHORT_THREADS / ROW_PAIR_LANES * (ROW_SHORT / job->n);
    const gpu_grid grid = grid_early(grid_of((job->rows + each - 1) / each));
    return job->op == ROW_SOFTMAX ? launch_tensor_softmax_short(stream, grid, ROW_SHORT_THREADS, 0, args)
                                  : launch_tensor_norm_short(stream, grid, ROW_SHORT_THREADS, 0, args);
}

static ww_status launch_shape(gpu_stream *stream, const rows_job *job, const row_args *args)
{
    gpu_device *device = stream->device;
    const bool softmax = job->op == ROW_SOFTMAX, large = softmax && job->n > ROW_PART_4096 / 2;
    const int64_t part = large ? ROW_PART_4096 : ROW_PART, units = device->base.info.compute_units;
    const pair_shape shape = shape_of(job, part), registers = shape_of(job, ROW_PART);
    const int64_t resident = units * ((large ? ROW_PART_4096_RESIDENT : ROW_PREFETCH_RESIDENT) / shape.threads);
    if (job->n <= ROW_SHORT) /* the other kernels always process ROW_PART elements with 32 lanes */
        return launch_short(stream, job, args);
    if (!row_by_row(device, job, shape, resident))
        return launch_tensor_rows_registers(stream, grid_early(grid_of(registers.blocks)), registers.threads, 0, args);
    const gpu_grid grid = grid_early(grid_of(resident));
    const size_t bytes = 2 * sizeof(uint16_t) * (size_t)(part * shape.threads / ROW_PAIR_LANES); /* two rows for each part */
    return large ? launch_tensor_softmax_prefetch_4096(stream, grid, shape.threads, bytes, args)
                 : launch_tensor_rows_prefetch(stream, grid, shape.threads, bytes, args);
}

static ww_status launch_pairs(gpu_stream *stream, const rows_job *job, row_args *args)
{
    gpu_device *device = stream->device;
    const size_t row = (size_t)(job->n * type_size(job->type)), all = row * (size_t)job->rows;
    args->apart = gpu_leaves_alone(stream, job->x, all) && gpu_leaves_alone(stream, job->weight, job->weight ? row : 0) &&
                  gpu_leaves_alone(stream, job->bias, job->bias ? row : 0);
    const ww_status status = by_waves(device, job) ? launch_waves(stream, job, args) : launch_shape(stream, job, args);
    if (status == WW_OK)
        gpu_writes(stream, job->out, all);
    return status;
}

static ww_status launch_rows(gpu_stream *stream, const rows_job *job, void *results)
{
    const bool f64 = type_kind(job->type) == KIND_F64;
    const int64_t row_bytes = job->n * (f64 ? 8 : 4);
    const int32_t quad = 4 * type_size(job->type);
    const uintptr_t alignment = (uintptr_t)(quad < 16 ? quad : 16);
    row_args args = {.x = job->x,
                     .weight = job->weight,
                     .bias = job->bias,
                     .out = job->out,
                     .results = results,
                     .rows = job->rows,
                     .n = job->n,
                     .chunks = (job->n + REDUCE_CHUNK - 1) / REDUCE_CHUNK,
                     .eps = job->eps,
                     .op = job->op,
                     .type = job->type,
                     .in_shared = row_bytes <= ROW_SHARED_BYTES,
                     .quads = !f64 && job->n % 4 == 0 && ((uintptr_t)job->x | (uintptr_t)job->out) % alignment == 0};
    if (in_pairs(job))
        return launch_pairs(stream, job, &args);
    if (in_registers(job) && job->n <= ROW_PART)
        return launch_tensor_rows_registers_any(stream, grid_of(job->rows), REDUCE_LANES, 0, &args);
    const size_t shared_bytes = args.in_shared ? (size_t)row_bytes : 0;
    const int32_t threads = job->n <= 1024 ? 64 : job->n <= 2048 ? 128 : ROW_THREADS;
    if (f64)
        return launch_tensor_rows_f64(stream, grid_of(job->rows), threads, shared_bytes, &args);
    return launch_tensor_rows_f32(stream, grid_of(job->rows), threads, shared_bytes, &args);
}

ww_status gpu_rows(ww_device *base, const rows_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    buffer results = {0};
    const int64_t chunks = (job->n + REDUCE_CHUNK - 1) / REDUCE_CHUNK;
    ww_status status = tensors_gpu.alloc(base, chunks > ROW_RESULTS_SHARED ? (size_t)(job->rows * chunks * 8) : 0, &results);
    if (status != WW_OK)
        return status;
    status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK)
        status = gpu_tensors_leave(device, previous, launch_rows(stream, job, results.data));
    tensors_gpu.release(base, &results);
    return status;
}

ww_status gpu_rope(ww_device *base, const rope_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    const rope_args args = {.x = job->x,
                            .cosine = job->cosine,
                            .sine = job->sine,
                            .out = job->out,
                            .cosines = job->cosines,
                            .sines = job->sines,
                            .rows = job->rows,
                            .half = job->half,
                            .cosine_step = job->cosine_step,
                            .sine_step = job->sine_step,
                            .type = job->type,
                            .interleaved = job->interleaved};
    const gpu_grid grid = grid_of((job->rows * job->half + ROW_THREADS - 1) / ROW_THREADS);
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    return gpu_tensors_leave(device, previous, launch_tensor_rope(stream, grid, ROW_THREADS, 0, &args));
}

/* ---- sorting ------------------------------------------------------------------------------------------------------------- */

static gpu_grid threads_for(int64_t count)
{
    return grid_of((count + SORT_THREADS - 1) / SORT_THREADS);
}

/* Sorts sequences of 2, 4, ... up to a tile in one launch, then merges longer ones step by step; the last steps of each merge
 * are done in tiles again. */
static ww_status run_sort(gpu_stream *stream, sort_args *args)
{
    const int64_t all = args->rows * args->padded;
    const int64_t tile = args->padded < SORT_TILE ? args->padded : SORT_TILE;
    ww_status status = launch_tensor_sort_keys(stream, threads_for(all), SORT_THREADS, 0, args);
    args->first_size = 2;
    args->last_size = tile;
    if (status == WW_OK && tile > 1)
        status = launch_tensor_sort_tile(stream, grid_of(all / tile), SORT_THREADS, 0, args);
    for (int64_t size = 2 * tile; size <= args->padded && status == WW_OK; size *= 2) {
        args->first_size = args->last_size = size;
        for (args->apart = size / 2; args->apart >= tile && status == WW_OK; args->apart /= 2)
            status = launch_tensor_sort_step(stream, threads_for(all / 2), SORT_THREADS, 0, args);
        if (status == WW_OK)
            status = launch_tensor_sort_tile(stream, grid_of(all / tile), SORT_THREADS, 0, args);
    }
    if (status == WW_OK)
        status = launch_tensor_sort_put(stream, threads_for(args->rows * args->k), SORT_THREADS, 0, args);
    return status;
}

/* Returns true if one block can sort a row. */
static bool fits_a_block(const sort_job *job)
{
    return job->n <= SORT_ROW_MAX && job->type != TYPE_F64 && job->type != TYPE_I64;
}

/* Returns true if lanes can hold the row in registers. */
static bool fits_registers(const gpu_device *device, const sort_job *job)
{
    return fits_a_block(job) && job->n <= SORT_REGISTERS_ROW && device->capabilities.mfma;
}

/* The power of two that a row is padded to. */
static int64_t padded_of(const gpu_device *device, const sort_job *job)
{
    int64_t padded = fits_registers(device, job) ? SORT_REGISTERS_OWN
                     : !fits_a_block(job)        ? 1
                     : job->n <= SORT_ROW_SHORT  ? SORT_ROW_SHORT / SORT_ROW_SHORT_ROWS
                                                 : SORT_ROW_MAX;
    while (padded < job->n)
        padded *= 2;
    return padded;
}

/* The grid for short rows, several per block. */
static gpu_grid blocks_of(const sort_args *args, int64_t elements)
{
    const int64_t each = elements / args->padded;
    return grid_of((args->rows + each - 1) / each);
}

static ww_status sort_by_blocks(gpu_stream *stream, bool registers, const sort_args *args)
{
    const gpu_grid grid = grid_of(args->rows);
    if (registers)
        return launch_tensor_sort_registers(stream, blocks_of(args, (int64_t)SORT_REGISTERS_THREADS * SORT_REGISTERS_OWN),
                                            SORT_REGISTERS_THREADS, 0, args);
    if (args->k <= TOP_MAX && args->k < args->n && args->n >= TOP_THREADS)
        return launch_tensor_top_row(stream, grid, TOP_THREADS, 0, args);
    if (args->n <= SORT_ROW_SHORT)
        return launch_tensor_sort_row_1024(stream, blocks_of(args, SORT_ROW_SHORT), SORT_SHORT_THREADS, 0, args);
    return launch_tensor_sort_row(stream, grid, SORT_ROW_THREADS, 0, args);
}

ww_status gpu_sort(ww_device *base, const sort_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    buffer pairs = {0};
    const bool by_blocks = fits_a_block(job);
    const int64_t padded = padded_of(device, job);
    const size_t bytes = by_blocks ? 0 : (size_t)(job->rows * padded) * (sizeof(uint64_t) + sizeof(uint32_t));
    ww_status status = tensors_gpu.alloc(base, bytes, &pairs);
    if (status != WW_OK)
        return status;
    sort_args args = {.x = job->x,
                      .values = job->values,
                      .indices = job->indices,
                      .rows = job->rows,
                      .n = job->n,
                      .k = job->k,
                      .padded = padded,
                      .type = job->type,
                      .descending = job->descending};
    if (!by_blocks) {
        args.keys = pairs.data;
        args.places = (uint32_t *)((uint64_t *)pairs.data + job->rows * padded);
    }
    status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK) {
        status = by_blocks ? sort_by_blocks(stream, fits_registers(device, job), &args) : run_sort(stream, &args);
        status = gpu_tensors_leave(device, previous, status);
    }
    tensors_gpu.release(base, &pairs);
    return status;
}
