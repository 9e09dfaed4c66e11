/* Element-wise jobs on a GPU: one launch each, or a fill or copy by the driver. */
#include "arithmetic/canon.h"
#include "base/memory.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

#include <string.h>

static int32_t layout_of(const elementwise_job *job, const tensor_operand *operand)
{
    bool single = true;
    bool dense = true;
    int64_t behind = 1;
    for (int32_t d = job->rank - 1; d >= 0; d--) {
        single &= operand->strides[d] == 0;
        dense &= operand->strides[d] == behind;
        behind *= job->shape[d];
    }
    return dense ? LAYOUT_DENSE : single ? LAYOUT_SCALAR : LAYOUT_STRIDED;
}

static elementwise_operand operand_args(const elementwise_job *job, const tensor_operand *operand)
{
    elementwise_operand made = {.data = operand->data, .type = operand->type, .layout = layout_of(job, operand)};
    memcpy(made.strides, operand->strides, sizeof made.strides);
    return made;
}

static bool is_aligned(const void *data, int64_t bytes)
{
    return (uintptr_t)data % (uintptr_t)bytes == 0;
}

/* Returns true if a kernel of this family processes 16 bytes of every operand at a time: for floats of up to 32 bits. */
static bool has_units(const elementwise_job *job)
{
    return (job->family == ELEMENTWISE_UNARY || job->family == ELEMENTWISE_BINARY || job->family == ELEMENTWISE_CMP) &&
           type_kind(job->in[0].type) == KIND_F32;
}

/* Returns true if it processes four elements at a time: for floats of up to 32 bits, and for anything that is only copied. */
static bool has_quads(const elementwise_job *job)
{
    switch (job->family) {
    case ELEMENTWISE_WHERE:
        return job->in[0].type == TYPE_U8 && type_size(job->out.type) <= 4;
    case ELEMENTWISE_CAST:
        return type_kind(job->in[0].type) == KIND_F32 && type_kind(job->out.type) == KIND_F32;
    default:
        return false;
    }
}

static int32_t quads_of(const elementwise_job *job, const elementwise_args *args)
{
    bool dense = has_quads(job) && args->out.layout == LAYOUT_DENSE && is_aligned(args->out.data, 16);
    for (int32_t i = 0; i < job->inputs; i++)
        dense = dense && args->in[i].layout == LAYOUT_DENSE && is_aligned(args->in[i].data, 16);
    return dense ? QUADS_DENSE : QUADS_NONE;
}

/* Returns the layout of a strided input if it can be read in units of `each` elements, otherwise LAYOUT_STRIDED. The result is
 * dense. */
static int32_t unit_layout(const elementwise_job *job, const tensor_operand *operand, int64_t each)
{
    const int32_t last = job->rank - 1;
    if (job->shape[last] % each != 0)
        return LAYOUT_STRIDED;
    if (operand->strides[last] == 0)
        return LAYOUT_REPEATED;
    bool fits = operand->strides[last] == 1 && is_aligned(operand->data, 16);
    for (int32_t d = 0; d < last; d++)
        fits = fits && operand->strides[d] % each == 0;
    return fits ? LAYOUT_LINES : LAYOUT_STRIDED;
}

