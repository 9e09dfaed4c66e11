/* The backend interface for GPUs of any vendor: each function enters the device, does its work there, and leaves. */
#include "gpu/backend.h"

#include "gpu/error.h"
#include "gpu/memory.h"
#include "gpu/search/planes/planes.h"
#include "gpu/stream.h"

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

ww_status gpu_memory(ww_device *base, ww_memory_info *memory)
{
    gpu_device *device = gpu_of(base);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_check(device, device->driver->memory_info(&free_bytes, &total_bytes), "asking for the free memory");
    if (status == WW_OK) {
        memory->total_bytes = (int64_t)total_bytes;
        memory->free_bytes = (int64_t)free_bytes;
        gpu_pool_count(device, memory);
    }
    gpu_leave(device, previous);
    return status;
}

ww_status gpu_trim(ww_device *base)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_check(device, device->release_unused(device), "giving pooled memory back");
    gpu_leave(device, previous);
    return status;
}

ww_status gpu_buffer_create(ww_device *base, size_t bytes, buffer *out)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_memory_alloc(device, bytes, out);
    gpu_leave(device, previous);
    return status;
}

void gpu_buffer_destroy(ww_device *base, buffer *memory)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    if (memory->data != NULL) {
        gpu_enter_to_free(device, &previous);
        gpu_drain(device);
        gpu_planes_forget(device, memory->data);
        gpu_memory_free(device, memory);
        gpu_leave(device, previous);
    }
    memory->bytes = 0;
}

/* Not pooled: pinned memory of this size lives as long as the rows in it. */
ww_status gpu_pinned_create(ww_device *base, size_t bytes, buffer *out)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    void *host = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_check(device, device->driver->pinned_alloc(bytes, &host), "taking %zu bytes of pinned host memory", bytes);
    gpu_leave(device, previous);
    if (status == WW_OK)
        *out = (buffer){.data = host, .bytes = bytes};
    return status;
}

void gpu_pinned_destroy(ww_device *base, buffer *memory)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    if (memory->data != NULL) {
        gpu_enter_to_free(device, &previous);
        gpu_drain(device);
        (void)device->driver->pinned_free(memory->data);
        gpu_leave(device, previous);
    }
    *memory = (buffer){0};
}

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

ww_status gpu_backend_stream_create(ww_device *base, device_stream **out)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *made = NULL;
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_stream_create(device, &made);
    gpu_leave(device, previous);
    if (status == WW_OK)
        *out = (device_stream *)made;
    return status;
}

void gpu_backend_stream_destroy(ww_device *base, device_stream *stream)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    if (stream == NULL)
        return;
    gpu_enter_to_free(device, &previous);
    gpu_stream_destroy((gpu_stream *)stream);
    gpu_leave(device, previous);
}

ww_status gpu_backend_stream_synchronize(ww_device *base, device_stream *stream)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_synchronize((gpu_stream *)stream);
    gpu_leave(device, previous);
    return status;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

static ww_status check_range(buffer_range range)
{
    const size_t size = range.buffer->bytes;
    if (range.offset > size || range.bytes > size - range.offset)
        return ww_fail(WW_OUT_OF_RANGE, "%zu bytes at offset %zu are outside a buffer of %zu bytes", range.bytes, range.offset,
                       size);
    return WW_OK;
}

static ww_status enter_for_range(gpu_device *device, buffer_range range, driver_context *previous)
{
    const ww_status status = check_range(range);
    return status == WW_OK ? gpu_enter(device, previous) : status;
}

static void *range_data(buffer_range range)
{
    return (char *)range.buffer->data + range.offset;
}

pool *gpu_threads(ww_device *device)
{
    return gpu_of(device)->threads;
}

ww_status gpu_backend_fill(ww_device *base, device_stream *stream, buffer_range to, uint32_t pattern)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    if (to.offset % sizeof pattern != 0 || to.bytes % sizeof pattern != 0)
        return ww_fail(WW_INVALID_ARGUMENT, "fill: %zu bytes at offset %zu are not whole words of 4", to.bytes, to.offset);
    ww_status status = enter_for_range(device, to, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_fill((gpu_stream *)stream, range_data(to), pattern, to.bytes / sizeof pattern);
    gpu_leave(device, previous);
    return status;
}

ww_status gpu_backend_copy_in(ww_device *base, device_stream *stream, buffer_range to, const void *from)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    ww_status status = enter_for_range(device, to, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_copy_in((gpu_stream *)stream, range_data(to), from, to.bytes);
    gpu_leave(device, previous);
    return status;
}

ww_status gpu_backend_copy_out(ww_device *base, device_stream *stream, void *to, buffer_range from)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    ww_status status = enter_for_range(device, from, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_copy_out((gpu_stream *)stream, to, range_data(from), from.bytes);
    gpu_leave(device, previous);
    return status;
}

ww_status gpu_backend_copy(ww_device *base, device_stream *stream, buffer_range to, const buffer *from, size_t from_offset)
{
    gpu_device *device = gpu_of(base);
    driver_context previous = NULL;
    const buffer_range source = {from, from_offset, to.bytes};
    ww_status status = check_range(to);
    if (status == WW_OK)
        status = enter_for_range(device, source, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_copy((gpu_stream *)stream, range_data(to), range_data(source), to.bytes);
    gpu_leave(device, previous);
    return status;
}
