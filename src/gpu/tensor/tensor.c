/* The stream for tensors and its memory.
 *
 * All work on a device's tensors is queued on one stream. So memory that is freed while queued work still uses it can be reused
 * at once: its next user is queued after that work. Such memory is kept here. The pool serves all streams, so it gets memory
 * only after the host has waited for this stream.
 */
#include "gpu/tensor/tensor.h"

#include <warpwave/tensor_foreign.h>

#include "base/memory.h"
#include "gpu/backend.h"
#include "gpu/blas/blas.h"
#include "gpu/error.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "gpu/tensor/pieces.h"
#include "gpu/tensor/state.h"
#include "kernels/reduce/row_arguments.h"

_Static_assert((int32_t)TENSORS_WORKSPACES <= (int32_t)GPU_WORKSPACES, "a stream has fewer workspaces");

ww_status gpu_tensors_create(gpu_device *device)
{
    gpu_tensors *tensors = memory_alloc_zeroed(1, sizeof *tensors);
    if (tensors == NULL)
        return memory_failed("a device's tensors", sizeof *tensors);
    if (pthread_mutex_init(&tensors->lock, NULL) != 0) {
        memory_free(tensors);
        return memory_failed("a lock", sizeof tensors->lock);
    }
    if (pthread_cond_init(&tensors->recorded, NULL) != 0) {
        pthread_mutex_destroy(&tensors->lock);
        memory_free(tensors);
        return memory_failed("a condition", sizeof tensors->recorded);
    }
    device->tensors = tensors;
    return WW_OK;
}

static void count_unused(gpu_device *device, int64_t more)
{
    device->tensors->unused_bytes += more;
    gpu_pool_count_aside(device, more);
}

/* The lock is held, or no other thread uses the tensors. Recorded work cannot be waited for and may use the memory, so nothing
 * is released during a recording. */
static void release(gpu_device *device)
{
    gpu_tensors *tensors = device->tensors;
    if (tensors->recording != NULL)
        return;
    if (tensors->unused_count > 0 && tensors->stream != NULL)
        gpu_settle(tensors->stream);
    while (tensors->unused_count > 0)
        gpu_memory_free(device, &tensors->unused[--tensors->unused_count]);
    count_unused(device, -tensors->unused_bytes);
}

void gpu_tensors_destroy(gpu_device *device)
{
    gpu_tensors *tensors = device->tensors;
    if (tensors == NULL)
        return;
    release(device);
    gpu_blas_destroy(tensors->blas);
    gpu_event_destroy(device, tensors->mark);
    gpu_event_destroy(device, tensors->met);
    gpu_stream_destroy(tensors->stream);
    pthread_cond_destroy(&tensors->recorded);
    pthread_mutex_destroy(&tensors->lock);
    memory_free(tensors);
    device->tensors = NULL;
}

void gpu_tensors_release(gpu_device *device)
{
    gpu_tensors *tensors = device->tensors;
    if (tensors == NULL || pthread_mutex_trylock(&tensors->lock) != 0)
        return;
    release(device);
    pthread_mutex_unlock(&tensors->lock);
}

/* ---- entering -------------------------------------------------------------------------------------------------------------
 */

ww_status gpu_tensors_enter(gpu_device *device, gpu_stream **stream, driver_context *previous)
{
    ww_status status = gpu_enter(device, previous);
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&device->tensors->lock);
    gpu_recording_wait(device->tensors);
    if (device->tensors->stream == NULL)
        status = gpu_stream_create(device, &device->tensors->stream);
    if (status != WW_OK)
        return gpu_tensors_leave(device, *previous, status);
    *stream = device->tensors->stream;
    return WW_OK;
}

ww_status gpu_tensors_leave(gpu_device *device, driver_context previous, ww_status status)
{
    pthread_mutex_unlock(&device->tensors->lock);
    gpu_leave(device, previous);
    return status;
}

