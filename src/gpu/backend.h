/* The backend interface for GPUs of any vendor: device/backend.h over a driver table. */
#ifndef WW_GPU_BACKEND_H
#define WW_GPU_BACKEND_H

#include "gpu/device.h"

/* The backends as the registry lists them. The emulator's is in builds with tests only. */
extern const backend backend_cuda;
extern const backend backend_emulator;

/* How many devices a driver has; 0 with the reason in ww_error_message() if it is not there or says nonsense. */
ww_status gpu_count(const gpu_driver *driver, int32_t *count);

/* All that can be said of device `index`. The free memory costs a context, which may take a while to make. */
ww_status gpu_describe(const gpu_driver *driver, int32_t index, ww_device_info *info);

/* The same without the free memory, and at once. Refuses an index that is not there. */
ww_status gpu_describe_index(const gpu_driver *driver, int32_t index, ww_device_info *info);

/* What every GPU backend has in its table beside count, describe and open; device/backend.h says what they do. */
ww_status gpu_memory(ww_device *device, ww_memory_info *memory);
ww_status gpu_trim(ww_device *device);
ww_status gpu_buffer_create(ww_device *device, size_t bytes, buffer *out);
void gpu_buffer_destroy(ww_device *device, buffer *buffer);
ww_status gpu_backend_stream_create(ww_device *device, stream **out);
void gpu_backend_stream_destroy(ww_device *device, stream *stream);
ww_status gpu_backend_stream_synchronize(ww_device *device, stream *stream);
ww_status gpu_backend_fill(ww_device *device, stream *stream, const buffer *to, size_t offset, size_t bytes, uint32_t pattern);
ww_status gpu_backend_copy_in(ww_device *device, stream *stream, const buffer *to, size_t offset, const void *from,
                              size_t bytes);
ww_status gpu_backend_copy_out(ww_device *device, stream *stream, void *to, const buffer *from, size_t offset, size_t bytes);
ww_status gpu_backend_copy(ww_device *device, stream *stream, const buffer *to, size_t to_offset, const buffer *from,
                           size_t from_offset, size_t bytes);

/* The table of a backend called `text` over `table`; the three functions that begin are its own, for the driver they name. */
#define GPU_BACKEND(symbol, text, table)                                                                                       \
    static ww_status symbol##_count(int32_t *count)                                                                            \
    {                                                                                                                          \
        return gpu_count(&(table), count);                                                                                     \
    }                                                                                                                          \
    static ww_status symbol##_describe(int32_t index, ww_device_info *info)                                                    \
    {                                                                                                                          \
        return gpu_describe(&(table), index, info);                                                                            \
    }                                                                                                                          \
    static ww_status symbol##_open(int32_t index, ww_device **device)                                                          \
    {                                                                                                                          \
        return gpu_open(&(symbol), &(table), index, device);                                                                   \
    }                                                                                                                          \
    const backend symbol = {                                                                                                   \
        .name = text,                                                                                                          \
        .count = symbol##_count,                                                                                               \
        .describe = symbol##_describe,                                                                                         \
        .open = symbol##_open,                                                                                                 \
        .close = gpu_close,                                                                                                    \
        .memory = gpu_memory,                                                                                                  \
        .trim = gpu_trim,                                                                                                      \
        .buffer_create = gpu_buffer_create,                                                                                    \
        .buffer_destroy = gpu_buffer_destroy,                                                                                  \
        .stream_create = gpu_backend_stream_create,                                                                            \
        .stream_destroy = gpu_backend_stream_destroy,                                                                          \
        .stream_synchronize = gpu_backend_stream_synchronize,                                                                  \
        .fill = gpu_backend_fill,                                                                                              \
        .copy_in = gpu_backend_copy_in,                                                                                        \
        .copy_out = gpu_backend_copy_out,                                                                                      \
        .copy = gpu_backend_copy,                                                                                              \
        .rows_write = gpu_rows_write,                                                                                          \
        .rows_read = gpu_rows_read,                                                                                            \
        .rows_gather = gpu_rows_gather,                                                                                        \
        .rows_search = gpu_rows_search,                                                                                        \
    }

#endif
