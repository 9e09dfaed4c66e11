/* Jobs on tensors of any size, divided into as many launches as the driver's limits require (gpu_blocks_max). The backend's
 * table has these functions; those of tensor.h handle a job that fits into one launch. */
#ifndef WW_GPU_TENSOR_PIECES_H
#define WW_GPU_TENSOR_PIECES_H

#include "device/tensor_jobs.h"

ww_status pieces_elementwise(ww_device *base, const elementwise_job *job);
ww_status pieces_random(ww_device *base, const random_job *job);
ww_status pieces_check_ids(ww_device *base, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value);
ww_status pieces_gather(ww_device *base, const elementwise_job *job, const elementwise_job *ids, int64_t *bad, int64_t *value);
ww_status pieces_scatter(ww_device *base, const scatter_job *job);
ww_status pieces_reduce(ww_device *base, const reduce_job *job);
ww_status pieces_rows(ww_device *base, const rows_job *job);
ww_status pieces_rope(ww_device *base, const rope_job *job);
ww_status pieces_sort(ww_device *base, const sort_job *job);
ww_status pieces_matmul(ww_device *base, const matmul_job *job);

#endif
