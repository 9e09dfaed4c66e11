/* Filling a device with thread blocks: every number of parts is tried, there are a few hundred at most. */
#include "gpu/search/fill_device.h"

int64_t fill_device(fill_size size)
{
    int64_t fewest = size.resident > size.columns ? size.resident / size.columns : 1;
    fewest = fewest < size.parts_max ? fewest : size.parts_max;
    int64_t most = size.rounds_max * size.resident / size.columns;
    most = most < size.parts_max ? most : size.parts_max;
    int64_t best = fewest;
    double best_used = 0;
    for (int64_t parts = fewest; parts <= most; parts++) {
        const int64_t blocks = parts * size.columns, rounds = (blocks + size.resident - 1) / size.resident;
        const double used = (double)blocks / (double)(rounds * size.resident);
        if (used > best_used + 0.02) {
            best = parts;
            best_used = used;
        }
    }
    return best;
}
