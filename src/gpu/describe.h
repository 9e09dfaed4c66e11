/* Finding devices and saying what they are, before one is opened. */
#ifndef WW_GPU_DESCRIBE_H
#define WW_GPU_DESCRIBE_H

#include "gpu/driver/driver.h"

/* How many devices a driver has; 0 with the reason in ww_error_message() if it is not there or says nonsense. */
ww_status gpu_count(const gpu_driver *driver, int32_t *count);

/* All that can be said of device `index`. The free memory costs a context, which may take a while to make. */
ww_status gpu_describe(const gpu_driver *driver, int32_t index, ww_device_info *info);

/* The same without the free memory, and at once. Refuses an index that is not there. */
ww_status gpu_describe_index(const gpu_driver *driver, int32_t index, ww_device_info *info);

#endif
