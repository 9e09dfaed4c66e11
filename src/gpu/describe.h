/* Finds and describes devices before one is opened. */
#ifndef WW_GPU_DESCRIBE_H
#define WW_GPU_DESCRIBE_H

#include "gpu/driver/driver.h"

/* Returns how many devices a driver has; 0 with the reason in ww_error_message() if there is no driver or its answer makes no
 * sense. */
ww_status gpu_count(const gpu_driver *driver, int32_t *count);

/* Describes device `index`. The free memory needs a context, which may take a while to create. */
ww_status gpu_describe(const gpu_driver *driver, int32_t index, ww_device_info *info);

/* Describes it without the free memory, which takes no time. Refuses an index that does not exist. */
ww_status gpu_describe_index(const gpu_driver *driver, int32_t index, ww_device_info *info);

#endif