ww_status gpu_tensors_blas(gpu_device *device, gpu_blas **out)
{
    gpu_tensors *tensors = device->tensors;
    ww_status status = WW_OK;
    if (tensors->blas == NULL && !tensors->blas_absent) {
        status = gpu_blas_create(tensors->stream, &tensors->blas);
        tensors->blas_absent = status == WW_UNSUPPORTED;
    }
    *out = tensors->blas;
    return status == WW_UNSUPPORTED ? WW_OK : status;
}

gpu_tables *gpu_tensors_tables(gpu_device *device)
{
    return &device->tensors->tables;
}

ww_status gpu_tensors_ready(gpu_device *device, uint32_t **out)
{
    gpu_tensors *tensors = device->tensors;
    void *counters = NULL;
    ww_status status = gpu_workspace(tensors->stream, TENSORS_WORKSPACE_READY, REDUCE_READY * sizeof(uint32_t), &counters);
    if (status == WW_OK && !tensors->ready_zeroed)
        status = gpu_fill(tensors->stream, counters, 0, REDUCE_READY);
    tensors->ready_zeroed = status == WW_OK;
    *out = counters;
    return status;
}

ww_status gpu_tensors_mark(gpu_device *device)
{
    gpu_tensors *tensors = device->tensors;
    const ww_status status = tensors->mark == NULL ? gpu_event_create(device, false, &tensors->mark) : WW_OK;
    return status == WW_OK ? gpu_event_record(tensors->stream, tensors->mark) : status;
}

ww_status gpu_tensors_wait(gpu_device *device)
{
    return gpu_check(device, device->driver->event_synchronize(device->tensors->mark), "waiting for ids to be checked");
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------
 */

/* Takes a freed block of the same size class, the last one first. */
static bool take_unused(gpu_device *device, size_t bytes, buffer *out)
{
    gpu_tensors *tensors = device->tensors;
    if (gpu_recording_take(tensors, bytes, out))
        return true;
    for (int32_t i = tensors->unused_count - 1; i >= 0; i--) {
        if (gpu_block_bytes(tensors->unused[i].bytes) != gpu_block_bytes(bytes))
            continue;
        *out = (buffer){.data = tensors->unused[i].data, .bytes = bytes};
        tensors->unused[i] = tensors->unused[--tensors->unused_count];
        count_unused(device, -(int64_t)gpu_block_bytes(bytes));
        return true;
    }
    return false;
}

static ww_status tensors_alloc(ww_device *base, size_t bytes, buffer *out)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    *out = (buffer){0};
    if (bytes == 0)
        return WW_OK;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    if (!take_unused(device, bytes, out)) {
        status = gpu_memory_alloc(device, bytes, out);
        if (status == WW_OUT_OF_MEMORY && device->tensors->unused_count > 0) {
            release(device);
            status = gpu_memory_alloc(device, bytes, out);
        }
    }
    return gpu_tensors_leave(device, previous, status);
}

static void tensors_release(ww_device *base, buffer *memory)
{
    gpu_device *device = gpu_of(base);
    gpu_tensors *tensors = device->tensors;
    driver_context previous = NULL;
    if (memory->data == NULL)
        return;
    gpu_enter_to_free(device, &previous);
    pthread_mutex_lock(&tensors->lock);
    if (gpu_recording_hold(tensors, memory)) {
        pthread_mutex_unlock(&tensors->lock);
        gpu_leave(device, previous);
        *memory = (buffer){0};
        return;
    }
    if (tensors->unused_count == UNUSED_MAX)
        release(device);
    tensors->unused[tensors->unused_count++] = *memory;
    count_unused(device, (int64_t)gpu_block_bytes(memory->bytes));
    pthread_mutex_unlock(&tensors->lock);
    gpu_leave(device, previous);
    *memory = (buffer){0};
}

/* Frees to the driver. The pool could hand the memory out while work on streams that it does not know still uses it. */
static void tensors_release_shared(ww_device *base, buffer *memory)
{
    gpu_device *device = gpu_of(base);
    gpu_tensors *tensors = device->tensors;
    driver_context previous = NULL;
    if (memory->data == NULL)
        return;
    gpu_enter_to_free(device, &previous);
    pthread_mutex_lock(&tensors->lock);
    gpu_recording_wait(tensors);
    if (tensors->stream != NULL)
        gpu_settle(tensors->stream);
    gpu_memory_discard(device, memory);
    pthread_mutex_unlock(&tensors->lock);
    gpu_leave(device, previous);
}

