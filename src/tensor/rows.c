/* softmax, norms and rotary embedding: rows are made dense where they are not, the rest is the backend's. */
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

static bool is_dense(const ww_tensor *x)
{
    int64_t stride = 1;
    bool dense = true;
    for (int32_t d = x->layout.rank - 1; d >= 0; d--) {
        dense &= x->layout.shape[d] == 1 || x->layout.strides[d] == stride;
        stride *= x->layout.shape[d];
    }
    return dense || stride == 0;
}

/* The elements of x, dense: x's own, or a copy in *held, which the caller destroys. */
static ww_status dense_elements(const ww_tensor *x, ww_storage **held, const void **data)
{
    *held = NULL;
    *data = operand_of(x).data;
    if (is_dense(x))
        return WW_OK;
    const ww_status status = ww_tensor_contiguous(x, held);
    if (status == WW_OK)
        *data = (*held)->data.data;
    return status;
}

/* A vector of a norm: NULL stays NULL. */
static ww_status dense_vector(const char *operation, const char *role, const ww_tensor *x, const ww_tensor *vector,
                              ww_storage **held, const void **data)
{
    const int64_t n = x->layout.shape[x->layout.rank - 1];
    *data = NULL;
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
    return status == WW_OK ? dense_elements(vector, held, data) : status;
}

/* Completes a job about rows of x's last dimension and runs it into a new storage. */
static ww_status run_rows(const ww_tensor *x, rows_job *job, ww_storage **out)
{
    ww_device *device = x->storage->device;
    ww_storage *held = NULL;
    ww_storage *made = NULL;
    job->type = (int32_t)x->storage->dtype;
    job->n = x->layout.shape[x->layout.rank - 1];
    const int64_t count = count_of(&x->layout);
    job->rows = count > 0 ? count / job->n : 0;
    ww_status status = dense_elements(x, &held, &job->x);
    if (status == WW_OK)
        status = storage_make(device, x->storage->dtype, count, &made);
    if (status == WW_OK && count > 0) {
        job->out = made->data.data;
        status = tensors_of(device)->rows(device, job);
    }
    ww_storage_destroy(held);
    if (status != WW_OK) {
        ww_storage_destroy(made);
        return status;
    }
    *out = made;
    return WW_OK;
}

/* x with two dimensions exchanged. */
static ww_tensor exchanged(const ww_tensor *x, int32_t one, int32_t other)
{
    ww_tensor view = *x;
    view.layout.shape[one] = x->layout.shape[other];
    view.layout.shape[other] = x->layout.shape[one];
    view.layout.strides[one] = x->layout.strides[other];
    view.layout.strides[other] = x->layout.strides[one];
    return view;
}

/* softmax along `dim`, not the last, of what is dense and wide enough, where the backend does that; false if it is not done. */
static bool softmax_columns(const ww_tensor *x, int32_t dim, ww_storage **out, ww_status *status)
{
    enum { INNER_LEAST = 16 };
    ww_device *device = x->storage->device;
    softmax_columns_job job = {.type = (int32_t)x->storage->dtype, .outer = 1, .n = x->layout.shape[dim], .inner = 1};
    for (int32_t d = 0; d < x->layout.rank; d++) {
        job.outer *= d < dim ? x->layout.shape[d] : 1;
        job.inner *= d > dim ? x->layout.shape[d] : 1;
    }
    if (!tensors_of(device)->softmax_columns || !is_dense(x) || job.outer * job.n == 0 || job.inner < INNER_LEAST ||
        job.n > SOFTMAX_COLUMNS_LONGEST)
        return false;
    ww_storage *made = NULL;
    *status = storage_make(device, x->storage->dtype, count_of(&x->layout), &made);
    if (*status == WW_OK) {
        job.x = operand_of(x).data;
        job.out = made->data.data;
        *status = tensors_of(device)->softmax_columns(device, &job);
    }
    if (*status == WW_OK)
        *out = made;
    else
        ww_storage_destroy(made);
    return true;
}

ww_status ww_tensor_softmax(const ww_tensor *x, int32_t dim, ww_storage **out)
{
    ww_status status = check_out("softmax", out);
    if (status == WW_OK)
        status = check_floats("softmax", x);
    if (status == WW_OK)
        status = check_dim("softmax", x, &dim);
    if (status != WW_OK)
        return status;
    const int32_t last = x->layout.rank - 1;
    const ww_tensor view = exchanged(x, dim, last);
    rows_job job = {.op = ROW_SOFTMAX};
    if (dim == last)
        return run_rows(x, &job, out);
    if (softmax_columns(x, dim, out, &status))
        return status;
    ww_tensor transposed = {.layout = ww_layout_contiguous(view.layout.rank, view.layout.shape)};
    status = run_rows(&view, &job, &transposed.storage);
    if (status == WW_OK) {
        const ww_tensor back = exchanged(&transposed, dim, last);
        status = ww_tensor_contiguous(&back, out);
    }
    ww_storage_destroy(transposed.storage);
    return status;
}

