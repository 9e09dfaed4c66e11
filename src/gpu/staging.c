/* Copies between host and device memory through pinned staging.
 *
 * The copy engine needs pinned memory, which a program's own is not. So bytes move in chunks: several threads pack one into a
 * pinned slot while the engine copies the previous one. A chunk stays in the processor's cache on its way, so packing costs the
 * memory bus one read. Together the threads are faster than the engine: on PCIe 5 (about 50 GB/s) one thread, at some 10 GB/s,
 * would not be. Slots are as large as the largest copy has needed, up to a chunk.
 */
#include <string.h>

#include "gpu/error.h"
#include "gpu/stream.h"

enum {
    ITEM_BYTES = 512 << 10,   /* what one thread packs at a time */
    SLOT_BYTES_MIN = 64 << 10 /* small copies share this size */
};

/* Pieces in host memory, and a range of the same bytes, packed one after the other. */
typedef struct packing {
    char *packed;
    char *pieces;
    size_t piece_bytes;
    size_t stride_bytes;
    size_t begin, end; /* in the packed bytes */
    bool out;          /* from packed to pieces, not the other way */
} packing;

static void pack(const packing *work, size_t begin, size_t end)
{
    while (begin < end) {
        const size_t piece = begin / work->piece_bytes;
        const size_t within = begin % work->piece_bytes;
        const size_t left = work->piece_bytes - within;
        const size_t bytes = left < end - begin ? left : end - begin;
        char *packed = work->packed + (begin - work->begin);
        char *place = work->pieces + piece * work->stride_bytes + within;
        if (work->out)
            memcpy(place, packed, bytes);
        else
            memcpy(packed, place, bytes);
        begin += bytes;
    }
}

static void pack_item(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const packing *work = context;
    const size_t begin = work->begin + (size_t)item * ITEM_BYTES;
    const size_t end = begin + ITEM_BYTES;
    pack(work, begin, end < work->end ? end : work->end);
}

static void pack_all(gpu_device *device, packing *work)
{
    const size_t bytes = work->end - work->begin;
    if (bytes < (size_t)2 * ITEM_BYTES || device->threads == NULL)
        pack(work, work->begin, work->end);
    else
        (void)pool_run(device->threads, (int64_t)((bytes + ITEM_BYTES - 1) / ITEM_BYTES), pack_item, NULL, work);
}

/* ---- slots --------------------------------------------------------------------------------------------------------------- */

static ww_status grow_slot(gpu_device *device, gpu_staging_slot *slot, size_t bytes)
{
    size_t wanted = SLOT_BYTES_MIN;
    while (wanted < bytes)
        wanted *= 2;
    void *host = NULL;
    const ww_status status =
        gpu_check(device, device->driver->pinned_alloc(wanted, &host), "allocating %zu bytes of pinned host memory", wanted);
    if (status != WW_OK)
        return status;
    if (slot->host != NULL)
        (void)device->driver->pinned_free(slot->host);
    slot->host = host;
    slot->bytes = wanted;
    return WW_OK;
}

bool gpu_staging_keep(gpu_device *device, const gpu_staging_slot *slot)
{
    pthread_mutex_lock(&device->idle_lock);
    const bool keeps = slot->host != NULL && slot->bytes <= GPU_SPARE_BYTES && device->spare_count < GPU_SPARES;
    if (keeps)
        device->spares[device->spare_count++] = (gpu_spare){slot->host, slot->bytes};
    pthread_mutex_unlock(&device->idle_lock);
    return keeps;
}

void gpu_staging_free_spares(gpu_device *device)
{
    pthread_mutex_lock(&device->idle_lock);
    while (device->spare_count > 0)
        (void)device->driver->pinned_free(device->spares[--device->spare_count].host);
    pthread_mutex_unlock(&device->idle_lock);
}

/* Gives a slot without memory the staging that another stream has left. */
static bool take_spare(gpu_device *device, gpu_staging_slot *slot, size_t bytes)
{
    bool found = false;
    if (slot->host != NULL)
        return false;
    pthread_mutex_lock(&device->idle_lock);
    for (int32_t i = device->spare_count - 1; i >= 0 && !found; i--) {
        found = device->spares[i].bytes >= bytes;
        if (!found)
            continue;
        slot->host = device->spares[i].host;
        slot->bytes = device->spares[i].bytes;
        device->spares[i] = device->spares[--device->spare_count];
    }
    pthread_mutex_unlock(&device->idle_lock);
    return found;
}

/* Returns the next slot, free and with at least `bytes` bytes. */
static ww_status take_slot(gpu_stream *stream, size_t bytes, gpu_staging_slot **out)
{
    gpu_device *device = stream->device;
    gpu_staging_slot *slot = &stream->staging[stream->staging_next];
    ww_status status = WW_OK;
    if (slot->done == NULL)
        status = gpu_event_create(device, false, &slot->done);
    if (status == WW_OK)
        status = gpu_check(device, device->driver->event_synchronize(slot->done), "waiting for staging memory");
    if (status == WW_OK && slot->bytes < bytes && !take_spare(device, slot, bytes))
        status = grow_slot(device, slot, bytes);
    if (status != WW_OK)
        return status;
    stream->staging_next = (stream->staging_next + 1) % GPU_STAGING_SLOTS;
    *out = slot;
    return WW_OK;
}

