/* Multivectors: rows with several vectors, as ColBERT makes them of texts (late interaction), searched exactly by MaxSim.
 *
 * The similarity of two vectors is their product as ww_tensor_matmul() computes it, canonically; for cosine both are first
 * divided by their norms, number by number, and a vector whose norm is 0 stays 0. The score of a row is the sum, over the
 * vectors of the query, of the greatest similarity to a vector of the row, added as ww_tensor_reduce() adds: 64 sums, number i
 * to sum i mod 64, folded by halves. So the bits are the same on every device. Larger is better; L2 is not supported.
 *
 * Rows of a collection in a store have multivectors by ww_rows.multi and are searched by ww_query.multi (vectors.h). The index
 * below is for multivectors in memory, without ids and payloads.
 */
#ifndef WARPWAVE_MULTI_H
#define WARPWAVE_MULTI_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/results.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_MULTI_MAX 1024 /* vectors of one row or query */

/* Several vectors of one dimension, one after the other. Numbers are finite, and the squared norm of a vector is at most 2^96,
 * so that no score overflows. Without vectors (count 0) it is the same as none: no search finds it. */
typedef struct ww_multivector {
    int32_t count; /* 0 to WW_MULTI_MAX */
    int32_t dim;   /* 1 to WW_DIM_MAX; the same for all rows of a collection or an index */
    const float *vectors;
} ww_multivector;

/* A search by multivectors: ww_query.multi. */
typedef struct ww_multi_query {
    size_t struct_size;
    const ww_multivector *vectors; /* one for each query; one without vectors finds nothing */
} ww_multi_query;

typedef struct ww_multi_index ww_multi_index;

/* The default is all zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_multi_query_init(void *value, size_t struct_size);

static inline ww_multi_query ww_multi_query_default(void)
{
    ww_multi_query value;
    ww_multi_query_init(&value, sizeof value);
    return value;
}

/* Makes an empty index on a device, which it keeps open. Refuses WW_L2 and groups of devices (WW_UNSUPPORTED). */
WW_API ww_status ww_multi_create(ww_device *device, int32_t dim, ww_metric metric, ww_multi_index **index);

/* Frees the index. Accepts NULL. No other thread may be using it. */
WW_API void ww_multi_destroy(ww_multi_index *index);

/* Adds `count` rows, numbered in order of insertion from 0: all or none. Refuses other dimensions, numbers that are not finite
 * or too large, and more than WW_MULTI_MAX vectors. Waits for readers. */
WW_API ww_status ww_multi_add(ww_multi_index *index, const ww_multivector *rows, int64_t count);

/* Removes a row: WW_NOT_FOUND if there is no such live row. Its number is not used again. Waits for readers. */
WW_API ww_status ww_multi_remove(ww_multi_index *index, int64_t row);

/* Returns the number of live rows, 0 for NULL. May wait for a writer. */
WW_API int64_t ww_multi_count(ww_multi_index *index);

/* Finds the k best live rows of each query, or those with at least the score `bound`: best first, equal scores by smallest row.
 * Of the query it takes query_count, mode, k, bound, limit, mask, mask_rows, cancel and multi. Refuses other fields, and
 * queries that ww_multi_add() would refuse as rows. May wait for a writer. */
WW_API ww_status ww_multi_search(ww_multi_index *index, const ww_query *query, ww_results **results);

/* The score of a query and a row, which have at least one vector each. Refuses what ww_multi_add() refuses, and WW_L2. */
WW_API ww_status ww_multi_score(ww_metric metric, const ww_multivector *query, const ww_multivector *row, float *score);

#ifdef __cplusplus
}
#endif

#endif
