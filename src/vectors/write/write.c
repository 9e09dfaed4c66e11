/* The entry point of every write of rows. They are read and checked here, once, and passed on: to the device (batch.c) or to a
 * store's file. */
#include <string.h>

#include "base/float_guard.h"
#include "base/structs.h"
#include "base/text.h"
#include "vectors/multi/multi.h"
#include "vectors/sparse/sparse.h"
#include "vectors/tensor_rows.h"
#include "vectors/write/payloads.h"

STRUCT_INIT(ww_rows, {0})

enum { TEXT_BYTES_MAX = 1 << 28 };

static ww_status check_texts(const ww_collection *c, const char *function, const ww_rows *rows)
{
    if (!c->operations->texts)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: collection '%s' is in memory, and only a store keeps texts; keep the collection in a store, or put "
                       "the texts into the payloads",
                       function, c->name);
    for (int64_t i = 0; i < rows->count; i++) {
        const size_t length = rows->texts[i] ? strlen(rows->texts[i]) : 0;
        if (length > TEXT_BYTES_MAX)
            return ww_fail(WW_OUT_OF_RANGE, "collection '%s': text %lld of the batch has %zu bytes; the maximum is %d", c->name,
                           (long long)i, length, TEXT_BYTES_MAX);
        if (!utf8_check(rows->texts[i] ? rows->texts[i] : "", length))
            return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': text %lld of the batch is not UTF-8", c->name, (long long)i);
    }
    return WW_OK;
}

static ww_status check_sparse(const ww_collection *c, const char *function, const ww_rows *rows)
{
    ww_status status = WW_OK;
    if (!c->operations->texts)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "%s: collection '%s' is in memory, and only a store keeps sparse vectors; keep the collection in a store", function,
            c->name);
    for (int64_t i = 0; status == WW_OK && i < rows->count; i++) {
        sparse_sorted sorted;
        status = sparse_sort("row", i, &rows->sparse[i], &sorted);
        if (status == WW_OK)
            sparse_sorted_free(&sorted);
    }
    return status;
}

static ww_status check_multi(const ww_collection *c, const char *function, const ww_rows *rows)
{
    int32_t dim = 0;
    if (!c->operations->texts)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: collection '%s' is in memory, and only a store keeps multivectors; keep the collection in a store",
                       function, c->name);
    ww_status status = multi_check_metric(c->name, c->metric);
    for (int64_t i = 0; status == WW_OK && i < rows->count; i++) {
        const ww_multivector *v = &rows->multi[i];
        status = multi_check("row", i, v);
        if (status == WW_OK && v->count > 0 && dim > 0 && v->dim != dim)
            status = ww_fail(WW_DIMENSION_MISMATCH, "%s: the multivector of row %lld has dimension %d, those before have %d",
                             function, (long long)i, v->dim, dim);
        dim = v->count > 0 ? v->dim : dim;
    }
    return status;
}

static ww_status check_discards(const ww_collection *c, const char *function, const ww_rows *rows)
{
    if (!c->operations->texts)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: collection '%s' is in memory, and only a store removes and writes rows in one transaction; "
                       "discard the rows first",
                       function, c->name);
    if (rows->discard_count < 0 || !rows->discard_ids)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: discard_count is %lld, and discard_ids is %s", function,
                       (long long)rows->discard_count, rows->discard_ids ? "given" : "NULL");
    for (int64_t i = 0; i < rows->discard_count; i++)
        if (!rows->discard_ids[i])
            return ww_fail(WW_INVALID_ARGUMENT, "%s: discard_ids[%lld] is NULL", function, (long long)i);
    return WW_OK;
}

static ww_status check_count_and_texts(const ww_collection *c, const char *function, const ww_rows *rows)
{
    if (rows->count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: %lld rows; the maximum is %lld", function, (long long)rows->count,
                       (long long)WW_ROWS_MAX);
    for (int64_t i = 0; rows->payloads && i < rows->count; i++) {
        const ww_status status = rows->payloads[i] ? payload_check(c->name, i, rows->payloads[i]) : WW_OK;
        if (status != WW_OK)
            return status;
    }
    ww_status status = rows->texts ? check_texts(c, function, rows) : WW_OK;
    if (status == WW_OK && rows->sparse)
        status = check_sparse(c, function, rows);
    if (status == WW_OK && rows->multi)
        status = check_multi(c, function, rows);
    return status == WW_OK && rows->discard_count != 0 ? check_discards(c, function, rows) : status;
}

