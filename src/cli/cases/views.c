/* Cases of looking at a tensor in another way: the library has layouts for that, and what is made of them is copied. */
#include <string.h>

#include "cli/cases/cases.h"

#include "base/integers.h"

/* ---- shapes that two tensors have together --------------------------------------------------------------------------------
 */

static void fit(ww_tensor *x, int32_t rank, const int64_t *shape)
{
    const ww_layout from = x->layout;
    const int32_t before = rank - from.rank;
    x->layout.rank = rank;
    for (int32_t d = 0; d < rank; d++) {
        const bool repeats = d < before || (from.shape[d - before] == 1 && shape[d] != 1);
        x->layout.shape[d] = shape[d];
        x->layout.strides[d] = repeats ? 0 : from.strides[d - before];
    }
}

static bool fits(const ww_tensor *x, int32_t rank, const int64_t *shape)
{
    const int32_t before = rank - x->layout.rank;
    if (before < 0 || rank > WW_RANK_MAX)
        return false;
    for (int32_t d = before; d < rank; d++)
        if (x->layout.shape[d - before] != shape[d] && x->layout.shape[d - before] != 1)
            return false;
    return true;
}

void case_broadcast(ww_tensor *x, ww_tensor *y)
{
    const int32_t rank = max_i32(x->layout.rank, y->layout.rank);
    int64_t shape[WW_RANK_MAX];
    if (rank > WW_RANK_MAX)
        return;
    for (int32_t d = 0; d < rank; d++) {
        const int32_t of_x = d - (rank - x->layout.rank), of_y = d - (rank - y->layout.rank);
        const int64_t one = of_x < 0 ? 1 : x->layout.shape[of_x], other = of_y < 0 ? 1 : y->layout.shape[of_y];
        shape[d] = one == 1 ? other : one;
    }
    if (!fits(x, rank, shape) || !fits(y, rank, shape))
        return;
    fit(x, rank, shape);
    fit(y, rank, shape);
}

