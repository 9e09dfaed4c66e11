/* Element-wise jobs on a GPU: one launch each, or what the driver does by itself. */
#include "gpu/launch.h"
#include "gpu/tensor.h"

#include <string.h>

enum { NARROW_COUNT_MAX = INT32_MAX }; /* known divisors reach up to here */

static int32_t how_it_lies(const elementwise_job *job, const tensor_operand *operand)
{
    bool single = true;
    for (int32_t d = 0; d < job->rank; d++)
        single &= operand->strides[d] == 0;
    if (job->rank == 0 || (job->rank == 1 && operand->strides[0] == 1))
        return LIES_DENSE;
    return single ? LIES_SINGLE : LIES_STRIDED;
}

static elementwise_operand operand_args(const elementwise_job *job, const tensor_operand *operand)
{
    elementwise_operand made = {.data = operand->data, .type = operand->type, .lies = how_it_lies(job, operand)};
    memcpy(made.strides, operand->strides, sizeof made.strides);
    return made;
}

/* Dense, and every chunk of it aligned to its size. */
static bool lies_in_chunks(const elementwise_operand *operand)
{
    const uintptr_t chunk = ELEMENTWISE_CHUNK * (uintptr_t)type_size(operand->type);
    return operand->lies == LIES_DENSE && (uintptr_t)operand->data % (chunk < 16 ? chunk : 16) == 0;
}

/* The kernels take chunks of floats of up to 32 bits, and of anything that is only moved. */
static bool goes_in_chunks(const elementwise_job *job, const elementwise_args *args)
{
    bool all = lies_in_chunks(&args->out);
    for (int32_t i = 0; i < job->inputs; i++)
        all &= lies_in_chunks(&args->in[i]);
    if (job->family == ELEMENTWISE_WHERE)
        return all && job->in[0].type == TYPE_U8 && type_size(job->out.type) <= 4;
    if (job->family == ELEMENTWISE_CAST)
        return all && type_kind(job->in[0].type) == KIND_F32 && type_kind(job->out.type) == KIND_F32;
    return all && type_kind(job->in[0].type) == KIND_F32;
}

elementwise_args gpu_elementwise_args(const elementwise_job *job)
{
    elementwise_args args = {.count = job->count,
                             .op = job->op,
                             .rank = job->rank,
                             .wide = job->count > NARROW_COUNT_MAX,
                             .compares = job->family == ELEMENTWISE_CMP,
                             .a = job->a,
                             .b = job->b,
                             .ia = job->ia,
                             .ib = job->ib};
    args.out = operand_args(job, &job->out);
    for (int32_t i = 0; i < job->inputs; i++)
        args.in[i] = operand_args(job, &job->in[i]);
    for (int32_t d = 0; d < job->rank; d++) {
        args.shape[d] = job->shape[d];
        if (!args.wide)
            args.divisors[d] = known_divisor_of((uint32_t)job->shape[d]);
    }
    args.chunks = goes_in_chunks(job, &args);
    return args;
}

static ww_status launch(gpu_device *device, gpu_stream *queue, const elementwise_job *job, const elementwise_args *args)
{
    const gpu_grid grid = grid_of((job->count + ELEMENTWISE_TILE - 1) / ELEMENTWISE_TILE);
    const int32_t kind = job->inputs > 0 ? type_kind(job->in[0].type) : KIND_I64;
#define LAUNCH(name) launch_##name(device, queue, grid, ELEMENTWISE_THREADS, 0, args)
    switch (job->family) {
    case ELEMENTWISE_UNARY:
        return kind == KIND_F32   ? LAUNCH(tensor_unary_f32)
               : kind == KIND_F64 ? LAUNCH(tensor_unary_f64)
                                  : LAUNCH(tensor_unary_i64);
    case ELEMENTWISE_BINARY:
    case ELEMENTWISE_CMP:
        return kind == KIND_F32   ? LAUNCH(tensor_binary_f32)
               : kind == KIND_F64 ? LAUNCH(tensor_binary_f64)
                                  : LAUNCH(tensor_binary_i64);
    case ELEMENTWISE_CAST:
        return kind == KIND_F32   ? LAUNCH(tensor_cast_f32)
               : kind == KIND_F64 ? LAUNCH(tensor_cast_f64)
                                  : LAUNCH(tensor_cast_i64);
    case ELEMENTWISE_WHERE:
        return LAUNCH(tensor_where);
    case ELEMENTWISE_COPY:
        return LAUNCH(tensor_copy);
    default:
        return LAUNCH(tensor_set);
    }
#undef LAUNCH
}

ww_status gpu_elementwise(ww_device *of, const elementwise_job *job)
{
    gpu_device *device = gpu_of(of);
    gpu_stream *queue;
    driver_context previous = NULL;
    const elementwise_args args = gpu_elementwise_args(job);
    ww_status status = gpu_tensors_enter(device, &queue, &previous);
    if (status != WW_OK)
        return status;
    if (job->family == ELEMENTWISE_COPY && args.out.lies == LIES_DENSE && args.in[0].lies == LIES_DENSE)
        status = gpu_copy(device, queue, job->out.data, job->in[0].data, (size_t)(job->count * type_size(job->out.type)));
    else
        status = launch(device, queue, job, &args);
    return gpu_tensors_leave(device, previous, status);
}
