/* Plain search on a GPU, and what a screened one (screen.c) has in common with it on the host's side. */
#ifndef WW_GPU_SEARCH_SEARCH_H
#define WW_GPU_SEARCH_SEARCH_H

#include "arithmetic/canon.h"
#include "gpu/launch.h"

/* Searches by scoring every row. Blocking. */
ww_status gpu_search_plainly(ww_device *device, const search_job *job);

/* Uploads the job's mask into workspace `number`; a mask of NULL and no words where the job has none. Queues. */
ww_status gpu_search_mask(gpu_stream *stream, int32_t number, const search_job *job, const uint64_t **mask, uint32_t *words);

/* How many blocks of 256 threads of a kernel the device holds at once, by registers. */
ww_status gpu_search_resident(gpu_device *device, int32_t kernel, int64_t *blocks);

/* Writes the k keys of one query, best first, as its results. */
void gpu_search_write(const search_job *job, int64_t query, const canon_key *best);

/* Tells the job's callback that `done` queries are done. Fails with WW_CANCELLED if it asks for that. */
ww_status gpu_search_report(const search_job *job, int64_t done);

/* Rows in all segments, removed ones too. */
int64_t gpu_search_rows(const search_job *job);

/* Are rows beyond the bus? Then scoring one takes longer than anything else that is done with it. */
bool gpu_search_rows_are_far(const search_job *job);

/* Adds a mark to queries of the job, by their numbers, if that wants marks. */
void gpu_search_mark_queries(const search_job *job, const int64_t *numbers, int64_t count, uint8_t mark);

/* Queries of a job, by their numbers, side by side to the host. Waits for those that are on the device. */
ww_status gpu_search_gather(gpu_stream *stream, const search_job *job, const int64_t *numbers, int64_t count, float *to);

#endif
