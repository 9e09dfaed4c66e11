/* Shared by the files of a full scan: search.c plans it and searches for batches, search_one.c searches for one query. Both use
 * search_common.c. */
#ifndef WW_GPU_SEARCH_SEARCH_COMMON_H
#define WW_GPU_SEARCH_SEARCH_COMMON_H

#include "base/integers.h"
#include "gpu/search/search.h"
#include "gpu/search/search_plan.h"
#include "gpu/search/segment_table.h"

/* Numbers of a stream's workspaces, kept buffers and pinned buffers. */
enum { WORKSPACE_MASK, WORKSPACE_GIVEN, WORKSPACE_QUERIES, WORKSPACE_LISTS, WORKSPACE_FOUND, WORKSPACE_BEST };
enum { KEPT_TABLE, KEPT_STATE };
enum { PINNED_GIVEN, PINNED_BEST };

typedef struct search {
    gpu_device *device;
    gpu_stream *stream;
    const search_job *job;
    search_plan plan;
    int32_t shrunk; /* how many times memory ran out */
    segment_table table;
    kernel_rows rows;
} search;

/* Packs the queries of a round, `count` from `first` on, and prepares their norms and thresholds. Queued. */
ww_status search_prepare_queries(search *s, int64_t first, int64_t count, search_queries *queries, uint32_t **taken);

/* Counts the blocks of a kernel, with the plan's shared memory, that the device holds at once. */
ww_status search_resident(search *s, int32_t kernel, int64_t *blocks);

/* Makes the lists for `slots` slots, except for `taken`. */
ww_status search_make_lists(search *s, int64_t slots, int64_t resident, search_lists *lists);

/* In search_one.c: searches for the job's only query. The rows and the mask are on the device. */
ww_status search_for_one(search *s);

#endif
