/* Streams, and what an operation keeps on one: workspaces on the device, pinned staging on the host, events.
 *
 * A stream is used by one thread at a time. An operation borrows one and returns it; its workspaces stay with it and only
 * ever grow, so an operation that has run before at the same size allocates nothing.
 */
#ifndef WW_GPU_STREAM_H
#define WW_GPU_STREAM_H

#include "gpu/device.h"

enum {
    GPU_WORKSPACES = 11,         /* device memory by number: each operation says what its numbers mean */
    GPU_OVERLAP = 16,            /* kernels of a stream that may run at the same time */
    GPU_KEPT = 2,                /* bytes that are the same from call to call, by number */
    GPU_KEPT_BYTES = 2048,       /* the maximum for each; more are copied each time */
    GPU_PINNED = 2,              /* host memory that kernels reach, by number */
    GPU_STAGING_SLOTS = 3,       /* pieces of pinned memory that take turns */
    GPU_STAGING_BYTES = 16 << 20 /* each, if a copy is that large: 300 us of PCIe 5, against some 20 us to wake the threads */
};

typedef struct gpu_staging_slot {
    void *host; /* pinned */
    size_t bytes;
    driver_event done; /* recorded after the last copy that used it */
} gpu_staging_slot;

typedef struct gpu_kept_bytes {
    buffer device;
    size_t bytes; /* last copied to the device, and kept in `host` for comparison; 0: they were more than GPU_KEPT_BYTES */
    char host[GPU_KEPT_BYTES];
} gpu_kept_bytes;

typedef struct gpu_pinned_bytes {
    void *host;
    size_t bytes;
} gpu_pinned_bytes;

typedef enum stream_state {
    STREAM_IDLE,
    STREAM_BUSY,     /* something was queued since the last synchronize */
    STREAM_ANSWERED, /* busy, but its results have arrived; the rest touches only the stream's own memory */
    STREAM_WRITES    /* busy; a kernel that begins early now runs beside only the last ones, which write `written` */
} stream_state;

/* What the kernels of STREAM_WRITES write, apart from the stream's own memory. */
typedef struct stream_written {
    struct {
        const char *from, *to;
    } ranges[GPU_OVERLAP];
    int32_t count;
} stream_written;

/* Each quantized gemv that runs beside others has a slot of a workspace (gpu/quant/quant_prepare.c). */
typedef struct stream_gemv_slots {
    bool zeroed;   /* their counters, in a workspace of its own */
    uint32_t last; /* number of the last gemv */
} stream_gemv_slots;

struct gpu_stream {
    gpu_device *device;
    driver_stream handle;
    buffer workspaces[GPU_WORKSPACES];
    gpu_kept_bytes kept[GPU_KEPT];
    gpu_pinned_bytes pinned[GPU_PINNED];
    gpu_staging_slot staging[GPU_STAGING_SLOTS];
    int32_t staging_next;
    atomic_int state; /* a stream_state */
    stream_written written;
    stream_gemv_slots gemv_slots;
    bool recording;     /* work is recorded (gpu/tensor/record.c): nothing can wait for it, and workspaces must not move */
    int32_t recordings; /* that exist. They use the workspaces, so outgrown ones are retired and not freed */
    buffer *retired;
    int32_t retired_count, retired_capacity;
    bool backward;            /* the last direction of gpu_alternate_direction() */
    driver_context previous;  /* while borrowed: what was current before */
    gpu_stream *next, **link; /* in the list of all */
    gpu_stream *next_idle;
};

/* ---- borrowing ------------------------------------------------------------------------------------------------------------
 */

/* Returns an idle stream, or creates one, and enters the device on this thread. */
ww_status gpu_stream_borrow(gpu_device *device, gpu_stream **out);
/* Ends an operation: waits for the stream's work unless its results have arrived, makes the stream idle and leaves the device.
 * Returns `status`; if that is WW_OK, the status of the wait. */
ww_status gpu_stream_return(gpu_stream *stream, ww_status status);

/* Ends one recording's use of the workspaces; the last one frees what was retired. The stream is idle. */
void gpu_stream_forget_recording(gpu_stream *stream);

/* WW_OK, or WW_UNSUPPORTED while the stream records, since `what` cannot be recorded. */
ww_status gpu_refuse_recording(const gpu_stream *stream, const char *what);

/* ---- on a stream, the device entered --------------------------------------------------------------------------------------
 */

/* Notes that the kernel just queued calls launches_next() after launches_wait() (kernels/simt/simt.h) and writes these `bytes`,
 * apart from the stream's own memory. */
void gpu_writes(gpu_stream *stream, const void *from, size_t bytes);
/* Like gpu_writes(), for a kernel that calls launches_next() earlier but ends only after the kernels that it waits for. The
 * caller must have seen gpu_may_overlap() return true just before it queued the kernel. */
