/* Cases of looking at a tensor in another way: the library's views, copied. */
#include <string.h>

#include "cases/cases.h"

bool case_dim_of(const ww_tensor *x, int64_t dim, int32_t *out)
{
    const int64_t from_first = dim < 0 ? dim + x->layout.rank : dim;
    *out = from_first >= 0 && from_first < x->layout.rank ? (int32_t)from_first : 0;
    return from_first >= 0 && from_first < x->layout.rank;
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

/* Copies a view of x, if `status` says that it was made. */
static ww_status give_view(case_run *run, ww_status status, const ww_tensor *view)
{
    ww_tensor out = {0};
    if (status == WW_OK)
        status = ww_tensor_contiguous(view, &out);
    return case_give(run, status, &out);
}

static ww_status no_dim(const ww_tensor *x)
{
    return ww_fail(WW_OUT_OF_RANGE, "a dimension that a tensor of rank %d does not have", (int)x->layout.rank);
}

/* Reads the list of dimensions, all of which x must have. */
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
    return give_view(run, ww_tensor_transpose(&x, dims[0], dims[1], &x), &x);
}

static ww_status run_permute(case_run *run)
{
    ww_tensor x;
    int32_t dims[WW_RANK_MAX] = {0};
    int32_t count;
    const ww_status status = case_input(run, CASE_X, &x);
    if (status != WW_OK)
        return status;
    if (!read_dims(run, "dims|order|axes", &x, dims, &count) || count != x.layout.rank)
        return no_dim(&x);
    return give_view(run, ww_tensor_permute(&x, dims, &x), &x);
}

static ww_status run_narrow(case_run *run)
{
    ww_tensor x;
    const int64_t start = case_integer(run, "start|offset", 0), length = case_integer(run, "len|length|size", 1);
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_narrow(&x, case_dim(run, 0), start, length, &x);
    return give_view(run, status, &x);
}

static ww_status run_broadcast_as(case_run *run)
{
    ww_tensor x;
    int64_t shape[WW_RANK_MAX];
    const int32_t rank = case_integers(run, "shape|to", shape, WW_RANK_MAX);
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_broadcast_to(&x, rank, shape, &x);
    return give_view(run, status, &x);
}

/* If x has no view of this shape, reshapes a copy. */
static ww_status run_reshape(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    int64_t shape[WW_RANK_MAX] = {0};
    const int32_t rank = case_integers(run, "shape|to", shape, WW_RANK_MAX);
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_contiguous(&x, &out);
    if (status == WW_OK)
        status = case_keep(run, out.storage);
    if (status == WW_OK)
        status = ww_tensor_reshape(&out, rank, shape, &out);
    run->result = out;
    return status;
}

const case_entry cases_views[] = {
    {"transpose", run_transpose},       {"t", run_transpose},         {"permute", run_permute}, {"narrow", run_narrow},
    {"broadcast_as", run_broadcast_as}, {"expand", run_broadcast_as}, {"reshape", run_reshape}, {NULL, NULL},
};
