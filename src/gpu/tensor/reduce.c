/* Reductions on a GPU: one launch if its last blocks can do all rounds after the first, otherwise one launch per round of
 * chunks. argmin and argmax take one launch or two. Intermediate results are in memory of the stream, allocated before the
 * device is entered.
 */
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum {
    ARG_PART = 16384,
    ARG_PARTS_MAX = 1024,
    COLUMNS_MIN = 8,
    COLUMNS_LONG = 256,      /* from this many elements on, several threads share a result */
    REST_CHUNKS_MAX = 65536, /* chunks that the last block of a launch reduces */
};

/* The type of a kind's intermediate results. */
static int32_t kind_type(int32_t type)
{
    const int32_t kind = type_kind(type);
    return kind == KIND_F32 ? TYPE_F32 : kind == KIND_F64 ? TYPE_F64 : TYPE_I64;
}

static bool is_dense(const reduce_dims *reduced)
{
    return reduced->rank == 0 || (reduced->rank == 1 && reduced->strides[0] == 1);
}

/* Returns true if every chunk can be loaded four elements at a time. Runs begin at multiples of 4096. */
static bool in_quads(const reduce_args *args)
{
    const int32_t quad = 4 * type_size(args->type);
    bool all = args->dense && type_kind(args->type) == KIND_F32 && (uintptr_t)args->x % (uintptr_t)(quad < 16 ? quad : 16) == 0;
    for (int32_t d = 0; d < args->kept.rank; d++)
        all &= args->kept.strides[d] % 4 == 0;
    return all;
}

/* Returns true if 16-bit elements can be loaded eight at a time, in rows of a multiple of 64. */
static bool in_units(const reduce_args *args)
{
    bool all = args->quads && type_size(args->type) == 2 && args->n % REDUCE_LANES == 0 && (uintptr_t)args->x % 16 == 0;
    for (int32_t d = 0; d < args->kept.rank; d++)
        all &= args->kept.strides[d] % 8 == 0;
    return all;
}

/* Returns the bytes from the first element that is reduced to the last. */
static size_t span_bytes(const reduce_dims *kept, const reduce_dims *reduced, int32_t type)
{
    int64_t last = 0;
    for (int32_t d = 0; d < kept->rank; d++)
        last += (kept->shape[d] - 1) * kept->strides[d];
    for (int32_t d = 0; d < reduced->rank; d++)
        last += (reduced->shape[d] - 1) * reduced->strides[d];
    return (size_t)((last + 1) * type_size(type));
}

/* Returns true if results are neighbours in memory, so that it is faster to compute them together. */
static bool by_columns(const reduce_args *args)
{
    const int32_t last = args->kept.rank - 1;
    const bool beside = last >= 0 && args->kept.strides[last] == 1 && args->kept.shape[last] >= COLUMNS_MIN;
    return beside && !args->dense && args->reduced.rank == 1;
}

/* Returns true if columns can be loaded 16 bytes at a time, or 8 for f8e4m3. */
static bool columns_in_quads(const reduce_args *args)
{
    const int32_t each = args->type == TYPE_F32 ? 4 : 8;
    const int32_t last = args->kept.rank - 1;
    bool all = by_columns(args) && type_kind(args->type) == KIND_F32 && args->n >= COLUMNS_LONG &&
               (uintptr_t)args->x % (uintptr_t)(each * type_size(args->type)) == 0 && args->kept.shape[last] % each == 0 &&
               args->reduced.strides[0] % each == 0;
    for (int32_t d = 0; all && d < last; d++)
        all = args->kept.strides[d] % each == 0;
    return all;
}

