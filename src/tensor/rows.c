/* softmax, norms and rotary embedding: rows are made dense if they are not; the backend does the rest. */
#include <string.h>

#include "base/float_guard.h"
#include "tensor/tensor.h"

#include <warpwave/tensor_rows.h>

#include "base/integers.h"

static ww_status check_floats(const char *operation, const ww_tensor *x)
{
    ww_status status = check_tensor(operation, "x", x);
    if (status == WW_OK && type_kind((int32_t)x->storage->dtype) == KIND_I64)
        status = refuse_type(operation, x->storage->dtype);
    if (status == WW_OK && x->layout.rank == 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: x has rank 0; there is no last dimension", operation);
    return status;
}

/* The elements of a tensor, dense: in place or, if they are not dense, a copy that the caller releases. */
typedef struct dense_elements {
    const void *data;
    ww_tensor copy;
} dense_elements;

static ww_status make_dense(const ww_tensor *x, dense_elements *dense)
{
    *dense = (dense_elements){.data = operand_of(x).data};
    if (layout_is_dense(&x->layout))
        return WW_OK;
    const ww_status status = ww_tensor_contiguous(x, &dense->copy);
    if (status == WW_OK)
        dense->data = operand_of(&dense->copy).data;
    return status;
}

/* Makes a norm's weights or biases dense; NULL stays NULL. */
static ww_status dense_vector(const char *operation, const char *role, const ww_tensor *x, const ww_tensor *vector,
                              dense_elements *dense)
{
    const int64_t n = x->layout.shape[x->layout.rank - 1];
    *dense = (dense_elements){0};
    if (!vector)
        return WW_OK;
    ww_status status = check_tensor(operation, role, vector);
    if (status == WW_OK)
        status = check_same_type(operation, x, vector);
    if (status == WW_OK)
        status = check_same_device(operation, x, vector);
    if (status == WW_OK && (vector->layout.rank != 1 || vector->layout.shape[0] != n))
        status = ww_fail(WW_DIMENSION_MISMATCH, "%s: %s has shape %s, x has %s; it must have the size of the last dimension",
                         operation, role, SHAPE_TEXT(&vector->layout), SHAPE_TEXT(&x->layout));
    return status == WW_OK ? make_dense(vector, dense) : status;
}

/* Completes a job about rows of x's last dimension, and writes its result to `out`. */
static ww_status run_rows(const char *operation, const ww_tensor *x, rows_job *job, result *r)
{
    ww_device *device = x->storage->device;
    dense_elements dense;
    job->type = (int32_t)x->storage->dtype;
    job->n = x->layout.shape[x->layout.rank - 1];
    const int64_t count = count_of(&x->layout);
    job->rows = count > 0 ? count / job->n : 0;
    r->operation = operation;
    r->inputs[0] = x;
    ww_status status = make_dense(x, &dense);
    if (status == WW_OK)
        status = result_begin(r, device, x->storage->dtype, x->layout.rank, x->layout.shape);
    if (status == WW_OK && count > 0) {
        job->x = dense.data;
        job->out = operand_of(&r->at).data;
        status = tensors_of(device)->rows(device, job);
    }
    ww_tensor_release(&dense.copy);
    return result_end(r, status);
}

/* Returns x with two dimensions exchanged. */
static ww_tensor exchanged(const ww_tensor *x, int32_t one, int32_t other)
{
    ww_tensor view = *x;
    view.layout.shape[one] = x->layout.shape[other];
    view.layout.shape[other] = x->layout.shape[one];
    view.layout.strides[one] = x->layout.strides[other];
    view.layout.strides[other] = x->layout.strides[one];
    return view;
}

/* Runs softmax along `dim`, which is not the last, if the tensor is dense and wide enough and the backend supports it. Returns
 * false if it was not done. */
static bool softmax_columns(const ww_tensor *x, int32_t dim, ww_tensor *out, ww_status *status)
{
    enum { INNER_MIN = 16 };
    ww_device *device = x->storage->device;
    softmax_columns_job job = {.type = (int32_t)x->storage->dtype, .outer = 1, .n = x->layout.shape[dim], .inner = 1};
    for (int32_t d = 0; d < x->layout.rank; d++) {
        job.outer *= d < dim ? x->layout.shape[d] : 1;
        job.inner *= d > dim ? x->layout.shape[d] : 1;
    }
    if (!tensors_of(device)->softmax_columns || !layout_is_dense(&x->layout) || job.outer * job.n == 0 ||
        job.inner < INNER_MIN || job.n > SOFTMAX_COLUMNS_MAX)
        return false;
    result r = {.operation = "softmax", .out = out, .inputs = {x}};
    *status = result_begin(&r, device, x->storage->dtype, x->layout.rank, x->layout.shape);
    if (*status == WW_OK) {
        job.x = operand_of(x).data;
        job.out = operand_of(&r.at).data;
        *status = tensors_of(device)->softmax_columns(device, &job);
    }
    *status = result_end(&r, *status);
    return true;
}

/* Exchanges the dimension with the last one, runs softmax on rows, and exchanges them back. */
static ww_status softmax_exchanged(const ww_tensor *x, int32_t dim, ww_tensor *out)
{
    const int32_t last = x->layout.rank - 1;
    const ww_tensor view = exchanged(x, dim, last);
    ww_tensor rows = {0};
    rows_job job = {.op = ROW_SOFTMAX};
    result r = {.out = &rows};
    ww_status status = run_rows("softmax", &view, &job, &r);
    if (status == WW_OK) {
        const ww_tensor back = exchanged(&rows, dim, last), *from = &back;
        elementwise_job copy = {.family = ELEMENTWISE_COPY, .inputs = 1};
        status = run_elementwise("softmax", &copy, &from, x->storage->dtype, out);
    }
    ww_tensor_release(&rows);
    return status;
}

ww_status ww_tensor_softmax(const ww_tensor *x, int32_t dim, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_status status = check_out("softmax", out);
    if (status == WW_OK)
        status = check_floats("softmax", x);
    if (status == WW_OK)
        status = check_dim("softmax", x, &dim);
    if (status != WW_OK)
        return status;
    rows_job job = {.op = ROW_SOFTMAX};
    result r = {.out = out};
    if (dim == x->layout.rank - 1)
        return run_rows("softmax", x, &job, &r);
    return softmax_columns(x, dim, out, &status) ? status : softmax_exchanged(x, dim, out);
}

typedef struct norm {
    const char *operation;
    int32_t op;
    const ww_tensor *weight, *bias; /* may be NULL */
    double eps;
} norm;

static ww_status run_norm(const norm *n, const ww_tensor *x, ww_tensor *out)
{
    const char *operation = n->operation;
    dense_elements weight = {0}, bias = {0};
    rows_job job = {.op = n->op, .eps = n->eps};
    ww_status status = check_out(operation, out);
    if (status == WW_OK)
        status = check_floats(operation, x);
    if (status == WW_OK)
        status = dense_vector(operation, "the weight", x, n->weight, &weight);
    if (status == WW_OK)
        status = dense_vector(operation, "the bias", x, n->bias, &bias);
    job.weight = weight.data;
    job.bias = bias.data;
    result r = {.out = out, .inputs = {NULL, n->weight, n->bias}};
    if (status == WW_OK)
        status = run_rows(operation, x, &job, &r);
    ww_tensor_release(&weight.copy);
    ww_tensor_release(&bias.copy);
    return status;
}

ww_status ww_tensor_layer_norm(const ww_tensor *x, const ww_tensor *weight, const ww_tensor *bias, double eps, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_norm(&(norm){"layer_norm", ROW_LAYER_NORM, weight, bias, eps}, x, out);
}

ww_status ww_tensor_rms_norm(const ww_tensor *x, const ww_tensor *weight, double eps, ww_tensor *out)
{
    FLOAT_GUARD();
    return run_norm(&(norm){"rms_norm", ROW_RMS_NORM, weight, NULL, eps}, x, out);
}

/* ---- rotary embedding ---------------------------------------------------------------------------------------------------- */

/* The strides of `angles` for the dimensions of x's rows. `angles` has all of these dimensions, or only the last ones, and the
 * pairs. */
static ww_status angle_dims(const char *role, const ww_tensor *x, const ww_tensor *angles, reduce_dims *dims, int64_t *step)
{
    const int32_t rank = x->layout.rank;
    ww_status status = check_tensor("rope", role, angles);
    if (status == WW_OK)
        status = check_same_type("rope", x, angles);
    if (status == WW_OK)
        status = check_same_device("rope", x, angles);
    if (status != WW_OK)
        return status;
    const int32_t skipped = rank - angles->layout.rank;
    bool fits = skipped == 0 || (angles->layout.rank == 2 && skipped > 0);
    for (int32_t d = max_i32(skipped, 0); fits && d < rank; d++)
        fits = angles->layout.shape[d - skipped] == (d == rank - 1 ? x->layout.shape[d] / 2 : x->layout.shape[d]);
    if (!fits)
        return ww_fail(WW_DIMENSION_MISMATCH, "rope: %s has shape %s, x has %s; the last dimension must be half of x's", role,
                       SHAPE_TEXT(&angles->layout), SHAPE_TEXT(&x->layout));
    dims->rank = rank - 1;
    for (int32_t d = 0; d < rank - 1; d++) {
        dims->shape[d] = x->layout.shape[d];
        dims->strides[d] = d < skipped ? 0 : angles->layout.strides[d - skipped];
    }
    *step = angles->layout.strides[angles->layout.rank - 1];
    return WW_OK;
}

ww_status ww_tensor_rope(const ww_tensor *x, const ww_tensor *cosines, const ww_tensor *sines, bool interleaved, ww_tensor *out)
{
    FLOAT_GUARD();
    rope_job job = {.interleaved = interleaved};
    dense_elements dense = {0};
    ww_status status = check_out("rope", out);
    if (status == WW_OK)
        status = check_floats("rope", x);
    if (status == WW_OK && (x->layout.rank < 2 || x->layout.shape[x->layout.rank - 1] % 2 != 0))
        status =
            ww_fail(WW_INVALID_ARGUMENT, "rope: x has shape %s; it must have two or more dimensions, the last of them even",
                    SHAPE_TEXT(&x->layout));
    if (status == WW_OK)
        status = angle_dims("cos", x, cosines, &job.cosines, &job.cosine_step);
    if (status == WW_OK)
        status = angle_dims("sin", x, sines, &job.sines, &job.sine_step);
    if (status == WW_OK)
        status = make_dense(x, &dense);
    const int64_t count = status == WW_OK ? count_of(&x->layout) : 0;
    result r = {.operation = "rope", .out = out, .inputs = {x, cosines, sines}};
    if (status == WW_OK)
        status = result_begin(&r, x->storage->device, x->storage->dtype, x->layout.rank, x->layout.shape);
    if (status == WW_OK && count > 0) {
        job.type = (int32_t)x->storage->dtype;
        job.half = x->layout.shape[x->layout.rank - 1] / 2;
        job.rows = count / (2 * job.half);
        job.x = dense.data;
        job.cosine = operand_of(cosines).data;
        job.sine = operand_of(sines).data;
        job.out = operand_of(&r.at).data;
        status = tensors_of(x->storage->device)->rope(x->storage->device, &job);
    }
    ww_tensor_release(&dense.copy);
    return result_end(&r, status);
}

/* ---- sorting ------------------------------------------------------------------------------------------------------------- */

/* Begins the two results of a sort, one of which may not be wanted: both or none. */
static ww_status begin_sorted(const ww_tensor *x, int64_t k, result *values, result *indices)
{
    int64_t shape[WW_RANK_MAX];
    const int32_t rank = x->layout.rank;
    memcpy(shape, x->layout.shape, sizeof shape);
    shape[rank - 1] = k;
    ww_status status = WW_OK;
    if (values->out)
        status = result_begin(values, x->storage->device, x->storage->dtype, rank, shape);
    if (status == WW_OK && indices->out)
        status = result_begin(indices, x->storage->device, WW_U32, rank, shape);
    if (status != WW_OK)
        status = result_end(values, status);
    return status;
}

/* If copying the second result fails, releases the new storage of the first. */
static ww_status end_sorted(result *values, result *indices, ww_status status)
{
    const bool gave = values->out && !values->out->storage;
    if (values->out)
        status = result_end(values, status);
    if (indices->out)
        status = result_end(indices, status);
    if (status != WW_OK && gave && values->out->storage)
        ww_tensor_release(values->out);
    return status;
}

/* `job` says how many elements of each row, and in which order. */
static ww_status run_sort(const char *operation, const ww_tensor *x, sort_job job, ww_tensor *values, ww_tensor *indices)
{
    ww_device *device = x->storage->device;
    const int64_t n = x->layout.shape[x->layout.rank - 1];
    const int64_t count = count_of(&x->layout);
    result sorted = {.operation = operation, .out = values, .inputs = {x}};
    result places = {.operation = operation, .out = indices, .inputs = {x}};
    dense_elements dense;
    if (n > UINT32_MAX)
        return ww_fail(WW_UNSUPPORTED, "%s: %lld elements along the dimension; their indices do not fit u32", operation,
                       (long long)n);
    ww_status status = begin_sorted(x, job.k, &sorted, &places);
    if (status != WW_OK)
        return status;
    status = make_dense(x, &dense);
    job.type = (int32_t)x->storage->dtype;
    job.n = n;
    job.rows = n > 0 ? count / n : 0;
    if (status == WW_OK && job.rows * job.k > 0) {
        job.x = dense.data;
        job.values = values ? operand_of(&sorted.at).data : NULL;
        job.indices = indices ? operand_of(&places.at).data : NULL;
        status = tensors_of(device)->sort(device, &job);
    }
    ww_tensor_release(&dense.copy);
    return end_sorted(&sorted, &places, status);
}

static ww_status check_sort(const char *operation, const ww_tensor *x, const ww_tensor *values, const ww_tensor *indices)
{
    if (!values && !indices)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: values and indices are both NULL", operation);
    ww_status status = check_tensor(operation, "x", x);
    if (status == WW_OK && x->storage->dtype == WW_I8)
        status = refuse_type(operation, x->storage->dtype);
    if (status == WW_OK && x->layout.rank == 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: x has rank 0; there is no last dimension", operation);
    if (status == WW_OK && values && indices && values->storage && indices->storage &&
        check_tensor(operation, "values", values) == WW_OK && check_tensor(operation, "indices", indices) == WW_OK &&
        tensors_meet(values, indices))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: values and indices share memory", operation);
    return status;
}

ww_status ww_tensor_sort(const ww_tensor *x, bool descending, ww_tensor *values, ww_tensor *indices)
{
    FLOAT_GUARD();
    const ww_status status = check_sort("sort", x, values, indices);
    if (status != WW_OK)
        return status;
    const sort_job job = {.descending = descending, .k = x->layout.shape[x->layout.rank - 1]};
    return run_sort("sort", x, job, values, indices);
}

ww_status ww_tensor_top_k(const ww_tensor *x, int64_t k, bool largest, ww_tensor *values, ww_tensor *indices)
{
    FLOAT_GUARD();
    const ww_status status = check_sort("top_k", x, values, indices);
    if (status != WW_OK)
        return status;
    if (k < 0 || k > x->layout.shape[x->layout.rank - 1])
        return ww_fail(WW_OUT_OF_RANGE, "top_k: k is %lld; it must be 0 to the last dimension of shape %s", (long long)k,
                       SHAPE_TEXT(&x->layout));
    return run_sort("top_k", x, (sort_job){.descending = largest, .k = k}, values, indices);
}
