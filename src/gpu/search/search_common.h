/* A search under way: search.c makes it, scan.c and search_one.c scan, screen.c screens. search_common.c has what they share.
 */
#ifndef WW_GPU_SEARCH_SEARCH_COMMON_H
#define WW_GPU_SEARCH_SEARCH_COMMON_H

#include "base/integers.h"
#include "gpu/search/choice/search_choice.h"
#include "gpu/search/search.h"
#include "gpu/search/search_plan.h"
#include "gpu/search/segment_table.h"

typedef struct search {
    gpu_device *device;
    const search_job *job;
    search_choice choice; /* with the screen's plan, if it screens */
    search_plan plan;     /* of a full scan */
    int32_t shrunk;       /* how many times memory ran out */
    gpu_stream *stream;
    segment_table table;
    kernel_rows rows; /* its segments are on the device after search_upload_table() */
    search_stats stats;
} search;

/* In search.c: puts the table of segments on the device. Queued. */
ww_status search_upload_table(search *s);

/* Adds the statistics of a search to those of its caller, which may be NULL. */
void search_stats_add(search_stats *stats, const search_stats *more);

/* In scan.c: answers all queries of the job by scoring every admitted row. The mask is on the device. Waits. */
ww_status scan_run(search *s);

/* In screen.c: the same with fewer scores. A query that keeps too many rows is searched again with a better threshold, and then
 * scanned. Waits. */
ww_status screen_run(search *whole);

/* In search_one.c: scans for the job's only query. The table is on the device, too. */
ww_status search_for_one(search *s);

/* Packs the queries of a round, `count` from `first` on, and prepares their norms and thresholds. Queued. */
ww_status search_prepare_queries(search *s, int64_t first, int64_t count, search_queries *queries, uint32_t **taken);

/* Counts the blocks of a kernel, with the plan's shared memory, that the device holds at once. */
ww_status search_resident(search *s, int32_t kernel, int64_t *blocks);

/* Makes the lists for `slots` slots, except for `taken`. */
ww_status search_make_lists(search *s, int64_t slots, int64_t resident, search_lists *lists);

#endif
