/* Products of quantized matrices with tensors, or with encoded activations. The arguments are checked, activations and ids made
 dense on the device, and the functions of the device multiply.
 */
#include <string.h>

#include "arithmetic/blocks/dot.h"
#include "base/float_guard.h"
#include "base/structs.h"
#include "quant/matrix.h"
#include "tensor/tensor.h"

/* A checked product. */
typedef struct product {
    const char *call;
    const ww_quant *matrix;
    bool queued, fast, decoded;
    const int64_t *experts;
    const ww_tensor *ids;  /* of experts, on the device */
    const ww_quant *coded; /* encoded activations, used instead of x */
    int64_t rows;          /* rows of a result */
    int64_t columns;       /* rows of x */

    /* Temporary tensors. */
    ww_tensor dense_x, dense_ids;
} product;

static ww_status check_size(const product *p)
{
    const char *call = p->call;
    if (p->rows > 0 && p->columns > INT64_MAX / 8 / p->rows)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %lld x %lld results are too many", call, (long long)p->columns,
                       (long long)p->rows);
    return WW_OK;
}

static ww_status check_product(product *p, const ww_tensor *x, ww_tensor *out)
{
    const char *call = p->call;
    if (!p->matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: matrix is NULL", call);
    ww_status status = check_out(call, out);
    if (status == WW_OK)
        status = check_tensor(call, "x", x);
    if (status != WW_OK)
        return status;
    const ww_dtype type = x->storage->dtype;
    if (type != WW_F32 && type != WW_F16 && type != WW_BF16)
        return refuse_type(call, type);
    if (x->storage->device != p->matrix->memory->device)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the matrix is on %s, x on %s; copy x to the matrix's device", call,
                       p->matrix->memory->device->info.id, x->storage->device->info.id);
    const int32_t rank = x->layout.rank;
    if (rank < 1 || x->layout.shape[rank - 1] != p->matrix->cols)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: x has shape %s; its last dimension must be the matrix's %lld columns", call,
                       SHAPE_TEXT(&x->layout), (long long)p->matrix->cols);
    p->columns = count_of(&x->layout) / p->matrix->cols;
    return check_size(p);
}

/* Checks activations that are already encoded. */
static ww_status check_coded(product *p)
{
    const ww_quant *matrix = p->matrix, *coded = p->coded;
    const char *call = p->call;
    if (!matrix || !coded)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, matrix ? "activations" : "matrix");
    const int32_t wanted = dot_activations((int32_t)matrix->type);
    if (wanted < 0)
        return ww_fail(WW_UNSUPPORTED, "%s: %s weights need activations that are not coded; multiply by the tensor itself",
                       call, ww_quant_name(matrix->type));
    if ((int32_t)coded->type != wanted)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the activations are %s; %s weights need %s", call, ww_quant_name(coded->type),
                       ww_quant_name(matrix->type), ww_quant_name((ww_quant_type)wanted));
    if (coded->loaded)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: the activations were loaded as blocks; make them from a tensor or from f32 numbers", call);
    if (p->decoded)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: float activations are not coded; multiply by the tensor itself", call);
    if (coded->memory->device != matrix->memory->device)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the matrix is on %s, the activations on %s; they must be on one device", call,
                       matrix->memory->device->info.id, coded->memory->device->info.id);
    if (coded->cols != matrix->cols)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the activations have %lld columns, the matrix %lld", call,
                       (long long)coded->cols, (long long)matrix->cols);
    p->columns = coded->rows;
    return check_size(p);
}

/* Copies checked numbers of experts from the host to the device. */
static ww_status send_experts(product *p)
{
    const int64_t count = p->matrix->rows / p->rows;
    for (int64_t i = 0; i < p->columns; i++)
        if (p->experts[i] < 0 || p->experts[i] >= count)
            return ww_fail(WW_OUT_OF_RANGE, "%s: row %lld of x selects expert %lld; there are %lld", p->call, (long long)i,
                           (long long)p->experts[i], (long long)count);
    return ww_tensor_from_host(p->matrix->memory->device, WW_I64, 1, &p->columns, p->experts, &p->dense_ids);
}

/* Uses ids of experts on the device. A queued product does not wait to check them. */
static ww_status find_ids(product *p)
{
    const ww_tensor *ids = p->ids;
    ww_status status = quant_check_ids(p->call, p->matrix, ids);
    if (status == WW_OK && count_of(&ids->layout) != p->columns)
        status = ww_fail(WW_DIMENSION_MISMATCH, "%s: expert_ids have shape %s, but there are %lld rows of activations", p->call,
                         SHAPE_TEXT(&ids->layout), (long long)p->columns);
    if (status == WW_OK && !p->queued)
        status = check_ids(p->call, ids, p->matrix->rows / p->rows);
    return status == WW_OK && !layout_is_dense(&ids->layout) ? ww_tensor_contiguous(ids, &p->dense_ids) : status;
}

