/* Results under construction, of queries and of other calls that return ids and payloads.
 *
 * They are made in this order: results_create() for a number of queries and of hits; then rows, handles, scores and starts are
 * filled in, or results_from_padded() does that; then results_prepare() for the fields to fetch; then texts by results_put(),
 * and vectors in place. Hits are numbered over all queries: query q has hits starts[q] to starts[q + 1] - 1. After a failure at
 * any step, ww_results_destroy() frees the object.
 */
#ifndef WW_VECTORS_RESULTS_H
#define WW_VECTORS_RESULTS_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/multi.h>
#include <warpwave/results.h>
#include <warpwave/sparse.h>

#include "base/status.h"

struct ww_results {
    int64_t query_count;
    int64_t *starts; /* query_count + 1 */
    int64_t *rows;
    int64_t *handles;
    float *scores;
    int64_t *totals; /* one per query, memory_free(); NULL: the numbers of hits */
    int64_t *proven; /* one per query, memory_free(); NULL: all hits are proven */

    /* The fields below are NULL unless results_prepare() was called for them. */
    int32_t dim;
    int64_t *ids;      /* offsets in `text` */
    int64_t *payloads; /* offsets in `text`; -1 for none */
    int64_t *texts;    /* offsets in `text`; -1 for none */
    float *vectors;
    char *text;
    size_t text_bytes;
    size_t text_room;
    void *fetched; /* the block with ids, payloads, texts and vectors */

    ww_sparse_vector *sparse; /* one per hit, each with a block of memory unless it is empty; memory_free(); otherwise NULL */
    ww_multivector *multi;    /* the same of multivectors */

    ww_hit_parts *parts; /* of fused results, one per hit, memory_free(); otherwise NULL */
};

/* Allocates memory for up to this many hits of all queries. All starts are 0. */
ww_status results_create(int64_t query_count, int64_t hits, ww_results **results);

/* Returns the number of hits of all queries together. */
int64_t results_hits(const ww_results *results);

/* Rows and scores have `k` places per query, padded with row -1, as a search writes them. Closes the gaps and sets the
 * starts. */
void results_from_padded(ww_results *results, int64_t k);

/* Allocates memory for the fields in `fetch`, without any id or payload yet, and for `text_bytes` bytes of texts with their
 * NULs, which may be a guess. Refuses unknown flags. */
ww_status results_prepare(ww_results *results, uint32_t fetch, int32_t dim, size_t text_bytes);

/* Allocates memory for the total of each query, for results of a range. */
ww_status results_totals(ww_results *results);

/* Allocates memory for the number of proven hits of each query, for results of a query with nprobe. */
ww_status results_proven(ww_results *results);

/* Allocates memory for the parts of fused results, one per hit. */
ww_status results_parts(ww_results *results);

/* Copies a text and stores its offset in `place`, an element of ids, payloads or texts. Cannot fail if text_bytes was exact. */
ww_status results_put(ww_results *results, int64_t *place, const char *text, size_t length);

/* Copy the sparse vector, or the multivector, of a hit. */
ww_status results_put_sparse(ww_results *results, int64_t hit, const ww_sparse_vector *vector);
ww_status results_put_multi(ww_results *results, int64_t hit, const ww_multivector *vector);

/* Fails with WW_INVALID_ARGUMENT for flags that are not in ww_fetch. */
ww_status fetch_check(const char *function, uint32_t fetch);

#endif