static size_t chunk_after(const gpu_device *device, size_t begin, size_t total)
{
    return total - begin < device->staging_bytes ? total - begin : device->staging_bytes;
}

/* ---- in ------------------------------------------------------------------------------------------------------------------ */

static ww_status send_chunk(gpu_stream *stream, char *to, packing *work)
{
    gpu_device *device = stream->device;
    const size_t bytes = work->end - work->begin;
    gpu_staging_slot *slot = NULL;
    ww_status status = take_slot(stream, bytes, &slot);
    if (status != WW_OK)
        return status;
    work->packed = slot->host;
    pack_all(device, work);
    atomic_store(&stream->state, STREAM_BUSY);
    status = gpu_check(device, device->driver->copy_in(stream->handle, to + work->begin, slot->host, bytes),
                       "copying %zu bytes to the device", bytes);
    if (status == WW_OK)
        status = gpu_event_record(stream, slot->done);
    return status;
}

ww_status gpu_copy_in_pieces(gpu_stream *stream, void *to, host_pieces from)
{
    gpu_device *device = stream->device;
    const size_t total = from.bytes * (size_t)from.count;
    packing work = {.pieces = (char *)from.data, .piece_bytes = from.bytes, .stride_bytes = from.stride_bytes};
    if (from.stride_bytes == from.bytes) /* one long piece: fewer, larger memcpy */
        work.piece_bytes = work.stride_bytes = total;
    ww_status status = gpu_refuse_recording(stream, "a copy from the host");
    for (size_t begin = 0; begin < total && status == WW_OK; begin = work.end) {
        work.begin = begin;
        work.end = begin + chunk_after(device, begin, total);
        status = send_chunk(stream, to, &work);
    }
    if (status != WW_OK)
        gpu_settle(stream); /* a slot may be in use without an event that says so */
    return status;
}

ww_status gpu_copy_in(gpu_stream *stream, void *to, const void *from, size_t bytes)
{
    return gpu_copy_in_pieces(stream, to, (host_pieces){from, bytes, bytes, bytes > 0 ? 1 : 0});
}

/* ---- out ----------------------------------------------------------------------------------------------------------------- */

static ww_status fetch_chunk(gpu_stream *stream, const char *from, size_t begin, size_t bytes, gpu_staging_slot **out)
{
    gpu_device *device = stream->device;
    ww_status status = take_slot(stream, bytes, out);
    if (status != WW_OK)
        return status;
    atomic_store(&stream->state, STREAM_BUSY);
    status = gpu_check(device, device->driver->copy_out(stream->handle, (*out)->host, from + begin, bytes),
                       "copying %zu bytes from the device", bytes);
    if (status == WW_OK)
        status = gpu_event_record(stream, (*out)->done);
    return status;
}

static ww_status unpack_chunk(gpu_device *device, const gpu_staging_slot *slot, packing *work)
{
    const ww_status status =
        gpu_check(device, device->driver->event_synchronize(slot->done), "waiting for %zu bytes", work->end - work->begin);
    if (status != WW_OK)
        return status;
    work->packed = slot->host;
    pack_all(device, work);
    return WW_OK;
}

/* The engine copies a chunk while the threads unpack the previous one. */
ww_status gpu_copy_out(gpu_stream *stream, void *to, const void *from, size_t bytes)
{
    gpu_device *device = stream->device;
    packing work = {.pieces = to, .piece_bytes = bytes, .stride_bytes = bytes, .out = true};
    gpu_staging_slot *before = NULL; /* holds, or will hold, the bytes of `work` */
    size_t begin = 0;
    ww_status status = gpu_refuse_recording(stream, "a copy to the host");
    while (status == WW_OK && (begin < bytes || before != NULL)) {
        gpu_staging_slot *ahead = NULL;
        const size_t chunk = chunk_after(device, begin, bytes);
        if (chunk > 0)
            status = fetch_chunk(stream, from, begin, chunk, &ahead);
        if (status == WW_OK && before != NULL)
            status = unpack_chunk(device, before, &work);
        work.begin = begin;
        work.end = begin + chunk;
        before = ahead;
        begin += chunk;
    }
    if (status != WW_OK)
        gpu_settle(stream);
    else if (bytes > 0)
        atomic_store(&stream->state, STREAM_IDLE); /* the last event was the stream's last work */
    return status;
}

/* ---- kept ------------------------------------------------------------------------------------------------------------------
 */

ww_status gpu_keep(gpu_stream *stream, int32_t number, const void *from, size_t bytes, void **out)
{
    if (number < 0 || number >= GPU_KEPT)
        return ww_fail(WW_INTERNAL, "kept bytes %d do not exist; a stream has %d", number, GPU_KEPT);
    gpu_kept_bytes *kept = &stream->kept[number];
    ww_status status = WW_OK;
    if (kept->bytes != bytes || memcmp(kept->host, from, bytes) != 0) {
        kept->bytes = 0;
        status = gpu_grow(stream, &kept->device, bytes);
        if (status == WW_OK)
            status = gpu_copy_in(stream, kept->device.data, from, bytes);
        if (status == WW_OK && bytes <= sizeof kept->host) {
            memcpy(kept->host, from, bytes);
            kept->bytes = bytes;
        }
    }
    if (status == WW_OK)
        *out = kept->device.data;
    return status;
}

void gpu_forget(gpu_stream *stream, int32_t number)
{
    stream->kept[number].bytes = 0;
}
