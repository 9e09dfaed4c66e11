/* Memory of other libraries as tensors, the addresses of our tensors, and streams that wait for each other. */
#include <warpwave/tensor_foreign.h>

#include "base/float_guard.h"
#include "base/structs.h"
#include "tensor/foreign.h"

STRUCT_INIT(ww_foreign, {.stream = WW_STREAM_NONE})

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

ww_status ww_device_stream(ww_device *device, void **stream)
{
    FLOAT_GUARD();
    if (!device || !stream)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_stream: %s is NULL", device ? "stream" : "device");
    return tensors_of(device)->stream(device, stream);
}

ww_status ww_device_wait_stream(ww_device *device, void *stream)
{
    FLOAT_GUARD();
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_wait_stream: device is NULL");
    return tensors_of(device)->wait_stream(device, stream);
}

ww_status ww_device_signal_stream(ww_device *device, void *stream)
{
    FLOAT_GUARD();
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_device_signal_stream: device is NULL");
    return tensors_of(device)->signal_stream(device, stream);
}

/* ---- wrapping ------------------------------------------------------------------------------------------------------------ */

/* Returns the minimum number of elements of a storage for a layout; -1 if it cannot be counted. */
static int64_t elements_under(const ww_layout *layout)
{
    int64_t last = layout->offset, along;
    if (ww_layout_elements(layout) <= 0)
        return ww_layout_elements(layout);
    for (int32_t d = 0; d < layout->rank; d++)
        if (layout->strides[d] < 0 || __builtin_mul_overflow(layout->shape[d] - 1, layout->strides[d], &along) ||
            __builtin_add_overflow(last, along, &last))
            return -1;
    return last < 0 || last == INT64_MAX ? -1 : last + 1;
}

ww_status wrap_memory(const char *operation, ww_device *device, const ww_foreign *foreign, ww_tensor *out)
{
    ww_storage as = {.device = device,
                     .dtype = foreign->dtype,
                     .data = {.data = foreign->data},
                     .read_only = foreign->read_only != 0,
                     .release = foreign->release,
                     .owner = foreign->owner};
    const size_t bytes = ww_dtype_bytes(foreign->dtype);
    if (out->storage)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: out already has a storage; release it first", operation);
    as.elements = elements_under(&foreign->layout);
    const ww_tensor seen = {.storage = &as, .layout = foreign->layout};
    if (as.elements < 0)
        as.elements = 0; /* the check below reports what is wrong with the layout */
    ww_status status = check_tensor(operation, "the memory", &seen);
    if (status != WW_OK)
        return status;
    if (!foreign->data && as.elements > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %lld elements at address NULL", operation, (long long)as.elements);
    if ((uintptr_t)foreign->data % bytes != 0 || as.elements > INT64_MAX / (int64_t)bytes)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: %lld elements of %s at address %p, which is not aligned to %zu bytes, or too many", operation,
                       (long long)as.elements, ww_dtype_name(foreign->dtype), foreign->data, bytes);
    as.data.bytes = (size_t)as.elements * bytes;
    ww_storage *made = NULL;
    status = tensors_of(device)->wait_stream(device, foreign->stream);
    if (status == WW_OK)
        status = storage_wrap(device, &as, &made);
    if (status == WW_OK)
        *out = (ww_tensor){.storage = made, .layout = foreign->layout};
    return status;
}

ww_status ww_tensor_wrap(ww_device *device, const ww_foreign *foreign, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_foreign asked;
    ww_status status = check_out("wrap", out);
    if (status == WW_OK)
        status = struct_read(&asked, sizeof asked, foreign, "ww_tensor_wrap", "ww_foreign");
    if (status == WW_OK)
        status = check_new("wrap", device, asked.dtype, 0);
    return status == WW_OK ? wrap_memory("wrap", device, &asked, out) : status;
}

ww_status ww_tensor_data(const ww_tensor *x, void **data)
{
    FLOAT_GUARD();
    const ww_status status = check_tensor("data", "x", x);
    if (status != WW_OK)
        return status;
    if (!data)
        return ww_fail(WW_INVALID_ARGUMENT, "data: data is NULL");
    if (!x->storage->foreign)
        atomic_store(&x->storage->shared, true);
    *data = count_of(&x->layout) > 0 ? operand_of(x).data : NULL;
    return WW_OK;
}