void gpu_writes_too(gpu_stream *stream, const void *from, size_t bytes);
/* Whether the stream is in STREAM_WRITES and can note one more kernel. */
bool gpu_may_overlap(const gpu_stream *stream);
/* Whether a kernel that is launched early now may read these bytes before it waits: no unfinished kernel writes them. */
bool gpu_leaves_alone(const gpu_stream *stream, const void *from, size_t bytes);

/* Device memory of at least `bytes` under `number`, 256-byte aligned and uninitialised, which the stream keeps until it is
 * destroyed. The same number gives the same memory again if it is large enough; otherwise the call waits for the stream and
 * replaces it. */
ww_status gpu_workspace(gpu_stream *stream, int32_t number, size_t bytes, void **out);

/* Device memory under `number` with a copy of these bytes. Up to GPU_KEPT_BYTES that are the same as last time are not copied
 * again. A kernel that writes there must restore them, and the code that launched it calls gpu_forget() on any failure. */
ww_status gpu_keep(gpu_stream *stream, int32_t number, const void *from, size_t bytes, void **out);
void gpu_forget(gpu_stream *stream, int32_t number);

/* Host memory of at least `bytes` under `number` that kernels of this device read and write at the same address, over the bus.
 * It is uninitialised, and the stream keeps it like a workspace. */
ww_status gpu_pinned(gpu_stream *stream, int32_t number, size_t bytes, void **out);

/* Pieces of host memory, `bytes` each, `stride_bytes` apart. */
typedef struct host_pieces {
    const void *data;
    size_t bytes;
    size_t stride_bytes;
    int64_t count;
} host_pieces;

/* Queued. The caller may change the host memory when these return: they pack it into pinned staging with several threads while
 * the copy engine runs. The second packs the pieces one after the other. */
ww_status gpu_copy_in(gpu_stream *stream, void *to, const void *from, size_t bytes);
ww_status gpu_copy_in_pieces(gpu_stream *stream, void *to, host_pieces from);
/* Waits until the bytes have arrived. */
ww_status gpu_copy_out(gpu_stream *stream, void *to, const void *from, size_t bytes);
/* Queued. */
ww_status gpu_copy(gpu_stream *stream, void *to, const void *from, size_t bytes);
ww_status gpu_fill(gpu_stream *stream, void *to, uint32_t pattern, size_t words);
/* Keeps the memory of an unused slot for another stream (false: the caller frees it), and frees what is kept. */
bool gpu_staging_keep(gpu_device *device, const gpu_staging_slot *slot);
void gpu_staging_free_spares(gpu_device *device);
/* Waits. */
ww_status gpu_synchronize(gpu_stream *stream);

/* Waits until the last kernel queued has written `count` words of pinned memory, which were 0 and become other numbers: polls
 * them for a moment, then waits for the stream. The kernel must write them with store_host_u64() after everything else, except
 * for the stream's own memory. */
ww_status gpu_await(gpu_stream *stream, const uint64_t *words, int64_t count);

/* Alternates the direction in which searches of one query on this stream go through the rows: what the last one read at its end
 * is still in the device's cache. */
static inline bool gpu_alternate_direction(gpu_stream *stream)
{
    stream->backward = !stream->backward;
    return stream->backward;
}

/* ---- events, the device entered -------------------------------------------------------------------------------------------
 */

/* Events in a stream. `timed` ones can measure. Fails only if the device is lost. */
ww_status gpu_event_create(gpu_device *device, bool timed, driver_event *out);
void gpu_event_destroy(gpu_device *device, driver_event event); /* accepts NULL */
ww_status gpu_event_record(gpu_stream *stream, driver_event event);
/* Waits for both events and returns the milliseconds between them. Both must be timed and recorded. */
ww_status gpu_event_elapsed(gpu_device *device, driver_event from, driver_event to, float *milliseconds);

/* ---- for the backend ------------------------------------------------------------------------------------------------------
 */

ww_status gpu_stream_create(gpu_device *device, gpu_stream **out); /* the device entered; not on the idle list */
void gpu_stream_destroy(gpu_stream *stream);                       /* waits; accepts NULL */
/* Waits and ignores failures; used after a failure whose message must stay. */
void gpu_settle(gpu_stream *stream);
/* Destroys the idle streams with all they hold. */
void gpu_streams_end_idle(gpu_device *device);
/* Replaces device memory, which the stream may be using, by at least `bytes` bytes. */
ww_status gpu_grow(gpu_stream *stream, buffer *memory, size_t bytes);
/* Waits, if possible, for everything queued on any stream of the device, before memory is freed. */
void gpu_drain(gpu_device *device);

#endif