static ww_status launch_round(gpu_stream *stream, const reduce_args *args)
{
    const int32_t kind = type_kind(args->type);
    if (by_columns(args)) {
        const gpu_grid grid = grid_of((args->outs + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS * args->chunks);
        if (columns_in_quads(args))
            return launch_tensor_reduce_columns_vectors(stream, grid_early(grid), REDUCE_COLUMNS_THREADS, 0, args);
        return kind == KIND_F32   ? launch_tensor_reduce_columns_f32(stream, grid, REDUCE_THREADS, 0, args)
               : kind == KIND_F64 ? launch_tensor_reduce_columns_f64(stream, grid, REDUCE_THREADS, 0, args)
                                  : launch_tensor_reduce_columns_i64(stream, grid, REDUCE_THREADS, 0, args);
    }
    const bool units = in_units(args);
    const int64_t groups = REDUCE_THREADS / (units ? REDUCE_HALF_GROUP : REDUCE_GROUP);
    const gpu_grid grid = grid_of((args->outs * args->chunks + groups - 1) / groups);
    if (units)
        return launch_tensor_reduce_rows_half(stream, grid_early(grid), REDUCE_THREADS, 0, args);
    return kind == KIND_F32   ? launch_tensor_reduce_rows_f32(stream, grid, REDUCE_THREADS, 0, args)
           : kind == KIND_F64 ? launch_tensor_reduce_rows_f64(stream, grid, REDUCE_THREADS, 0, args)
                              : launch_tensor_reduce_rows_i64(stream, grid, REDUCE_THREADS, 0, args);
}

/* Returns true if the kernels that are launched early can do it. */
static bool begins_early(const reduce_args *args)
{
    return by_columns(args) ? columns_in_quads(args) : in_units(args);
}

/* Returns true if the last blocks of the first round can do all others. */
static bool in_one_launch(const reduce_args *args)
{
    if (by_columns(args))
        return columns_in_quads(args) && args->chunks <= REDUCE_LANES && args->outs <= (int64_t)REDUCE_READY * REDUCE_COLUMNS;
    return args->outs == 1 && args->chunks <= REST_CHUNKS_MAX;
}

/* Queues all rounds. Intermediate results alternate between the two halves of `between`; each half has room for those of the
 * first round. */
static ww_status run_rounds(gpu_stream *stream, const reduce_job *job, char *between, int64_t half_bytes)
{
    gpu_device *device = stream->device;
    uint32_t *ready = NULL;
    ww_status status = between ? gpu_tensors_ready(device, &ready) : WW_OK;
    if (status != WW_OK)
        return status;
    reduce_args args = {.x = job->x,
                        .kept = job->kept,
                        .reduced = job->reduced,
                        .outs = job->outs,
                        .n = job->n,
                        .op = job->op == REDUCE_MEAN ? REDUCE_SUM : job->op,
                        .type = job->type};
    for (int32_t round = 0;; round++) {
        args.chunks = (args.n + REDUCE_CHUNK - 1) / REDUCE_CHUNK;
        args.dense = is_dense(&args.reduced);
        args.quads = in_quads(&args);
        const bool one_launch = round == 0 && args.chunks > 1 && in_one_launch(&args);
        const bool last = args.chunks == 1 || one_launch;
        args.between = between;
        args.ready = one_launch ? ready : NULL;
        args.out = last ? job->out : between + round % 2 * half_bytes;
        args.to = last ? job->out_type : kind_type(job->type);
        args.divide_by = last && job->op == REDUCE_MEAN ? job->n : 0;
        const bool early = begins_early(&args);
        args.apart = early && gpu_leaves_alone(stream, args.x, span_bytes(&args.kept, &args.reduced, args.type));
        status = launch_round(stream, &args);
        if (status == WW_OK && round == 0 && last && early)
            gpu_writes(stream, job->out, (size_t)(job->outs * type_size(job->out_type)));
        if (status != WW_OK || last)
            return status;
        args.x = args.out;
        args.type = args.to;
        args.n = args.chunks;
        args.kept = (reduce_dims){.rank = 1, .shape = {job->outs}, .strides = {args.chunks}};
        args.reduced = (reduce_dims){.rank = 1, .shape = {args.chunks}, .strides = {1}};
    }
}

/* Returns true if all parts can be loaded by quads. Then a row of one part needs no second step. */
static bool arg_in_quads(const reduce_job *job, int64_t parts)
{
    const int32_t quad = 4 * type_size(job->type);
    bool all = type_kind(job->type) == KIND_F32 && job->reduced.rank == 1 && job->reduced.strides[0] == 1 && job->n % 4 == 0 &&
               job->n / parts < INT32_MAX / 2 && (uintptr_t)job->x % (uintptr_t)(quad < 16 ? quad : 16) == 0;
    for (int32_t d = 0; d < job->kept.rank; d++)
        all &= job->kept.strides[d] % 4 == 0;
    return all;
}

static ww_status run_arg(gpu_stream *stream, const reduce_job *job, int64_t *between, int64_t parts)
{
    const int32_t kind = type_kind(job->type);
    reduce_arg_args args = {.x = job->x,
                            .kept = job->kept,
                            .reduced = job->reduced,
                            .outs = job->outs,
                            .n = job->n,
                            .parts = parts,
                            .best_values = between,
                            .best_places = between + job->outs * parts,
                            .op = job->op,
                            .type = job->type};
    ww_status status = WW_OK;
    const bool quads = arg_in_quads(job, parts);
    if (quads) {
        args.out = parts == 1 ? job->out : NULL;
        const int64_t groups = REDUCE_THREADS / ARG_GROUP;
        const gpu_grid grid = grid_of((job->outs * parts + groups - 1) / groups);
        args.apart = gpu_leaves_alone(stream, job->x, span_bytes(&job->kept, &job->reduced, job->type));
        status = launch_tensor_reduce_arg_quads(stream, grid_early(grid), REDUCE_THREADS, 0, &args);
    }
    if (status == WW_OK && quads && parts == 1)
        gpu_writes(stream, job->out, (size_t)job->outs * sizeof(uint32_t));
    if (quads && parts == 1)
        return status;
    for (int32_t step = quads; step < 2 && status == WW_OK; step++) {
        const gpu_grid grid = grid_of(step == 0 ? job->outs * parts : job->outs);
        args.out = step == 0 ? NULL : job->out;
        status = kind == KIND_F32   ? launch_tensor_reduce_arg_f32(stream, grid, REDUCE_THREADS, 0, &args)
                 : kind == KIND_F64 ? launch_tensor_reduce_arg_f64(stream, grid, REDUCE_THREADS, 0, &args)
                                    : launch_tensor_reduce_arg_i64(stream, grid, REDUCE_THREADS, 0, &args);
    }
    return status;
}

/* Returns true if a dimension has more elements than kernels can index. Such a tensor is made dense first. */
static bool exceeds_32_bits(const reduce_job *job)
{
    return (job->kept.rank > 1 && job->outs > UINT32_MAX) || (job->reduced.rank > 1 && job->n > UINT32_MAX);
}

static ww_status copy_dense(ww_device *base, reduce_job *job, buffer *dense)
{
    const int32_t rank = job->kept.rank + job->reduced.rank;
    elementwise_job copy = {.family = ELEMENTWISE_COPY, .inputs = 1, .rank = rank, .count = job->outs * job->n};
    ww_status status = tensors_gpu.alloc(base, (size_t)(copy.count * type_size(job->type)), dense);
    if (status != WW_OK)
        return status;
    copy.out = (tensor_operand){.data = dense->data, .type = job->type};
    copy.in[0] = (tensor_operand){.data = (void *)job->x, .type = job->type};
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        const bool kept = d < job->kept.rank;
        copy.shape[d] = kept ? job->kept.shape[d] : job->reduced.shape[d - job->kept.rank];
        copy.in[0].strides[d] = kept ? job->kept.strides[d] : job->reduced.strides[d - job->kept.rank];
        copy.out.strides[d] = stride;
        stride *= copy.shape[d];
    }
    job->x = dense->data;
    job->kept = (reduce_dims){.rank = 1, .shape = {job->outs}, .strides = {job->n}};
    job->reduced = (reduce_dims){.rank = 1, .shape = {job->n}, .strides = {1}};
    return tensors_gpu.elementwise(base, &copy);
}