bool case_dim_of(const ww_tensor *x, int64_t dim, int32_t *out)
{
    const int64_t from_first = dim < 0 ? dim + x->layout.rank : dim;
    *out = from_first >= 0 && from_first < x->layout.rank ? (int32_t)from_first : 0;
    return from_first >= 0 && from_first < x->layout.rank;
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

/* x as the view has it, copied. */
static ww_status give_view(case_run *run, const ww_tensor *view)
{
    ww_storage *out = NULL;
    const ww_status status = ww_tensor_contiguous(view, &out);
    return status == WW_OK ? case_give(run, out, view->layout.rank, view->layout.shape) : status;
}

static ww_status no_dim(const ww_tensor *x)
{
    return ww_fail(WW_OUT_OF_RANGE, "a dimension that a tensor of rank %d does not have", (int)x->layout.rank);
}

/* The dimensions in a list, each of which x has. */
static bool read_dims(case_run *run, const char *names, const ww_tensor *x, int32_t *dims, int32_t *count)
{
    int64_t given[WW_RANK_MAX];
    *count = case_integers(run, names, given, WW_RANK_MAX);
    for (int32_t i = 0; i < *count && i < WW_RANK_MAX; i++)
        if (!case_dim_of(x, given[i], &dims[i]))
            return false;
    return *count <= WW_RANK_MAX;
}

/* The last two dimensions, or those that are named. */
static ww_status run_transpose(case_run *run)
{
    ww_tensor x;
    int32_t dims[WW_RANK_MAX] = {0};
    int32_t count;
    const ww_status status = case_input(run, CASE_X, &x);
    if (status != WW_OK)
        return status;
    if (!read_dims(run, "dims", &x, dims, &count) || x.layout.rank < 2)
        return no_dim(&x);
    const int32_t rank = x.layout.rank;
    if (count != 2 && (!case_dim_of(&x, case_integer(run, "dim0|dim1st|d1", rank - 2), &dims[0]) ||
                       !case_dim_of(&x, case_integer(run, "dim1|dim2|d2", rank - 1), &dims[1])))
        return no_dim(&x);
    const ww_layout from = x.layout;
    x.layout.shape[dims[0]] = from.shape[dims[1]];
    x.layout.strides[dims[0]] = from.strides[dims[1]];
    x.layout.shape[dims[1]] = from.shape[dims[0]];
    x.layout.strides[dims[1]] = from.strides[dims[0]];
    return give_view(run, &x);
}

static ww_status run_permute(case_run *run)
{
    ww_tensor x;
    int32_t dims[WW_RANK_MAX] = {0};
    int32_t count;
    uint32_t seen = 0;
    const ww_status status = case_input(run, CASE_X, &x);
    if (status != WW_OK)
        return status;
    if (!read_dims(run, "dims|order|axes", &x, dims, &count) || count != x.layout.rank)
        return no_dim(&x);
    const ww_layout from = x.layout;
    for (int32_t d = 0; d < count; d++) {
        seen |= 1u << dims[d];
        x.layout.shape[d] = from.shape[dims[d]];
        x.layout.strides[d] = from.strides[dims[d]];
    }
    return seen == (1u << count) - 1 ? give_view(run, &x) : no_dim(&x);
}

static ww_status run_narrow(case_run *run)
{
    ww_tensor x;
    int32_t dim;
    const int64_t start = case_integer(run, "start|offset", 0), length = case_integer(run, "len|length|size", 1);
    const ww_status status = case_input(run, CASE_X, &x);
    if (status != WW_OK)
        return status;
    if (!case_dim_of(&x, case_dim(run, 0), &dim))
        return no_dim(&x);
    if (start < 0 || length < 0 || start > x.layout.shape[dim] - length)
        return ww_fail(WW_OUT_OF_RANGE, "%lld from %lld on of a dimension of %lld", (long long)length, (long long)start,
                       (long long)x.layout.shape[dim]);
    x.layout.offset += start * x.layout.strides[dim];
    x.layout.shape[dim] = length;
    return give_view(run, &x);
}

static ww_status run_broadcast_as(case_run *run)
{
    ww_tensor x;
    int64_t shape[WW_RANK_MAX];
    const int32_t rank = case_integers(run, "shape|to", shape, WW_RANK_MAX);
    const ww_status status = case_input(run, CASE_X, &x);
    if (status != WW_OK)
        return status;
    if (rank < 0 || !fits(&x, rank, shape))
        return ww_fail(WW_DIMENSION_MISMATCH, "x cannot be repeated to that shape");
    fit(&x, rank, shape);
    return give_view(run, &x);
}

/* The shape asked for, of which one size may be -1. */
static bool read_shape(case_run *run, int64_t elements, int64_t *shape, int32_t *rank)
{
    int64_t others = 1;
    int32_t open = -1;
    *rank = case_integers(run, "shape|to", shape, WW_RANK_MAX);
    for (int32_t d = 0; d < *rank && *rank <= WW_RANK_MAX; d++) {
        if (shape[d] == -1 && open < 0)
            open = d;
        else if (shape[d] < 0 || __builtin_mul_overflow(others, shape[d], &others))
            return false;
    }
    if (open >= 0)
        shape[open] = others > 0 ? elements / others : 0;
    const ww_layout whole = ww_layout_contiguous(*rank, shape);
    return *rank >= 0 && ww_layout_elements(&whole) == elements;
}

static ww_status run_reshape(case_run *run)
{
    ww_tensor x;
    ww_storage *out = NULL;
    int64_t shape[WW_RANK_MAX] = {0};
    int32_t rank;
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK && !read_shape(run, ww_layout_elements(&x.layout), shape, &rank))
        return ww_fail(WW_DIMENSION_MISMATCH, "x does not have as many elements as that shape");
    if (status == WW_OK)
        status = ww_tensor_contiguous(&x, &out);
    return status == WW_OK ? case_give(run, out, rank, shape) : status;
}

const case_entry cases_views[] = {
    {"transpose", run_transpose},       {"t", run_transpose},         {"permute", run_permute}, {"narrow", run_narrow},
    {"broadcast_as", run_broadcast_as}, {"expand", run_broadcast_as}, {"reshape", run_reshape}, {NULL, NULL},
};
