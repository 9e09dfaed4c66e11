/* One round of a screened search: some queries, five or six launches, and a copy of the results. All device memory is in the
 * stream's workspaces. */
#ifndef WW_GPU_SEARCH_SCREEN_ROUND_H
#define WW_GPU_SEARCH_SCREEN_ROUND_H

#include "arithmetic/canon.h"
#include "device/backend.h"
#include "gpu/launch.h"
#include "gpu/search/screen_plan.h"
#include "gpu/search/search.h"

/* The queries of a round. */
typedef struct screen_input {
    const float *queries;
    bool on_device; /* then dense; otherwise in host memory */
    int64_t stride; /* floats */
    int64_t count;
    const int64_t *numbers; /* their numbers in the job, or NULL: `count` from `first` on */
    int64_t first;
    const canon_key *thresholds; /* known for each query, or NULL */
} screen_input;

typedef enum screen_shape {
    SCREEN_SHAPE_ONE,
    SCREEN_SHAPE_SMALL_BATCH,
    SCREEN_SHAPE_BATCH,
    SCREEN_SHAPE_MFMA, /* as SCREEN_SHAPE_BATCH, except that screen_mfma_keep keeps the rows */
    SCREEN_SHAPE_WGMMA
} screen_shape;

/* The work of queries that read lists of an index, on the device: [0] for all rows, [1] for the sample. */
typedef struct screen_list_work {
    const kernel_list *lists;
    const screen_list_item *items[2];
    const screen_list_pair *pairs[2];
    uint32_t item_count[2];
    bool all_count;
} screen_list_work;

typedef struct screen_round {
    const screen_list_work *work; /* for queries that read lists of an index; otherwise NULL */
    gpu_device *device;
    gpu_stream *stream;
    const search_job *job;
    const screen_plan *plan;
    kernel_rows rows;
    screen_shape shape;
    bool only_lists;        /* the caller wants kept positions and no results; one query is then a small batch */
    bool planes;            /* each segment of `rows` has its plane */
    bool backward;          /* SCREEN_SHAPE_ONE and _SMALL_BATCH: from the last row to the first */
    uint32_t teams, stages; /* only for SCREEN_SHAPE_WGMMA */
    screen_queries queries;
    uint64_t *samples, *lists, *best;
    float *pairs, *thirds, *guesses;
    size_t results_bytes; /* keys of all queries; then, for all slots, thresholds, counts, and counts of earlier stages */
} screen_round;

/* Allocates the round's memory and chooses its shape, for several queries or a long one. The caller has set stream, job, plan
 * and rows. */
ww_status screen_round_begin(screen_round *round, int64_t count);

/* In screen_launch.c: the kernel that tests codes, of the sample or of all rows, and its launch for some tiles. */
int32_t screen_launch_kernel(const screen_round *round, bool sample);
ww_status screen_launch_scan(const screen_round *round, bool sample, int64_t tile_begin, int64_t tile_end);

/* Queues the kernel that tests the codes of the sample or of all rows; screen_round_run() calls it. */
ww_status screen_round_scan(const screen_round *round, bool sample);

/* Queues the launches and copies round->results_bytes to `results`. Waits. */
ww_status screen_round_run(screen_round *round, const screen_input *input, void *results);

/* Queues only the listing of rows that the given thresholds do not exclude: positions to round->lists, counts to
 * round->queries. */
ww_status screen_round_list(screen_round *round, const screen_input *input);

#endif
