/* Results: what a query found or a get got, with everything asked for about it.
 *
 * A results object is a copy, taken while no writer was at work: it stays as it is whatever happens to the collection
 * afterwards, also when that is destroyed, until ww_results_destroy(). Any number of threads may read one at once. Nothing
 * here waits or fails: a query or a hit that is not there gives 0 or NULL.
 */
#ifndef WARPWAVE_RESULTS_H
#define WARPWAVE_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is copied into the results beside rows, handles and scores, which always are; added up in a `fetch`. */
typedef enum ww_fetch {
    WW_FETCH_IDS = 1,
    WW_FETCH_PAYLOADS = 2,
    WW_FETCH_VECTORS = 4, /* dim floats a hit, bit for bit as they came, or as they were rounded to the rows' type */
    WW_FETCH_TEXTS = 8    /* the texts of rows in a store (ww_rows.texts); a collection in memory has none */
} ww_fetch;

typedef struct ww_results ww_results;

/* Frees the results and everything that was read from them. Accepts NULL. */
WW_API void ww_results_destroy(ww_results *results);

/* Returns how many queries were asked, 0 for NULL. */
WW_API int64_t ww_results_query_count(const ww_results *results);

/* Returns how many hits a query has: at most its k, or the limit of a range search, fewer where fewer rows were found; never a
 * place without a row. Of ww_collection_get() the one query has a hit for each entry of the list, with row -1 for what was not
 * there. */
WW_API int64_t ww_results_count(const ww_results *results, int64_t query);

/* Returns how many rows a range search found for a query, of which it has the best as hits: more than ww_results_count() where
 * its limit cut them off. The same as that for a query, and 0 where there is no such query. */
WW_API int64_t ww_results_total(const ww_results *results, int64_t query);

/* Returns how many of a query's hits are proven: the first that many are the true nearest rows, in order. All of them for an
 * exact query. For one with `nprobe` (ivf.h) those that are nearer than any row in a list that was not read can be. 0 where
 * there is no such query. */
WW_API int64_t ww_results_proven(const ww_results *results, int64_t query);

/* Return the row numbers, the handles and the scores of a query's hits, as many as ww_results_count() says, best first, equal
 * scores by smallest row. NULL if there is no such query. A row number is the place that the row had at that time, and compact
 * renumbers; a handle names it for good. */
WW_API const int64_t *ww_results_rows(const ww_results *results, int64_t query);
WW_API const int64_t *ww_results_handles(const ww_results *results, int64_t query);
WW_API const float *ww_results_scores(const ww_results *results, int64_t query);

/* Return a hit's id, payload and text, NUL-terminated, and its vector. NULL if it was not fetched, if there is no such hit, and
 * for the payload or the text of a row that has none. With row -1 there is nothing but the place. The vectors of a query lie
 * one behind the other, hit by hit. */
WW_API const char *ww_results_id(const ww_results *results, int64_t query, int64_t hit);
WW_API const char *ww_results_payload(const ww_results *results, int64_t query, int64_t hit);
WW_API const char *ww_results_text(const ww_results *results, int64_t query, int64_t hit);
WW_API const float *ww_results_vector(const ww_results *results, int64_t query, int64_t hit);

/* How a hit of a fused search (ww_query.match, ranking.h) was found: [0] by its vector, or in the first results, [1] by its
 * text, or in the second. A rank counts from 1; 0 means that this part did not find the hit, and its score is NaN then. */
typedef struct ww_hit_parts {
    int64_t ranks[2];
    float scores[2];
} ww_hit_parts;

/* Returns the parts of a query's hits, as many as ww_results_count() says. NULL if the results were not fused, or there is no
 * such query. */
WW_API const ww_hit_parts *ww_results_parts(const ww_results *results, int64_t query);

/* All hits of all queries at once, as arrays by hit, for bindings and programs with many hits: query q has the hits starts[q]
 * to starts[q + 1] - 1. Everything belongs to the results and is there as long as they are. */
typedef struct ww_results_columns {
    size_t struct_size; /* set by ww_results_columns_default() */
    int64_t query_count;
    int64_t hit_count;     /* of all queries */
    const int64_t *starts; /* query_count + 1 of them */
    const int64_t *rows;
    const int64_t *handles;
    const float *scores;
    const int64_t *totals;   /* one per query, as ww_results_total(); NULL: as many as there are hits */
    const int64_t *ids;      /* where each hit's id starts in `text`, or -1 without one; NULL: not fetched, or no hits */
    const int64_t *payloads; /* where each hit's payload starts in `text`, or -1; NULL: not fetched, or no hits */
    const char *text;        /* all texts, one behind the other, each with its NUL; NULL: none */
    int64_t text_bytes;
    const float *vectors;      /* hit_count x dim; NULL: not fetched, or no hits. Of row -1 they are any numbers */
    int32_t dim;               /* of the vectors */
    const int64_t *proven;     /* a query each, as ww_results_proven(); NULL: all hits are */
    const int64_t *texts;      /* as `ids`, of the rows' texts */
    const ww_hit_parts *parts; /* of a fused search; else NULL */
} ww_results_columns;

/* An empty struct to be filled in; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_results_columns_init(void *value, size_t struct_size);
static inline ww_results_columns ww_results_columns_default(void)
{
    ww_results_columns value;
    ww_results_columns_init(&value, sizeof value);
    return value;
}

/* Fills in `columns`. Refuses NULL. Does not block. */
WW_API ww_status ww_results_describe(const ww_results *results, ww_results_columns *columns);

#ifdef __cplusplus
}
#endif

#endif
