/* Quantized matrices times tensors: checked, the activations made dense f32 on the device, then the device's table multiplies.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "quant/matrix.h"
#include "tensor/tensor.h"

/* What is multiplied, checked. */
typedef struct product {
    const char *call;
    const ww_quant *matrix;
    bool queued, fast;
    const int64_t *experts;
    int64_t rows;    /* of a result */
    int64_t columns; /* rows of x */
} product;

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
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the matrix is on %s, x on %s; copy x with ww_tensor_copy_to()", call,
                       p->matrix->memory->device->info.id, x->storage->device->info.id);
    const int32_t rank = x->layout.rank;
    if (rank < 1 || x->layout.shape[rank - 1] != p->matrix->cols)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: x has shape %s; its last dimension must be the matrix's %lld columns", call,
                       SHAPE_TEXT(&x->layout), (long long)p->matrix->cols);
    p->columns = count_of(&x->layout) / p->matrix->cols;
    if (p->rows > 0 && p->columns > INT64_MAX / 8 / p->rows)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %lld x %lld results are too many", call, (long long)p->columns,
                       (long long)p->rows);
    return WW_OK;
}

/* Where the rows of each column's expert begin. */
static ww_status find_first_rows(const product *p, int64_t **first_rows)
{
    const int64_t count = p->matrix->rows / p->rows;
    *first_rows = memory_alloc_zeroed((size_t)p->columns + 1, sizeof **first_rows);
    if (!*first_rows)
        return memory_failed("experts of a product", ((size_t)p->columns + 1) * sizeof **first_rows);
    for (int64_t i = 0; i < p->columns; i++) {
        if (p->experts[i] < 0 || p->experts[i] >= count)
            return ww_fail(WW_OUT_OF_RANGE, "%s: row %lld of x selects expert %lld; there are %lld", p->call, (long long)i,
                           (long long)p->experts[i], (long long)count);
        (*first_rows)[i] = p->experts[i] * p->rows;
    }
    return WW_OK;
}

/* Activations that cannot be coded. */
static ww_status refuse(const product *p, int64_t block)
{
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "%s: block %lld of the activations (%d numbers each) has a value that is not finite, or too large to be coded", p->call,
        (long long)block, block_elements((int32_t)p->matrix->type));
}

/* All results NaN: any pattern with these bits is one. */
static ww_status fill_with_nan(ww_device *device, const buffer *y, size_t bytes)
{
    device_stream *stream;
    ww_status status = device->backend->stream_create(device, &stream);
    if (status != WW_OK)
        return status;
    status = device->backend->fill(device, stream, y, 0, bytes, 0x7fc00000u);
    if (status == WW_OK)
        status = device->backend->stream_synchronize(device, stream);
    device->backend->stream_destroy(device, stream);
    return status;
}

/* For a device that refuses a product as a whole: one column after the other, and NaN for those that it refuses. */
static ww_status multiply_apart(ww_device *device, const quant_product_job *job)
{
    ww_status status = WW_OK;
    for (int64_t c = 0; c < job->columns && status == WW_OK; c++) {
        int64_t refused = -1;
        const buffer y = {.data = (float *)job->y->data + c * job->rows, .bytes = (size_t)job->rows * sizeof(float)};
        quant_product_job one = *job;
        one.columns = 1;
        one.x_offset += (size_t)(c * job->cols) * sizeof(float);
        one.first_rows = job->first_rows ? job->first_rows + c : NULL;
        one.y = &y;
        one.refused = &refused;
        status = device->backend->quants->product(device, &one);
        if (status == WW_OK && refused >= 0)
            status = fill_with_nan(device, &y, y.bytes);
    }
    return status;
}

/* As backends number them. */
static int32_t number_of_type(ww_dtype type)
{
    return (int32_t)(type == WW_F16 ? WW_QUANT_F16 : type == WW_BF16 ? WW_QUANT_BF16 : WW_QUANT_F32);
}

