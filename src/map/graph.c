/* The graph along which points attract each other: which rows are neighbours, and how strongly.
 *
 * A row's neighbours have the weights exp(-gap / sigma), with sigma chosen so that the weights sum to the binary logarithm of
 * their number: rows in dense and in sparse regions then pull equally. An edge joins two rows if at least one is a neighbour of
 * the other; with weights a and b it weighs a + b - ab. This is the fuzzy graph of UMAP (McInnes and others, 2018).
 */
#include <string.h>

#include "arithmetic/math/f32.h"
#include "base/memory.h"
#include "map/map.h"

enum { HALVINGS = 48 }; /* of the interval that sigma is in */

static const float SUM_TOLERANCE = 1e-4f;
static const float SIGMA_MIN = 1e-3f; /* times the mean gap; without it, equal neighbours would have a sigma of 0 */

static float weight_sum(const float *gaps, int32_t count, float sigma)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < count; i++)
        sum += canon_exp_f32(-gaps[i] / sigma);
    return sum;
}

/* Finds sigma between 2^-60 and 2^60 times the mean gap: bisects first its logarithm, then sigma itself. */
static float find_sigma(const float *gaps, int32_t count, float mean, float target)
{
    float low = 0.0f, high = 0.0f, sigma = mean;
    for (int32_t i = 0; i < HALVINGS; i++) {
        const float sum = weight_sum(gaps, count, sigma);
        if (canon_abs_f32(sum - target) < SUM_TOLERANCE)
            break;
        if (sum > target)
            high = sigma;
        else
            low = sigma;
        sigma = high == 0.0f ? 2.0f * low : 0.5f * (low + high);
    }
    return sigma;
}

void neighbour_weights(const float *gaps, const uint32_t *numbers, int32_t k, float *weights)
{
    int32_t count = 0;
    float mean = 0.0f;
    for (; count < k && numbers[count] != NO_ROW; count++)
        mean += gaps[count];
    mean = count > 0 ? mean / (float)count : 0.0f;
    const float target = count > 0 ? canon_log_f32((float)count) * 1.44269504f : 0.0f;
    const float found = mean > 0.0f ? find_sigma(gaps, count, mean, target) : 0.0f;
    const float sigma = found > SIGMA_MIN * mean ? found : SIGMA_MIN * mean;
    for (int32_t i = 0; i < k; i++)
        weights[i] = i >= count ? 0.0f : gaps[i] > 0.0f ? canon_exp_f32(-gaps[i] / sigma) : 1.0f;
}

/* One direction of the edges: the row at the other end, by ascending number, and the weight. */
typedef struct arcs {
    int64_t *starts; /* where each row's arcs start; count + 1 */
    uint32_t *ends;
    float *weights;
} arcs;

typedef struct building {
    const map_job *job;
    const neighbours *near;
    float *weights; /* of the neighbours */
    arcs back;      /* from each row to the rows that have it as a neighbour */
    arcs both;
} building;

static void arcs_free(arcs *a)
{
    memory_free(a->weights);
    memory_free(a->ends);
    memory_free(a->starts);
}

static ww_status arcs_create(arcs *a, int64_t rows, int64_t count)
{
    const size_t bytes = (size_t)count * (sizeof *a->ends + sizeof *a->weights);
    a->starts = memory_alloc_zeroed((size_t)rows + 1, sizeof *a->starts);
    a->ends = memory_alloc((size_t)count * sizeof *a->ends);
    a->weights = memory_alloc((size_t)count * sizeof *a->weights);
    return a->starts && a->ends && a->weights ? WW_OK : memory_failed("the graph of a map", bytes);
}

/* Computes the weights of a row's neighbours and sorts them by number. */
static void weigh(void *context, int64_t row, int32_t worker)
{
    (void)worker;
    const building *b = context;
    const int32_t k = b->near->k;
    uint32_t *numbers = b->near->numbers + row * k;
    float *weights = b->weights + row * k;
    neighbour_weights(b->near->gaps + row * k, numbers, k, weights);
    for (int32_t i = 1; i < k; i++) {
        const uint32_t number = numbers[i];
        const float weight = weights[i];
        int32_t at = i;
        for (; at > 0 && numbers[at - 1] > number; at--) {
            numbers[at] = numbers[at - 1];
            weights[at] = weights[at - 1];
        }
        numbers[at] = number;
        weights[at] = weight;
    }
}

