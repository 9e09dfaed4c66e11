/* Which way a search takes on a GPU: scoring every row, or the screen. The results are the same. */
#ifndef WW_GPU_SEARCH_CHOICE_SEARCH_CHOICE_H
#define WW_GPU_SEARCH_CHOICE_SEARCH_CHOICE_H

#include "gpu/device.h"

typedef struct search_choice {
    bool screen;
    uint64_t trial; /* the shape under which its time is to be told, or 0 */
} search_choice;

/* Chooses for a search, or for a range search whose threshold is known. */
search_choice search_choose(gpu_device *device, const search_job *job, bool range);

/* Tells how long the search took that was chosen so. */
void search_chosen(gpu_device *device, const search_choice *choice, double microseconds);

#endif
