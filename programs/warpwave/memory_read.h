/* How fast this machine's cores can read memory: the lower bound for any search that reads every row. */
#ifndef CLI_MEMORY_READ_H
#define CLI_MEMORY_READ_H

#include <stddef.h>

#include "base/status.h"

/* Reads `bytes` from `data` once, with one pinned thread per core; both are multiples of 8. Gives the seconds and the number of
 * threads. Blocks until it is done. */
ww_status memory_read_measure(const void *data, size_t bytes, double *seconds, int *threads);

#endif
