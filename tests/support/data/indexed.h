/* Collections with an index, for tests: data to index, and what the index consists of. */
#ifndef TESTS_INDEXED_H
#define TESTS_INDEXED_H

#include "support/collections.h"

/* `count` rows around `centers` points, so that there is something to find; integers within -100 and 100 (u8: 0 and 200), so
 * that every type of rows holds them. */
void clustered_rows(test_random *random, float *rows, int64_t count, int32_t dim, int32_t centers, ww_vector_type type);

/* A collection with these rows, added in several batches, without an index. */
ww_collection *collection_of(ww_device *device, const ww_collection_config *config, const float *rows, int64_t count);

/* Builds an index of `nlist` lists; fails the test if that fails. */
void index_build(ww_collection *collection, int64_t nlist);

/* Fails unless both have the same centroids and lists, to the bit. */
void check_same_index(ww_collection *a, ww_collection *b);

/* Fails unless every live row is in exactly one list, lists ascend, and the sums agree. */
void check_index_is_whole(ww_collection *collection);

/* The results of a query with nprobe, as ww_collection_query() gives them. */
ww_results *query_lists(ww_collection *collection, const float *queries, int64_t count, int32_t k, int64_t nprobe);

/* Fails unless the two have the same rows and the same bits of scores. */
void check_same_results(const ww_results *a, const ww_results *b);

#endif
