/* A GPU from open to close. */
#ifndef WW_GPU_OPEN_H
#define WW_GPU_OPEN_H

#include "gpu/device.h"

/* Opens device `index` of a driver whose load() succeeded, for the backend `table`. The first time may take seconds, because
 * the driver compiles. */
ww_status gpu_open(const backend *table, const gpu_driver *driver, int32_t index, ww_device **out);
void gpu_close(ww_device *closing);

#endif
