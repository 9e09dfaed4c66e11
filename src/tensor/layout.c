/* Layouts: their strides, checks, and how they are simplified before work is done. */
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

void ww_layout_make(ww_layout *layout, int32_t rank, const int64_t *shape)
{
    if (!layout)
        return;
    *layout = (ww_layout){.rank = rank};
    if (rank < 0 || rank > WW_RANK_MAX || (!shape && rank > 0))
        return;
    uint64_t stride = 1; /* wraps if the shape is too large, which is detected when the layout is used */
    for (int32_t d = rank - 1; d >= 0; d--) {
        layout->shape[d] = shape[d];
        layout->strides[d] = (int64_t)(stride & INT64_MAX);
        stride *= shape[d] > 0 ? (uint64_t)shape[d] : 1;
    }
}

int64_t ww_layout_elements(const ww_layout *layout)
{
    int64_t count = 1;
    bool none = false;
    bool countable = true;
    if (!layout || layout->rank < 0 || layout->rank > WW_RANK_MAX)
        return -1;
    for (int32_t d = 0; d < layout->rank; d++) {
        if (layout->shape[d] < 0)
            return -1;
        none |= layout->shape[d] == 0;
        countable &= !__builtin_mul_overflow(count, layout->shape[d], &count);
    }
    return none ? 0 : countable ? count : -1;
}

int64_t count_of(const ww_layout *layout)
{
    return ww_layout_elements(layout);
}

shape_text shape_to_text(int32_t rank, const int64_t *shape)
{
    shape_text made = {"["};
    size_t used = 1;
    for (int32_t d = 0; d < rank && d < WW_RANK_MAX; d++) {
        const int written =
            snprintf(made.text + used, sizeof made.text - used, "%s%lld", d > 0 ? ", " : "", (long long)shape[d]);
        used += written > 0 ? (size_t)written : 0;
    }
    snprintf(made.text + used, sizeof made.text - used, "]");
    return made;
}

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

/* Returns the index of the last element in the storage, or -1 if it cannot be counted. */
static int64_t last_element(const ww_layout *layout)
{
    int64_t last = layout->offset;
    for (int32_t d = 0; d < layout->rank; d++) {
        int64_t along;
        if (__builtin_mul_overflow(layout->shape[d] - 1, layout->strides[d], &along) ||
            __builtin_add_overflow(last, along, &last))
            return -1;
    }
    return last;
}

static ww_status check_layout(const char *operation, const char *role, const ww_storage *storage, const ww_layout *layout)
{
    if (layout->rank < 0 || layout->rank > WW_RANK_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s has rank %d; it must be 0 to %d", operation, role, (int)layout->rank,
                       WW_RANK_MAX);
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->shape[d] < 0 || layout->strides[d] < 0)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: %s has shape %s and strides %s; neither may be negative", operation, role,
                           SHAPE_TEXT(layout), shape_to_text(layout->rank, layout->strides).text);
    const int64_t count = ww_layout_elements(layout);
    if (count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s has shape %s, which is too large", operation, role, SHAPE_TEXT(layout));
    if (layout->offset < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s has offset %lld; it must not be negative", operation, role,
                       (long long)layout->offset);
    const int64_t last = count == 0 ? -1 : last_element(layout);
    if (count > 0 && (last < 0 || last >= storage->elements))
        return ww_fail(WW_OUT_OF_RANGE,
                       "%s: %s has shape %s, strides %s and offset %lld, which is outside its storage of %lld elements",
                       operation, role, SHAPE_TEXT(layout), shape_to_text(layout->rank, layout->strides).text,
                       (long long)layout->offset, (long long)storage->elements);
    return WW_OK;
}

ww_status check_tensor(const char *operation, const char *role, const ww_tensor *x)
{
    if (!x || !x->storage)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", operation, role);
    const ww_status status = device_check(x->storage->device);
    return status == WW_OK ? check_layout(operation, role, x->storage, &x->layout) : status;
}

ww_status check_out(const char *operation, const ww_tensor *out)
{
    if (!out)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: out is NULL", operation);
    return WW_OK;
}

