/* A plan while it runs. The plan (plan.c) checks all stages and then runs them in their order: searches (find.c), and stages
 * that work on the rows of others (rows.c). Each leaves its hits as results, which the last step of a stage trims. */
#ifndef WW_VECTORS_PLAN_H
#define WW_VECTORS_PLAN_H

#include <warpwave/multi.h>
#include <warpwave/plan.h>
#include <warpwave/sparse.h>

#include "vectors/ranking/pick.h"

/* One stage: copies of the caller's structs, and what it found. */
typedef struct stage_run {
    int32_t number;
    ww_stage stage;
    union {
        ww_query query;
        ww_fuse fuse;
        ww_diversity diversity;
        ww_grouping grouping;
        ww_order order;
        ww_finder finder;
    } how;
    ww_sparse_query sparse; /* of how.query */
    ww_multi_query multi;
    ww_match match;
    ww_collection *home; /* where its rows are */
    bool smaller;        /* smaller scores are better */
    uint32_t fetched;    /* what its results have besides ids, from `home` */
    ww_results *results;
    ww_stage_report report;
} stage_run;

typedef struct plan_run {
    ww_plan plan;
    stage_run *stages;
} plan_run;

/* The hits of one question before they are trimmed: query `query` of `results`. */
typedef struct found_list {
    ww_results *results;
    int64_t query;
    bool owned; /* the list frees them; otherwise another list does */
} found_list;

/* Find the hits of each question. There is one list more, for results that they share; the caller frees all of them, even after
 * a failure. */
ww_status stage_find(const plan_run *p, stage_run *s, found_list *lists);  /* query, finder */
ww_status stage_score(const plan_run *p, stage_run *s, found_list *lists); /* formula, order */
ww_status stage_rank(const plan_run *p, stage_run *s, ww_results **made);  /* fuse, diversity, grouping */

/* Makes the results of a stage from the lists. */
ww_status stage_trim(const plan_run *p, stage_run *s, const found_list *lists);

/* A row of a stage's inputs, once even if several of them have it. */
typedef struct merged_row {
    const char *id; /* in the inputs' results */
    int64_t order;  /* of the hit that came first, through all inputs */
    int64_t slot;   /* scores of this row: inputs * slot */
} merged_row;

typedef struct merged_rows {
    merged_row *rows; /* in order */
    const char **ids;
    float *scores; /* one per input, NaN: that does not have the row */
    int64_t count;
} merged_rows;

/* Merge the hits that the inputs have for a question. The caller frees it even after a failure. */
ww_status merged_rows_make(const plan_run *p, const stage_run *s, int64_t question, merged_rows *merged);
void merged_rows_free(merged_rows *merged);

/* Makes results with the same hits and what `fetch` names from a collection; rows that are not there any more are left out. */
ww_status results_with(const plan_run *p, ww_collection *home, uint32_t fetch, const ww_results *from, ww_results **made);

#endif
