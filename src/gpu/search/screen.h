/* Screened search on a GPU (kernels/screen/screen_args.h): the results of a full scan with fewer scores. */
#ifndef WW_GPU_SEARCH_SCREEN_H
#define WW_GPU_SEARCH_SCREEN_H

#include "device/backend.h"
#include "gpu/search/screen_plan.h"

/* Searches for all queries of the job. A query that keeps too many rows is searched again with a better threshold, and then
 * without the screen. Blocks. */
ww_status gpu_screen_search(ww_device *device, const search_job *job, const screen_plan *plan);

#endif
