/* Lists of an index on a GPU: storing them, and searching some of them. device/backend.h describes these functions. */
#ifndef WW_GPU_SEARCH_LISTS_LISTS_H
#define WW_GPU_SEARCH_LISTS_LISTS_H

#include "device/backend.h"

ww_status gpu_lists_push(ww_device *device, const list_push *job, device_lists **lists);
void gpu_lists_destroy(ww_device *device, device_lists *lists);
int64_t gpu_lists_bytes(const device_lists *lists);
ww_status gpu_rows_search_lists(ww_device *device, const list_job *job);

#endif
