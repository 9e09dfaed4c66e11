/* Encodes tensors as quantized matrices and decodes matrices to tensors, on the device. Everything is checked here; the
 * functions of the device do the work, in the order of the operations on tensors.
 */
#include <string.h>

#include <warpwave/tensor_foreign.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "quant/matrix.h"
#include "tensor/tensor.h"

enum { CAST_ELEMENTS = 1 << 24 }; /* 16-bit or not dense elements that are converted to dense floats at a time */

static bool is_number(ww_dtype dtype)
{
    return dtype == WW_F32 || dtype == WW_F16 || dtype == WW_BF16;
}

int32_t quant_plain_type(ww_dtype type)
{
    return (int32_t)(type == WW_F16 ? WW_QUANT_F16 : type == WW_BF16 ? WW_QUANT_BF16 : WW_QUANT_F32);
}

static void destroy_matrix(void *matrix)
{
    ww_quant_destroy(matrix);
}

ww_status quant_into_tensor(ww_quant *matrix, ww_tensor *out)
{
    ww_foreign rows = ww_foreign_default();
    if (matrix->type != WW_QUANT_F32 || !matrix->memory->device->backend->on_host)
        return WW_OK;
    const int64_t shape[2] = {matrix->rows, matrix->cols};
    rows.data = (char *)matrix->memory->blocks.data + matrix->offset;
    rows.dtype = WW_F32;
    rows.layout = ww_layout_contiguous(2, shape);
    rows.read_only = 1;
    rows.release = destroy_matrix;
    rows.owner = matrix;
    return ww_tensor_wrap(matrix->memory->device, &rows, out);
}

/* ---- coding -------------------------------------------------------------------------------------------------------------- */

static ww_status check_source(const char *call, const ww_tensor *x, ww_quant **matrix)
{
    if (!matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: matrix is NULL", call);
    const ww_status status = check_tensor(call, "x", x);
    if (status != WW_OK)
        return status;
    if (!is_number(x->storage->dtype))
        return refuse_type(call, x->storage->dtype);
    if (x->layout.rank < 1)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: x has shape %s; it must have at least one dimension, its columns", call,
                       SHAPE_TEXT(&x->layout));
    return WW_OK;
}

/* Encodes dense floats as rows of the matrix, from number `first` on. */
static ww_status code_floats(const ww_tensor *x, ww_quant *matrix, int64_t first, int64_t rows, int64_t *refused)
{
    ww_device *device = matrix->memory->device;
    const quant_encode_job job = {.type = (int32_t)matrix->type,
                                  .from = dense_bytes(x).data,
                                  .from_stride = matrix->cols,
                                  .rows = rows,
                                  .cols = matrix->cols,
                                  .to = &matrix->memory->blocks,
                                  .to_offset = (size_t)(first * matrix->row_bytes),
                                  .refused = refused};
    return device->backend->quants->encode_tensor(device, &job);
}

/* Makes whole rows of a tensor, from number `first_row` on, dense and f32. */
static ww_status cast_rows(const ww_tensor *x, int64_t first_row, int64_t rows, ww_tensor *out)
{
    ww_tensor flat = {0}, part = {0}, whole = {0};
    const int64_t cols = x->layout.shape[x->layout.rank - 1], shape[2] = {count_of(&x->layout) / cols, cols};
    ww_status status = ww_tensor_reshape(x, 2, shape, &flat);
    if (status == WW_UNSUPPORTED) { /* rows that two strides cannot describe */
        status = ww_tensor_contiguous(x, &whole);
        if (status == WW_OK)
            status = ww_tensor_reshape(&whole, 2, shape, &flat);
    }
    if (status == WW_OK)
        status = ww_tensor_narrow(&flat, 0, first_row, rows, &part);
    if (status == WW_OK)
        status = ww_tensor_cast(&part, WW_F32, out);
    ww_tensor_release(&part);
    ww_tensor_release(&flat);
    ww_tensor_release(&whole);
    return status;
}

static ww_status code_tensor(const ww_tensor *x, ww_quant *matrix, int64_t *refused)
{
    if (matrix->rows == 0)
        return WW_OK;
    if (x->storage->dtype == WW_F32 && layout_is_dense(&x->layout))
        return code_floats(x, matrix, 0, matrix->rows, refused);
    const int64_t together = max_i64(CAST_ELEMENTS / matrix->cols, 1),
                  row_blocks = matrix->cols / block_length((int32_t)matrix->type);
    ww_status status = WW_OK;
    for (int64_t done = 0; status == WW_OK && *refused < 0 && done < matrix->rows; done += together) {
        const int64_t now = min_i64(together, matrix->rows - done);
        ww_tensor floats = {0};
        status = cast_rows(x, done, now, &floats);
        if (status == WW_OK)
            status = code_floats(&floats, matrix, done, now, refused);
        if (status == WW_OK && *refused >= 0)
            *refused += done * row_blocks;
        ww_tensor_release(&floats);
    }
    return status;
}

