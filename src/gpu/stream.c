/* Streams: making and ending them, lending them to operations, and what stays with one from one operation to the next. */
#include "gpu/stream.h"

#include "base/memory.h"
#include "gpu/error.h"
#include "gpu/memory.h"

/* ---- making and ending --------------------------------------------------------------------------------------------------- */

static void list_stream(gpu_device *device, gpu_stream *queue)
{
    pthread_rwlock_wrlock(&device->streams_lock);
    queue->next = device->streams;
    queue->link = &device->streams;
    if (queue->next != NULL)
        queue->next->link = &queue->next;
    device->streams = queue;
    pthread_rwlock_unlock(&device->streams_lock);
}

static void unlist_stream(gpu_device *device, gpu_stream *queue)
{
    pthread_rwlock_wrlock(&device->streams_lock);
    *queue->link = queue->next;
    if (queue->next != NULL)
        queue->next->link = queue->link;
    pthread_rwlock_unlock(&device->streams_lock);
}

ww_status gpu_stream_make(gpu_device *device, gpu_stream **out)
{
    gpu_stream *queue = memory_alloc_zeroed(1, sizeof *queue);
    if (queue == NULL)
        return memory_failed("a stream", sizeof *queue);
    const ww_status status = gpu_check(device, device->driver->stream_create(&queue->handle), "a stream asked");
    if (status != WW_OK) {
        memory_free(queue);
        return status;
    }
    list_stream(device, queue);
    *out = queue;
    return WW_OK;
}

void gpu_stream_unmake(gpu_device *device, gpu_stream *queue)
{
    if (queue == NULL)
        return;
    gpu_settle(device, queue);
    unlist_stream(device, queue);
    /* First of all: where the wait failed, work may be left that would read what is given back below. */
    (void)device->driver->stream_destroy(queue->handle);
    for (int32_t i = 0; i < GPU_WORKSPACES; i++)
        gpu_memory_give(device, &queue->workspaces[i]);
    for (int32_t i = 0; i < GPU_KEPT; i++)
        gpu_memory_give(device, &queue->kept[i].there);
    for (int32_t i = 0; i < GPU_PINNED; i++)
        if (queue->pinned[i].host != NULL)
            (void)device->driver->pinned_give(queue->pinned[i].host);
    for (int32_t i = 0; i < GPU_STAGING_SLOTS; i++) {
        if (queue->staging[i].done != NULL)
            (void)device->driver->event_destroy(queue->staging[i].done);
        if (queue->staging[i].host != NULL)
            (void)device->driver->pinned_give(queue->staging[i].host);
    }
    memory_free(queue);
}

/* ---- borrowing ----------------------------------------------------------------------------------------------------------- */

static gpu_stream *take_idle(gpu_device *device)
{
    pthread_mutex_lock(&device->idle_lock);
    gpu_stream *queue = device->idle;
    if (queue != NULL)
        device->idle = queue->next_idle;
    pthread_mutex_unlock(&device->idle_lock);
    return queue;
}

static void put_idle(gpu_device *device, gpu_stream *queue)
{
    pthread_mutex_lock(&device->idle_lock);
    queue->next_idle = device->idle;
    device->idle = queue;
    pthread_mutex_unlock(&device->idle_lock);
}

ww_status gpu_stream_borrow(gpu_device *device, gpu_stream **out)
{
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    gpu_stream *queue = take_idle(device);
    if (queue == NULL)
        status = gpu_stream_make(device, &queue);
    if (status != WW_OK) {
        gpu_leave(device, previous);
        return status;
    }
    queue->previous = previous;
    *out = queue;
    return WW_OK;
}

ww_status gpu_stream_return(gpu_device *device, gpu_stream *queue, ww_status status)
{
    const driver_context previous = queue->previous;
    if (status != WW_OK)
        gpu_settle(device, queue);
    else if (atomic_load(&queue->state) != STREAM_ANSWERED)
        status = gpu_synchronize(device, queue);
    put_idle(device, queue);
    gpu_leave(device, previous);
    return status;
}

