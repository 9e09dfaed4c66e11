/* Fills a device with thread blocks. It tries every number of parts; there are at most a few hundred. */
#include "gpu/search/fill_device.h"

int64_t fill_device(fill_size size)
{
    int64_t parts_min = size.resident > size.columns ? size.resident / size.columns : 1;
    parts_min = parts_min < size.parts_max ? parts_min : size.parts_max;
    int64_t parts_max = size.rounds_max * size.resident / size.columns;
    parts_max = parts_max < size.parts_max ? parts_max : size.parts_max;
    int64_t best = parts_min;
    double best_used = 0;
    for (int64_t parts = parts_min; parts <= parts_max; parts++) {
        const int64_t blocks = parts * size.columns, rounds = (blocks + size.resident - 1) / size.resident;
        const double used = (double)blocks / (double)(rounds * size.resident);
        if (used > best_used + 0.02) {
            best = parts;
            best_used = used;
        }
    }
    return best;
}
