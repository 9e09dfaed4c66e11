/* One round of a screened search: some queries, five or six launches, keys down. Everything on the device lives in the stream's
 * workspaces. */
#ifndef WW_GPU_SEARCH_SCREEN_ROUND_H
#define WW_GPU_SEARCH_SCREEN_ROUND_H

#include "arithmetic/canon.h"
#include "device/backend.h"
#include "gpu/launch.h"
#include "gpu/search/screen_plan.h"

enum {
    SCREEN_WORKSPACE_TABLE,
    SCREEN_WORKSPACE_MASK,
    SCREEN_WORKSPACE_GIVEN,
    SCREEN_WORKSPACE_QUERIES,
    SCREEN_WORKSPACE_LISTS,
    SCREEN_WORKSPACE_SAMPLES,
    SCREEN_WORKSPACE_RESULTS,
    SCREEN_WORKSPACE_MEASURES,
    SCREEN_WORKSPACE_RANGE,
    SCREEN_WORKSPACE_ITEMS
};

/* Queries that are asked together. */
typedef struct screen_asked {
    const float *queries;
    bool on_device; /* dense then; else the host's */
    int64_t stride; /* floats */
    int64_t count;
    const int64_t *numbers; /* in the job, of each; or NULL: `first` and those behind it */
    int64_t first;
    const canon_key *thresholds; /* that are known of each, or NULL */
} screen_asked;

typedef enum screen_shape {
    SCREEN_SHAPE_ONE,
    SCREEN_SHAPE_SMALL_BATCH,
    SCREEN_SHAPE_BATCH,
    SCREEN_SHAPE_MFMA, /* as the last except for screen_mfma_keep */
    SCREEN_SHAPE_WGMMA
} screen_shape;

/* What is read where queries read lists of an index, on the device: first of all queries, then of a sample. */
typedef struct screen_list_work {
    const kernel_list *lists;
    const screen_list_item *items[2];
    const screen_list_pair *pairs[2];
    uint32_t item_count[2];
    bool all_count;
} screen_list_work;

typedef struct screen_round {
    const screen_list_work *work; /* of queries that read lists; else NULL */
    gpu_device *device;
    gpu_stream *stream;
    const search_job *job;
    const screen_plan *plan;
    kernel_rows rows;
    screen_shape shape;
    bool only_lists;        /* positions are wanted, and no results: one query goes as a small batch then */
    bool backward;          /* SCREEN_SHAPE_ONE and _FEW: from the last row to the first */
    uint32_t teams, stages; /* of SCREEN_SHAPE_WGMMA */
    screen_queries queries;
    uint64_t *samples, *lists, *best;
    float *pairs, *thirds, *guesses;
    size_t results_bytes; /* keys of all queries, then of all slots the threshold, the count, and how many before */
} screen_round;

/* Takes what the round needs and chooses its shape, for more than one query or a long one; stream, job, plan and rows
 * are set. */
ww_status screen_round_begin(screen_round *round, int64_t count);

/* In screen_launch.c: the kernel that looks at codes, of a sample or of all rows; and its launch, for the sample's tiles, or
 * some of all. */
int32_t screen_launch_kernel(const screen_round *round, bool sample);
ww_status screen_launch_scan(const screen_round *round, bool sample, int64_t tile_begin, int64_t tile_end);

/* Queues the kernel that looks at codes, at the sample's or at all: a part of the next. */
ww_status screen_round_scan(const screen_round *round, bool sample);

/* Queues the launches and brings round->results_bytes to `results`. Waits. */
ww_status screen_round_ask(screen_round *round, const screen_asked *asked, void *results);

/* Queues only what lists the rows that the thresholds, which are given, do not exclude: positions in round->lists, counts in
 * round->queries. */
ww_status screen_round_list(screen_round *round, const screen_asked *asked);

#endif