ww_status check_same_device(const char *operation, const ww_tensor *x, const ww_tensor *y)
{
    if (x->storage->device == y->storage->device)
        return WW_OK;
    const char *one = x->storage->device->info.id;
    const char *other = y->storage->device->info.id;
    return ww_fail(WW_INVALID_ARGUMENT, "%s: one tensor is on %s, another on %s%s; copy one to the other's device", operation,
                   one, other, strcmp(one, other) == 0 ? " that was opened a second time" : "");
}

ww_status check_same_type(const char *operation, const ww_tensor *x, const ww_tensor *y)
{
    if (x->storage->dtype == y->storage->dtype)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "%s: the types are %s and %s; cast one of them", operation,
                   ww_dtype_name(x->storage->dtype), ww_dtype_name(y->storage->dtype));
}

ww_status check_same_shape(const char *operation, const ww_tensor *x, const ww_tensor *y)
{
    bool same = x->layout.rank == y->layout.rank;
    for (int32_t d = 0; same && d < x->layout.rank; d++)
        same = x->layout.shape[d] == y->layout.shape[d];
    if (same)
        return WW_OK;
    return ww_fail(WW_DIMENSION_MISMATCH, "%s: the shapes are %s and %s; they must be the same", operation,
                   SHAPE_TEXT(&x->layout), SHAPE_TEXT(&y->layout));
}

ww_status check_not_read_only(const char *operation, const char *role, const ww_tensor *x)
{
    if (!x->storage->read_only)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is memory of another library that may only be read; give a copy of it",
                   operation, role);
}

/* In ascending order, each stride must be larger than everything that the smaller ones reach. */
ww_status check_writable(const char *operation, const char *role, const ww_tensor *x)
{
    const ww_layout *layout = &x->layout;
    bool done[WW_RANK_MAX] = {false};
    int64_t reach = 0;
    const ww_status status = check_not_read_only(operation, role, x);
    if (status != WW_OK || count_of(layout) == 0)
        return status;
    for (int32_t n = 0; n < layout->rank; n++) {
        int32_t next = -1;
        for (int32_t d = 0; d < layout->rank; d++)
            if (!done[d] && (next < 0 || layout->strides[d] < layout->strides[next]))
                next = d;
        done[next] = true;
        if (layout->shape[next] == 1)
            continue;
        if (layout->strides[next] <= reach)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: %s has shape %s and strides %s, in which an element may appear twice",
                           operation, role, SHAPE_TEXT(layout), shape_to_text(layout->rank, layout->strides).text);
        reach += (layout->shape[next] - 1) * layout->strides[next];
    }
    return WW_OK;
}

ww_status check_dim(const char *operation, const ww_tensor *x, int32_t *dim)
{
    const int32_t rank = x->layout.rank;
    if (*dim < -rank || *dim >= rank)
        return ww_fail(WW_OUT_OF_RANGE, "%s: dimension %d is out of range for shape %s", operation, (int)*dim,
                       SHAPE_TEXT(&x->layout));
    *dim += *dim < 0 ? rank : 0;
    return WW_OK;
}

ww_status refuse_type(const char *operation, ww_dtype dtype)
{
    return ww_fail(WW_UNSUPPORTED, "%s: %s is not supported; docs/guide/tensors.md lists the types of each operation",
                   operation, ww_dtype_name(dtype));
}

bool layout_is_dense(const ww_layout *layout)
{
    int64_t stride = 1;
    bool dense = true;
    for (int32_t d = layout->rank - 1; d >= 0; d--) {
        dense &= layout->shape[d] == 1 || layout->strides[d] == stride;
        stride *= layout->shape[d];
    }
    return dense || stride == 0;
}

/* Compares addresses, because two storages may be views of the same foreign memory. */
bool tensors_meet(const ww_tensor *x, const ww_tensor *y)
{
    if (count_of(&x->layout) == 0 || count_of(&y->layout) == 0)
        return false;
    const uintptr_t of_x = (uintptr_t)x->storage->data.data, of_y = (uintptr_t)y->storage->data.data;
    const uintptr_t x_bytes = ww_dtype_bytes(x->storage->dtype), y_bytes = ww_dtype_bytes(y->storage->dtype);
    return of_x + (uintptr_t)x->layout.offset * x_bytes < of_y + (uintptr_t)(last_element(&y->layout) + 1) * y_bytes &&
           of_y + (uintptr_t)y->layout.offset * y_bytes < of_x + (uintptr_t)(last_element(&x->layout) + 1) * x_bytes;
}

