/* Which kernels a device has code for: not all, since some modules are compiled for few chips (cmake/Kernels.cmake). */
#ifndef TESTS_SUPPORT_KERNELS_H
#define TESTS_SUPPORT_KERNELS_H

#include "device/backend.h"

/* Returns true if there is code of kernel number `kernel` of kernels.def for the device. The emulator has all. */
bool kernel_is_there(const ww_device *device, int32_t kernel);

#endif
