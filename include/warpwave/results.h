/* Results of a query or a get: rows, handles, scores, and what `fetch` asked for.
 *
 * Results are a snapshot. They stay valid until ww_results_destroy(), even if the collection changes or is destroyed. Any
 * number of threads may read them at once. Nothing here waits or fails: a query or a hit that does not exist gives 0 or NULL.
 */
#ifndef WARPWAVE_RESULTS_H
#define WARPWAVE_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to copy into the results besides rows, handles and scores; add them up for `fetch`. */
typedef enum ww_fetch {
    WW_FETCH_IDS = 1,
    WW_FETCH_PAYLOADS = 2,
    WW_FETCH_VECTORS = 4, /* dim floats per hit, bit for bit as added, or rounded to the rows' type */
    WW_FETCH_TEXTS = 8,   /* the texts of rows in a store (ww_rows.texts); a collection in memory has none */
    WW_FETCH_SPARSE = 16, /* the sparse vectors of rows in a store (ww_rows.sparse); a collection in memory has none */
    WW_FETCH_MULTI = 32   /* the multivectors of rows in a store (ww_rows.multi); a collection in memory has none */
} ww_fetch;

typedef struct ww_results ww_results;

/* Frees the results and everything that was read from them. Accepts NULL. */
WW_API void ww_results_destroy(ww_results *results);

/* Returns how many queries were asked, 0 for NULL. */
WW_API int64_t ww_results_query_count(const ww_results *results);

/* Returns how many hits a query has: at most k, or the limit of a range search, and fewer if fewer rows were found. The results
 * of ww_collection_get() have one query with a hit for each entry of the list, with row -1 for entries that do not exist. */
WW_API int64_t ww_results_count(const ww_results *results, int64_t query);

/* Returns how many rows a range search found for a query: more than ww_results_count() if its limit cut them off. Equal to
 * ww_results_count() for other searches, and 0 if there is no such query. */
WW_API int64_t ww_results_total(const ww_results *results, int64_t query);

/* Returns how many of a query's hits are proven: these first hits are the true nearest rows, in order. All hits of an exact
 * query are proven. With `nprobe` (ivf.h) a hit is proven if no row of an unread list can be nearer. 0 if there is no such
 * query. */
WW_API int64_t ww_results_proven(const ww_results *results, int64_t query);

/* Return the row numbers, the handles and the scores of a query's hits, as many as ww_results_count() says, best first, equal
 * scores by smallest row. NULL if there is no such query. A row number was valid at the time of the
 * search, and compact renumbers rows; a handle is permanent. */
WW_API const int64_t *ww_results_rows(const ww_results *results, int64_t query);
WW_API const int64_t *ww_results_handles(const ww_results *results, int64_t query);
WW_API const float *ww_results_scores(const ww_results *results, int64_t query);

/* Return a hit's id, payload and text, NUL-terminated, and its vector. NULL if it was not fetched, if there is no such hit, if
 * the row has no payload or text, and for row -1. The vectors of a query lie one after the other, hit by hit. */
WW_API const char *ww_results_id(const ww_results *results, int64_t query, int64_t hit);
WW_API const char *ww_results_payload(const ww_results *results, int64_t query, int64_t hit);
WW_API const char *ww_results_text(const ww_results *results, int64_t query, int64_t hit);
WW_API const float *ww_results_vector(const ww_results *results, int64_t query, int64_t hit);

/* Returns a hit's sparse vector in `vector`, whose indices ascend; it belongs to the results. Returns 1, or 0 and an empty
 * vector if it was not fetched, if there is no such hit, or if the row has none. */
struct ww_sparse_vector; /* sparse.h */
WW_API int ww_results_sparse(const ww_results *results, int64_t query, int64_t hit, struct ww_sparse_vector *vector);

/* The same for a hit's multivector. */
struct ww_multivector; /* multi.h */
WW_API int ww_results_multi(const ww_results *results, int64_t query, int64_t hit, struct ww_multivector *vector);

/* How a hit of two fused lists was found (ww_query.match, ranking.h): [0] by its vector, or in the first results, [1] by its
 * text, or in the second. A rank counts from 1; 0 means that this part did not find the hit, and its score is NaN then. */
typedef struct ww_hit_parts {
    int64_t ranks[2];
    float scores[2];
} ww_hit_parts;

/* Returns the parts of a query's hits, as many as ww_results_count() says. NULL if they were not made by fusing two lists,
 * or there is no such query. */
WW_API const ww_hit_parts *ww_results_parts(const ww_results *results, int64_t query);

/* All hits of all queries at once, as arrays by hit, for bindings and programs with many hits: query q has the hits starts[q]
 * to starts[q + 1] - 1. Everything belongs to the results and lives as long as they do. */
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
    const char *text;        /* all texts, one after the other, each with its NUL; NULL: none */
    int64_t text_bytes;
    const float *vectors;      /* hit_count x dim; NULL: not fetched, or no hits. Undefined for row -1 */
    int32_t dim;               /* of the vectors */
    const int64_t *proven;     /* one per query, as ww_results_proven(); NULL: all hits are proven */
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
