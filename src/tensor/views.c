/* Views: the same elements with another shape. A view retains its storage and computes nothing. */
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "tensor/tensor.h"

/* Makes a view of x. `view` may be x itself; another tensor must not have a storage, which would be lost. */
static ww_status give_view(const char *operation, const ww_tensor *x, const ww_layout *layout, ww_tensor *view)
{
    if (view == x) {
        view->layout = *layout;
        return WW_OK;
    }
    if (view->storage)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the view already has a storage; release it first", operation);
    *view = (ww_tensor){.storage = ww_storage_retain(x->storage), .layout = *layout};
    return WW_OK;
}

static ww_status check_view(const char *operation, const ww_tensor *x, const ww_tensor *view)
{
    if (!view)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: view is NULL", operation);
    return check_tensor(operation, "x", x);
}

ww_status ww_tensor_view(const ww_tensor *x, const ww_layout *layout, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("view", x, view);
    if (status == WW_OK && !layout)
        status = ww_fail(WW_INVALID_ARGUMENT, "view: layout is NULL");
    if (status != WW_OK)
        return status;
    const ww_layout wanted = *layout;
    const ww_tensor seen = {x->storage, wanted};
    status = check_tensor("view", "the layout", &seen);
    return status == WW_OK ? give_view("view", x, &wanted, view) : status;
}

ww_status ww_tensor_transpose(const ww_tensor *x, int32_t a, int32_t b, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("transpose", x, view);
    if (status == WW_OK)
        status = check_dim("transpose", x, &a);
    if (status == WW_OK)
        status = check_dim("transpose", x, &b);
    if (status != WW_OK)
        return status;
    ww_layout layout = x->layout;
    layout.shape[a] = x->layout.shape[b];
    layout.strides[a] = x->layout.strides[b];
    layout.shape[b] = x->layout.shape[a];
    layout.strides[b] = x->layout.strides[a];
    return give_view("transpose", x, &layout, view);
}

ww_status ww_tensor_permute(const ww_tensor *x, const int32_t *dims, ww_tensor *view)
{
    FLOAT_GUARD();
    bool taken[WW_RANK_MAX] = {false};
    ww_status status = check_view("permute", x, view);
    if (status == WW_OK && !dims && x->layout.rank > 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "permute: dims is NULL");
    if (status != WW_OK)
        return status;
    ww_layout layout = x->layout;
    for (int32_t d = 0; d < x->layout.rank; d++) {
        int32_t from = dims[d];
        status = check_dim("permute", x, &from);
        if (status != WW_OK)
            return status;
        if (taken[from])
            return ww_fail(WW_INVALID_ARGUMENT, "permute: dimension %d of shape %s is given twice", (int)from,
                           SHAPE_TEXT(&x->layout));
        taken[from] = true;
        layout.shape[d] = x->layout.shape[from];
        layout.strides[d] = x->layout.strides[from];
    }
    return give_view("permute", x, &layout, view);
}

ww_status ww_tensor_narrow(const ww_tensor *x, int32_t dim, int64_t first, int64_t count, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("narrow", x, view);
    if (status == WW_OK)
        status = check_dim("narrow", x, &dim);
    if (status != WW_OK)
        return status;
    const int64_t size = x->layout.shape[dim];
    if (first < 0 || count < 0 || first > size || count > size - first)
        return ww_fail(WW_OUT_OF_RANGE, "narrow: %lld elements from number %lld on are not in dimension %d of shape %s",
                       (long long)count, (long long)first, (int)dim, SHAPE_TEXT(&x->layout));
    ww_layout layout = x->layout;
    layout.shape[dim] = count;
    layout.offset += first * layout.strides[dim];
    return give_view("narrow", x, &layout, view);
}

/* Converts a bound of a slice as Python does: from the end if negative, limited to the size. */
static int64_t slice_bound(int64_t at, int64_t size)
{
    return min_i64(max_i64(at < 0 ? at + size : at, 0), size);
}

