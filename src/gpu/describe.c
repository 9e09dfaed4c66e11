/* Finds and describes devices before one is opened. */
#include "gpu/describe.h"

#include <stdio.h>

#include "base/text.h"
#include "gpu/chip.h"
#include "gpu/error.h"
#include "kernels/embedded.h"

enum {
    DEVICES_MAX = 1024, /* a driver that reports more is wrong */
    UNITS_MAX = 65536   /* no device has this many units, or threads per block */
};

/* A child of fork() cannot use a driver that its parent has started: calls of CUDA fail or hang, as its documentation says, and
 * HIP behaves the same. */
static ww_status check_process(const gpu_driver *driver)
{
    const process_mark started_in = atomic_load(driver->started_in);
    if (started_in == 0 || process_is_ours(started_in))
        return WW_OK;
    return ww_fail(WW_OTHER_PROCESS,
                   "%s: the driver was started in another process, which fork() made this one from, and works in that one "
                   "alone; fork before the first use of a GPU, start a new program, or open \"cpu\"",
                   driver->backend);
}

ww_status gpu_count(const gpu_driver *driver, int32_t *count)
{
    char why[512] = "";
    int32_t devices = 0;
    int number = 0;
    *count = 0;
    const ww_status status = check_process(driver);
    if (status != WW_OK)
        return status;
    if (driver->loads_code && embedded_chip_count() == 0 && driver->module_compile == NULL)
        (void)ww_fail(WW_NO_DEVICE, "%s: this library has no GPU kernels: %s", driver->backend, embedded_absence());
    else if ((number = driver->load(why, sizeof why)) != 0) {
        driver_note(driver, number);
        (void)ww_fail(WW_NO_DEVICE, "%s", why);
    } else if (driver_check(driver, driver->device_count(&devices), "counting devices") != WW_OK)
        devices = 0; /* the message is set already */
    else if (devices == 0)
        (void)ww_fail(WW_NO_DEVICE, "%s: the driver is installed, but reports no device", driver->backend);
    else if (devices < 0 || devices > DEVICES_MAX)
        (void)ww_fail(WW_NO_DEVICE, "%s: the driver reports %d devices, which is not plausible", driver->backend, devices);
    else
        *count = devices;
    return WW_OK;
}

/* The kernels that a device of this chip would load; module.c writes what it has loaded. */
static void name_kernels(const gpu_driver *driver, ww_device_info *info)
{
    const embedded_kernels *best = NULL;
    int32_t fitness = 0;
    for (const embedded_kernels *code = embedded_all(); code->module != NULL; code++) {
        const int32_t fits = chip_code_fitness(info->arch, code->chip, code->format);
        best = fits > fitness ? code : best;
        fitness = fits > fitness ? fits : fitness;
    }
    if (!driver->loads_code)
        text_copy(info->kernels, sizeof info->kernels, "built in");
    else if (best == NULL)
        text_copy(info->kernels, sizeof info->kernels,
                  driver->module_compile != NULL ? "none embedded for this chip, compiled when it is opened"
                                                 : "none for this chip");
    else
        snprintf(info->kernels, sizeof info->kernels, "embedded %s %s", best->chip, best->format);
}

/* Checks the numbers that launches are made of. Refuses values that no chip has. */
static ww_status check_numbers(const ww_device_info *info)
{
    const bool waves = info->wave_size == 32 || info->wave_size == 64;
    const bool units = info->compute_units >= 1 && info->compute_units <= UNITS_MAX;
    const bool blocks = info->max_threads_per_block >= info->wave_size && info->max_threads_per_block <= UNITS_MAX;
    if (waves && units && blocks && info->shared_bytes_per_block > 0 && info->memory_total_bytes > 0)
        return WW_OK;
    return ww_fail(
        WW_DRIVER_ERROR,
        "%s: the driver reports %d compute units, waves of %d lanes, %d threads a block, %lld bytes of shared memory and %lld "
        "bytes in all, which is not plausible",
        info->id, info->compute_units, info->wave_size, info->max_threads_per_block, (long long)info->shared_bytes_per_block,
        (long long)info->memory_total_bytes);
}

ww_status gpu_describe_index(const gpu_driver *driver, int32_t index, ww_device_info *info)
{
    int32_t count = 0;
    ww_status status = gpu_count(driver, &count);
    if (status != WW_OK)
        return status;
    if (count == 0)
        return WW_NO_DEVICE; /* the message is gpu_count()'s */
    if (index < 0 || index >= count)
        return ww_fail(WW_NO_DEVICE, "%s:%d: there are %d devices, numbered from 0", driver->backend, index, count);
    status = driver_check(driver, driver->device_describe(index, info), "describing %s:%d", driver->backend, index);
    if (status != WW_OK)
        return status;
    if (info->id[0] == '\0')
        snprintf(info->id, sizeof info->id, "%s:%d", driver->backend, index);
    text_copy(info->backend, sizeof info->backend, driver->backend);
    text_copy(info->vendor, sizeof info->vendor, driver->vendor);
    info->index = index;
    name_kernels(driver, info);
    return check_numbers(info);
}

ww_status gpu_describe(const gpu_driver *driver, int32_t index, ww_device_info *info)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    driver_context context = NULL;
    driver_context previous = NULL;
    const ww_status status = gpu_describe_index(driver, index, info);
    if (status != WW_OK || driver->context_create(index, &context) != 0)
        return status; /* a device that another process uses exclusively has no free memory for us */
    if (driver->context_swap(context, &previous) == 0) {
        if (driver->memory_info(&free_bytes, &total_bytes) == 0) {
            info->memory_free_bytes = (int64_t)free_bytes;
            info->memory_used_bytes = info->memory_total_bytes - (int64_t)free_bytes;
        }
        (void)driver->context_swap(previous, &context);
    }
    (void)driver->context_destroy(index, context);
    return WW_OK;
}