/* Reverses all arcs. Sources are in ascending order, so the arcs of each row are, too. */
static void turn_around(building *b)
{
    const int64_t rows = b->job->count, k = b->near->k;
    int64_t *starts = b->back.starts;
    for (int64_t i = 0; i < rows * k; i++)
        if (b->near->numbers[i] != NO_ROW)
            starts[b->near->numbers[i] + 1]++;
    for (int64_t r = 0; r < rows; r++)
        starts[r + 1] += starts[r];
    for (int64_t i = 0; i < rows * k; i++) {
        if (b->near->numbers[i] == NO_ROW)
            continue;
        const int64_t at = starts[b->near->numbers[i]]++;
        b->back.ends[at] = (uint32_t)(i / k);
        b->back.weights[at] = b->weights[i];
    }
    memmove(starts + 1, starts, (size_t)rows * sizeof *starts);
    starts[0] = 0;
}

/* Merges the neighbours of a row with the rows that have it as a neighbour. Returns where the next row's arcs start. */
static int64_t merge(const building *b, int64_t row, int64_t to)
{
    const int32_t k = b->near->k;
    const uint32_t *numbers = b->near->numbers + row * k;
    const float *weights = b->weights + row * k;
    const int64_t end = b->back.starts[row + 1];
    int64_t back = b->back.starts[row];
    int32_t own = 0;
    while (own < k || back < end) {
        const uint32_t a = own < k ? numbers[own] : NO_ROW, c = back < end ? b->back.ends[back] : NO_ROW;
        const uint32_t number = a < c ? a : c;
        if (number == NO_ROW)
            break;
        const float forth = a == number ? weights[own++] : 0.0f, back_weight = c == number ? b->back.weights[back++] : 0.0f;
        b->both.ends[to] = number;
        b->both.weights[to++] = forth + back_weight - forth * back_weight;
    }
    return to;
}

/* Builds the table for drawing a row's neighbours. An entry with less than its share is filled from one with more. */
static void make_table(const arcs *edges, int64_t row, float *shares, uint32_t *waiting, graph_place *places)
{
    const int64_t first = edges->starts[row], count = edges->starts[row + 1] - first;
    double total = 0.0;
    int64_t small = 0, large = count; /* small entries wait at the front, large ones at the back */
    for (int64_t i = 0; i < count; i++)
        total += (double)edges->weights[first + i];
    for (int64_t i = 0; i < count; i++) {
        shares[i] = (float)((double)edges->weights[first + i] * (double)count / total);
        waiting[shares[i] < 1.0f ? small++ : --large] = (uint32_t)i;
    }
    for (int64_t i = 0; i < count; i++)
        places[first + i] = (graph_place){UINT32_MAX, edges->ends[first + i], edges->ends[first + i]};
    while (small > 0 && large < count) {
        const uint32_t less = waiting[--small], more = waiting[large];
        places[first + less].keep = (uint32_t)((double)shares[less] * 0x1p32);
        places[first + less].other = edges->ends[first + more];
        shares[more] -= 1.0f - shares[less];
        if (shares[more] < 1.0f) {
            large++;
            waiting[small++] = more;
        }
    }
}

static ww_status make_tables(const building *b, graph *made)
{
    const arcs *edges = &b->both;
    const int64_t rows = b->job->count, places = edges->starts[rows];
    int64_t longest = 0;
    for (int64_t r = 0; r < rows; r++)
        longest = edges->starts[r + 1] - edges->starts[r] > longest ? edges->starts[r + 1] - edges->starts[r] : longest;
    made->places = memory_alloc((size_t)places * sizeof *made->places);
    float *shares = memory_alloc((size_t)longest * sizeof *shares);
    uint32_t *waiting = memory_alloc((size_t)longest * sizeof *waiting);
    const bool has = made->places && shares && waiting;
    for (int64_t r = 0; has && r < rows; r++)
        make_table(edges, r, shares, waiting, made->places);
    memory_free(waiting);
    memory_free(shares);
    return has ? WW_OK : memory_failed("the graph of a map", (size_t)places * sizeof *made->places);
}

ww_status graph_create(const map_job *job, const neighbours *near, graph *made)
{
    const int64_t rows = job->count, arcs_max = rows * near->k;
    building b = {.job = job, .near = near};
    *made = (graph){0};
    b.weights = memory_alloc((size_t)arcs_max * sizeof *b.weights);
    ww_status status = b.weights ? WW_OK : memory_failed("the graph of a map", (size_t)arcs_max * sizeof *b.weights);
    if (status == WW_OK)
        status = arcs_create(&b.back, rows, arcs_max);
    if (status == WW_OK)
        status = arcs_create(&b.both, rows, 2 * arcs_max);
    if (status == WW_OK) {
        map_run(job, rows, weigh, &b);
        turn_around(&b);
        for (int64_t r = 0; r < rows; r++)
            b.both.starts[r + 1] = merge(&b, r, b.both.starts[r]);
        status = make_tables(&b, made);
    }
    made->starts = b.both.starts;
    b.both.starts = NULL;
    arcs_free(&b.both);
    arcs_free(&b.back);
    memory_free(b.weights);
    return status;
}

void graph_free(graph *made)
{
    memory_free(made->places);
    memory_free(made->starts);
}