void gpu_streams_end_idle(gpu_device *device)
{
    for (gpu_stream *queue = take_idle(device); queue != NULL; queue = take_idle(device))
        gpu_stream_unmake(device, queue);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------- */

ww_status gpu_synchronize(gpu_device *device, gpu_stream *queue)
{
    if (atomic_load(&queue->state) == STREAM_IDLE)
        return WW_OK;
    const ww_status status = gpu_check(device, device->driver->stream_synchronize(queue->handle), "waiting for a stream");
    if (status == WW_OK)
        atomic_store(&queue->state, STREAM_IDLE);
    return status;
}

/* Waits without a word about how it went, but for a loss. */
static int wait_quietly(gpu_device *device, gpu_stream *queue)
{
    const int number = device->driver->stream_synchronize(queue->handle);
    if (number != 0 && device->driver->error_class(number) == DRIVER_ERROR_LOST)
        gpu_lose(device, device->driver->error_name(number));
    return number;
}

void gpu_settle(gpu_device *device, gpu_stream *queue)
{
    if (atomic_load(&queue->state) != STREAM_IDLE && wait_quietly(device, queue) == 0)
        atomic_store(&queue->state, STREAM_IDLE);
}

void gpu_drain(gpu_device *device)
{
    pthread_rwlock_rdlock(&device->streams_lock);
    for (gpu_stream *queue = device->streams; queue != NULL; queue = queue->next)
        if (atomic_load(&queue->state) !=
            STREAM_IDLE) /* stays so: only the stream's user knows that nothing was queued meanwhile */
            (void)wait_quietly(device, queue);
    pthread_rwlock_unlock(&device->streams_lock);
}

/* ---- on a stream --------------------------------------------------------------------------------------------------------- */

ww_status gpu_grow(gpu_device *device, gpu_stream *queue, buffer *memory, size_t bytes)
{
    if (memory->bytes >= bytes)
        return WW_OK;
    const ww_status status = gpu_synchronize(device, queue);
    if (status != WW_OK)
        return status;
    gpu_memory_give(device, memory);
    return gpu_memory_take(device, bytes, memory);
}

void gpu_writes(gpu_stream *queue, const void *from, size_t bytes)
{
    queue->written.count = 0;
    gpu_writes_too(queue, from, bytes);
}

void gpu_writes_too(gpu_stream *queue, const void *from, size_t bytes)
{
    stream_written *all = &queue->written;
    all->of[all->count].from = from;
    all->of[all->count].to = (const char *)from + bytes;
    all->count++;
    atomic_store(&queue->state, STREAM_WRITES);
}

bool gpu_may_overlap(const gpu_stream *queue)
{
    return atomic_load(&queue->state) == STREAM_WRITES && queue->written.count < GPU_OVERLAP - 1;
}

bool gpu_leaves_alone(const gpu_stream *queue, const void *from, size_t bytes)
{
    const char *begin = from;
    bool alone = atomic_load(&queue->state) == STREAM_WRITES;
    for (int32_t i = 0; alone && i < queue->written.count; i++)
        alone = begin + bytes <= queue->written.of[i].from || begin >= queue->written.of[i].to;
    return alone;
}

ww_status gpu_workspace(gpu_device *device, gpu_stream *queue, int32_t number, size_t bytes, void **out)
{
    if (number < 0 || number >= GPU_WORKSPACES)
        return ww_fail(WW_INTERNAL, "workspace %d asked; a stream has %d", number, GPU_WORKSPACES);
    const ww_status status = gpu_grow(device, queue, &queue->workspaces[number], bytes);
    if (status == WW_OK)
        *out = queue->workspaces[number].data;
    return status;
}

ww_status gpu_pinned(gpu_device *device, gpu_stream *queue, int32_t number, size_t bytes, void **out)
{
    if (number < 0 || number >= GPU_PINNED)
        return ww_fail(WW_INTERNAL, "pinned memory %d asked; a stream has %d", number, GPU_PINNED);
    gpu_pinned_bytes *pinned = &queue->pinned[number];
    ww_status status = WW_OK;
    if (pinned->bytes < bytes) {
        void *host = NULL;
        status = gpu_synchronize(device, queue);
        if (status == WW_OK)
            status =
                gpu_check(device, device->driver->pinned_take(bytes, &host), "%zu bytes of pinned host memory asked", bytes);
        if (status == WW_OK) {
            if (pinned->host != NULL)
                (void)device->driver->pinned_give(pinned->host);
            *pinned = (gpu_pinned_bytes){.host = host, .bytes = bytes};
        }
    }
    if (status == WW_OK)
        *out = pinned->host;
    return status;
}

ww_status gpu_copy(gpu_device *device, gpu_stream *queue, void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return WW_OK;
    atomic_store(&queue->state, STREAM_BUSY);
    return gpu_check(device, device->driver->copy(queue->handle, to, from, bytes), "copying %zu bytes on the device", bytes);
}

ww_status gpu_fill(gpu_device *device, gpu_stream *queue, void *to, uint32_t pattern, size_t words)
{
    if (words == 0)
        return WW_OK;
    atomic_store(&queue->state, STREAM_BUSY);
    return gpu_check(device, device->driver->fill32(queue->handle, to, pattern, words), "filling %zu words", words);
}

/* ---- events -------------------------------------------------------------------------------------------------------------- */

ww_status gpu_event_create(gpu_device *device, bool timed, driver_event *out)
{
    return gpu_check(device, device->driver->event_create(timed, out), "an event asked");
}

void gpu_event_destroy(gpu_device *device, driver_event event)
{
    if (event != NULL)
        (void)device->driver->event_destroy(event);
}

ww_status gpu_event_record(gpu_device *device, gpu_stream *queue, driver_event event)
{
    atomic_store(&queue->state, STREAM_BUSY);
    return gpu_check(device, device->driver->event_record(event, queue->handle), "recording an event");
}

ww_status gpu_event_wait(gpu_device *device, gpu_stream *queue, driver_event event)
{
    atomic_store(&queue->state, STREAM_BUSY);
    return gpu_check(device, device->driver->stream_wait(queue->handle, event), "having a stream wait for an event");
}

ww_status gpu_event_done(gpu_device *device, driver_event event, bool *done)
{
    const int number = device->driver->event_query(event);
    *done = number == 0;
    if (number != 0 && device->driver->error_class(number) == DRIVER_ERROR_NOT_READY)
        return WW_OK;
    return gpu_check(device, number, "asking for an event");
}

ww_status gpu_event_elapsed(gpu_device *device, driver_event from, driver_event to, float *milliseconds)
{
    ww_status status = gpu_check(device, device->driver->event_synchronize(from), "waiting for an event");
    if (status == WW_OK)
        status = gpu_check(device, device->driver->event_synchronize(to), "waiting for an event");
    if (status == WW_OK)
        status = gpu_check(device, device->driver->event_elapsed(from, to, milliseconds), "measuring between events");
    return status;
}
