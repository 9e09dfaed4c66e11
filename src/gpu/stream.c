/* Streams: creating and destroying them, lending them to operations, and what a stream keeps between operations. */
#include "gpu/stream.h"

#include "base/memory.h"
#include "gpu/error.h"
#include "gpu/memory.h"

/* ---- making and ending --------------------------------------------------------------------------------------------------- */

static void list_stream(gpu_stream *stream)
{
    gpu_device *device = stream->device;
    pthread_rwlock_wrlock(&device->streams_lock);
    stream->next = device->streams;
    stream->link = &device->streams;
    if (stream->next != NULL)
        stream->next->link = &stream->next;
    device->streams = stream;
    pthread_rwlock_unlock(&device->streams_lock);
}

static void unlist_stream(gpu_stream *stream)
{
    gpu_device *device = stream->device;
    pthread_rwlock_wrlock(&device->streams_lock);
    *stream->link = stream->next;
    if (stream->next != NULL)
        stream->next->link = stream->link;
    pthread_rwlock_unlock(&device->streams_lock);
}

ww_status gpu_stream_create(gpu_device *device, gpu_stream **out)
{
    gpu_stream *stream = memory_alloc_zeroed(1, sizeof *stream);
    if (stream == NULL)
        return memory_failed("a stream", sizeof *stream);
    stream->device = device;
    const ww_status status = gpu_check(device, device->driver->stream_create(&stream->handle), "creating a stream");
    if (status != WW_OK) {
        memory_free(stream);
        return status;
    }
    list_stream(stream);
    *out = stream;
    return WW_OK;
}

static void free_retired(gpu_stream *stream)
{
    while (stream->retired_count > 0)
        gpu_memory_free(stream->device, &stream->retired[--stream->retired_count]);
    memory_free(stream->retired);
    stream->retired = NULL;
    stream->retired_capacity = 0;
}

void gpu_stream_destroy(gpu_stream *stream)
{
    if (stream == NULL)
        return;
    gpu_device *device = stream->device;
    gpu_settle(stream);
    unlist_stream(stream);
    /* First, because work may still read what is freed below if the wait failed. */
    (void)device->driver->stream_destroy(stream->handle);
    for (int32_t i = 0; i < GPU_WORKSPACES; i++)
        gpu_memory_free(device, &stream->workspaces[i]);
    free_retired(stream);
    for (int32_t i = 0; i < GPU_KEPT; i++)
        gpu_memory_free(device, &stream->kept[i].device);
    for (int32_t i = 0; i < GPU_PINNED; i++)
        if (stream->pinned[i].host != NULL)
            (void)device->driver->pinned_free(stream->pinned[i].host);
    for (int32_t i = 0; i < GPU_STAGING_SLOTS; i++) {
        if (stream->staging[i].done != NULL)
            (void)device->driver->event_destroy(stream->staging[i].done);
        if (stream->staging[i].host != NULL && !gpu_staging_keep(device, &stream->staging[i]))
            (void)device->driver->pinned_free(stream->staging[i].host);
    }
    memory_free(stream);
}

/* ---- borrowing ----------------------------------------------------------------------------------------------------------- */

static gpu_stream *take_idle(gpu_device *device)
{
    pthread_mutex_lock(&device->idle_lock);
    gpu_stream *stream = device->idle;
    if (stream != NULL)
        device->idle = stream->next_idle;
    pthread_mutex_unlock(&device->idle_lock);
    return stream;
}

static void put_idle(gpu_stream *stream)
{
    gpu_device *device = stream->device;
    pthread_mutex_lock(&device->idle_lock);
    stream->next_idle = device->idle;
    device->idle = stream;
    pthread_mutex_unlock(&device->idle_lock);
}

ww_status gpu_stream_borrow(gpu_device *device, gpu_stream **out)
{
    driver_context previous = NULL;
    ww_status status = gpu_enter(device, &previous);
    if (status != WW_OK)
        return status;
    gpu_stream *stream = take_idle(device);
    if (stream == NULL)
        status = gpu_stream_create(device, &stream);
    if (status != WW_OK) {
        gpu_leave(device, previous);
        return status;
    }
    stream->previous = previous;
    *out = stream;
    return WW_OK;
}