/* x and y are dense. */
static ww_status multiply(const product *p, const ww_tensor *x, const int64_t *first_rows, const ww_tensor *y)
{
    const buffer results = dense_bytes(y);
    ww_device *device = p->matrix->memory->device;
    const quant_backend *table = device->backend->quants;
    int64_t refused = -1;
    const quant_product_job job = {.type = (int32_t)p->matrix->type,
                                   .weights = &p->matrix->memory->blocks,
                                   .weights_offset = p->matrix->offset,
                                   .rows = p->rows,
                                   .cols = p->matrix->cols,
                                   .x = &x->storage->data,
                                   .x_offset = (size_t)(x->layout.offset * type_size((int32_t)x->storage->dtype)),
                                   .x_type = number_of_type(x->storage->dtype),
                                   .columns = p->columns,
                                   .first_rows = first_rows,
                                   .y = &results,
                                   .fast = p->fast,
                                   .refused = p->queued && table->queues ? NULL : &refused};
    ww_status status = table->product(device, &job);
    if (status == WW_OK && refused >= 0)
        status = p->queued ? multiply_apart(device, &job) : refuse(p, refused);
    return status;
}

/* Does the device take numbers of that type? */
static bool takes_type(const product *p, ww_dtype type, const int64_t *first_rows)
{
    const quant_product_job job = {.type = (int32_t)p->matrix->type,
                                   .x_type = number_of_type(type),
                                   .columns = p->columns,
                                   .first_rows = first_rows,
                                   .fast = p->fast};
    const quant_backend *table = p->matrix->memory->device->backend->quants;
    return type == WW_F32 || (table->takes && table->takes(&job));
}

/* Activations where they lie, or in `dense` as the device takes them. */
static ww_status make_dense(const product *p, const ww_tensor *x, const int64_t *first_rows, ww_tensor *dense)
{
    if (!takes_type(p, x->storage->dtype, first_rows))
        return ww_tensor_cast(x, WW_F32, dense);
    return layout_is_dense(&x->layout) ? WW_OK : ww_tensor_contiguous(x, dense);
}

static ww_status run(product *p, const ww_tensor *x, ww_tensor *out)
{
    ww_tensor dense = {0};
    int64_t *first_rows = NULL;
    ww_status status = check_product(p, x, out);
    if (status == WW_OK && p->experts)
        status = find_first_rows(p, &first_rows);
    if (status == WW_OK)
        status = make_dense(p, x, first_rows, &dense);
    result r = {.operation = p->call, .out = out, .inputs = {x}};
    if (status == WW_OK) {
        int64_t shape[WW_RANK_MAX];
        memcpy(shape, x->layout.shape, sizeof shape);
        shape[x->layout.rank - 1] = p->rows;
        status = result_begin(&r, p->matrix->memory->device, WW_F32, x->layout.rank, shape);
    }
    if (status == WW_OK && p->columns > 0 && p->rows > 0)
        status = multiply(p, dense.storage ? &dense : x, first_rows, &r.at);
    ww_tensor_release(&dense);
    memory_free(first_rows);
    return result_end(&r, status);
}

static ww_status run_experts(product *p, const ww_tensor *x, ww_tensor *out)
{
    const ww_quant *matrix = p->matrix;
    if (!p->experts || !matrix)
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

ww_status ww_quant_multiply(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *options, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_quant_product asked = ww_quant_product_default();
    if (options && struct_read(&asked, sizeof asked, options, "ww_quant_multiply", "ww_quant_product"))
        return WW_INVALID_ARGUMENT;
    product p = {.call = "ww_quant_multiply",
                 .matrix = matrix,
                 .experts = asked.experts,
                 .queued = asked.queued != 0,
                 .fast = asked.math == WW_MATH_FAST,
                 .rows = asked.experts ? asked.expert_rows
                         : matrix      ? matrix->rows
                                       : 0};
    return asked.experts ? run_experts(&p, x, out) : run(&p, x, out);
}
