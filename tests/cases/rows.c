/* Cases of operations that look at many elements for one: reductions, softmax, norms, rotary embedding, sorting. */
#include "cases/cases.h"

#include <string.h>

/* The dimensions in attribute `dims` or `dim`; all of them if there is neither. */
static int32_t dims_of(case_run *run, const ww_tensor *x, int32_t *dims)
{
    int64_t given[WW_RANK_MAX];
    const int32_t count = case_integers(run, "dims|dim|axis", given, WW_RANK_MAX);
    for (int32_t i = 0; i < count && i < WW_RANK_MAX; i++)
        dims[i] = given[i] < -WW_RANK_MAX || given[i] > WW_RANK_MAX ? WW_RANK_MAX : (int32_t)given[i];
    if (count >= 0)
        return count;
    for (int32_t d = 0; d < x->layout.rank; d++)
        dims[d] = d;
    return x->layout.rank;
}

static ww_status run_reduce(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    int32_t dims[WW_RANK_MAX];
    uint32_t gone = 0;
    const int32_t op = case_kind(run, ww_reduce_of_name);
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK && op < 0)
        return ww_fail(WW_CORRUPT_FILE, "no reduction '%s'", case_kind_text(run));
    if (status != WW_OK)
        return status;
    const int32_t count = dims_of(run, &x, dims);
    const bool keep = case_truth(run, "keepdim|keep_dim|keep_dims|keepdims",
                                 strstr(run->op, "_keepdim") || case_expected_rank(run) == x.layout.rank);
    if (count > WW_RANK_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "a reduction of %d dimensions", (int)count);
    status = ww_tensor_reduce((ww_reduce)op, &x, dims, count, &out);
    for (int32_t i = 0; i < count && status == WW_OK; i++)
        gone |= 1u << (dims[i] < 0 ? dims[i] + x.layout.rank : dims[i]);
    for (int32_t d = 0; d < x.layout.rank && keep && status == WW_OK; d++)
        if (gone >> d & 1)
            status = ww_tensor_unsqueeze(&out, d, &out);
    return case_give(run, status, &out);
}

static ww_status run_softmax(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_softmax(&x, case_dim(run, -1), &out);
    return case_give(run, status, &out);
}

static ww_status run_cumsum(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_cumsum(&x, case_dim(run, 0), &out);
    return case_give(run, status, &out);
}

/* An input that may be missing. */
static ww_status optional_input(case_run *run, const char *name, ww_tensor *x, const ww_tensor **given)
{
    *given = NULL;
    if (!case_given(run, name))
        return WW_OK;
    *given = x;
    return case_input(run, name, x);
}

static ww_status run_norm(case_run *run, bool layer)
{
    ww_tensor x;
    ww_tensor weight;
    ww_tensor bias;
    const ww_tensor *by = NULL;
    const ww_tensor *plus = NULL;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = optional_input(run, "weight|alpha|w", &weight, &by);
    if (status == WW_OK)
        status = optional_input(run, "bias|beta|b", &bias, &plus);
    const double eps = case_number(run, "eps", 1e-5);
    if (status == WW_OK)
        status = layer ? ww_tensor_layer_norm(&x, by, plus, eps, &out) : ww_tensor_rms_norm(&x, by, eps, &out);
    return case_give(run, status, &out);
}

static ww_status run_layer_norm(case_run *run)
{
    return run_norm(run, true);
}

static ww_status run_rms_norm(case_run *run)
{
    return run_norm(run, false);
}

/* cos and sin have a row for each position, and may have one per sequence: [t, d] or [b, t, d]. Makes them fit x, whose heads
 * are before its positions, [b, h, t, d], or after them, [b, t, h, d]. */
static void fit_angles(const ww_tensor *x, bool heads_last, ww_tensor *angles)
{
    const ww_layout from = angles->layout;
    const int32_t rank = x->layout.rank, places = heads_last ? rank - 3 : rank - 2;
    if (rank != 4 || from.rank < 2 || from.rank > 3)
        return;
    ww_layout *to = &angles->layout;
    to->rank = rank;
    for (int32_t d = 0; d < rank; d++) {
        const int32_t source = d == rank - 1 ? from.rank - 1 : d == places ? from.rank - 2 : d == 0 && from.rank == 3 ? 0 : -1;
        to->shape[d] = source < 0 ? x->layout.shape[d] : from.shape[source];
        to->strides[d] = source < 0 ? 0 : from.strides[source];
    }
}

static ww_status run_rope_of(case_run *run, bool interleaved, bool heads_last)
{
    ww_tensor x;
    ww_tensor cosines;
    ww_tensor sines;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = case_input(run, "cos", &cosines);
    if (status == WW_OK)
        status = case_input(run, "sin", &sines);
    if (status == WW_OK) {
        fit_angles(&x, heads_last, &cosines);
        fit_angles(&x, heads_last, &sines);
        status = ww_tensor_rope(&x, &cosines, &sines, case_truth(run, "interleaved", interleaved), &out);
    }
    return case_give(run, status, &out);
}

static ww_status run_rope(case_run *run)
{
    return run_rope_of(run, false, false);
}

static ww_status run_rope_interleaved(case_run *run)
{
    return run_rope_of(run, true, false);
}

static ww_status run_rope_thd(case_run *run)
{
    return run_rope_of(run, false, true);
}

static bool descends(case_run *run)
{
    return case_truth(run, "descending|desc", !case_truth(run, "asc|ascending", true));
}

static ww_status run_sort(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_sort(&x, descends(run), &out, NULL);
    return case_give(run, status, &out);
}

static ww_status run_argsort(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_sort(&x, descends(run), NULL, &out);
    return case_give(run, status, &out);
}

/* Returns the values or, if `kind` is "indices", their indices. */
static ww_status run_top_k(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    const int64_t k = case_integer(run, "k", 1);
    const bool largest = case_truth(run, "largest", true);
    const char *kind = case_text(run, "kind");
    const bool indices = kind && strcmp(kind, "indices") == 0;
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_top_k(&x, k, largest, indices ? NULL : &out, indices ? &out : NULL);
    return case_give(run, status, &out);
}

const case_entry cases_rows[] = {
    {"reduce", run_reduce},
    {"cumsum", run_cumsum},
    {"softmax", run_softmax},
    {"softmax_last_dim", run_softmax},
    {"layer_norm", run_layer_norm},
    {"rms_norm", run_rms_norm},
    {"rope", run_rope},
    {"rope_i", run_rope_interleaved},
    {"rope_thd", run_rope_thd},
    {"rope_interleaved", run_rope_interleaved},
    {"sort_last_dim", run_sort},
    {"sort", run_sort},
    {"argsort_last_dim", run_argsort},
    {"argsort", run_argsort},
    {"arg_sort_last_dim", run_argsort},
    {"top_k", run_top_k},
    {"topk", run_top_k},
    {NULL, NULL},
};
