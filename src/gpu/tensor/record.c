/* Recorded steps. A step of a model is some hundred launches of a few microseconds, and calling the driver for each takes as
 * long again. So the driver's capture records them once, and they are launched as one graph.
 *
 * A recording freezes arguments, and so addresses. Workspaces of the stream that grow later are kept for it (stream.c). The
 * recording holds the memory that operations allocated and freed while it was made.
 */
#include "gpu/tensor/state.h"

#include "base/memory.h"
#include "gpu/error.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "kernels/quant/quant.h"

static bool recording_here(const gpu_tensors *tensors)
{
    return tensors->recording != NULL && pthread_equal(tensors->recorder, pthread_self());
}

void gpu_recording_wait(gpu_tensors *tensors)
{
    while (tensors->recording != NULL && !recording_here(tensors))
        pthread_cond_wait(&tensors->recorded, &tensors->lock);
}

bool gpu_recording_take(gpu_tensors *tensors, size_t bytes, buffer *out)
{
    tensor_recording *recording = tensors->recording;
    for (int32_t i = recording_here(tensors) ? recording->held_count - 1 : -1; i >= 0; i--)
        if (gpu_block_bytes(recording->held[i].bytes) == gpu_block_bytes(bytes)) {
            *out = (buffer){.data = recording->held[i].data, .bytes = bytes};
            recording->held[i] = recording->held[--recording->held_count];
            return true;
        }
    return false;
}

/* Without memory for the list the recording is abandoned; what it would have held is then free. */
bool gpu_recording_hold(gpu_tensors *tensors, const buffer *memory)
{
    tensor_recording *recording = tensors->recording;
    if (!recording_here(tensors) || recording->short_of_memory)
        return false;
    if (recording->held_count == recording->held_capacity) {
        const int32_t capacity = recording->held_capacity > 0 ? 2 * recording->held_capacity : 16;
        buffer *more = memory_resize(recording->held, (size_t)capacity * sizeof *more);
        recording->short_of_memory = more == NULL;
        if (more == NULL)
            return false;
        recording->held = more;
        recording->held_capacity = capacity;
    }
    recording->held[recording->held_count++] = *memory;
    return true;
}

/* The lock is held, and the device entered. */
static void free_recording(gpu_device *device, tensor_recording *recording)
{
    for (int32_t i = 0; i < recording->held_count; i++)
        gpu_memory_free(device, &recording->held[i]);
    memory_free(recording->held);
    memory_free(recording);
}

/* Ends the capture. `graph` stays NULL if it gives none. */
static ww_status end_capture(gpu_device *device, driver_graph *graph)
{
    gpu_tensors *tensors = device->tensors;
    const ww_status status =
        gpu_check(device, device->driver->capture_end(tensors->stream->handle, graph), "ending the recording of a step");
    tensors->stream->recording = false;
    tensors->tables = tensors->tables_before; /* tables that were recorded do not exist yet */
    tensors->recording = NULL;
    pthread_cond_broadcast(&tensors->recorded);
    return status;
}

ww_status gpu_record_begin(ww_device *base)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    gpu_tensors *tensors = device->tensors;
    tensor_recording *recording = NULL;
    if (tensors->recording != NULL)
        status = ww_fail(WW_INVALID_ARGUMENT, "recording a step: this thread records one already");
    if (status == WW_OK) {
        recording = memory_alloc_zeroed(1, sizeof *recording);
        status = recording != NULL ? WW_OK : memory_failed("the recording of a step", sizeof *recording);
    }
    if (status == WW_OK)
        status = gpu_check(device, device->driver->capture_begin(stream->handle), "recording a step");
    if (status != WW_OK) {
        memory_free(recording);
        return gpu_tensors_leave(device, previous, status);
    }
    tensors->recording = recording;
    tensors->recorder = pthread_self();
    tensors->tables_before = tensors->tables;
    stream->recording = true;
    return gpu_tensors_leave(device, previous, status);
}

ww_status gpu_record_end(ww_device *base, bool keep, tensor_recording **out)
{
    gpu_device *device = gpu_of(base);
    gpu_tensors *tensors = device->tensors;
    driver_context previous = NULL;
    *out = NULL;
    gpu_enter_to_free(device, &previous);
    pthread_mutex_lock(&tensors->lock);
    if (!recording_here(tensors)) {
        pthread_mutex_unlock(&tensors->lock);
        gpu_leave(device, previous);
        return keep ? ww_fail(WW_INVALID_ARGUMENT, "ending a recording: this thread records none") : WW_OK;
    }
    tensor_recording *recording = tensors->recording;
    ww_status status = end_capture(device, &recording->graph);
    if (status == WW_OK && keep && recording->short_of_memory)
        status = memory_failed("the memory that a recording holds", (size_t)recording->held_capacity * sizeof(buffer));
    if (status == WW_OK && keep) {
        tensors->stream->recordings++;
        *out = recording;
    } else {
        if (recording->graph != NULL)
            (void)device->driver->graph_destroy(recording->graph);
        gpu_settle(tensors->stream); /* memory that it holds may still be in use by earlier work */
        free_recording(device, recording);
    }
    return gpu_tensors_leave(device, previous, keep ? status : WW_OK);
}

ww_status gpu_replay(ww_device *base, const tensor_recording *recording)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    if (stream->recording)
        status = ww_fail(WW_INVALID_ARGUMENT, "replaying a step: this thread records another");
    atomic_store(&stream->state, STREAM_BUSY);
    if (status == WW_OK)
        status = gpu_check(device, device->driver->graph_launch(recording->graph, stream->handle), "replaying a recorded step");
    return gpu_tensors_leave(device, previous, status);
}

void gpu_recording_release(ww_device *base, tensor_recording *recording)
{
    gpu_device *device = gpu_of(base);
    gpu_tensors *tensors = device->tensors;
    driver_context previous = NULL;
    if (recording == NULL)
        return;
    gpu_enter_to_free(device, &previous);
    pthread_mutex_lock(&tensors->lock);
    gpu_recording_wait(tensors);
    gpu_settle(tensors->stream); /* its memory goes to the pool, which serves all streams */
    (void)device->driver->graph_destroy(recording->graph);
    free_recording(device, recording);
    gpu_stream_forget_recording(tensors->stream);
    pthread_mutex_unlock(&tensors->lock);
    gpu_leave(device, previous);
}
