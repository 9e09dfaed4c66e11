/* Element-wise jobs on a GPU: one launch each, or what the driver does by itself. */
#include "gpu/launch.h"
#include "gpu/tensor.h"

#include <string.h>

enum { NARROW_COUNT_MAX = INT32_MAX }; /* known divisors reach up to here */

static int32_t how_it_lies(const elementwise_job *job, const tensor_operand *operand)
{
    bool single = true;
    bool dense = true;
    int64_t behind = 1;
    for (int32_t d = job->rank - 1; d >= 0; d--) {
        single &= operand->strides[d] == 0;
        dense &= operand->strides[d] == behind;
        behind *= job->shape[d];
    }
    return dense ? LIES_DENSE : single ? LIES_SINGLE : LIES_STRIDED;
}

static elementwise_operand operand_args(const elementwise_job *job, const tensor_operand *operand)
{
    elementwise_operand made = {.data = operand->data, .type = operand->type, .lies = how_it_lies(job, operand)};
    memcpy(made.strides, operand->strides, sizeof made.strides);
    return made;
}

static bool is_aligned(const void *data, int64_t bytes)
{
    return (uintptr_t)data % (uintptr_t)bytes == 0;
}

/* The kernels take chunks of floats of up to 32 bits, and of anything that is only moved. */
static bool has_chunks(const elementwise_job *job)
{
    switch (job->family) {
    case ELEMENTWISE_WHERE:
        return job->in[0].type == TYPE_U8 && type_size(job->out.type) <= 4;
    case ELEMENTWISE_CAST:
        return type_kind(job->in[0].type) == KIND_F32 && type_kind(job->out.type) == KIND_F32;
    case ELEMENTWISE_UNARY:
    case ELEMENTWISE_BINARY:
    case ELEMENTWISE_CMP:
        return type_kind(job->in[0].type) == KIND_F32;
    default:
        return false;
    }
}

static int32_t chunks_of(const elementwise_job *job, const elementwise_args *args)
{
    bool dense = has_chunks(job) && args->out.lies == LIES_DENSE && is_aligned(args->out.data, 16);
    for (int32_t i = 0; i < job->inputs; i++)
        dense = dense && args->in[i].lies == LIES_DENSE && is_aligned(args->in[i].data, 16);
    return dense ? CHUNKS_DENSE : CHUNKS_NONE;
}

bool gpu_take_units(elementwise_job *job, int32_t moved)
{
    tensor_operand *operands[] = {&job->out, &job->in[0]};
    const int64_t each = 16 / type_size(job->out.type);
    const int32_t last = job->rank - 1;
    bool fits = job->rank > 0 && job->shape[last] % each == 0;
    for (int32_t o = 0; o < 2 && fits; o++) {
        fits = operands[o]->strides[last] == 1 && is_aligned(operands[o]->data, 16);
        for (int32_t d = 0; d < last; d++)
            fits = fits && operands[o]->strides[d] % each == 0;
    }
    for (int32_t o = moved; o < job->inputs && fits; o++)
        fits = job->in[o].strides[last] == 0; /* one for all of a unit */
    if (!fits || job->ia % each != 0)
        return false;
    job->shape[last] /= each;
    job->count /= each;
    job->ia /= each;
    for (int32_t o = 0; o < 2; o++)
        for (int32_t d = 0; d < last; d++)
            operands[o]->strides[d] /= each;
    return true;
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
    args.chunks = chunks_of(job, &args);
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

static bool is_dense_copy(const elementwise_job *job)
{
    return job->family == ELEMENTWISE_COPY && how_it_lies(job, &job->out) == LIES_DENSE &&
           how_it_lies(job, &job->in[0]) == LIES_DENSE;
}

ww_status gpu_elementwise(ww_device *of, const elementwise_job *job)
{
    gpu_device *device = gpu_of(of);
    gpu_stream *queue;
    driver_context previous = NULL;
    elementwise_job units = *job;
    const bool in_units = job->family == ELEMENTWISE_COPY && gpu_take_units(&units, 1);
    elementwise_args args = gpu_elementwise_args(&units);
    args.chunks = in_units ? CHUNKS_UNITS : args.chunks;
    ww_status status = gpu_tensors_enter(device, &queue, &previous);
    if (status != WW_OK)
        return status;
    if (is_dense_copy(job))
        status = gpu_copy(device, queue, job->out.data, job->in[0].data, (size_t)(job->count * type_size(job->out.type)));
    else
        status = launch(device, queue, &units, &args);
    return gpu_tensors_leave(device, previous, status);
}
