/* Into how many parts the rows are cut so that thread blocks fill a device. Shared by the plans of plain and screened searches.
 */
#ifndef WW_GPU_SEARCH_FILL_DEVICE_H
#define WW_GPU_SEARCH_FILL_DEVICE_H

#include <stdint.h>

typedef struct fill_size {
    int64_t columns;    /* thread blocks for each part */
    int64_t resident;   /* thread blocks that the device holds at once */
    int64_t parts_max;  /* at least 1 */
    int64_t rounds_max; /* of resident blocks: parts are cut no finer */
} fill_size;

/* Blocks beyond the resident ones wait for a place. Gives the number of parts that leaves the fewest places empty in the last
 * round of blocks; more parts only for a gain of 2%, since each begins with nothing found. */
int64_t fill_device(fill_size size);

#endif