/* Fills whole 4-byte words, because blocks always consist of them. */
static ww_status tensors_zero(ww_device *base, const buffer *to)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_fill(stream, to->data, 0, (to->bytes + 3) / 4);
    return gpu_tensors_leave(device, previous, status);
}

static ww_status tensors_write(ww_device *base, const buffer *to, const void *from)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_copy_in(stream, to->data, from, to->bytes);
    return gpu_tensors_leave(device, previous, status);
}

static ww_status tensors_read(ww_device *base, void *to, const buffer *from)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_copy_out(stream, to, from->data, from->bytes);
    return gpu_tensors_leave(device, previous, status);
}

static ww_status tensors_synchronize(ww_device *base)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = gpu_synchronize(stream);
    return gpu_tensors_leave(device, previous, status);
}

/* ---- streams of others ----------------------------------------------------------------------------------------------------
 */

static ww_status tensors_stream(ww_device *base, void **out)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    const ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    *out = stream->handle;
    return gpu_tensors_leave(device, previous, WW_OK);
}

/* Converts another library's stream for the driver. Returns false if nothing can be queued there: a driver in software has no
 * default stream. */
static bool other_stream(const gpu_device *device, void *given, driver_stream *out)
{
    *out = device->driver->stream_1_is_null && (uintptr_t)given == 1 ? NULL : (driver_stream)given;
    return given != WW_STREAM_NONE && (given != NULL || device->driver->loads_code);
}

static ww_status meet(gpu_device *device, driver_stream first, driver_stream then)
{
    gpu_tensors *tensors = device->tensors;
    ww_status status = tensors->met == NULL ? gpu_event_create(device, false, &tensors->met) : WW_OK;
    if (status == WW_OK)
        status = gpu_check(device, device->driver->event_record(tensors->met, first), "recording an event on a stream");
    if (status == WW_OK)
        status = gpu_check(device, device->driver->stream_wait(then, tensors->met), "having a stream wait for another");
    return status;
}

/* Makes our stream wait for another one, or that one for ours. Our stream then counts as busy even if nothing waits here:
 * another library may have made it wait, and no kernel may start before that. */
static ww_status order_streams(ww_device *base, void *given, bool ours_waits)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_stream other;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    atomic_store(&stream->state, STREAM_BUSY);
    if (other_stream(device, given, &other))
        status = ours_waits ? meet(device, other, stream->handle) : meet(device, stream->handle, other);
    return gpu_tensors_leave(device, previous, status);
}

static ww_status tensors_wait_stream(ww_device *base, void *given)
{
    return order_streams(base, given, true);
}

static ww_status tensors_signal_stream(ww_device *base, void *given)
{
    return order_streams(base, given, false);
}

const tensor_backend tensors_gpu = {
    .alloc = tensors_alloc,
    .release = tensors_release,
    .zero = tensors_zero,
    .release_shared = tensors_release_shared,
    .stream = tensors_stream,
    .wait_stream = tensors_wait_stream,
    .signal_stream = tensors_signal_stream,
    .write = tensors_write,
    .read = tensors_read,
    .synchronize = tensors_synchronize,
    .elementwise = pieces_elementwise,
    .random = pieces_random,
    .check_ids = pieces_check_ids,
    .gather = pieces_gather,
    .scatter = pieces_scatter,
    .reduce = pieces_reduce,
    .rows = pieces_rows,
    .rope = pieces_rope,
    .sort = pieces_sort,
    .matmul = pieces_matmul,
    .resample = gpu_resample,
    .cumsum = gpu_cumsum,
    .conv_integer = gpu_conv_integer,
    .attention_store = gpu_attention_store,
    .attention = gpu_attention,
    .record_begin = gpu_record_begin,
    .record_end = gpu_record_end,
    .replay = gpu_replay,
    .recording_release = gpu_recording_release,
};
