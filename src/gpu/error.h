/* Converts a vendor's error number to a status with a text: "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): 4.0 GiB asked,
 * ...". */
#ifndef WW_GPU_ERROR_H
#define WW_GPU_ERROR_H

#include "base/status.h"
#include "gpu/device.h"

/* Turns a driver's number and what was being done into a status: WW_OK for 0, otherwise WW_OUT_OF_MEMORY, WW_UNSUPPORTED (code
 * that the driver does not accept) or WW_DRIVER_ERROR, with the call, the number's name, the number and the text in the
 * message. A number that means the device is lost marks it as lost; from then on gpu_enter() refuses. */
__attribute__((format(printf, 3, 4))) ww_status gpu_check(gpu_device *device, int number, const char *format, ...);

/* Records for ww_error_detail() which driver call failed last on this thread, with this number. */
void driver_note(const gpu_driver *driver, int number);

/* Marks the device lost; the first reason stays. */
void gpu_lose(gpu_device *device, const char *because);

/* Like gpu_check(), when there is no device yet. */
__attribute__((format(printf, 3, 4))) ww_status driver_check(const gpu_driver *driver, int number, const char *format, ...);

#endif
