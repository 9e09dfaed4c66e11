/* The kernels of a device: modules loaded once, functions found by name. launch.h has the functions that start them. */
#ifndef WW_GPU_MODULE_H
#define WW_GPU_MODULE_H

#include "gpu/device.h"

/* Chooses the code for the device and loads the first module of kernels.def, so that opening a device fails if its driver does
 * not accept our code. The other modules are loaded at first use. Writes info.kernels. The device is entered. */
ww_status gpu_modules_create(gpu_device *device);
void gpu_modules_destroy(gpu_device *device); /* accepts a device that has none */

/* Treats the device as a chip of that name (gpu/chip.h). Opening a device calls it with the chip of the code that was loaded
 * first. */
void gpu_take_chip(gpu_device *device, const char *name);

#endif
