/* Which way a search takes on a GPU: scoring every row, or the screen. The results are the same. */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_CHOICE_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_CHOICE_H

#include "gpu/device.h"
#include "gpu/search/screen_plan.h"

typedef struct search_choice {
    bool screen;
    screen_plan plan; /* of the screen, if it is taken */
    uint64_t trial;   /* the shape under which its time is recorded, or 0 */
} search_choice;

/* Chooses for a search, or for a range search whose threshold is known. `capacity` of lists, or 0 to let the plan say. */
search_choice search_choose(gpu_device *device, const search_job *job, int32_t capacity, bool range);

/* The plan of a screened search for some of the job's queries. */
screen_plan search_screen_plan(const gpu_device *device, const search_job *job, int64_t queries, int32_t capacity);

/* Tells how long the search took that was chosen so. */
void search_chosen(gpu_device *device, const search_choice *choice, double microseconds);

#endif