/* Fails with a message about activations that cannot be encoded. */
static ww_status refuse(const product *p, int64_t block)
{
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "%s: block %lld of the activations (%d numbers each) has a value that is not finite, or too large to be coded", p->call,
        (long long)block, block_elements((int32_t)p->matrix->type));
}

/* Fills all results with NaN, the pattern of these bytes. */
static ww_status fill_with_nan(ww_device *device, const buffer *y, size_t bytes)
{
    device_stream *stream;
    ww_status status = device->backend->stream_create(device, &stream);
    if (status != WW_OK)
        return status;
    status = device->backend->fill(device, stream, (buffer_range){y, 0, bytes}, 0x7fc00000u);
    if (status == WW_OK)
        status = device->backend->stream_synchronize(device, stream);
    device->backend->stream_destroy(device, stream);
    return status;
}

/* For a device that refuses the whole product: multiplies one column after the other, and writes NaN for those that it
 * refuses. */
static ww_status multiply_apart(ww_device *device, const quant_product_job *job)
{
    ww_status status = WW_OK;
    for (int64_t c = 0; c < job->columns && status == WW_OK; c++) {
        int64_t refused = -1;
        const buffer y = {.data = (float *)job->y->data + c * job->rows, .bytes = (size_t)job->rows * sizeof(float)};
        quant_product_job one = *job;
        one.columns = 1;
        one.x_offset += (size_t)(c * job->cols) * sizeof(float);
        one.ids = job->ids ? (const char *)job->ids + c * job->id_bytes : NULL;
        one.y = &y;
        one.refused = &refused;
        status = device->backend->quants->product(device, &one);
        if (status == WW_OK && refused >= 0)
            status = fill_with_nan(device, &y, y.bytes);
    }
    return status;
}

/* Makes the job for activations of a type, without the addresses of activations and results. */
static quant_product_job job_of(const product *p, ww_dtype type)
{
    const ww_tensor *ids = p->dense_ids.storage ? &p->dense_ids : p->ids;
    return (quant_product_job){.type = (int32_t)p->matrix->type,
                               .weights = &p->matrix->memory->blocks,
                               .weights_offset = p->matrix->offset,
                               .rows = p->rows,
                               .cols = p->matrix->cols,
                               .x_type = p->coded ? (int32_t)p->coded->type : quant_plain_type(type),
                               .columns = p->columns,
                               .decoded = p->decoded,
                               .coded = p->coded != NULL,
                               .ids = ids ? dense_bytes(ids).data : NULL,
                               .id_bytes = ids ? (int32_t)ww_dtype_bytes(ids->storage->dtype) : 0,
                               .experts = ids ? p->matrix->rows / p->rows : 0,
                               .fast = p->fast};
}

/* x and y are dense; x is NULL if activations are encoded. */
static ww_status multiply(const product *p, const ww_tensor *x, const ww_tensor *y)
{
    const buffer results = dense_bytes(y);
    ww_device *device = p->matrix->memory->device;
    const quant_backend *table = device->backend->quants;
    int64_t refused = -1;
    quant_product_job job = job_of(p, x ? x->storage->dtype : WW_F32);
    job.x = x ? &x->storage->data : &p->coded->memory->blocks;
    job.x_offset = x ? (size_t)(x->layout.offset * type_size((int32_t)x->storage->dtype)) : p->coded->offset;
    job.y = &results;
    job.refused = p->queued && table->queues ? NULL : &refused;
    ww_status status = table->product(device, &job);
    if (status == WW_OK && refused >= 0)
        status = p->queued ? multiply_apart(device, &job) : refuse(p, refused);
    return status;
}

/* Uses activations in place, or makes a copy in `dense_x` in a form that the device accepts. */
static ww_status make_dense(product *p, const ww_tensor *x)
{
    const ww_dtype type = x->storage->dtype;
    const quant_product_job job = job_of(p, type);
    const quant_backend *table = p->matrix->memory->device->backend->quants;
    if (type != WW_F32 && !(table->takes && table->takes(&job)))
        return ww_tensor_cast(x, WW_F32, &p->dense_x);
    return layout_is_dense(&x->layout) ? WW_OK : ww_tensor_contiguous(x, &p->dense_x);
}

