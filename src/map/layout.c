/* The layout: in every step each point is pulled towards one of its neighbours and pushed away from a few random points.
 *
 * All points of a step move from where they were before it, so the order in which threads compute them does not matter. A row's
 * phase and the step's number choose the neighbour that pulls: multiples of the golden ratio draw every neighbour in proportion
 * to its weight, evenly over the steps. A block of rows is pushed by the same points, so that one random number serves the
 * whole block and the compiler can use vectors.
 *
 * With d the distance of two points, 1 / (1 + d^2) is the likelihood that they are neighbours on the map. The pull is the
 * gradient of its logarithm, the push the gradient of the logarithm of 1 minus it.
 */
#include <string.h>

#include "arithmetic/philox.h"
#include "base/integers.h"
#include "base/memory.h"
#include "map/map.h"

enum {
    PUSHES = 8,                   /* points that push a block of rows in a step */
    ITEM_ROWS = 64 * LAYOUT_BLOCK /* rows that a thread takes at a time */
};

static const float PUSH_MAX = 4.0f;         /* of a point, in each direction */
static const float PUSH_NEAR = 1e-3f;       /* added to d^2: points in the same place push with a finite force */
static const uint32_t GOLDEN = 0x9e3779b9u; /* 2^32 times the golden ratio's fraction */

typedef struct layout {
    map_job *job;
    const graph *edges;
    const uint32_t *phases;
    float *x, *y;           /* positions before the step */
    float *next_x, *next_y; /* positions after it */
    int32_t step;
    float rate;
} layout;

typedef struct forces {
    float x[LAYOUT_BLOCK], y[LAYOUT_BLOCK];
} forces;

static void pull(const layout *l, int64_t first, int64_t count, forces *f)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = first + i, start = l->edges->starts[row];
        const uint32_t degree = (uint32_t)(l->edges->starts[row + 1] - start);
        if (degree == 0)
            continue;
        const uint64_t drawn = (uint64_t)(l->phases[row] + (uint32_t)l->step * GOLDEN) * degree;
        const graph_place *place = &l->edges->places[start + (int64_t)(drawn >> 32)];
        const uint32_t other = (uint32_t)drawn < place->keep ? place->here : place->other;
        const float dx = l->x[other] - l->x[row], dy = l->y[other] - l->y[row];
        const float force = 2.0f / (1.0f + (dx * dx + dy * dy));
        f->x[i] = force * dx;
        f->y[i] = force * dy;
    }
}

static float limit(float force)
{
    const float below = force < PUSH_MAX ? force : PUSH_MAX;
    return below > -PUSH_MAX ? below : -PUSH_MAX;
}

/* Pushes all rows of a block away from the point at px, py. */
static __attribute__((noinline)) void push(const float *restrict x, const float *restrict y, float px, float py,
                                           forces *restrict f)
{
    for (int32_t i = 0; i < LAYOUT_BLOCK; i++) {
        const float dx = x[i] - px, dy = y[i] - py, square = dx * dx + dy * dy;
        const float force = 2.0f / ((PUSH_NEAR + square) * (1.0f + square));
        f->x[i] += limit(force * dx);
        f->y[i] += limit(force * dy);
    }
}

static void move_block(const layout *l, int64_t block)
{
    const int64_t first = block * LAYOUT_BLOCK, blocks = divide_up_i64(l->job->count, LAYOUT_BLOCK);
    const int64_t count = min_i64(LAYOUT_BLOCK, l->job->count - first);
    const uint64_t number = ((uint64_t)l->step * (uint64_t)blocks + (uint64_t)block) * (PUSHES / 4);
    forces f = {{0}, {0}};
    pull(l, first, count, &f);
    for (int32_t p = 0; p < PUSHES; p += 4) {
        const philox_block words = philox((uint64_t)l->job->seed, number + (uint64_t)(p / 4));
        for (int32_t w = 0; w < 4; w++) {
            const uint64_t other = (uint64_t)words.word[w] * (uint64_t)l->job->count >> 32;
            push(l->x + first, l->y + first, l->x[other], l->y[other], &f);
        }
    }
    for (int32_t i = 0; i < LAYOUT_BLOCK; i++) {
        l->next_x[first + i] = l->x[first + i] + l->rate * f.x[i];
        l->next_y[first + i] = l->y[first + i] + l->rate * f.y[i];
    }
}

static void move_rows(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const layout *l = context;
    const int64_t end = min_i64((item + 1) * ITEM_ROWS, l->job->count);
    for (int64_t first = item * ITEM_ROWS; first < end; first += LAYOUT_BLOCK)
        move_block(l, first / LAYOUT_BLOCK);
}

static void swap(float **a, float **b)
{
    float *was = *a;
    *a = *b;
    *b = was;
}

/* For the caller's callback, a step counts as the share of rows that map.c defines. */
static ww_status run_steps(layout *l)
{
    map_job *job = l->job;
    const int64_t before = job->done, items = divide_up_i64(job->count, ITEM_ROWS);
    ww_status status = WW_OK;
    for (l->step = 0; status == WW_OK && l->step < job->steps; l->step++) {
        l->rate = (float)(job->steps - l->step) / (float)job->steps;
        map_run(job, items, move_rows, l);
        swap(&l->x, &l->next_x);
        swap(&l->y, &l->next_y);
        job->done = before + (int64_t)((double)(job->total - before) * (double)(l->step + 1) / (double)job->steps);
        status = map_report_progress(job, 0);
    }
    return status;
}

ww_status layout_run(map_job *job, const graph *edges)
{
    const size_t padded = (size_t)round_up_i64(job->count, LAYOUT_BLOCK);
    uint32_t *phases = memory_alloc((size_t)job->count * sizeof *phases);
    layout l = {.job = job, .edges = edges, .phases = phases, .x = job->x, .y = job->y};
    l.next_x = memory_alloc_zeroed(padded, sizeof *l.next_x);
    l.next_y = memory_alloc_zeroed(padded, sizeof *l.next_y);
    ww_status status =
        phases && l.next_x && l.next_y ? WW_OK : memory_failed("the points of a map", 3 * padded * sizeof(float));
    for (int64_t i = 0; status == WW_OK && i < job->count; i++)
        phases[i] = philox(~(uint64_t)job->seed, (uint64_t)i).word[0];
    if (status == WW_OK)
        status = run_steps(&l);
    job->x = l.x;
    job->y = l.y;
    memory_free(l.next_y);
    memory_free(l.next_x);
    memory_free(phases);
    return status;
}
