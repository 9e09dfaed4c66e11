/* The same search on every device of the machine and with every instruction set of its CPU. */
#ifndef WARPWAVE_DEMO_COMPARE_H
#define WARPWAVE_DEMO_COMPARE_H

#include <stdint.h>

#include "base/status.h"

enum { COMPARED_MAX = 24, COMPARED_NAME_BYTES = 80, COMPARED_FAILURE_BYTES = 160 };

typedef struct compared {
    char name[COMPARED_NAME_BYTES];       /* "cpu, avx2" */
    char failure[COMPARED_FAILURE_BYTES]; /* why the device could not compute; "": it did */
    double seconds;                       /* of the fastest search */
    uint64_t digest;                      /* of the answers: ids and the bits of their scores */
} compared;

typedef struct comparison {
    compared list[COMPARED_MAX];
    int count;
} comparison;

/* Searches everywhere. It changes WARPWAVE_ISA for some time, so nothing else may run. A device that fails does not fail the
 * comparison; different digests do, after it is complete. */
ww_status compare_everywhere(comparison *c);

/* Prints the list. */
void compare_print(const comparison *c);

#endif