ww_status ww_tensor_slice(const ww_tensor *x, int32_t dim, int64_t begin, int64_t end, int64_t step, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("slice", x, view);
    if (status == WW_OK)
        status = check_dim("slice", x, &dim);
    if (status == WW_OK && step < 1)
        status = ww_fail(WW_INVALID_ARGUMENT, "slice: step is %lld; it must be 1 or more", (long long)step);
    if (status != WW_OK)
        return status;
    ww_layout layout = x->layout;
    const int64_t first = slice_bound(begin, layout.shape[dim]), last = slice_bound(end, layout.shape[dim]);
    const int64_t count = last > first ? (last - first - 1) / step + 1 : 0;
    layout.shape[dim] = count;
    layout.offset += first * layout.strides[dim];
    layout.strides[dim] = count > 1 ? layout.strides[dim] * step : layout.strides[dim];
    return give_view("slice", x, &layout, view);
}

ww_status ww_tensor_select(const ww_tensor *x, int32_t dim, int64_t index, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("select", x, view);
    if (status == WW_OK)
        status = check_dim("select", x, &dim);
    if (status != WW_OK)
        return status;
    const int64_t size = x->layout.shape[dim], at = index < 0 ? index + size : index;
    if (at < 0 || at >= size)
        return ww_fail(WW_OUT_OF_RANGE, "select: %lld is out of range for dimension %d of shape %s", (long long)index, (int)dim,
                       SHAPE_TEXT(&x->layout));
    ww_layout layout = x->layout;
    layout.offset += at * layout.strides[dim];
    for (int32_t d = dim; d < layout.rank - 1; d++) {
        layout.shape[d] = layout.shape[d + 1];
        layout.strides[d] = layout.strides[d + 1];
    }
    layout.rank--;
    layout.shape[layout.rank] = layout.strides[layout.rank] = 0;
    return give_view("select", x, &layout, view);
}

ww_status ww_tensor_squeeze(const ww_tensor *x, int32_t dim, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("squeeze", x, view);
    if (status == WW_OK)
        status = check_dim("squeeze", x, &dim);
    if (status == WW_OK && x->layout.shape[dim] != 1)
        status = ww_fail(WW_DIMENSION_MISMATCH, "squeeze: dimension %d of shape %s is not 1", (int)dim, SHAPE_TEXT(&x->layout));
    return status == WW_OK ? ww_tensor_select(x, dim, 0, view) : status;
}

ww_status ww_tensor_unsqueeze(const ww_tensor *x, int32_t dim, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("unsqueeze", x, view);
    if (status != WW_OK)
        return status;
    const int32_t rank = x->layout.rank;
    if (dim < -rank - 1 || dim > rank || rank == WW_RANK_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "unsqueeze: no dimension %d can be added to shape %s; the maximum rank is %d", (int)dim,
                       SHAPE_TEXT(&x->layout), WW_RANK_MAX);
    dim += dim < 0 ? rank + 1 : 0;
    ww_layout layout = x->layout;
    for (int32_t d = rank; d > dim; d--) {
        layout.shape[d] = x->layout.shape[d - 1];
        layout.strides[d] = x->layout.strides[d - 1];
    }
    layout.shape[dim] = 1;
    layout.strides[dim] = dim < rank ? x->layout.shape[dim] * x->layout.strides[dim] : 1;
    layout.rank = rank + 1;
    return give_view("unsqueeze", x, &layout, view);
}

