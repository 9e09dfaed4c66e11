/* Cases of operations that move elements. */
#include <string.h>

#include "cli/cases/cases.h"

static ww_status run_contiguous(case_run *run)
{
    ww_tensor x;
    ww_storage *out = NULL;
    ww_status status = case_input(run, "x", &x);
    if (status == WW_OK)
        status = ww_tensor_contiguous(&x, &out);
    return status == WW_OK ? case_give(run, out, x.layout.rank, x.layout.shape) : status;
}

/* Into a dense storage at an offset; without a `dst` what is before it is zero and not looked at. */
static ww_status run_copy_strided(case_run *run)
{
    ww_tensor x;
    ww_tensor to;
    const int64_t offset = case_integer(run, "dst_offset", 0);
    ww_status status = case_input(run, "x", &x);
    if (status == WW_OK && json_object_get(run->inputs, "dst")) {
        status = case_input(run, "dst", &to);
        if (status == WW_OK) {
            run->result = to;
            to.layout = ww_layout_contiguous(x.layout.rank, x.layout.shape);
            to.layout.offset = offset;
            status = ww_tensor_copy_strided(&x, &to);
        }
        return status;
    }
    if (status == WW_OK) {
        to.layout = ww_layout_contiguous(x.layout.rank, x.layout.shape);
        to.layout.offset = offset;
        status =
            ww_storage_zeros(run->device, ww_storage_dtype(x.storage), ww_layout_elements(&x.layout) + offset, &to.storage);
    }
    if (status == WW_OK)
        status = case_keep(run, to.storage);
    if (status == WW_OK)
        status = ww_tensor_copy_strided(&x, &to);
    run->result = to;
    return status;
}

static ww_status run_copy2d(case_run *run)
{
    ww_tensor from;
    ww_tensor to;
    ww_status status = case_input(run, json_object_get(run->inputs, "src") ? "src" : "x", &from);
    if (status == WW_OK)
        status = case_input(run, "dst", &to);
    if (status == WW_OK)
        status = ww_tensor_copy2d(from.storage, to.storage, case_integer(run, "d1", 0), case_integer(run, "d2", 0),
                                  case_integer(run, "src_stride", 0), case_integer(run, "dst_stride", 0),
                                  case_integer(run, "src_offset", 0), case_integer(run, "dst_offset", 0));
    run->result = to;
    return status;
}

/* The value takes the way of every other element. */
static ww_status run_const_set(case_run *run)
{
    ww_tensor x;
    ww_tensor value;
    ww_tensor view;
    uint64_t bits = 0;
    json_t *one = json_pack("{s:[], s:[O]}", "shape", "data", json_object_get(run->attrs, "value"));
    ww_status status = case_input(run, "x", &x);
    if (status == WW_OK)
        status = case_tensor(run, one, &value);
    json_decref(one);
    if (status == WW_OK)
        status = ww_storage_to_host(value.storage, &bits);
    if (status != WW_OK)
        return status;
    const json_t *layout = json_object_get(run->inputs, "view");
    view = x;
    if (layout) {
        view.layout.rank = json_integers(json_object_get(layout, "shape"), view.layout.shape, WW_RANK_MAX);
        json_integers(json_object_get(layout, "strides"), view.layout.strides, WW_RANK_MAX);
        view.layout.offset = (int64_t)json_integer_value(json_object_get(layout, "offset"));
    }
    run->result = x;
    return ww_tensor_const_set(&view, &bits);
}

static ww_status run_slice_assign(case_run *run)
{
    ww_tensor x;
    ww_tensor src;
    int64_t start[WW_RANK_MAX] = {0};
    ww_status status = case_input(run, "x", &x);
    if (status == WW_OK)
        status = case_input(run, "src", &src);
    if (status != WW_OK)
        return status;
    ww_tensor part = x;
    if (case_integers(run, "start", start, WW_RANK_MAX) != x.layout.rank || src.layout.rank != x.layout.rank)
        return ww_fail(WW_CORRUPT_FILE, "start and src do not have as many dimensions as x");
    for (int32_t d = 0; d < x.layout.rank; d++) {
        if (start[d] < 0 || start[d] + src.layout.shape[d] > x.layout.shape[d])
            return ww_fail(WW_OUT_OF_RANGE, "src does not fit into x along dimension %d", (int)d);
        part.layout.offset += start[d] * x.layout.strides[d];
        part.layout.shape[d] = src.layout.shape[d];
    }
    run->result = x;
    return ww_tensor_copy_strided(&src, &part);
}

static ww_status run_cat(case_run *run)
{
    enum { PIECES_MAX = 32 };
    const json_t *list = json_object_get(run->inputs, "xs");
    const size_t count = json_array_size(list);
    ww_tensor xs[PIECES_MAX];
    ww_storage *out = NULL;
    ww_status status = WW_OK;
    if (count > PIECES_MAX)
        return ww_fail(WW_CORRUPT_FILE, "more than %d tensors to join", PIECES_MAX);
    for (size_t i = 0; i < count && status == WW_OK; i++)
        status = case_tensor(run, json_array_get(list, i), &xs[i]);
    int32_t dim = (int32_t)case_integer(run, "dim", 0);
    if (status == WW_OK)
        status = ww_tensor_cat(xs, count, dim, &out);
    if (status != WW_OK)
        return status;
    ww_layout whole = xs[0].layout;
    dim += dim < 0 ? whole.rank : 0;
    for (size_t i = 1; i < count; i++)
        whole.shape[dim] += xs[i].layout.shape[dim];
    return case_give(run, out, whole.rank, whole.shape);
}

const case_entry cases_move[] = {
    {"contiguous", run_contiguous},     {"clone", run_contiguous}, {"to_cpu", run_contiguous},
    {"copy_strided", run_copy_strided}, {"copy2d", run_copy2d},    {"const_set", run_const_set},
    {"slice_assign", run_slice_assign}, {"cat", run_cat},          {NULL, NULL},
};