static void take_units(const elementwise_job *job, elementwise_args *args)
{
    const int64_t each = 16 / type_size(job->in[0].type);
    int32_t layouts[ELEMENTWISE_INPUTS];
    bool fits = has_units(job) && args->out.layout == LAYOUT_DENSE && is_aligned(args->out.data, 16);
    for (int32_t i = 0; i < job->inputs && fits; i++) {
        layouts[i] = args->in[i].layout == LAYOUT_STRIDED ? unit_layout(job, &job->in[i], each) : args->in[i].layout;
        fits = layouts[i] != LAYOUT_STRIDED && (layouts[i] != LAYOUT_DENSE || is_aligned(args->in[i].data, 16));
    }
    if (!fits)
        return;
    for (int32_t i = 0; i < job->inputs; i++)
        args->in[i].layout = layouts[i];
    args->quads = QUADS_DENSE;
    args->unit_quads = (int32_t)(each / ELEMENTWISE_QUAD);
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
        fits = job->in[o].strides[last] == 0; /* one value for the whole unit */
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

elementwise_args gpu_elementwise_args(const gpu_device *device, const elementwise_job *job)
{
    elementwise_args args = {.count = job->count,
                             .op = job->op,
                             .rank = job->rank,
                             .indices_64 = job->count > device->constants.narrow_count_max,
                             .compares = job->family == ELEMENTWISE_CMP,
                             .unit_quads = 1,
                             .a = job->a,
                             .b = job->b,
                             .ia = job->ia,
                             .ib = job->ib};
    args.out = operand_args(job, &job->out);
    for (int32_t i = 0; i < job->inputs; i++)
        args.in[i] = operand_args(job, &job->in[i]);
    for (int32_t d = 0; d < job->rank; d++) {
        args.shape[d] = job->shape[d];
        if (!args.indices_64)
            args.divisors[d] = fast_divisor_of((uint32_t)job->shape[d]);
    }
    args.quads = quads_of(job, &args);
    take_units(job, &args);
    return args;
}

static ww_status launch_any(gpu_stream *stream, const elementwise_job *job, const elementwise_args *args)
{
    const int64_t tile = (int64_t)ELEMENTWISE_TILE * args->unit_quads;
    const gpu_grid grid = grid_of((job->count - args->first + tile - 1) / tile);
    const int32_t kind = job->inputs > 0 ? type_kind(job->in[0].type) : KIND_I64;
#define LAUNCH(name) launch_##name(stream, grid, ELEMENTWISE_THREADS, 0, args)
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

static bool is_pow_or_atan2(int32_t op)
{
    return op == BINARY_POW || op == BINARY_ATAN2;
}

/* Returns true if there is a kernel for whole tiles: one of tensor_tiles.c for dense f32, one with a half form, or pow and
 * atan2.
 */
static bool has_whole_tiles(const elementwise_job *job, const elementwise_args *args)
{
    const bool half = job->in[0].type == TYPE_F16 || job->in[0].type == TYPE_BF16;
    const bool any = half || job->in[0].type == TYPE_F32;
    switch (job->family) {
    case ELEMENTWISE_UNARY:
        if (job->in[0].type == TYPE_F32)
            return args->in[0].layout == LAYOUT_DENSE;
        if (half && UNARY_HAS_HALF_FORM(job->op, job->in[0].type))
            return args->in[0].layout == LAYOUT_DENSE;
        return half && (job->op == UNARY_ABS || job->op == UNARY_NEG || job->op == UNARY_SQR || job->op == UNARY_RELU ||
                        job->op == UNARY_AFFINE);
    case ELEMENTWISE_BINARY:
        if (is_pow_or_atan2(job->op))
            return any && args->in[0].layout == LAYOUT_DENSE && args->in[1].layout == LAYOUT_DENSE;
        return any && (job->op == BINARY_ADD || job->op == BINARY_SUB || job->op == BINARY_MUL || job->op == BINARY_MAXIMUM ||
                       job->op == BINARY_MINIMUM);
    case ELEMENTWISE_CMP:
        return any;
    default:
        return false;
    }
}

static ww_status launch_whole(gpu_stream *stream, const elementwise_job *job, gpu_grid grid, const elementwise_args *args)
{
    gpu_device *device = stream->device;
#define LAUNCH(name) launch_##name(stream, grid_early(grid), ELEMENTWISE_THREADS, 0, args)
    switch (job->family) {
    case ELEMENTWISE_UNARY:
        if (job->in[0].type != TYPE_F32)
            return UNARY_HAS_HALF_FORM(job->op, job->in[0].type) ? LAUNCH(tensor_unary_half) : LAUNCH(tensor_tiles_unary);
        return UNARY_IS_CHEAP(job->op) ? LAUNCH(tensor_unary_cheap) : LAUNCH(tensor_unary_costly);
    case ELEMENTWISE_BINARY:
        if (!is_pow_or_atan2(job->op))
            return LAUNCH(tensor_tiles_binary);
        return job->in[0].type != TYPE_F32 && device->capabilities.sm_80_code ? LAUNCH(tensor_pow_atan2_half)
                                                                              : LAUNCH(tensor_pow_atan2);
    default:
        return LAUNCH(tensor_tiles_cmp);
    }
#undef LAUNCH
}

/* Launches kernels for whole tiles, and for the rest the kernel that has all operations. */
static ww_status launch(gpu_stream *stream, const elementwise_job *job, const elementwise_args *args)
{
    const int64_t tile = (int64_t)ELEMENTWISE_TILE * args->unit_quads;
    const gpu_grid whole = grid_of(job->count / tile);
    elementwise_args left = *args;
    if (whole.x == 0 || args->quads != QUADS_DENSE || !has_whole_tiles(job, args))
        return launch_any(stream, job, args);
    left.first = whole.x * tile;
    const ww_status status = launch_whole(stream, job, whole, args);
    return status == WW_OK && left.first < job->count ? launch_any(stream, job, &left) : status;
}

static bool is_dense_copy(const elementwise_job *job)
{
    return job->family == ELEMENTWISE_COPY && layout_of(job, &job->out) == LAYOUT_DENSE &&
           layout_of(job, &job->in[0]) == LAYOUT_DENSE;
}

/* ---- functions of 16-bit types, looked up ---------------------------------------------------------------------------------
 */

enum {
    TABLE_UNITS = TABLE_THREADS * TABLE_SLOTS, /* 16-byte units that a block processes at a time */
    TABLE_COUNT_MIN = 1 << 18,                 /* elements; each block loads the whole table into shared memory */
    TABLE_MAKE_MIN = 1 << 22, /* elements, for a function with a parameter, whose table may be used only once */
};

static bool has_number(int32_t op)
{
    return op == UNARY_POWF || op == UNARY_ELU;
}

/* Returns true if computing the function takes longer than looking it up. It does not for the operations of tensor_tiles.c and
 * those with a short half form. */
static bool is_function(int32_t op, int32_t type)
{
    return ((op >= UNARY_EXP && op < UNARY_COUNT) || has_number(op)) && !UNARY_HAS_SHORT_FORM(op, type);
}

/* Returns true if the table of this function and parameter exists. */
static bool table_is_made(const gpu_tables *made, const elementwise_job *job)
{
    const int half = job->in[0].type == TYPE_F16;
    if ((made->of[half] >> job->op & 1) == 0)
        return false;
    return !has_number(job->op) || made->a[half][job->op == UNARY_ELU] == canon_float_bits((float)job->a);
}

static void table_was_made(gpu_tables *made, const elementwise_job *job)
{
    const int half = job->in[0].type == TYPE_F16;
    made->of[half] |= 1u << job->op;
    if (has_number(job->op))
        made->a[half][job->op == UNARY_ELU] = canon_float_bits((float)job->a);
}

static bool can_look_up(gpu_device *device, const elementwise_job *job, const elementwise_args *args)
{
    const int64_t count_min =
        !has_number(job->op) || table_is_made(gpu_tensors_tables(device), job) ? TABLE_COUNT_MIN : TABLE_MAKE_MIN;
    return job->family == ELEMENTWISE_UNARY && type_size(job->in[0].type) == 2 && is_function(job->op, job->in[0].type) &&
           args->quads == QUADS_DENSE && args->in[0].layout == LAYOUT_DENSE && job->count >= count_min &&
           device->base.info.shared_bytes_per_block >= TABLE_BYTES && device->capabilities.sm_80_code;
}

/* Makes the table of a function by running its own kernel on all 16-bit values. */
static ww_status make_table(gpu_stream *stream, const elementwise_job *job, void *numbers, void *table)
{
    elementwise_job all = *job;
    all.count = all.shape[0] = TABLE_ENTRIES;
    all.rank = 1;
    all.in[0] = (tensor_operand){.data = numbers, .type = job->in[0].type, .strides = {1}};
    all.out = (tensor_operand){.data = table, .type = job->in[0].type, .strides = {1}};
    const elementwise_args args = gpu_elementwise_args(stream->device, &all);
    return launch(stream, &all, &args);
}

static ww_status make_numbers(gpu_stream *stream, uint16_t *numbers)
{
    uint16_t *host = memory_alloc(TABLE_BYTES);
    if (host == NULL)
        return memory_failed("the numbers of 16 bits", TABLE_BYTES);
    for (int32_t i = 0; i < TABLE_ENTRIES; i++)
        host[i] = (uint16_t)i;
    const ww_status status = gpu_copy_in(stream, numbers, host, TABLE_BYTES);
    memory_free(host);
    return status;
}

/* Makes the table at its first use; for a function with a parameter, each time the parameter changes. */
static ww_status look_up(gpu_stream *stream, const elementwise_job *job)
{
    gpu_device *device = stream->device;
    const bool half = job->in[0].type == TYPE_F16;
    gpu_tables *made = gpu_tensors_tables(device);
    uint16_t *tables = NULL;
    ww_status status =
        gpu_workspace(stream, TENSORS_WORKSPACE_TABLES, (1 + 2 * UNARY_ALL_COUNT) * (size_t)TABLE_BYTES, (void **)&tables);
    if (status == WW_OK && !made->numbers)
        status = make_numbers(stream, tables);
    if (status != WW_OK)
        return status;
    made->numbers = true;
    uint16_t *table = tables + (size_t)TABLE_ENTRIES * (size_t)(1 + (half ? UNARY_ALL_COUNT : 0) + job->op);
    if (!table_is_made(made, job))
        status = make_table(stream, job, tables, table);
    if (status != WW_OK)
        return status;
    table_was_made(made, job);
    const table_args args = {.x = job->in[0].data, .table = table, .out = job->out.data, .count = job->count};
    const int64_t blocks = (job->count / 8 + TABLE_UNITS - 1) / TABLE_UNITS;
    const int64_t units = device->base.info.compute_units;
    const gpu_grid grid = grid_early(grid_of(blocks < units ? blocks : units));
    return launch_tensor_unary_table(stream, grid, TABLE_THREADS, TABLE_BYTES, &args);
}

ww_status gpu_elementwise(ww_device *base, const elementwise_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    elementwise_job units = *job;
    const bool in_units = job->family == ELEMENTWISE_COPY && gpu_take_units(&units, 1);
    elementwise_args args = gpu_elementwise_args(device, &units);
    args.quads = in_units ? QUADS_UNITS : args.quads;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    if (is_dense_copy(job))
        status = gpu_copy(stream, job->out.data, job->in[0].data, (size_t)(job->count * type_size(job->out.type)));
    else if (can_look_up(device, job, &args))
        status = look_up(stream, job);
    else
        status = launch(stream, &units, &args);
    return gpu_tensors_leave(device, previous, status);
}
