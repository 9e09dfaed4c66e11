/* Chooses between a full scan and the screen for a search on a GPU. The results are the same. */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_CHOICE_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_CHOICE_H

#include "gpu/device.h"
#include "gpu/search/screen_plan.h"

typedef struct search_choice {
    bool screen;
    screen_plan plan; /* of the screen, if `screen` */
    uint64_t trial;   /* the shape under which the time of this search is recorded, or 0 */
} search_choice;

/* Chooses for a search or, with `range`, for a range search, whose threshold is known. `capacity` is that of the lists, or 0
 * for the plan's own. */
search_choice search_choose(gpu_device *device, const search_job *job, int32_t capacity, bool range);

/* Returns the plan of a screened search for `queries` of the job's queries. */
screen_plan search_screen_plan(const gpu_device *device, const search_job *job, int64_t queries, int32_t capacity);

/* Records how long the search with this choice took. */
void search_choice_record(gpu_device *device, const search_choice *choice, double microseconds);

#endif
