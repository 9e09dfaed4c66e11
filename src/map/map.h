/* Maps as the files of this room see them (warpwave/map.h).
 *
 *   map.c the calls: read the stored map, find changes, write the new one
 *   rows.c        the rows of a map, and reading their vectors
 *   neighbours.c  the nearest neighbours of rows, by searches of the collection
 *   start.c       where points start: the first two principal components
 *   graph.c       weights of neighbours, and the graph that points are attracted along
 *   layout.c      the steps
 *   grow.c        the places of rows that came later
 *
 * Everything is computed by operations of IEEE 754 and the element functions of src/arithmetic, in an order that depends on the
 * rows only: so the bits of a map are the same on every device, for any number of threads. What runs on several threads
 * computes each row from numbers that no thread changes meanwhile.
 */
#ifndef WW_MAP_MAP_H
#define WW_MAP_MAP_H

#include <warpwave/map.h>

#include "base/pool.h"
#include "vectors/collection.h"

#define NO_ROW UINT32_MAX

/* A map that is being made. Rows are numbered 0, 1, ... in the order of the collection's rows; `rows` and `handles` have their
 * names in the collection. */
typedef struct map_job {
    ww_collection *collection;
    const ww_map_config *config;
    ww_device *device; /* for its threads; NULL: not available */
    pool *threads;     /* may be NULL */
    int32_t neighbours;
    int32_t steps;
    int64_t seed;

    int64_t count;
    int64_t *handles, *rows;
    uint32_t *by_handle; /* rows in ascending order of their handles */
    uint32_t *hashes;    /* of the vectors, after they were read */
    bool *gone;          /* removed while the map was made */
    bool *late;          /* placed at the mean of its neighbours, not by the layout */
    float *x, *y;        /* with room for whole blocks (layout.c) */

    int64_t done, total; /* for the caller's progress callback */
} map_job;

/* ---- rows.c -------------------------------------------------------------------------------------------------------------- */

/* Reads the current rows, and allocates memory for their points. */
ww_status rows_read(map_job *job);
void rows_free(map_job *job);

/* Returns the number of the row with a handle, or NO_ROW. */
uint32_t rows_find(const map_job *job, int64_t handle);

/* Some vectors in host memory. */
typedef struct row_vectors {
    int64_t capacity;
    int64_t count;
    uint32_t *numbers; /* the numbers of their rows */
    int64_t *places;   /* the positions of these rows in the list */
    float *values;     /* dim each */
    int64_t *handles;  /* for the call that reads them */
} row_vectors;

/* Rows that are read or searched: those of a list or, if it is NULL, `count` rows at equal distances. */
typedef struct map_list {
    const uint32_t *numbers;
    int64_t count;
} map_list;

/* Allocates memory for as many vectors as are processed at a time. */
ww_status vectors_create(const map_job *job, row_vectors *vectors);
void vectors_free(row_vectors *vectors);

/* Reads the vectors of rows first, first + 1, ... of a list, as many as fit, and their hashes. Removed rows are marked and
 * skipped. */
ww_status vectors_read(map_job *job, map_list list, int64_t first, row_vectors *vectors);

/* Runs items on the device's threads or, if it has none, on this thread. */
void map_run(const map_job *job, int64_t items, pool_work work, void *context);

/* Reports to the caller that `more` was done in addition to job->done. Returns WW_CANCELLED if the callback stops. */
ww_status map_report_progress(const map_job *job, int64_t more);

/* ---- start.c ------------------------------------------------------------------------------------------------------------- */

typedef struct map_start {
    bool unit;    /* vectors are first scaled to length 1 */
    double *mean; /* dim */
    double *axes; /* 2 x dim, of length 1, or 0 if the rows have no extent in that direction */
} map_start;

/* Computes the axes from a sample of the rows. */
ww_status start_learn(map_job *job, map_start *start);
void start_free(map_start *start);
/* Puts a row at the coordinates of its vector. */
void start_put(map_job *job, const map_start *start, uint32_t number, const float *vector);
/* Scales all points to a common size and separates equal ones. */
void start_scale(map_job *job);

/* ---- neighbours.c -------------------------------------------------------------------------------------------------------- */

/* The k nearest neighbours of each row in question, without the row itself, nearest first. */
typedef struct neighbours {
    int32_t k;
    uint32_t *numbers; /* k per row; NO_ROW after the last */
    float *gaps;       /* how much worse the score is than that of the nearest */
} neighbours;

/* Finds them. With `start` it also computes where each row starts. */
ww_status neighbours_find(map_job *job, map_list list, const map_start *start, neighbours *found);
void neighbours_free(neighbours *found);

/* ---- graph.c ------------------------------------------------------------------------------------------------------------- */

/* Computes the weights of a row's k neighbours, starting with 1 for the nearest. If the gaps permit it, the sum of the weights
 * is the binary logarithm of their number. */
void neighbour_weights(const float *gaps, const uint32_t *numbers, int32_t k, float *weights);

/* An entry of a row's table of neighbours. All entries are equally likely; an entry leads to `here` for fractions below `keep`,
 * otherwise to `other`. So neighbours are drawn by their weights (Walker's alias method). */
typedef struct graph_place {
    uint32_t keep, here, other;
} graph_place;

typedef struct graph {
    int64_t *starts; /* where each row's table starts; count + 1 */
    graph_place *places;
} graph;

/* Makes the graph: an edge for each pair in which one row is a neighbour of the other, with weight a + b - ab. */
ww_status graph_create(const map_job *job, const neighbours *near, graph *made);
void graph_free(graph *made);

/* ---- layout.c ------------------------------------------------------------------------------------------------------------ */

enum { LAYOUT_BLOCK = 32 }; /* rows that are pushed by the same points in a step */

/* Moves the points, job->steps times. */
ww_status layout_run(map_job *job, const graph *edges);

/* ---- grow.c -------------------------------------------------------------------------------------------------------------- */

/* Places the rows of a list, whose neighbours are given. `placed` says for each row whether it has a place, and is updated. */
void grow_place(map_job *job, map_list list, const neighbours *near, bool *placed);

#endif
