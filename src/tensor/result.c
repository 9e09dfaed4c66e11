/* Results: where an operation writes, and how that becomes the caller's tensor.
 *
 * A tensor without a storage gets a new one. An existing storage is written in place, without allocating, if it is dense and
 * aligned as kernels need it (or has any strides, if the operation writes by element) and does not overlap the inputs.
 * Otherwise the result is made in a dense temporary and copied, so every `out` of the right shape and type works.
 */
#include <string.h>

#include "tensor/tensor.h"

enum { RESULT_ALIGNMENT = 16 }; /* bytes that kernels store at once */

static ww_status check_given(const result *r, const ww_device *device, ww_dtype dtype, const ww_layout *shape)
{
    const ww_tensor *out = r->out;
    ww_status status = check_tensor(r->operation, "out", out);
    if (status != WW_OK)
        return status;
    if (out->storage->device != device)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: out is on %s, the result on %s%s", r->operation, out->storage->device->info.id,
                       device->info.id,
                       strcmp(out->storage->device->info.id, device->info.id) == 0 ? " that was opened a second time" : "");
    if (out->storage->dtype != dtype)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: out is %s, the result %s", r->operation, ww_dtype_name(out->storage->dtype),
                       ww_dtype_name(dtype));
    bool same = out->layout.rank == shape->rank;
    for (int32_t d = 0; same && d < shape->rank; d++)
        same = out->layout.shape[d] == shape->shape[d];
    if (!same)
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "%s: out has shape %s, the result %s; an out without a storage gets one of the right shape",
                       r->operation, SHAPE_TEXT(&out->layout), SHAPE_TEXT(shape));
    return check_writable(r->operation, "out", out);
}

/* Returns true if every element of x has the same address as its counterpart in y. */
static bool same_places(const ww_tensor *x, const ww_tensor *y)
{
    bool same = operand_of(x).data == operand_of(y).data && x->layout.rank == y->layout.rank &&
                ww_dtype_bytes(x->storage->dtype) == ww_dtype_bytes(y->storage->dtype);
    for (int32_t d = 0; same && d < x->layout.rank; d++)
        same = x->layout.shape[d] == y->layout.shape[d] &&
               (x->layout.shape[d] == 1 || x->layout.strides[d] == y->layout.strides[d]);
    return same;
}

static bool can_be_straight(const result *r)
{
    const uintptr_t address = (uintptr_t)operand_of(r->out).data;
    bool straight = !r->apart;
    if (!r->any_strides)
        straight = straight && layout_is_dense(&r->out->layout) && address % RESULT_ALIGNMENT == 0;
    for (int32_t i = 0; i < RESULT_INPUTS && straight; i++)
        if (r->inputs[i] && tensors_meet(r->out, r->inputs[i]))
            straight = r->by_element && same_places(r->out, r->inputs[i]);
    return straight;
}

ww_status result_begin(result *r, ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape)
{
    const ww_layout dense = ww_layout_contiguous(rank, shape);
    r->made = false;
    r->at = (ww_tensor){.layout = dense};
    if (r->out->storage) {
        const ww_status status = check_given(r, device, dtype, &dense);
        if (status != WW_OK)
            return status;
        if (can_be_straight(r)) {
            r->at = *r->out;
            return WW_OK;
        }
    }
    const ww_status status = storage_make(device, dtype, count_of(&dense), &r->at.storage);
    r->made = status == WW_OK;
    return status;
}

ww_status result_zero(const result *r)
{
    ww_device *device = r->at.storage->device;
    if (count_of(&r->at.layout) == 0)
        return WW_OK;
    /* Our own memory may be zeroed in whole words; in a caller's memory other elements may be adjacent. */
    return r->made ? tensors_of(device)->zero(device, &r->at.storage->data) : set_elements(&r->at, 0);
}

ww_status result_end(result *r, ww_status status)
{
    if (!r->made)
        return status;
    r->made = false;
    if (status == WW_OK && !r->out->storage) {
        *r->out = r->at;
        return WW_OK;
    }
    if (status == WW_OK)
        status = copy_apart(&r->at, r->out);
    ww_storage_release(r->at.storage);
    return status;
}

ww_status run_elementwise(const char *operation, elementwise_job *job, const ww_tensor *const *inputs, ww_dtype dtype,
                          ww_tensor *out)
{
    ww_layout shape;
    ww_device *device = inputs[0]->storage->device;
    result r = {.operation = operation, .out = out, .by_element = true, .any_strides = job->family != ELEMENTWISE_CMP};
    ww_status status = broadcast_shapes(operation, inputs, job->inputs, &shape);
    for (int32_t i = 0; i < job->inputs; i++)
        r.inputs[i] = inputs[i];
    if (status == WW_OK)
        status = result_begin(&r, device, dtype, shape.rank, shape.shape);
    if (status != WW_OK)
        return status;
    const bool onto_itself = job->family == ELEMENTWISE_COPY && same_places(&r.at, inputs[0]);
    if (count_of(&shape) > 0 && !onto_itself) {
        for (int32_t i = 0; i < job->inputs; i++)
            job->in[i] = operand_in(inputs[i], &shape);
        job->out = operand_of(&r.at);
        job_simplify(job, shape.rank, shape.shape);
        status = tensors_of(device)->elementwise(device, job);
    }
    return result_end(&r, status);
}
