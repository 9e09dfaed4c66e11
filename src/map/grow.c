/* Places rows that were added later at the mean of their neighbours' places, by the weights of graph.c.
 *
 * Rows are placed in order, and a placed row counts as a neighbour of the next. A row without a placed neighbour waits for
 * another round. If a round places none, the remaining rows are only neighbours of each other, and the first of them gets the
 * mean of all places.
 */
#include "base/integers.h"
#include "map/map.h"

/* Positive, so that the farthest neighbour counts, too: it may be the only one with a place. */
static const double WEIGHT_MIN = 1e-9;

static bool place(map_job *job, uint32_t row, const neighbours *near, int64_t at, const bool *placed)
{
    float weights[WW_MAP_NEIGHBOURS_MAX];
    const uint32_t *numbers = near->numbers + at * near->k;
    double x = 0.0, y = 0.0, sum = 0.0;
    neighbour_weights(near->gaps + at * near->k, numbers, near->k, weights);
    for (int32_t i = 0; i < near->k && numbers[i] != NO_ROW; i++) {
        if (!placed[numbers[i]])
            continue;
        const double weight = (double)weights[i] + WEIGHT_MIN;
        x += weight * (double)job->x[numbers[i]];
        y += weight * (double)job->y[numbers[i]];
        sum += weight;
    }
    if (sum == 0.0)
        return false;
    job->x[row] = (float)(x / sum);
    job->y[row] = (float)(y / sum);
    return true;
}

static void place_in_the_middle(map_job *job, uint32_t row, const bool *placed)
{
    double x = 0.0, y = 0.0;
    int64_t count = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (placed[i]) {
            x += (double)job->x[i];
            y += (double)job->y[i];
            count++;
        }
    job->x[row] = (float)(x / (double)max_i64(count, 1));
    job->y[row] = (float)(y / (double)max_i64(count, 1));
}

void grow_place(map_job *job, map_list list, const neighbours *near, bool *placed)
{
    int64_t left = list.count;
    while (left > 0) {
        const int64_t before = left;
        int64_t first = -1; /* the first row without a place */
        left = 0;
        for (int64_t i = 0; i < list.count; i++) {
            const uint32_t row = list.numbers[i];
            if (placed[row] || job->gone[row])
                continue;
            placed[row] = place(job, row, near, i, placed);
            if (placed[row])
                continue;
            first = first < 0 ? i : first;
            left++;
        }
        if (left == before && first >= 0) {
            place_in_the_middle(job, list.numbers[first], placed);
            placed[list.numbers[first]] = true;
        }
    }
}
