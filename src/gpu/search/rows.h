/* The operations on rows that backend.h declares, for all GPUs. */
#ifndef WW_GPU_SEARCH_ROWS_H
#define WW_GPU_SEARCH_ROWS_H

#include "device/backend.h"

ww_status gpu_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused);
ww_status gpu_rows_write_here(ww_device *device, row_range to, const void *rows, int64_t *refused);
ww_status gpu_rows_check_here(ww_device *device, const float *rows, int64_t count, int32_t dim, int64_t *refused);
ww_status gpu_rows_read_here(ww_device *device, const row_choice *from, float *to);
ww_status gpu_rows_read(ww_device *device, row_range from, void *out);
ww_status gpu_rows_gather(ww_device *device, row_range to, const segment *from, const int64_t *sources);
ww_status gpu_rows_search(ww_device *device, const search_job *job);
ww_status gpu_rows_range(ww_device *device, const range_job *job);

#endif