static ww_status run_norm(const char *operation, int32_t op, const ww_tensor *x, const ww_tensor *weight, const ww_tensor *bias,
                          double eps, ww_storage **out)
{
    ww_storage *held_weight = NULL;
    ww_storage *held_bias = NULL;
    rows_job job = {.op = op, .eps = eps};
    ww_status status = check_out(operation, out);
    if (status == WW_OK)
        status = check_floats(operation, x);
    if (status == WW_OK)
        status = dense_vector(operation, "the weight", x, weight, &held_weight, &job.weight);
    if (status == WW_OK)
        status = dense_vector(operation, "the bias", x, bias, &held_bias, &job.bias);
    if (status == WW_OK)
        status = run_rows(x, &job, out);
    ww_storage_destroy(held_weight);
    ww_storage_destroy(held_bias);
    return status;
}

ww_status ww_tensor_layer_norm(const ww_tensor *x, const ww_tensor *weight, const ww_tensor *bias, double eps, ww_storage **out)
{
    return run_norm("layer_norm", ROW_LAYER_NORM, x, weight, bias, eps, out);
}

ww_status ww_tensor_rms_norm(const ww_tensor *x, const ww_tensor *weight, double eps, ww_storage **out)
{
    return run_norm("rms_norm", ROW_RMS_NORM, x, weight, NULL, eps, out);
}

/* ---- rotary embedding ------------------------------------------------------------------------------------------------------
 */

/* The dimensions of x's rows with the strides of `angles`, which has all of them and the pairs, or the last of them and the
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

ww_status ww_tensor_rope(const ww_tensor *x, const ww_tensor *cosines, const ww_tensor *sines, bool interleaved,
                         ww_storage **out)
{
    rope_job job = {.interleaved = interleaved};
    ww_storage *held = NULL;
    ww_storage *made = NULL;
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
        status = dense_elements(x, &held, &job.x);
    const int64_t count = status == WW_OK ? count_of(&x->layout) : 0;
    if (status == WW_OK)
        status = storage_make(x->storage->device, x->storage->dtype, count, &made);
    if (status == WW_OK && count > 0) {
        job.type = (int32_t)x->storage->dtype;
        job.half = x->layout.shape[x->layout.rank - 1] / 2;
        job.rows = count / (2 * job.half);
        job.cosine = operand_of(cosines).data;
        job.sine = operand_of(sines).data;
        job.out = made->data.data;
        status = tensors_of(x->storage->device)->rope(x->storage->device, &job);
    }
    ww_storage_destroy(held);
    if (status != WW_OK) {
        ww_storage_destroy(made);
        return status;
    }
    *out = made;
    return WW_OK;
}

/* ---- sorting ---------------------------------------------------------------------------------------------------------------
 */

static ww_status run_sort(const char *operation, const ww_tensor *x, int64_t k, bool descending, ww_storage **values,
                          ww_storage **indices)
{
    ww_device *device = x->storage->device;
    const int64_t n = x->layout.shape[x->layout.rank - 1];
    const int64_t count = count_of(&x->layout);
    sort_job job = {
        .type = (int32_t)x->storage->dtype, .descending = descending, .n = n, .k = k, .rows = n > 0 ? count / n : 0};
    ww_storage *held = NULL;
    ww_storage *made[2] = {NULL, NULL};
    if (n > UINT32_MAX)
        return ww_fail(WW_UNSUPPORTED, "%s: %lld elements along the dimension; their indices do not fit u32", operation,
                       (long long)n);
    ww_status status = dense_elements(x, &held, &job.x);
    if (status == WW_OK && values)
        status = storage_make(device, x->storage->dtype, job.rows * k, &made[0]);
    if (status == WW_OK && indices)
        status = storage_make(device, WW_U32, job.rows * k, &made[1]);
    if (status == WW_OK && job.rows * k > 0) {
        job.values = values ? made[0]->data.data : NULL;
        job.indices = indices ? made[1]->data.data : NULL;
        status = tensors_of(device)->sort(device, &job);
    }
    ww_storage_destroy(held);
    if (status != WW_OK) {
        ww_storage_destroy(made[0]);
        ww_storage_destroy(made[1]);
        return status;
    }
    if (values)
        *values = made[0];
    if (indices)
        *indices = made[1];
    return WW_OK;
}

static ww_status check_sort(const char *operation, const ww_tensor *x, ww_storage **values, ww_storage **indices)
{
    if (!values && !indices)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: values and indices are both NULL", operation);
    if (values)
        *values = NULL;
    if (indices)
        *indices = NULL;
    ww_status status = check_tensor(operation, "x", x);
    if (status == WW_OK && x->storage->dtype == WW_I8)
        status = refuse_type(operation, x->storage->dtype);
    if (status == WW_OK && x->layout.rank == 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: x has rank 0; there is no last dimension", operation);
    return status;
}

ww_status ww_tensor_sort(const ww_tensor *x, bool descending, ww_storage **values, ww_storage **indices)
{
    const ww_status status = check_sort("sort", x, values, indices);
    return status == WW_OK ? run_sort("sort", x, x->layout.shape[x->layout.rank - 1], descending, values, indices) : status;
}

ww_status ww_tensor_top_k(const ww_tensor *x, int64_t k, bool largest, ww_storage **values, ww_storage **indices)
{
    const ww_status status = check_sort("top_k", x, values, indices);
    if (status != WW_OK)
        return status;
    if (k < 0 || k > x->layout.shape[x->layout.rank - 1])
        return ww_fail(WW_OUT_OF_RANGE, "top_k: k is %lld; it must be 0 to the last dimension of shape %s", (long long)k,
                       SHAPE_TEXT(&x->layout));
    return run_sort("top_k", x, k, largest, values, indices);
}
