/* Range search on a GPU (kernels/search/range_args.h): all rows within a bound. */
#ifndef WW_GPU_SEARCH_RANGE_H
#define WW_GPU_SEARCH_RANGE_H

#include "gpu/search/screen_plan.h"
#include "gpu/search/search_common.h"

/* A range search under way. */
typedef struct range {
    gpu_device *device;
    gpu_stream *stream;
    const range_job *job;
    search_job search; /* the job's, with another k for the parts of a search that are used here */
    canon_key last;    /* the largest key within the bound */
    bool bounded;      /* some scores are outside the bound */
    segment_table table;
    kernel_rows rows; /* its segments are on the device after range_upload_table() */
    int64_t *failed;  /* queries whose thresholds were better than the bound; stats.repeated_queries of them */
    search_stats stats;
} range;

/* Some of the queries: `count` from `first` on, or those in `numbers`. */
typedef struct range_queries {
    const float *queries;
    bool on_device; /* then dense; otherwise in host memory */
    int64_t stride; /* floats */
    int64_t count;
    int64_t first;
    const int64_t *numbers;
} range_queries;

/* All queries of a search. */
static inline range_queries range_all(const search_job *job)
{
    return (range_queries){
        .queries = job->queries, .on_device = job->queries_on_device, .stride = job->query_stride, .count = job->query_count};
}

/* The results of query i of `q`. */
static inline key_list *range_found(const range *r, const range_queries *q, int64_t i)
{
    return &r->job->found[q->numbers ? q->numbers[i] : q->first + i];
}

/* A list of entries on the device and its copy on the host. */
typedef struct range_answer {
    range_list list;
    int64_t queries, slots;
    void *host;                    /* length, thresholds, counts, kept rows and the first entries; memory_free() */
    uint64_t *thresholds_used;     /* on the device, one per slot; the screen writes them */
    const uint64_t *thresholds;    /* in `host` */
    const uint32_t *counts, *kept; /* in `host`, one per query */
    const range_entry *entries;    /* in `host`: the first `first` entries */
    int64_t first;
    range_entry *more; /* the entries after those in `host` */
    uint64_t length;
} range_answer;

/* Returns how many entries a list has room for. */
int64_t range_room(const range *r, int64_t queries);

/* What a list needs. */
typedef struct range_answer_size {
    int32_t workspace; /* the stream's workspace that holds it */
    int64_t queries;
    int64_t slots; /* slots of the screen, which have thresholds; 0 without a screen */
    int64_t room;  /* for entries */
} range_answer_size;

/* Makes an empty list. Queued. */
ww_status range_answer_begin(range_answer *answer, const range *r, range_answer_size size);

/* Copies the answer to the host. If the list had too little room, only its length and counts. Waits. */
ww_status range_answer_end(range_answer *answer, const range *r);

/* Adds the entries and counts to the results of the queries. The list must have had room. */
ww_status range_answer_take(const range_answer *answer, const range *r, const range_queries *queries);
void range_answer_free(range_answer *answer);

/* In range_scan.c: scores every row for the queries, in pieces of the rows if the list has no room for all entries. */
ww_status range_full_scan(range *r, const range_queries *queries);

/* In range_screen.c: searches with the screen. Writes the numbers of queries that it could not answer to `left`, which has room
 * for all. */
ww_status range_screened(range *r, const screen_plan *plan, int64_t *left, int64_t *left_count);

/* In range_screen.c: returns how many kept rows a query's list has room for. */
int32_t range_list_capacity(const range *r);

#endif
