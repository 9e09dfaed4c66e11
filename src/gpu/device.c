/* How threads enter a device and leave it. */
#include "gpu/device.h"

#include "gpu/error.h"

ww_status gpu_enter(gpu_device *device, driver_context *previous)
{
    if (!device_is_ours(&device->base))
        return device_check(&device->base);
    if (atomic_load(&device->lost))
        return ww_fail(WW_DRIVER_ERROR, "%s: device lost: %s; close it and open it again", device->base.info.id,
                       device->lost_because);
    return gpu_check(device, device->driver->context_swap(device->context, previous), "making the device current");
}

void gpu_leave(gpu_device *device, driver_context previous)
{
    driver_context ours = NULL;
    (void)device->driver->context_swap(previous, &ours);
}

void gpu_enter_to_free(gpu_device *device, driver_context *previous)
{
    *previous = NULL;
    (void)device->driver->context_swap(device->context, previous);
}