/* Writes the product to `out`, which gets this shape. */
static ww_status write_result(product *p, const ww_tensor *x, int32_t rank, const int64_t *shape, ww_tensor *out)
{
    result r = {.operation = p->call, .out = out, .inputs = {x, p->ids}};
    ww_status status = result_begin(&r, p->matrix->memory->device, WW_F32, rank, shape);
    if (status == WW_OK && p->columns > 0 && p->rows > 0)
        status = multiply(p, p->dense_x.storage ? &p->dense_x : x, &r.at);
    return result_end(&r, status);
}

static ww_status run(product *p, const ww_tensor *x, ww_tensor *out)
{
    int64_t shape[WW_RANK_MAX] = {0};
    ww_status status = p->coded ? check_coded(p) : check_product(p, x, out);
    if (status == WW_OK && p->coded)
        status = check_out(p->call, out);
    if (status == WW_OK && p->experts)
        status = send_experts(p);
    if (status == WW_OK && p->ids)
        status = find_ids(p);
    if (status == WW_OK && x)
        status = make_dense(p, x);
    if (status == WW_OK) {
        if (x)
            memcpy(shape, x->layout.shape, sizeof shape);
        else
            shape[0] = p->columns;
        const int32_t rank = x ? x->layout.rank : 2;
        shape[rank - 1] = p->rows;
        status = write_result(p, x, rank, shape, out);
    }
    ww_tensor_release(&p->dense_x);
    ww_tensor_release(&p->dense_ids);
    return status;
}

static ww_status run_experts(product *p, const ww_tensor *x, ww_tensor *out)
{
    const ww_quant *matrix = p->matrix;
    if ((!p->experts && !p->ids) || !matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", p->call, matrix ? "experts" : "matrix");
    if (p->rows < 1 || matrix->rows % p->rows != 0)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the matrix's %lld rows are not a multiple of expert_rows, %lld", p->call,
                       (long long)matrix->rows, (long long)p->rows);
    return run(p, x, out);
}

ww_status ww_quant_matmul(const ww_quant *matrix, const ww_tensor *x, ww_tensor *out)
{
    FLOAT_GUARD();
    product p = {.call = "ww_quant_matmul", .matrix = matrix, .rows = matrix ? matrix->rows : 0};
    return run(&p, x, out);
}

ww_status ww_quant_matmul_experts(const ww_quant *matrix, int64_t expert_rows, const ww_tensor *x, const int64_t *experts,
                                  ww_tensor *out)
{
    FLOAT_GUARD();
    product p = {.call = "ww_quant_matmul_experts", .matrix = matrix, .experts = experts, .rows = expert_rows};
    return run_experts(&p, x, out);
}

STRUCT_INIT(ww_quant_product, {0})

/* Runs a product with options; x is NULL if activations are encoded. */
static ww_status run_asked(product *p, const ww_tensor *x, const ww_quant_product *options, ww_tensor *out)
{
    ww_quant_product asked = ww_quant_product_default();
    if (options && struct_read(&asked, sizeof asked, options, p->call, "ww_quant_product"))
        return WW_INVALID_ARGUMENT;
    if (asked.experts && asked.expert_ids)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: both experts and expert_ids are given; one of them must be NULL", p->call);
    if (asked.activations != WW_ACTIVATIONS_CODED && asked.activations != WW_ACTIVATIONS_FLOAT)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: activations is %d; it must be WW_ACTIVATIONS_CODED or WW_ACTIVATIONS_FLOAT",
                       p->call, (int)asked.activations);
    const bool experts = asked.experts || asked.expert_ids;
    if (asked.norm_weight || asked.up || asked.accumulate)
        return p->coded ? ww_fail(WW_INVALID_ARGUMENT,
                                  "%s: norm_weight, up and accumulate go with a tensor x, not with activations that "
                                  "are coded",
                                  p->call)
                        : quant_multiply_fused(p->matrix, x, &asked, out);
    p->experts = asked.experts;
    p->ids = asked.expert_ids;
    p->queued = asked.queued != 0;
    p->fast = asked.math == WW_MATH_FAST;
    p->decoded = asked.activations == WW_ACTIVATIONS_FLOAT;
    p->rows = experts ? asked.expert_rows : p->matrix ? p->matrix->rows : 0;
    return experts ? run_experts(p, x, out) : run(p, x, out);
}

ww_status ww_quant_multiply(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *options, ww_tensor *out)
{
    FLOAT_GUARD();
    product p = {.call = "ww_quant_multiply", .matrix = matrix};
    return run_asked(&p, x, options, out);
}

ww_status ww_quant_multiply_coded(const ww_quant *matrix, const ww_quant *activations, const ww_quant_product *options,
                                  ww_tensor *out)
{
    FLOAT_GUARD();
    product p = {.call = "ww_quant_multiply_coded", .matrix = matrix, .coded = activations};
    if (!activations)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: activations is NULL", p.call);
    return run_asked(&p, NULL, options, out);
}
