/* Screened search on a GPU (kernels/screen/screen_args.h): the same results as a plain one, with fewer scores. */
#ifndef WW_GPU_SEARCH_SCREEN_H
#define WW_GPU_SEARCH_SCREEN_H

#include "device/backend.h"
#include "gpu/search/screen_plan.h"

/* Searches. Blocking. Queries that keep too many rows are asked again with a better threshold, and then without the screen. */
ww_status gpu_screen_search(ww_device *device, const search_job *job, const screen_plan *plan);

#endif
