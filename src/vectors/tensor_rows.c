/* Rows and queries in tensors: their shape, where they are, and how to copy them to the host (tensor_rows.h). */
#include "vectors/tensor_rows.h"

#include <string.h>

#include "base/memory.h"

ww_dtype tensor_type_of(ww_vector_type type)
{
    static const ww_dtype types[] = {[WW_VECTOR_F32] = WW_F32,
                                     [WW_VECTOR_F16] = WW_F16,
                                     [WW_VECTOR_BF16] = WW_BF16,
                                     [WW_VECTOR_I8] = WW_I8,
                                     [WW_VECTOR_U8] = WW_U8};
    return types[type];
}

void tensor_rows_release(tensor_rows *rows)
{
    ww_tensor_release(&rows->dense);
    memory_free(rows->host);
    rows->host = NULL;
}

ww_status tensor_rows_check(const tensor_asked *asked, const ww_collection *c, int64_t *count, int32_t *dim)
{
    const ww_tensor *x = asked->tensor;
    ww_status status = check_tensor(asked->function, asked->role, x);
    if (status == WW_OK)
        status = device_check(x->storage->device);
    if (status != WW_OK)
        return status;
    const ww_layout *layout = &x->layout;
    if (layout->rank < 1 || layout->rank > 2)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: %s has shape %s; it must be [count, %d], or [%d] for one", asked->function,
                       asked->role, SHAPE_TEXT(layout), c->dim, c->dim);
    const int64_t rows = layout->rank == 2 ? layout->shape[0] : 1, columns = layout->shape[layout->rank - 1];
    if (columns != c->dim || (*dim != 0 && *dim != c->dim))
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, %s has shape %s and dim is %d", c->name,
                       c->dim, asked->role, SHAPE_TEXT(layout), *dim);
    if (*count != 0 && *count != rows)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: %s has shape %s, but the count is %lld; it must be %lld, or 0",
                       asked->function, asked->role, SHAPE_TEXT(layout), (long long)*count, (long long)rows);
    *count = rows;
    *dim = c->dim;
    return WW_OK;
}

ww_status tensor_rows_make(const ww_tensor *tensor, ww_dtype dtype, tensor_rows *made)
{
    ww_device *device = tensor->storage->device;
    ww_status status = WW_OK;
    if (tensor->storage->dtype != dtype)
        status = ww_tensor_cast(tensor, dtype, &made->dense);
    else if (!layout_is_dense(&tensor->layout))
        status = ww_tensor_contiguous(tensor, &made->dense);
    else
        status = ww_tensor_view(tensor, &tensor->layout, &made->dense);
    /* Rows are written and searched on other streams than tensors. */
    return status == WW_OK ? tensors_of(device)->synchronize(device) : status;
}

const void *tensor_rows_data(const tensor_rows *rows)
{
    return dense_bytes(&rows->dense).data;
}

bool tensor_rows_on_host(const tensor_rows *rows)
{
    return rows->dense.storage->device->backend->on_host;
}

/* A device that was opened twice is still one device: both handles can use its memory. */
bool tensor_rows_on(const tensor_rows *rows, const ww_device *device)
{
    const ww_device *theirs = rows->dense.storage->device;
    return device->backend->rows_write_here && (theirs == device || strcmp(theirs->info.id, device->info.id) == 0);
}

ww_status tensor_rows_read(const tensor_rows *rows, int64_t first, int64_t count, void *to)
{
    ww_device *device = rows->dense.storage->device;
    const size_t bytes = ww_dtype_bytes(rows->dense.storage->dtype);
    const buffer all = dense_bytes(&rows->dense);
    const buffer some = {.data = (char *)all.data + (size_t)first * bytes, .bytes = (size_t)count * bytes};
    return count > 0 ? tensors_of(device)->read(device, to, &some) : WW_OK;
}

ww_status tensor_rows_to_host(tensor_rows *rows)
{
    const size_t bytes = dense_bytes(&rows->dense).bytes;
    if (rows->host)
        return WW_OK;
    rows->host = memory_alloc(bytes);
    if (!rows->host)
        return memory_failed("a tensor's rows on the host", bytes);
    return tensor_rows_read(rows, 0, count_of(&rows->dense.layout), rows->host);
}

void rows_read_in_place(ww_rows *rows, const ww_collection *c, const void *elements)
{
    const bool f32 = ww_tensor_dtype(rows->tensor) == WW_F32;
    rows->vectors = f32 ? elements : NULL;
    rows->elements = f32 ? NULL : elements;
    rows->type = c->type;
    rows->row_stride = c->dim;
    rows->tensor = NULL;
}
