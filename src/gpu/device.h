/* An open GPU: its context, streams, memory and code, over one driver table.
 *
 * An operation needs four things from here: a borrowed stream (which also makes the device current), workspaces on that stream,
 * copies, and launch.h. The pattern:
 *
 *     gpu_stream *stream;
 *     ww_status status = gpu_stream_borrow(device, &stream);
 *     if (status != WW_OK)
 *         return status;
 *     status = gpu_workspace(stream, 0, bytes, &scratch);
 *     if (status == WW_OK)
 *         status = gpu_copy_in(stream, scratch, host, bytes);
 *     if (status == WW_OK)
 *         status = launch_thing(stream, grid_of(blocks), 256, 0, &args);
 *     if (status == WW_OK)
 *         status = gpu_copy_out(stream, result, scratch, bytes);
 *     return gpu_stream_return(stream, status);
 */
#ifndef WW_GPU_DEVICE_H
#define WW_GPU_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "device/backend.h"
#include "gpu/chip.h"
#include "gpu/driver/driver.h"
#include "gpu/search/choice/search_trials.h"

typedef struct gpu_device gpu_device;
typedef struct gpu_pool gpu_pool;       /* memory.c */
typedef struct gpu_modules gpu_modules; /* module.c */
typedef struct gpu_planes gpu_planes;   /* search/planes/planes.c */
typedef struct gpu_stream gpu_stream;   /* stream.h */
typedef struct gpu_tensors gpu_tensors; /* tensor.c */

enum { GPU_SPARES = 24, GPU_SPARE_BYTES = 1 << 20 };

typedef struct gpu_spare {
    void *host; /* pinned */
    size_t bytes;
} gpu_spare;

struct gpu_device {
    ww_device base; /* first: a ww_device * of this backend is a gpu_device * */
    const gpu_driver *driver;
    driver_context context;
    gpu_pool *pool;
    gpu_modules *modules;
    chip_capabilities capabilities; /* of the loaded code; set when the device is opened */
    chip_constants constants;       /* for that code */
    driver_launch_limits limits;
    size_t staging_bytes;   /* the maximum of one piece of pinned memory; set before the first copy */
    pool *threads;          /* fill the staging memory */
    atomic_bool lost;       /* set once, by the first error that broke the context */
    char lost_because[256]; /* written before `lost` is set, by the thread that wins `losing` */
    atomic_flag losing;

    pthread_rwlock_t streams_lock; /* protects the list of streams: none is destroyed while a thread waits for all */
    gpu_stream *streams;
    pthread_mutex_t idle_lock;
    gpu_stream *idle;             /* streams for borrowing */
    gpu_spare spares[GPU_SPARES]; /* staging of streams that have ended, in small pieces: allocating pinned memory takes long */
    int32_t spare_count;

    gpu_tensors *tensors; /* tensor.c */

    gpu_planes *planes;   /* of codes, for searches of one query */
    search_trials trials; /* times of earlier searches, by which the next one is chosen */

    /* Returns unused memory to the driver when memory runs out. Set when the device is opened, because it concerns more than
     * the pool. Returns the driver's first error number, or 0, and does not change the thread's message. The device is
     * entered. */
    int (*release_unused)(gpu_device *device);
};

static inline gpu_device *gpu_of(ww_device *device)
{
    return (gpu_device *)device;
}

/* Every call into the driver begins with enter and, if that was WW_OK, ends with leave on the same thread. Enter makes the
 * device's context current and stores in `previous` what leave restores. Refuses a lost device with WW_DRIVER_ERROR. May be
 * nested. Borrowing a stream also enters the device. */
ww_status gpu_enter(gpu_device *device, driver_context *previous);
void gpu_leave(gpu_device *device, driver_context previous);

/* Enters to free something, which must work for a lost device too; ignores failures. */
void gpu_enter_to_free(gpu_device *device, driver_context *previous);

#endif