static ww_status check_tensor_rows(const ww_collection *c, const char *function, ww_rows *rows)
{
    const tensor_asked asked = {function, "rows->tensor", rows->tensor};
    if (rows->vectors || rows->elements)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: rows->tensor and rows->%s are both given; give one of them", function,
                       rows->vectors ? "vectors" : "elements");
    const ww_status status = tensor_rows_check(&asked, c, &rows->count, &rows->dim);
    if (status != WW_OK)
        return status;
    const ww_dtype dtype = ww_tensor_dtype(rows->tensor);
    if (dtype != WW_F32 && dtype != tensor_type_of(c->type))
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s' has rows of %s, rows->tensor is of %s; give f32%s%s", c->name,
                       ww_vector_type_name(c->type), ww_dtype_name(dtype), c->type == WW_VECTOR_F32 ? "" : " or ",
                       c->type == WW_VECTOR_F32 ? "" : ww_vector_type_name(c->type));
    return check_count_and_texts(c, function, rows);
}

/* Reads the caller's rows into `rows` and checks them. */
static ww_status rows_read(const ww_collection *c, const char *function, const ww_rows *callers, ww_rows *rows)
{
    ww_status status = collection_check(c, function);
    if (status == WW_OK && !callers)
        status = fail_null(function, "rows");
    if (status == WW_OK)
        status = struct_read(rows, sizeof *rows, callers, function, "ww_rows");
    if (status != WW_OK)
        return status;
    if (rows->tensor)
        return check_tensor_rows(c, function, rows);
    if (rows->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must not be negative", function, (long long)rows->count);
    if (rows->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, the rows have %d", c->name, c->dim, rows->dim);
    if (rows->elements && rows->vectors)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: rows->vectors and rows->elements are both given; give one of them", function);
    if (rows->count > 0 && !rows->vectors && !rows->elements)
        return fail_null(function, rows->type == WW_VECTOR_F32 ? "rows->vectors" : "rows->elements");
    if (rows->elements && rows->type != c->type)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s' has rows of %s, rows->elements are %s; give f32 as rows->vectors",
                       c->name, ww_vector_type_name(c->type),
                       ww_vector_type_name(rows->type) ? ww_vector_type_name(rows->type) : "of an unknown type");
    if (rows->row_stride == 0)
        rows->row_stride = rows->dim;
    if (rows->row_stride < rows->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: row_stride is %lld; it must be at least dim, %d", function,
                       (long long)rows->row_stride, rows->dim);
    return check_count_and_texts(c, function, rows);
}

/* Uses the rows of a tensor as host rows if the host can read them, or if the collection accepts no others; otherwise makes the
 * tensor dense on its device. */
static ww_status take_tensor(const ww_collection *c, ww_rows *rows, tensor_rows *held)
{
    ww_status status = tensor_rows_make(rows->tensor, ww_tensor_dtype(rows->tensor), held);
    if (status != WW_OK)
        return status;
    rows->tensor = &held->dense;
    if (tensor_rows_on_host(held)) {
        rows_read_in_place(rows, c, tensor_rows_data(held));
    } else if (c->operations->host_rows) {
        status = tensor_rows_to_host(held);
        rows_read_in_place(rows, c, held->host);
    }
    return status;
}

static ww_status write(ww_collection *c, const char *function, const ww_rows *callers, write_kind kind)
{
    ww_rows rows;
    tensor_rows held = {0};
    ww_status status = rows_read(c, function, callers, &rows);
    if (status != WW_OK || (rows.count == 0 && rows.discard_count == 0))
        return status;
    if (rows.tensor)
        status = take_tensor(c, &rows, &held);
    if (status == WW_OK)
        status = c->operations->write(c, &rows, kind);
    tensor_rows_release(&held);
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status ww_collection_add(ww_collection *collection, const ww_rows *rows)
{
    FLOAT_GUARD();
    return write(collection, "ww_collection_add", rows, WRITE_ADD);
}

ww_status ww_collection_upsert(ww_collection *collection, const ww_rows *rows)
{
    FLOAT_GUARD();
    return write(collection, "ww_collection_upsert", rows, WRITE_UPSERT);
}

/* Updates only payloads, without writing rows. */
static ww_status update_payloads(ww_collection *c, const ww_rows *rows, const char *function)
{
    if (rows->texts)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: texts are given without vectors; give the vectors of the new texts", function);
    if (rows->sparse || rows->multi)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s are given without vectors; give both", function,
                       rows->sparse ? "sparse vectors" : "multivectors");
    if (rows->discard_count != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: discard_ids are given without vectors; discard the rows by themselves",
                       function);
    return rows->payloads ? ww_collection_set_payloads(c, rows->ids, rows->payloads, rows->count)
                          : ww_fail(WW_INVALID_ARGUMENT, "%s: neither vectors nor payloads are given", function);
}

ww_status ww_collection_update(ww_collection *collection, const ww_rows *rows)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_update";
    ww_rows given;
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && !rows)
        status = fail_null(function, "rows");
    if (status == WW_OK)
        status = struct_read(&given, sizeof given, rows, function, "ww_rows");
    if (status != WW_OK)
        return status;
    if (!given.ids && (given.count != 0 || given.tensor))
        return fail_null(function, "rows->ids");
    if (!given.vectors && !given.elements && !given.tensor && given.count != 0)
        return update_payloads(collection, &given, function);
    return write(collection, function, rows, WRITE_UPDATE);
}
