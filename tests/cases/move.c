/* Cases of operations that move elements. */
#include <string.h>

#include "cases/cases.h"

static ww_status run_contiguous(case_run *run)
{
    ww_tensor x;
    ww_tensor out = {0};
    ww_status status = case_input(run, CASE_X, &x);
    if (status == WW_OK)
        status = ww_tensor_contiguous(&x, &out);
    return case_give(run, status, &out);
}

/* Where elements are written: the input `dst`, or zeros. */
static ww_status destination(case_run *run, ww_dtype dtype, int64_t elements, ww_tensor *to)
{
    if (case_given(run, "dst|to"))
        return case_input(run, "dst|to", to);
    *to = (ww_tensor){0};
    const ww_status status = ww_tensor_zeros(run->device, dtype, 1, &elements, to);
    return status == WW_OK ? case_keep(run, to->storage) : status;
}

/* Shows the destination as the case expects it: all of it, if the expected result has its shape or as many elements; otherwise
 * the written part. */
static void show_destination(case_run *run, const ww_tensor *to, const ww_layout *written)
{
    int64_t shape[WW_RANK_MAX];
    const int32_t rank = json_integers(json_object_get(run->expected, "shape"), shape, WW_RANK_MAX);
    const int64_t all = ww_storage_elements(to->storage);
    run->result = *to;
    if (case_given(run, "dst|to") || rank < 0 || rank > WW_RANK_MAX)
        return;
    const ww_layout whole = ww_layout_contiguous(rank, shape);
    run->result.layout = ww_layout_elements(&whole) == all ? whole : *written;
}

/* How many elements a storage has that rows fit into; -1 if they cannot be counted, which the library refuses. */
static int64_t elements_under_rows(int64_t rows, int64_t columns, int64_t stride, int64_t offset)
{
    int64_t reach = 0;
    if (rows <= 0)
        return offset;
    if (__builtin_mul_overflow(rows - 1, stride, &reach) || __builtin_add_overflow(reach, columns, &reach) ||
        __builtin_add_overflow(reach, offset, &reach))
        return -1;
    return reach;
}

/* Into a dense storage at an offset. */
static ww_status run_copy_strided(case_run *run)
{
    ww_tensor x;
    ww_tensor to;
    const int64_t offset = case_integer(run, "dst_offset|offset|dst_o", 0);
    ww_status status = case_input(run, "x|src", &x);
    if (status == WW_OK)
        status = destination(run, ww_storage_dtype(x.storage), elements_under_rows(1, ww_layout_elements(&x.layout), 0, offset),
                             &to);
    if (status != WW_OK)
        return status;
    ww_tensor part = {.storage = to.storage, .layout = ww_layout_contiguous(x.layout.rank, x.layout.shape)};
    part.layout.offset = offset;
    status = ww_tensor_copy_strided(&x, &part);
    show_destination(run, &to, &part.layout);
    return status;
}

static ww_status run_copy2d(case_run *run)
{
    ww_tensor from;
    ww_tensor to;
    const int64_t rows = case_integer(run, "d1|rows|height", 0), columns = case_integer(run, "d2|cols|columns|width", 0);
    const int64_t to_stride = case_integer(run, "dst_stride|dst_stride1|dst_s", columns);
    const int64_t to_offset = case_integer(run, "dst_offset|dst_o", 0);
    ww_status status = case_input(run, "src|x", &from);
    if (status == WW_OK)
        status =
            destination(run, ww_storage_dtype(from.storage), elements_under_rows(rows, columns, to_stride, to_offset), &to);
    if (status != WW_OK)
        return status;
    status =
        ww_tensor_copy2d(from.storage, to.storage, rows, columns, case_integer(run, "src_stride|src_stride1|src_s", columns),
                         to_stride, case_integer(run, "src_offset|src_o", 0), to_offset);
    show_destination(run, &to, &to.layout);
    return status;
}

/* The value takes the way of every other element. */
static ww_status run_const_set(case_run *run)
{
    ww_tensor x;
    ww_tensor value;
    ww_tensor view;
    uint64_t bits = 0;
    const json_t *number = case_attribute(run, "value|v");
    if (!number)
        return ww_fail(WW_CORRUPT_FILE, "no attribute 'value'");
    json_t *one = json_pack("{s:[], s:[O]}", "shape", "data", number);
    ww_status status = case_input(run, "x|dst", &x);
    if (status == WW_OK)
        status = case_tensor(run, one, &value);
    json_decref(one);
    if (status == WW_OK)
        status = ww_storage_to_host(value.storage, &bits);
    if (status != WW_OK)
        return status;
    const json_t *layout = case_given(run, "view");
    view = x;
    if (layout)
        status = case_layout(layout, &view.layout);
    run->result = x;
    return status == WW_OK ? ww_tensor_const_set(&view, &bits) : status;
}

/* Reads where the slice starts: an index per dimension, a range per dimension, or one index along `dim`. */
static bool read_start(case_run *run, int32_t rank, int64_t *start)
{
    const json_t *ranges = case_attribute(run, "ranges");
    const json_t *along = case_attribute(run, "dim");
    if (ranges) {
        for (size_t d = 0; d < json_array_size(ranges) && d < (size_t)rank; d++)
            json_integers(json_array_get(ranges, d), &start[d], 1);
        return json_array_size(ranges) <= (size_t)rank;
    }
    if (along) {
        const int64_t dim = case_dim(run, 0) + (case_dim(run, 0) < 0 ? rank : 0);
        if (dim >= 0 && dim < rank)
            start[dim] = case_integer(run, "start|offset", 0);
        return dim >= 0 && dim < rank;
    }
    return case_integers(run, "start|starts|offset", start, WW_RANK_MAX) == rank;
}

static ww_status run_slice_assign(case_run *run)
{
    ww_tensor x;
    ww_tensor src;
    int64_t start[WW_RANK_MAX] = {0};
    ww_status status = case_input(run, "x|dst", &x);
    if (status == WW_OK)
        status = case_input(run, "src|y", &src);
    if (status != WW_OK)
        return status;
    ww_tensor part = x;
    if (!read_start(run, x.layout.rank, start) || src.layout.rank != x.layout.rank)
        return ww_fail(WW_DIMENSION_MISMATCH, "start and src do not have as many dimensions as x");
    for (int32_t d = 0; d < x.layout.rank; d++) {
        if (start[d] < 0 || start[d] > x.layout.shape[d] - src.layout.shape[d])
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
    const json_t *list = case_given(run, "xs|tensors|x");
    const size_t count = json_array_size(list);
    ww_tensor xs[PIECES_MAX];
    ww_tensor out = {0};
    ww_status status = WW_OK;
    if (count > PIECES_MAX)
        return ww_fail(WW_CORRUPT_FILE, "more than %d tensors to join", PIECES_MAX);
    for (size_t i = 0; i < count && status == WW_OK; i++)
        status = case_tensor(run, json_array_get(list, i), &xs[i]);
    if (status == WW_OK)
        status = ww_tensor_cat(xs, count, case_dim(run, 0), &out);
    return case_give(run, status, &out);
}

const case_entry cases_move[] = {
    {"contiguous", run_contiguous},
    {"clone", run_contiguous},
    {"to_cpu", run_contiguous},
    {"copy_strided", run_copy_strided},
    {"copy2d", run_copy2d},
    {"const_set", run_const_set},
    {"slice_assign", run_slice_assign},
    {"slice_set", run_slice_assign},
    {"slice_scatter", run_slice_assign},
    {"cat", run_cat},
    {NULL, NULL},
};
