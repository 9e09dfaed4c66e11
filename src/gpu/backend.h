/* The backend interface for GPUs of any vendor: device/backend.h over a driver table. */
#ifndef WW_GPU_BACKEND_H
#define WW_GPU_BACKEND_H

#include "device/segment_buffers.h"
#include "gpu/describe.h"
#include "gpu/open.h"
#include "gpu/quant/quant.h"
#include "gpu/search/lists/lists.h"
#include "gpu/search/rows.h"
#include "gpu/tensor/tensor.h"

/* The backends as the registry lists them. */
extern const backend backend_cuda;
extern const backend backend_rocm;

/* The functions of every GPU backend's table, except for count, describe and open; device/backend.h documents them. */
ww_status gpu_memory(ww_device *base, ww_memory_info *memory);
ww_status gpu_trim(ww_device *base);
ww_status gpu_buffer_create(ww_device *base, size_t bytes, buffer *out);
void gpu_buffer_destroy(ww_device *base, buffer *memory);
ww_status gpu_pinned_create(ww_device *base, size_t bytes, buffer *out);
void gpu_pinned_destroy(ww_device *base, buffer *memory);
ww_status gpu_backend_stream_create(ww_device *base, device_stream **out);
void gpu_backend_stream_destroy(ww_device *base, device_stream *stream);
ww_status gpu_backend_stream_synchronize(ww_device *base, device_stream *stream);
pool *gpu_threads(ww_device *device);
ww_status gpu_backend_fill(ww_device *base, device_stream *stream, buffer_range to, uint32_t pattern);
ww_status gpu_backend_copy_in(ww_device *base, device_stream *stream, buffer_range to, const void *from);
ww_status gpu_backend_copy_out(ww_device *base, device_stream *stream, void *to, buffer_range from);
ww_status gpu_backend_copy(ww_device *base, device_stream *stream, buffer_range to, const buffer *from, size_t from_offset);

/* Those functions and the operations of gpu/search/rows.h as entries of a table. */
#define GPU_BACKEND_COMMON                                                                                                     \
    .close = gpu_close, .memory = gpu_memory, .trim = gpu_trim, .buffer_create = gpu_buffer_create,                            \
    .buffer_destroy = gpu_buffer_destroy, .stream_create = gpu_backend_stream_create,                                          \
    .stream_destroy = gpu_backend_stream_destroy, .stream_synchronize = gpu_backend_stream_synchronize,                        \
    .fill = gpu_backend_fill, .copy_in = gpu_backend_copy_in, .copy_out = gpu_backend_copy_out, .copy = gpu_backend_copy,      \
    .rows_write = gpu_rows_write, .rows_read = gpu_rows_read, .rows_gather = gpu_rows_gather, .rows_search = gpu_rows_search,  \
    .rows_write_here = gpu_rows_write_here, .rows_check_here = gpu_rows_check_here, .rows_read_here = gpu_rows_read_here,      \
    .segment_create = segment_buffers_create, .segment_destroy = segment_buffers_destroy, .pinned_create = gpu_pinned_create,  \
    .pinned_destroy = gpu_pinned_destroy, .rows_search_lists = gpu_rows_search_lists, .lists_push = gpu_lists_push,            \
    .lists_destroy = gpu_lists_destroy, .lists_bytes = gpu_lists_bytes, .threads = gpu_threads, .rows_range = gpu_rows_range,  \
    .tensors = &tensors_gpu, .quants = &gpu_quants, .kernels = &gpu_kernels

#endif
