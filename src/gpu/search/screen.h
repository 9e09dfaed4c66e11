/* Screened search on a GPU (kernels/screen/screening.h): the same results as a plain one, with fewer scores. */
#ifndef WW_GPU_SEARCH_SCREEN_H
#define WW_GPU_SEARCH_SCREEN_H

#include "device/backend.h"

/* Do the segments have codes, and is the search large enough for them to pay? */
bool gpu_screen_pays(const search_job *job);

/* Searches. Blocking. Queries that keep too many rows are asked again with a better threshold, and then without the screen. */
ww_status gpu_screen_search(ww_device *device, const search_job *job);

/* Test hook: from now on, in the whole process, lists have room for `capacity` rows at first, 0 for what it was; and many
 * queries go by the kernels that multiply from shared memory always (1), never (-1), or where the chip has instructions for it
 * (0). */
void gpu_screen_tune(int32_t capacity, int32_t wide);

#endif