static ww_status reduce_narrow(ww_device *base, const reduce_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    buffer between = {0};
    const bool arg = job->op == REDUCE_ARGMIN || job->op == REDUCE_ARGMAX;
    const int64_t chunks = (job->n + REDUCE_CHUNK - 1) / REDUCE_CHUNK;
    const int64_t wanted = (job->n + ARG_PART - 1) / ARG_PART;
    const int64_t parts = wanted < ARG_PARTS_MAX ? wanted : ARG_PARTS_MAX;
    const int64_t half = (job->outs * chunks * type_size(kind_type(job->type)) + 255) / 256 * 256;
    const int64_t bytes = arg ? job->outs * parts * 16 : chunks > 1 ? 2 * half : 0;
    ww_status status = tensors_gpu.alloc(base, (size_t)bytes, &between);
    if (status != WW_OK)
        return status;
    status = gpu_tensors_enter(device, &stream, &previous);
    if (status == WW_OK) {
        status = arg ? run_arg(stream, job, between.data, parts) : run_rounds(stream, job, between.data, half);
        status = gpu_tensors_leave(device, previous, status);
    }
    tensors_gpu.release(base, &between);
    return status;
}

ww_status gpu_reduce(ww_device *base, const reduce_job *job)
{
    reduce_job narrow = *job;
    buffer dense = {0};
    ww_status status = exceeds_32_bits(job) ? copy_dense(base, &narrow, &dense) : WW_OK;
    if (status == WW_OK)
        status = reduce_narrow(base, &narrow);
    tensors_gpu.release(base, &dense);
    return status;
}
