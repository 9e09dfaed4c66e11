/* The times between the marks of a search (device/tuning.h), averaged over some searches. */
#ifndef BENCH_PHASES_H
#define BENCH_PHASES_H

#include <stdio.h>

#include "device/backend.h"

static void print_phases(const search_marks *marks, int times)
{
    double sum = 0;
    for (int i = 0; i < marks->count; i++) {
        const double microseconds = (double)marks->phases[i].milliseconds * 1e3 / times;
        printf("    %-26s %8.1f us\n", marks->phases[i].name, microseconds);
        sum += microseconds;
    }
    printf("    %-26s %8.1f us\n", "together", sum);
}

#endif
