/* Results as they are built: by a query here, and by whatever else answers with ids and payloads.
 *
 * Made in this order: results_create() for a number of queries and of hits in all; rows, handles, scores and starts are filled
 * in, or results_from_padded() does it; results_prepare() for what shall be fetched; texts by results_put(), vectors in place.
 * Hits are numbered over all queries: query q has hits starts[q] to starts[q + 1] - 1. A failure at any step leaves an object
 * that ww_results_destroy() takes.
 */
#ifndef WW_VECTORS_RESULTS_H
#define WW_VECTORS_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/results.h>

#include "base/status.h"

struct ww_results {
    int64_t query_count;
    int64_t *starts; /* query_count + 1 */
    int64_t *rows;
    int64_t *handles;
    float *scores;
    int64_t *totals; /* a query each, memory_free(); NULL: as many as there are hits */
    int64_t *proven; /* a query each, memory_free(); NULL: all hits are */

    /* The fields below are NULL unless results_prepare() was asked for them. */
    int32_t dim;
    int64_t *ids;      /* where in `text` they begin */
    int64_t *payloads; /* where in `text` they begin; -1 where there is none */
    int64_t *texts;    /* where in `text` they begin; -1 where there is none */
    float *vectors;
    char *text;
    size_t text_bytes;
    size_t text_room;
    void *fetched; /* the block that ids, payloads, texts and vectors are in */

    ww_hit_parts *parts; /* of fused results, a hit each, memory_free(); else NULL */
};

/* Takes memory for this many hits in all; their number may turn out smaller. All starts are 0. */
ww_status results_create(int64_t query_count, int64_t hits, ww_results **results);

/* The hits of all queries together. */
int64_t results_hits(const ww_results *results);

/* Rows and scores have `k` places for each query, with row -1 for no hit, as a search leaves them: closes the gaps and sets the
 * starts. */
void results_from_padded(ww_results *results, int64_t k);

/* Takes memory for what `fetch` names, with no id and no payload yet, and for `text_bytes` of texts with their NULs: exact, or
 * a guess. Refuses flags that it does not know. */
ww_status results_prepare(ww_results *results, uint32_t fetch, int32_t dim, size_t text_bytes);

/* Takes memory for the total of each query, for results of a range. */
ww_status results_totals(ww_results *results);

/* Takes memory for the number of proven hits of each query, for results of a query with nprobe. */
ww_status results_proven(ww_results *results);

/* Takes memory for the parts of fused results, as many as there are hits. */
ww_status results_parts(ww_results *results);

/* Copies a text and says in `place`, an element of ids, payloads or texts, where it is. Cannot fail where text_bytes was exact.
 */
ww_status results_put(ww_results *results, int64_t *place, const char *text, size_t length);

/* WW_INVALID_ARGUMENT for flags that are not in ww_fetch. */
ww_status fetch_check(const char *function, uint32_t fetch);

#endif