/* ---- broadcasting -------------------------------------------------------------------------------------------------------- */

/* Sets `shape` to the shape that it and x are broadcast to. */
static bool broadcast_one(const ww_layout *x, ww_layout *shape)
{
    int64_t sizes[WW_RANK_MAX];
    const int32_t rank = x->rank > shape->rank ? x->rank : shape->rank;
    bool fits = true;
    for (int32_t d = 0; d < rank; d++) {
        const int32_t of_x = d - (rank - x->rank), of_shape = d - (rank - shape->rank);
        const int64_t one = of_x < 0 ? 1 : x->shape[of_x], other = of_shape < 0 ? 1 : shape->shape[of_shape];
        fits = fits && (one == other || one == 1 || other == 1);
        sizes[d] = one == 1 ? other : one;
    }
    if (fits)
        *shape = ww_layout_contiguous(rank, sizes);
    return fits;
}

ww_status broadcast_shapes(const char *operation, const ww_tensor *const *xs, int32_t count, ww_layout *shape)
{
    *shape = ww_layout_contiguous(xs[0]->layout.rank, xs[0]->layout.shape);
    for (int32_t i = 1; i < count; i++)
        if (!broadcast_one(&xs[i]->layout, shape))
            return ww_fail(WW_DIMENSION_MISMATCH,
                           "%s: the shapes %s and %s do not broadcast; counted from the last, sizes must be equal or 1",
                           operation, SHAPE_TEXT(shape), SHAPE_TEXT(&xs[i]->layout));
    if (ww_layout_elements(shape) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the result would have shape %s, which is too large", operation,
                       SHAPE_TEXT(shape));
    return WW_OK;
}

/* ---- jobs ---------------------------------------------------------------------------------------------------------------- */

tensor_operand operand_of(const ww_tensor *x)
{
    const int32_t type = (int32_t)x->storage->dtype;
    tensor_operand operand = {.type = type};
    if (x->storage->data.data)
        operand.data = (char *)x->storage->data.data + x->layout.offset * type_size(type);
    memcpy(operand.strides, x->layout.strides, sizeof operand.strides);
    return operand;
}

tensor_operand operand_in(const ww_tensor *x, const ww_layout *shape)
{
    tensor_operand operand = operand_of(x);
    const int32_t missing = shape->rank - x->layout.rank;
    for (int32_t d = 0; d < shape->rank; d++)
        operand.strides[d] = d < missing || x->layout.shape[d - missing] == 1 ? 0 : x->layout.strides[d - missing];
    return operand;
}

/* Returns true if dimension d of size `inner` and the one before it can be merged in this operand. */
static bool joins(const tensor_operand *operand, int32_t before, int32_t d, int64_t inner)
{
    return operand->strides[before] == operand->strides[d] * inner;
}

void job_simplify(elementwise_job *job, int32_t rank, const int64_t *shape)
{
    tensor_operand *all[1 + ELEMENTWISE_INPUTS] = {&job->out, &job->in[0], &job->in[1], &job->in[2]};
    const int32_t operands = 1 + job->inputs;
    int32_t kept = 0;
    job->count = 1;
    for (int32_t d = 0; d < rank; d++) {
        if (shape[d] == 1)
            continue;
        job->count *= shape[d];
        bool joined = kept > 0;
        for (int32_t o = 0; o < operands && joined; o++)
            joined = joins(all[o], kept - 1, d, shape[d]);
        const int32_t at = joined ? kept - 1 : kept++;
        job->shape[at] = joined ? job->shape[at] * shape[d] : shape[d];
        for (int32_t o = 0; o < operands; o++)
            all[o]->strides[at] = all[o]->strides[d];
    }
    job->rank = kept;
}
