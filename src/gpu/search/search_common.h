/* What the files of a plain search on a GPU share: search.c plans it and has batches of queries, search_one.c one query, and
 * both stand on search_common.c. */
#ifndef WW_GPU_SEARCH_SEARCH_COMMON_H
#define WW_GPU_SEARCH_SEARCH_COMMON_H

#include "base/integers.h"
#include "gpu/search/search.h"
#include "gpu/search/search_plan.h"
#include "gpu/search/segment_table.h"

/* Workspaces, kept bytes and pinned memory of a stream, by number. */
enum { WORKSPACE_MASK, WORKSPACE_GIVEN, WORKSPACE_QUERIES, WORKSPACE_LISTS, WORKSPACE_FOUND, WORKSPACE_BEST };
enum { KEPT_TABLE, KEPT_STATE };
enum { PINNED_GIVEN, PINNED_BEST };

typedef struct search {
    gpu_device *device;
    gpu_stream *stream;
    const search_job *job;
    search_plan plan;
    int32_t shrunk; /* how many times there was no memory for more */
    segment_table table;
    kernel_rows rows;
} search;

/* Has the queries of a round, `first` of the job and those behind it, packed, and what belongs to them made. Queues. */
ww_status search_prepare_queries(search *s, int64_t first, int64_t count, search_queries *queries, uint32_t **taken);

/* How many blocks of a kernel, with the plan's shared memory each, the device holds at once. */
ww_status search_resident(search *s, int32_t kernel, int64_t *blocks);

/* The lists for a search of `slots` slots, except for `taken`. */
ww_status search_make_lists(search *s, int64_t slots, int64_t resident, search_lists *lists);

/* In search_one.c: searches for the one query of the job. The rows and the mask are there. */
ww_status search_for_one(search *s);

#endif
