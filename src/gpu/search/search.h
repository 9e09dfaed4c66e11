/* The host functions that all searches on a GPU share: nearest rows, ranges, lists of an index. */
#ifndef WW_GPU_SEARCH_SEARCH_H
#define WW_GPU_SEARCH_SEARCH_H

#include "arithmetic/canon.h"
#include "gpu/launch.h"

/* Numbers of a stream's workspaces, kept buffers and pinned buffers. A scan and a screen do not need the memory at the same
 * time where two names have one number. */
enum {
    WORKSPACE_MASK,
    WORKSPACE_TABLE, /* of a part of the rows, or of lists; KEPT_TABLE has that of all rows */
    WORKSPACE_GIVEN,
    WORKSPACE_QUERIES,
    WORKSPACE_LISTS,
    WORKSPACE_FOUND,
    WORKSPACE_SAMPLES = WORKSPACE_FOUND,
    WORKSPACE_BEST,
    WORKSPACE_RESULTS = WORKSPACE_BEST,
    WORKSPACE_MEASURES,
    WORKSPACE_RANGE,
    WORKSPACE_ITEMS
};
enum { KEPT_TABLE, KEPT_STATE };
enum { PINNED_GIVEN, PINNED_BLOCK = PINNED_GIVEN, PINNED_BEST };

/* Uploads the job's mask into workspace `number`. Without a mask, `*mask` is NULL and `*words` 0. Queued. */
ww_status gpu_search_mask(gpu_stream *stream, int32_t number, const search_job *job, const uint64_t **mask, uint32_t *words);

/* Counts the blocks of 256 threads that the device holds at once, by the kernel's registers. */
ww_status gpu_search_resident(gpu_device *device, int32_t kernel, int64_t *blocks);

/* Writes the k keys of one query, best first, to the job's results. */
void gpu_search_write(const search_job *job, int64_t query, const canon_key *best);

/* Calls the job's progress callback with `done` queries. Fails with WW_CANCELLED if the callback cancels. */
ww_status gpu_search_report(const search_job *job, int64_t done);

/* Counts the rows in all segments, including removed ones. */
int64_t gpu_search_rows(const search_job *job);

/* Returns true if some rows are in host memory. Then scoring a row takes longer than everything else that is done with it. */
bool gpu_search_rows_are_far(const search_job *job);

/* Sets a mark for the queries in `numbers`, if the job asks for marks. */
void gpu_search_mark_queries(const search_job *job, const int64_t *numbers, int64_t count, uint8_t mark);

/* Copies the queries in `numbers`, one after the other, to host memory. Waits if they are on the device. */
ww_status gpu_search_gather(gpu_stream *stream, const search_job *job, const int64_t *numbers, int64_t count, float *to);

#endif
