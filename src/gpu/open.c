/* A GPU from open to close: its parts are made in this order. */
#include "gpu/open.h"

#include "base/memory.h"
#include "base/system/cores.h"
#include "gpu/describe.h"
#include "gpu/error.h"
#include "gpu/memory.h"
#include "gpu/module.h"
#include "gpu/search/choice/trials_file.h"
#include "gpu/search/planes/planes.h"
#include "gpu/stream.h"
#include "gpu/tensor/tensor.h"

enum {
    PACKING_THREADS_MAX = 16 /* outrun PCIe 5: on an H200's host 8 reach 75 to 84%, 16 reach 96% */
};

static ww_status make_locks(gpu_device *device)
{
    if (pthread_rwlock_init(&device->streams_lock, NULL) != 0)
        return memory_failed("a lock", sizeof device->streams_lock);
    if (pthread_mutex_init(&device->idle_lock, NULL) != 0) {
        pthread_rwlock_destroy(&device->streams_lock);
        return memory_failed("a lock", sizeof device->idle_lock);
    }
    return WW_OK;
}

/* Devices use different cores for their threads as long as there are enough. */
static ww_status start_threads(gpu_device *device)
{
    int32_t cores[CORES_MAX];
    int32_t count = 0;
    const ww_status status = cores_to_use(cores, CORES_MAX, &count);
    if (status != WW_OK || count < 2)
        return status; /* with one core the calling thread packs */
    int32_t chosen[PACKING_THREADS_MAX];
    const int32_t threads = count < PACKING_THREADS_MAX ? count : PACKING_THREADS_MAX;
    for (int32_t i = 0; i < threads; i++)
        chosen[i] = cores[(device->base.info.index * threads + i) % count];
    return pool_create(chosen, threads, &device->threads);
}

static void read_trials(gpu_device *device)
{
    search_trials_begin(&device->trials);
    if (device->driver->kernels_run_unwaited)
        trials_file_read(trials_device(device->base.info.name, device->base.info.arch, device->base.info.driver_version),
                         &device->trials);
}

static void write_trials(gpu_device *device)
{
    if (device->trials.changed)
        trials_file_write(trials_device(device->base.info.name, device->base.info.arch, device->base.info.driver_version),
                          &device->trials);
}

/* Makes what needs the device's context. The device is entered. */
static ww_status create_parts(gpu_device *device)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ww_status status = gpu_check(device, device->driver->memory_info(&free_bytes, &total_bytes), "asking for the free memory");
    if (status != WW_OK)
        return status;
    device->base.info.memory_total_bytes = (int64_t)total_bytes;
    device->base.info.memory_free_bytes = (int64_t)free_bytes;
    device->base.info.memory_used_bytes = (int64_t)(total_bytes - free_bytes);
    status = gpu_pool_create(device);
    if (status == WW_OK)
        status = gpu_planes_create(device);
    if (status == WW_OK)
        status = gpu_modules_create(device);
    if (status == WW_OK)
        status = gpu_tensors_create(device);
    if (status == WW_OK)
        read_trials(device);
    gpu_stream *first = NULL; /* created now, so that the first operation finds an idle stream */
    if (status == WW_OK)
        status = gpu_stream_borrow(device, &first);
    return status == WW_OK ? gpu_stream_return(first, WW_OK) : status;
}

/* Frees unused memory: planes of codes, tensor memory that waits for its stream, idle streams with all they hold, and the pool.
 */
static int release_unused(gpu_device *device)
{
    gpu_planes_release(device);
    gpu_tensors_release(device);
    gpu_streams_end_idle(device);
    return gpu_pool_trim(device);
}

static void strip(gpu_device *device)
{
    gpu_tensors_destroy(device);
    if (device->pool != NULL)
        (void)release_unused(device);
    while (device->streams != NULL) /* streams that were not returned */
        gpu_stream_destroy(device->streams);
    gpu_staging_free_spares(device);
    gpu_planes_destroy(device);
    gpu_modules_destroy(device);
    gpu_pool_destroy(device);
}

ww_status gpu_open(const backend *table, const gpu_driver *driver, int32_t index, ww_device **out)
{
    gpu_device *device = memory_alloc_zeroed(1, sizeof *device);
    if (device == NULL)
        return memory_failed("a device", sizeof *device);
    device->base.backend = table;
    device->base.opened_in = process_here();
    device->driver = driver;
    device->release_unused = release_unused;
    device->staging_bytes = GPU_STAGING_BYTES;
    atomic_init(&device->base.users, 1);
    atomic_flag_clear(&device->losing);
    device->base.info = ww_device_info_default();
    ww_status status = make_locks(device);
    if (status != WW_OK) {
        memory_free(device);
        return status;
    }
    status = gpu_describe_index(driver, index, &device->base.info);
    if (status == WW_OK)
        status = gpu_check(device, driver->launch_limits(index, &device->limits), "asking how large a launch may be");
    if (status == WW_OK)
        status = start_threads(device);
    if (status == WW_OK)
        status = gpu_check(device, driver->context_create(index, &device->context), "opening the device");
    driver_context previous = NULL;
    if (status == WW_OK)
        status = gpu_enter(device, &previous);
    if (status == WW_OK) {
        status = create_parts(device);
        gpu_leave(device, previous);
    }
    if (status != WW_OK) {
        gpu_close(&device->base);
        return status;
    }
    *out = &device->base;
    return WW_OK;
}

void gpu_close(ww_device *closing)
{
    gpu_device *device = gpu_of(closing);
    write_trials(device);
    if (device->context != NULL) {
        driver_context previous = NULL;
        gpu_enter_to_free(device, &previous);
        strip(device);
        gpu_leave(device, previous);
        (void)device->driver->context_destroy(device->base.info.index, device->context);
    }
    pool_destroy(device->threads);
    pthread_mutex_destroy(&device->idle_lock);
    pthread_rwlock_destroy(&device->streams_lock);
    memory_free(device);
}
