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
    search_job search; /* the job's, with a k of its own where parts of a search are used */
    canon_key last;    /* the greatest key within the bound */
    bool bounded;      /* is there a score that is not within it? */
    segment_table table;
    kernel_rows rows; /* its segments are on the device behind range_upload_table() */
    int64_t *failed;  /* queries whose thresholds were not the bound: stats.repeated_queries of them */
    search_stats stats;
} range;

/* Some queries of it: `first` and those behind it, or those that `numbers` says. */
typedef struct range_queries {
    const float *queries;
    bool on_device; /* dense then; else the host's */
    int64_t stride; /* floats */
    int64_t count;
    int64_t first;
    const int64_t *numbers;
} range_queries;

/* All of a search. */
static inline range_queries range_all(const search_job *job)
{
    return (range_queries){
        .queries = job->queries, .on_device = job->queries_on_device, .stride = job->query_stride, .count = job->query_count};
}

/* The list of query i among them. */
static inline key_list *range_found(const range *r, const range_queries *q, int64_t i)
{
    return &r->job->found[q->numbers ? q->numbers[i] : q->first + i];
}

/* A list on the device and what came of it: counts of `queries`, and entries. */
typedef struct range_answer {
    range_list list;
    int64_t queries, slots;
    void *host;                    /* length, thresholds, counts, what was kept, and the first entries; memory_free() */
    uint64_t *thresholds_used;     /* on the device: a slot each, which the screen writes, */
    const uint64_t *thresholds;    /* and in `host` */
    const uint32_t *counts, *kept; /* there */
    const range_entry *entries;    /* there: the first `first` entries; */
    int64_t first;
    range_entry *more; /* the others */
    uint64_t length;
} range_answer;

/* For how many entries there is room at a time. */
int64_t range_room(const range *r, int64_t queries);

/* What a list needs. */
typedef struct range_answer_size {
    int32_t workspace; /* where it is made */
    int64_t queries;
    int64_t slots; /* of the screen, that have thresholds; 0 without one */
    int64_t room;  /* for entries */
} range_answer_size;

/* Makes an empty list. Queues. */
ww_status range_answer_begin(range_answer *answer, const range *r, range_answer_size size);

/* Brings the answer down, if there was room: otherwise only its length and counts. Waits. */
ww_status range_answer_end(range_answer *answer, const range *r);

/* Adds the entries and counts of an answer that had room to the lists of its queries. */
ww_status range_answer_take(const range_answer *answer, const range *r, const range_queries *queries);
void range_answer_free(range_answer *answer);

/* In range_plain.c: scores every row for the queries, piece by piece where there is not room for all entries. */
ww_status range_plainly(range *r, const range_queries *queries);

/* In range_screen.c: asks the screen. Numbers of queries whose rows it could not list go to `left`, which has room for all. */
ww_status range_screened(range *r, const screen_plan *plan, int64_t *left, int64_t *left_count);

/* In range_screen.c: rows that a query's list has room for. */
int32_t range_list_capacity(const range *r);

#endif
