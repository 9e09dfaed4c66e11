/* Quantized matrices: creating, sharing, reading. Everything is checked here; the functions of the device do the work. */
#include "quant/matrix.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"

ww_status quant_check_rows(const ww_quant *matrix, const char *call, int64_t first, int64_t count, const void *out)
{
    if (!matrix || (!out && count != 0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, matrix ? "the output" : "matrix");
    const ww_status status = device_check(matrix->memory->device);
    if (status != WW_OK)
        return status;
    if (first < 0 || count < 0 || first > matrix->rows || count > matrix->rows - first)
        return ww_fail(WW_OUT_OF_RANGE, "%s: rows %lld to %lld requested; the matrix has %lld", call, (long long)first,
                       (long long)first + (count - 1), (long long)matrix->rows);
    return WW_OK;
}

/* ---- making and sharing -------------------------------------------------------------------------------------------------- */

static ww_status memory_make(ww_device *device, size_t bytes, size_t padding, quant_memory **out)
{
    /* A fill has whole words of four bytes and starts at one: it may cover up to three bytes of the last row, which is written
       later. */
    const size_t begin = bytes / 4 * 4, whole = (bytes + padding + 3) / 4 * 4;
    device_stream *stream = NULL;
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device_check_single(device, "quantized matrices");
    if (status != WW_OK)
        return status;
    quant_memory *memory = memory_alloc_zeroed(1, sizeof *memory);
    if (!memory)
        return memory_failed("quantized matrix", sizeof *memory);
    status = device->backend->buffer_create(device, whole, &memory->blocks);
    if (status == WW_OK)
        status = device->backend->stream_create(device, &stream);
    if (status == WW_OK)
        status = device->backend->fill(device, stream, (buffer_range){&memory->blocks, begin, whole - begin}, 0);
    if (status == WW_OK)
        status = device->backend->stream_synchronize(device, stream);
    if (stream)
        device->backend->stream_destroy(device, stream);
    if (status != WW_OK) {
        device->backend->buffer_destroy(device, &memory->blocks);
        memory_free(memory);
        return status;
    }
    memory->device = device_retain(device);
    atomic_init(&memory->users, 1);
    *out = memory;
    return WW_OK;
}

static void memory_release(quant_memory *memory)
{
    if (!device_is_ours(memory->device) || atomic_fetch_sub(&memory->users, 1) != 1)
        return;
    if (memory->map)
        file_map_release(memory->map);
    else
        memory->device->backend->buffer_destroy(memory->device, &memory->blocks);
    ww_device_close(memory->device);
    memory_free(memory);
}

ww_status quant_make(ww_device *device, ww_quant_type type, int64_t rows, int64_t cols, ww_quant **out)
{
    int64_t row_bytes, bytes;
    ww_status status = ww_quant_row_bytes(type, cols, &row_bytes);
    if (status != WW_OK)
        return status;
    const int64_t padding = (QUANT_PADDING / ww_quant_block_elements(type)) * ww_quant_block_bytes(type);
    if (rows < 0 || __builtin_mul_overflow(rows, row_bytes, &bytes) || bytes > INT64_MAX / 2)
        return ww_fail(WW_INVALID_ARGUMENT, "a matrix of %lld rows of %lld bytes: rows is negative, or the matrix too large",
                       (long long)rows, (long long)row_bytes);
    ww_quant *matrix = memory_alloc_zeroed(1, sizeof *matrix);
    if (!matrix)
        return memory_failed("quantized matrix", sizeof *matrix);
    status = memory_make(device, (size_t)bytes, (size_t)padding, &matrix->memory);
    if (status != WW_OK) {
        memory_free(matrix);
        return status;
    }
    matrix->type = type;
    matrix->rows = rows;
    matrix->cols = cols;
    matrix->row_bytes = row_bytes;
    *out = matrix;
    return WW_OK;
}

ww_status quant_make_mapped(ww_device *device, const ww_quant *shape, file_map *map, int64_t offset, ww_quant **out)
{
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = device_check_single(device, "quantized matrices");
    if (status != WW_OK)
        return status;
    ww_quant *matrix = memory_alloc_zeroed(1, sizeof *matrix);
    quant_memory *memory = memory_alloc_zeroed(1, sizeof *memory);
    if (!matrix || !memory) {
        memory_free(matrix);
        memory_free(memory);
        return memory_failed("quantized matrix", sizeof *matrix + sizeof *memory);
    }
    *memory = (quant_memory){
        .device = device_retain(device),
        .blocks = {.data = (void *)(uintptr_t)(map->bytes + offset), .bytes = (size_t)(shape->rows * shape->row_bytes)},
        .map = file_map_retain(map)};
    atomic_init(&memory->users, 1);
    *matrix = *shape;
    matrix->memory = memory;
    matrix->loaded = true;
    *out = matrix;
    return WW_OK;
}

/* Describes some rows for a backend. */
static quant_rows rows_of(const ww_quant *matrix, int64_t first, int64_t count)
{
    return (quant_rows){.type = (int32_t)matrix->type,
                        .blocks = &matrix->memory->blocks,
                        .offset = matrix->offset + (size_t)(first * matrix->row_bytes),
                        .rows = count,
                        .cols = matrix->cols};
}

ww_status quant_fill(ww_quant *matrix, device_stream *stream, size_t offset, host_bytes from)
{
    ww_device *device = matrix->memory->device;
    const backend *table = device->backend;
    matrix->loaded = true;
    ww_status status =
        table->copy_in(device, stream, (buffer_range){&matrix->memory->blocks, matrix->offset + offset, from.bytes}, from.data);
    if (status != WW_OK || !table->quants->arrange)
        return status;
    const size_t row_bytes = (size_t)matrix->row_bytes, first = offset / row_bytes;
    const quant_rows rows = rows_of(matrix, (int64_t)first, (int64_t)((offset + from.bytes) / row_bytes - first));
    status = table->stream_synchronize(device, stream);
    return status == WW_OK ? table->quants->arrange(device, &rows) : status;
}

static ww_status fill_all(ww_quant *matrix, host_bytes from)
{
    ww_device *device = matrix->memory->device;
    device_stream *stream;
    ww_status status = device->backend->stream_create(device, &stream);
    if (status != WW_OK)
        return status;
    status = quant_fill(matrix, stream, 0, from);
    if (status == WW_OK)
        status = device->backend->stream_synchronize(device, stream);
    device->backend->stream_destroy(device, stream);
    return status;
}

ww_status ww_quant_load(ww_device *device, ww_quant_type type, const void *blocks, size_t size, int64_t rows, int64_t cols,
                        ww_quant **matrix)
{
    FLOAT_GUARD();
    if (!device || !matrix || (!blocks && size > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_load: %s is NULL", device ? matrix ? "blocks" : "matrix" : "device");
    int64_t row_bytes, bytes;
    ww_status status = ww_quant_row_bytes(type, cols, &row_bytes);
    if (status != WW_OK)
        return status;
    if (rows < 0 || __builtin_mul_overflow(rows, row_bytes, &bytes) || (uint64_t)bytes != size)
        return ww_fail(WW_DIMENSION_MISMATCH, "ww_quant_load: %lld rows of %lld bytes each do not add up to %zu bytes",
                       (long long)rows, (long long)row_bytes, size);
    ww_quant *made = NULL;
    status = quant_make(device, type, rows, cols, &made);
    if (status == WW_OK && size > 0)
        status = fill_all(made, (host_bytes){blocks, size});
    if (status == WW_OK)
        *matrix = made;
    else
        ww_quant_destroy(made);
    return status;
}

ww_status quant_refuse_block(ww_quant_type type, int64_t block, int64_t cols)
{
    const int64_t elements = ww_quant_block_elements(type), row_blocks = cols / elements;
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "row %lld, columns %lld to %lld cannot be coded as %s: a value is not finite, or too large for a block's f16 scale",
        (long long)(block / row_blocks), (long long)(block % row_blocks * elements),
        (long long)(block % row_blocks * elements + elements - 1), ww_quant_name(type));
}

ww_status ww_quant_from_f32(ww_device *device, ww_quant_type type, const float *values, int64_t rows, int64_t cols,
                            int64_t row_stride, ww_quant **matrix)
{
    FLOAT_GUARD();
    if (!device || !matrix || (!values && rows != 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_from_f32: %s is NULL", device ? matrix ? "values" : "matrix" : "device");
    if (row_stride != 0 && row_stride < cols)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_from_f32: row_stride %lld is less than cols %lld", (long long)row_stride,
                       (long long)cols);
    ww_quant *made = NULL;
    int64_t refused = -1;
    ww_status status = quant_make(device, type, rows, cols, &made);
    if (status == WW_OK && rows > 0) {
        const quant_encode_job job = {.type = (int32_t)type,
                                      .from = values,
                                      .from_stride = row_stride ? row_stride : cols,
                                      .rows = rows,
                                      .cols = cols,
                                      .to = &made->memory->blocks,
                                      .refused = &refused};
        status = device->backend->quants->encode(device, &job);
    }
    if (status == WW_OK && refused >= 0)
        status = quant_refuse_block(type, refused, cols);
    if (status == WW_OK)
        *matrix = made;
    else
        ww_quant_destroy(made);
    return status;
}

ww_status ww_quant_view(const ww_quant *matrix, int64_t first, int64_t count, ww_quant **view)
{
    FLOAT_GUARD();
    const ww_status status = quant_check_rows(matrix, "ww_quant_view", first, count, view);
    if (status != WW_OK)
        return status;
    if (!view)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_view: view is NULL");
    ww_quant *made = memory_alloc(sizeof *made);
    if (!made)
        return memory_failed("view of a quantized matrix", sizeof *made);
    *made = *matrix;
    made->offset += (size_t)(first * matrix->row_bytes);
    made->rows = count;
    atomic_fetch_add(&made->memory->users, 1);
    *view = made;
    return WW_OK;
}

void ww_quant_destroy(ww_quant *matrix)
{
    if (!matrix)
        return;
    memory_release(matrix->memory);
    memory_free(matrix);
}

/* ---- describing ---------------------------------------------------------------------------------------------------------- */

STRUCT_INIT(ww_quant_info, {0})

ww_status ww_quant_describe(const ww_quant *matrix, ww_quant_info *info)
{
    FLOAT_GUARD();
    if (!matrix || !info)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_describe: %s is NULL", matrix ? "info" : "matrix");
    ww_quant_info ours = {.struct_size = sizeof ours,
                          .type = matrix->type,
                          .rows = matrix->rows,
                          .cols = matrix->cols,
                          .row_bytes = matrix->row_bytes,
                          .bytes = matrix->rows * matrix->row_bytes,
                          .finite = matrix->finite};
    memcpy(ours.device, matrix->memory->device->info.id, sizeof ours.device);
    return struct_write(info, &ours, sizeof ours, "ww_quant_describe", "ww_quant_info");
}

ww_status ww_quant_read_blocks(const ww_quant *matrix, int64_t first, int64_t count, void *blocks)
{
    FLOAT_GUARD();
    ww_status status = quant_check_rows(matrix, "ww_quant_read_blocks", first, count, blocks);
    if (status != WW_OK || count == 0)
        return status;
    ww_device *device = matrix->memory->device;
    const quant_rows rows = rows_of(matrix, first, count);
    if (device->backend->quants->read)
        return device->backend->quants->read(device, &rows, blocks);
    device_stream *stream;
    status = device->backend->stream_create(device, &stream);
    if (status != WW_OK)
        return status;
    status = device->backend->copy_out(device, stream, blocks,
                                       (buffer_range){rows.blocks, rows.offset, (size_t)(count * matrix->row_bytes)});
    device->backend->stream_destroy(device, stream);
    return status;
}

static ww_status decode(const ww_quant *matrix, int64_t first, const int64_t *ids, int64_t count, float *values)
{
    if (count == 0)
        return WW_OK;
    ww_device *device = matrix->memory->device;
    const quant_decode_job job = {.type = (int32_t)matrix->type,
                                  .from = &matrix->memory->blocks,
                                  .from_offset = matrix->offset + (size_t)(first * matrix->row_bytes),
                                  .cols = matrix->cols,
                                  .ids = ids,
                                  .count = count,
                                  .to = values};
    return device->backend->quants->decode(device, &job);
}

ww_status ww_quant_read_f32(const ww_quant *matrix, int64_t first, int64_t count, float *values)
{
    FLOAT_GUARD();
    const ww_status status = quant_check_rows(matrix, "ww_quant_read_f32", first, count, values);
    return status == WW_OK ? decode(matrix, first, NULL, count, values) : status;
}

ww_status ww_quant_get_rows(const ww_quant *matrix, const int64_t *ids, int64_t count, float *values)
{
    FLOAT_GUARD();
    if (!matrix || count < 0 || (count > 0 && (!ids || !values)))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_get_rows: %s",
                       !matrix     ? "matrix is NULL"
                       : count < 0 ? "count is negative"
                       : ids       ? "values is NULL"
                                   : "ids is NULL");
    const ww_status status = device_check(matrix->memory->device);
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= matrix->rows)
            return ww_fail(WW_OUT_OF_RANGE,
                           "ww_quant_get_rows: id %lld at index %lld is out of range; the matrix has %lld rows",
                           (long long)ids[i], (long long)i, (long long)matrix->rows);
    return decode(matrix, 0, ids, count, values);
}
