/* Sparse vectors: a few indices with a value each, as SPLADE and BM25 make them, searched exactly by their dot product.
 *
 * The score of a row is a chain of fused multiply-adds that starts at +0 and goes over the indices that query and row have in
 * common, in ascending order: the same bits on every machine. A row without a common index is not found. An inverted index
 * finds the rows, and the bounds of its blocks exclude only what cannot be among the results: every search is exact.
 *
 * Rows of a collection in a store have sparse vectors by ww_rows.sparse and are searched by ww_query.sparse (vectors.h). The
 * index below is for vectors in memory, without ids and payloads.
 */
#ifndef WARPWAVE_SPARSE_H
#define WARPWAVE_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/results.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_SPARSE_MAX 65536 /* indices of one vector */

/* A sparse vector. Indices are in any order, each at most once; values are finite, with a finite squared norm, and may be 0. In
 * results the indices ascend. A vector without indices is the same as none: no search finds it. */
typedef struct ww_sparse_vector {
    int64_t count;
    const uint32_t *indices;
    const float *values;
} ww_sparse_vector;

/* What the values of a query are multiplied by. */
typedef enum ww_sparse_modifier {
    WW_SPARSE_PLAIN = 0,
    /* The inverse document frequency of the index among the live rows that have a sparse vector: with `rows` of these, and
     * `with` of them having the index, ln((rows - with + 0.5) / (with + 0.5) + 1). Computed with double precision and rounded
     * once, then the product with the query's value is rounded once. */
    WW_SPARSE_IDF = 1
} ww_sparse_modifier;

/* A search by sparse vectors: ww_query.sparse. */
typedef struct ww_sparse_query {
    size_t struct_size;
    const ww_sparse_vector *vectors; /* one for each query */
    ww_sparse_modifier modifier;
} ww_sparse_query;

typedef struct ww_sparse_index ww_sparse_index;

/* The default is all zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_sparse_query_init(void *value, size_t struct_size);

static inline ww_sparse_query ww_sparse_query_default(void)
{
    ww_sparse_query value;
    ww_sparse_query_init(&value, sizeof value);
    return value;
}

/* Makes an empty index in memory. Refuses NULL. Does not block. */
WW_API ww_status ww_sparse_create(ww_sparse_index **index);

/* Frees the index. Accepts NULL. No other thread may be using it. */
WW_API void ww_sparse_destroy(ww_sparse_index *index);

/* Adds `count` rows, numbered in order of insertion from 0: all or none. Refuses duplicate indices, values that are not finite
 * or whose squared norm is not, and more than WW_SPARSE_MAX indices. Waits for readers. */
WW_API ww_status ww_sparse_add(ww_sparse_index *index, const ww_sparse_vector *vectors, int64_t count);

/* Removes a row: WW_NOT_FOUND if there is no such live row. Its number is not used again. Waits for readers. */
WW_API ww_status ww_sparse_remove(ww_sparse_index *index, int64_t row);

/* Returns the number of live rows, 0 for NULL. May wait for a writer. */
WW_API int64_t ww_sparse_count(ww_sparse_index *index);

/* Finds the k best live rows of each query, or those with at least the score `bound`: best first, equal scores by smallest row.
 * Of the query it takes query_count, mode, k, bound, limit, mask, mask_rows, cancel and sparse. Refuses other fields, and
 * queries that ww_sparse_add() would refuse as rows. May wait for a writer. */
WW_API ww_status ww_sparse_search(ww_sparse_index *index, const ww_query *query, ww_results **results);

/* The score of two sparse vectors, and in `common` (may be NULL) how many indices they have in common. Refuses what
 * ww_sparse_add() refuses. */
WW_API ww_status ww_sparse_score(const ww_sparse_vector *a, const ww_sparse_vector *b, float *score, int64_t *common);

#ifdef __cplusplus
}
#endif

#endif
