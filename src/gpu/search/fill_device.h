/* How many parts of the rows fill a device with thread blocks. Shared by the plans of full scans and screened searches.
 */
#ifndef WW_GPU_SEARCH_FILL_DEVICE_H
#define WW_GPU_SEARCH_FILL_DEVICE_H

#include <stdint.h>

typedef struct fill_size {
    int64_t columns;    /* thread blocks for each part */
    int64_t resident;   /* thread blocks that the device holds at once */
    int64_t parts_max;  /* at least 1 */
    int64_t rounds_max; /* of resident blocks; limits the number of parts */
} fill_size;

/* Returns the number of parts that leaves the fewest units idle in the last round of resident blocks. It takes more parts only
 * for a gain of 2%, because each part starts without a threshold. */
int64_t fill_device(fill_size size);

#endif