ww_status ww_quant_from_tensor(ww_quant_type type, const ww_tensor *x, ww_quant **matrix)
{
    FLOAT_GUARD();
    ww_quant *made = NULL;
    int64_t refused = -1;
    ww_status status = check_source("ww_quant_from_tensor", x, matrix);
    if (status != WW_OK)
        return status;
    const int64_t cols = x->layout.shape[x->layout.rank - 1];
    status = quant_make(x->storage->device, type, cols > 0 ? count_of(&x->layout) / cols : 0, cols, &made);
    if (status == WW_OK)
        status = code_tensor(x, made, &refused);
    if (status == WW_OK && refused >= 0)
        status = quant_refuse_block(type, refused, cols);
    if (status == WW_OK)
        *matrix = made;
    else
        ww_quant_destroy(made);
    return status;
}

/* ---- decoding ------------------------------------------------------------------------------------------------------------ */

static ww_status check_target(const char *call, ww_dtype dtype, const ww_tensor *out)
{
    if (!is_number(dtype))
        return ww_fail(WW_UNSUPPORTED, "%s: rows become f32, f16 or bf16, not %s", call, ww_dtype_name(dtype));
    return check_out(call, out);
}

/* `ids` is dense or NULL. */
static ww_status decode_into(const ww_quant *matrix, int64_t first, const ww_tensor *ids, int64_t count, const ww_tensor *to)
{
    ww_device *device = matrix->memory->device;
    const quant_decode_tensor_job job = {.type = (int32_t)matrix->type,
                                         .from = &matrix->memory->blocks,
                                         .from_offset = matrix->offset + (size_t)(first * matrix->row_bytes),
                                         .rows = matrix->rows - first,
                                         .cols = matrix->cols,
                                         .ids = ids ? dense_bytes(ids).data : NULL,
                                         .id_bytes = ids ? (int32_t)ww_dtype_bytes(ids->storage->dtype) : 0,
                                         .count = count,
                                         .to = dense_bytes(to).data,
                                         .to_type = quant_plain_type(to->storage->dtype)};
    return device->backend->quants->decode_tensor(device, &job);
}

ww_status ww_quant_dequantize(const ww_quant *matrix, int64_t first, int64_t count, ww_dtype dtype, ww_tensor *out)
{
    FLOAT_GUARD();
    const char *call = "ww_quant_dequantize";
    ww_status status = quant_check_rows(matrix, call, first, count, out);
    if (status == WW_OK)
        status = check_target(call, dtype, out);
    if (status != WW_OK)
        return status;
    const int64_t shape[2] = {count, matrix->cols};
    result r = {.operation = call, .out = out};
    status = result_begin(&r, matrix->memory->device, dtype, 2, shape);
    if (status == WW_OK && count > 0)
        status = decode_into(matrix, first, NULL, count, &r.at);
    return result_end(&r, status);
}

/* Checks that these are ids of rows on the matrix's device, and that another dimension fits. */
static ww_status check_row_ids(const char *call, const ww_quant *matrix, const ww_tensor *ids)
{
    if (!matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: matrix is NULL", call);
    const ww_status status = quant_check_ids(call, matrix, ids);
    if (status != WW_OK)
        return status;
    if (ids->layout.rank == WW_RANK_MAX)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the ids have shape %s; there is room for %d dimensions, one of them columns",
                       call, SHAPE_TEXT(&ids->layout), WW_RANK_MAX);
    if (count_of(&ids->layout) > INT64_MAX / 8 / matrix->cols)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %lld rows of %lld columns are too many", call,
                       (long long)count_of(&ids->layout), (long long)matrix->cols);
    return WW_OK;
}

ww_status quant_check_ids(const char *call, const ww_quant *matrix, const ww_tensor *ids)
{
    const ww_status status = check_tensor(call, "ids", ids);
    if (status != WW_OK)
        return status;
    if (ids->storage->device != matrix->memory->device)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the matrix is on %s, the ids on %s; copy them to the matrix's device", call,
                       matrix->memory->device->info.id, ids->storage->device->info.id);
    return check_ids_type(call, ids);
}

ww_status ww_quant_rows(const ww_quant *matrix, const ww_tensor *ids, ww_dtype dtype, ww_tensor *out)
{
    FLOAT_GUARD();
    const char *call = "ww_quant_rows";
    ww_tensor dense = {0};
    int64_t shape[WW_RANK_MAX];
    ww_status status = check_row_ids(call, matrix, ids);
    if (status == WW_OK)
        status = check_target(call, dtype, out);
    if (status == WW_OK)
        status = check_ids(call, ids, matrix->rows);
    if (status == WW_OK && !layout_is_dense(&ids->layout))
        status = ww_tensor_contiguous(ids, &dense);
    if (status != WW_OK)
        return status;
    memcpy(shape, ids->layout.shape, sizeof shape);
    shape[ids->layout.rank] = matrix->cols;
    result r = {.operation = call, .out = out, .inputs = {ids}};
    status = result_begin(&r, matrix->memory->device, dtype, ids->layout.rank + 1, shape);
    if (status == WW_OK && count_of(&ids->layout) > 0)
        status = decode_into(matrix, 0, dense.storage ? &dense : ids, count_of(&ids->layout), &r.at);
    ww_tensor_release(&dense);
    return result_end(&r, status);
}