ww_status ww_tensor_broadcast_to(const ww_tensor *x, int32_t rank, const int64_t *shape, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_status status = check_view("broadcast_to", x, view);
    if (status != WW_OK)
        return status;
    ww_layout layout = ww_layout_contiguous(rank, shape);
    if (rank < 0 || rank > WW_RANK_MAX || (!shape && rank > 0) || ww_layout_elements(&layout) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "broadcast_to: rank %d does not come with a shape", (int)rank);
    const int32_t missing = rank - x->layout.rank;
    bool fits = missing >= 0;
    for (int32_t d = 0; d < x->layout.rank && fits; d++)
        fits = x->layout.shape[d] == layout.shape[d + missing] || x->layout.shape[d] == 1;
    if (!fits)
        return ww_fail(WW_DIMENSION_MISMATCH, "broadcast_to: shape %s cannot become %s", SHAPE_TEXT(&x->layout),
                       SHAPE_TEXT(&layout));
    memcpy(layout.strides, operand_in(x, &layout).strides, sizeof layout.strides);
    layout.offset = x->layout.offset;
    return give_view("broadcast_to", x, &layout, view);
}

/* ---- reshape ------------------------------------------------------------------------------------------------------------- */

/* Computes the one size that may be -1. */
static ww_status complete_shape(const ww_tensor *x, int32_t rank, const int64_t *shape, ww_layout *made)
{
    const int64_t count = count_of(&x->layout);
    int32_t open = -1;
    if (rank < 0 || rank > WW_RANK_MAX || (!shape && rank > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "reshape: rank %d does not come with a shape", (int)rank);
    int64_t sizes[WW_RANK_MAX];
    int64_t others = 1;
    bool fits = true;
    for (int32_t d = 0; d < rank; d++) {
        sizes[d] = shape[d];
        if (shape[d] == -1) {
            fits = fits && open < 0;
            open = d;
        } else {
            fits = fits && shape[d] >= 0 && !__builtin_mul_overflow(others, shape[d], &others);
        }
    }
    if (fits && open >= 0) {
        fits = others > 0 && count % others == 0;
        sizes[open] = fits ? count / others : 0;
    } else {
        fits = fits && others == count;
    }
    if (!fits)
        return ww_fail(WW_DIMENSION_MISMATCH, "reshape: shape %s has %lld elements and cannot become %s",
                       SHAPE_TEXT(&x->layout), (long long)count, shape_to_text(rank, shape).text);
    *made = ww_layout_contiguous(rank, sizes);
    return WW_OK;
}

/* The strides of the new shape over the old elements, if there are any: groups of dimensions with the same product are matched
 * from the last on, and each old group must be contiguous. */
static bool reshape_strides(const ww_layout *from, ww_layout *to)
{
    int32_t old = from->rank - 1, new = to->rank - 1;
    while (old >= 0 || new >= 0) {
        while (old >= 0 && from->shape[old] == 1)
            old--;
        if (old < 0)
            break;
        const int64_t inner = from->strides[old];
        int64_t of_old = from->shape[old], of_new = 1;
        int32_t next = old - 1;
        while (new >= 0 && of_new < of_old) {
            to->strides[new] = inner * of_new;
            of_new *= to->shape[new --];
            while (of_new > of_old && next >= 0) { /* merges the old dimension before it, if it is contiguous */
                if (from->shape[next] != 1 && from->strides[next] != inner * of_old)
                    return false;
                of_old *= from->shape[next--];
            }
        }
        old = next;
    }
    return true;
}

ww_status ww_tensor_reshape(const ww_tensor *x, int32_t rank, const int64_t *shape, ww_tensor *view)
{
    FLOAT_GUARD();
    ww_layout layout;
    ww_status status = check_view("reshape", x, view);
    if (status == WW_OK)
        status = complete_shape(x, rank, shape, &layout);
    if (status != WW_OK)
        return status;
    layout.offset = x->layout.offset;
    if (count_of(&x->layout) > 0 && !reshape_strides(&x->layout, &layout))
        return ww_fail(WW_UNSUPPORTED,
                       "reshape: a tensor of shape %s and strides %s cannot be seen as %s; make it contiguous "
                       "first",
                       SHAPE_TEXT(&x->layout), shape_to_text(x->layout.rank, x->layout.strides).text, SHAPE_TEXT(&layout));
    return give_view("reshape", x, &layout, view);
}