ww_status gpu_stream_return(gpu_stream *stream, ww_status status)
{
    gpu_device *device = stream->device;
    const driver_context previous = stream->previous;
    if (status != WW_OK)
        gpu_settle(stream);
    else if (atomic_load(&stream->state) != STREAM_ANSWERED)
        status = gpu_synchronize(stream);
    put_idle(stream);
    gpu_leave(device, previous);
    return status;
}

void gpu_streams_end_idle(gpu_device *device)
{
    for (gpu_stream *stream = take_idle(device); stream != NULL; stream = take_idle(device))
        gpu_stream_destroy(stream);
    gpu_staging_free_spares(device);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------- */

ww_status gpu_synchronize(gpu_stream *stream)
{
    gpu_device *device = stream->device;
    if (atomic_load(&stream->state) == STREAM_IDLE)
        return WW_OK;
    ww_status status = gpu_refuse_recording(stream, "waiting for the device");
    if (status == WW_OK)
        status = gpu_check(device, device->driver->stream_synchronize(stream->handle), "waiting for a stream");
    if (status == WW_OK)
        atomic_store(&stream->state, STREAM_IDLE);
    return status;
}

/* Waits. Reports only a lost device. */
static int wait_quietly(gpu_stream *stream)
{
    gpu_device *device = stream->device;
    const int number = device->driver->stream_synchronize(stream->handle);
    if (number != 0 && device->driver->error_class(number) == DRIVER_ERROR_LOST)
        gpu_lose(device, device->driver->error_name(number));
    return number;
}

void gpu_settle(gpu_stream *stream)
{
    if (!stream->recording && atomic_load(&stream->state) != STREAM_IDLE && wait_quietly(stream) == 0)
        atomic_store(&stream->state, STREAM_IDLE);
}

void gpu_drain(gpu_device *device)
{
    pthread_rwlock_rdlock(&device->streams_lock);
    /* The state stays: only the stream's user knows whether more was queued. */
    for (gpu_stream *stream = device->streams; stream != NULL; stream = stream->next)
        if (atomic_load(&stream->state) != STREAM_IDLE && !stream->recording)
            (void)wait_quietly(stream);
    pthread_rwlock_unlock(&device->streams_lock);
}

/* ---- on a stream --------------------------------------------------------------------------------------------------------- */

ww_status gpu_refuse_recording(const gpu_stream *stream, const char *what)
{
    return stream->recording ? ww_fail(WW_UNSUPPORTED, "recording a step: %s cannot be recorded", what) : WW_OK;
}

/* Makes room for one more in the list. */
static ww_status reserve_retired(gpu_stream *stream)
{
    if (stream->retired_count < stream->retired_capacity)
        return WW_OK;
    const int32_t capacity = stream->retired_capacity > 0 ? 2 * stream->retired_capacity : 8;
    buffer *more = memory_resize(stream->retired, (size_t)capacity * sizeof *more);
    if (more == NULL)
        return memory_failed("the list of retired workspaces", (size_t)capacity * sizeof *more);
    stream->retired = more;
    stream->retired_capacity = capacity;
    return WW_OK;
}

void gpu_stream_forget_recording(gpu_stream *stream)
{
    if (--stream->recordings == 0)
        free_retired(stream);
}

ww_status gpu_grow(gpu_stream *stream, buffer *memory, size_t bytes)
{
    gpu_device *device = stream->device;
    if (memory->bytes >= bytes)
        return WW_OK;
    if (stream->recording)
        return ww_fail(WW_UNSUPPORTED,
                       "recording a step: an operation needs %zu bytes of workspace and has %zu; run the step once before "
                       "recording it",
                       bytes, memory->bytes);
    ww_status status = gpu_synchronize(stream);
    if (status == WW_OK && stream->recordings > 0 && memory->data != NULL) {
        status = reserve_retired(stream);
        if (status == WW_OK) {
            stream->retired[stream->retired_count++] = *memory;
            *memory = (buffer){0};
        }
    }
    if (status != WW_OK)
        return status;
    gpu_memory_free(device, memory);
    return gpu_memory_alloc(device, bytes, memory);
}

void gpu_writes(gpu_stream *stream, const void *from, size_t bytes)
{
    stream->written.count = 0;
    gpu_writes_too(stream, from, bytes);
}

void gpu_writes_too(gpu_stream *stream, const void *from, size_t bytes)
{
    stream_written *all = &stream->written;
    all->ranges[all->count].from = from;
    all->ranges[all->count].to = (const char *)from + bytes;
    all->count++;
    atomic_store(&stream->state, STREAM_WRITES);
}

bool gpu_may_overlap(const gpu_stream *stream)
{
    return atomic_load(&stream->state) == STREAM_WRITES && stream->written.count < GPU_OVERLAP - 1;
}

bool gpu_leaves_alone(const gpu_stream *stream, const void *from, size_t bytes)
{
    const char *begin = from;
    bool alone = atomic_load(&stream->state) == STREAM_WRITES;
    for (int32_t i = 0; alone && i < stream->written.count; i++)
        alone = begin + bytes <= stream->written.ranges[i].from || begin >= stream->written.ranges[i].to;
    return alone;
}

ww_status gpu_workspace(gpu_stream *stream, int32_t number, size_t bytes, void **out)
{
    if (number < 0 || number >= GPU_WORKSPACES)
        return ww_fail(WW_INTERNAL, "workspace %d does not exist; a stream has %d", number, GPU_WORKSPACES);
    const ww_status status = gpu_grow(stream, &stream->workspaces[number], bytes);
    if (status == WW_OK)
        *out = stream->workspaces[number].data;
    return status;
}

ww_status gpu_pinned(gpu_stream *stream, int32_t number, size_t bytes, void **out)
{
    gpu_device *device = stream->device;
    if (number < 0 || number >= GPU_PINNED)
        return ww_fail(WW_INTERNAL, "pinned memory %d does not exist; a stream has %d", number, GPU_PINNED);
    gpu_pinned_bytes *pinned = &stream->pinned[number];
    ww_status status = WW_OK;
    if (pinned->bytes < bytes) {
        void *host = NULL;
        status = gpu_synchronize(stream);
        if (status == WW_OK)
            status = gpu_check(device, device->driver->pinned_alloc(bytes, &host), "allocating %zu bytes of pinned host memory",
                               bytes);
        if (status == WW_OK) {
            if (pinned->host != NULL)
                (void)device->driver->pinned_free(pinned->host);
            *pinned = (gpu_pinned_bytes){.host = host, .bytes = bytes};
        }
    }
    if (status == WW_OK)
        *out = pinned->host;
    return status;
}

ww_status gpu_copy(gpu_stream *stream, void *to, const void *from, size_t bytes)
{
    gpu_device *device = stream->device;
    if (bytes == 0)
        return WW_OK;
    atomic_store(&stream->state, STREAM_BUSY);
    return gpu_check(device, device->driver->copy(stream->handle, to, from, bytes), "copying %zu bytes on the device", bytes);
}

ww_status gpu_fill(gpu_stream *stream, void *to, uint32_t pattern, size_t words)
{
    gpu_device *device = stream->device;
    if (words == 0)
        return WW_OK;
    atomic_store(&stream->state, STREAM_BUSY);
    return gpu_check(device, device->driver->fill32(stream->handle, to, pattern, words), "filling %zu words", words);
}

/* ---- events -------------------------------------------------------------------------------------------------------------- */

ww_status gpu_event_create(gpu_device *device, bool timed, driver_event *out)
{
    return gpu_check(device, device->driver->event_create(timed, out), "creating an event");
}

void gpu_event_destroy(gpu_device *device, driver_event event)
{
    if (event != NULL)
        (void)device->driver->event_destroy(event);
}

ww_status gpu_event_record(gpu_stream *stream, driver_event event)
{
    gpu_device *device = stream->device;
    const ww_status status = gpu_refuse_recording(stream, "an operation that looks at ids on the host");
    if (status != WW_OK)
        return status;
    atomic_store(&stream->state, STREAM_BUSY);
    return gpu_check(device, device->driver->event_record(event, stream->handle), "recording an event");
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
