/* Collections for tests: create, fill, and compare them. */
#ifndef TESTS_COLLECTIONS_H
#define TESTS_COLLECTIONS_H

#include <stdbool.h>

#include "support/check.h"
#include "support/data/random.h"

/* An empty collection called "test". */
ww_collection *collection_make(ww_device *device, int32_t dim, ww_metric metric);

/* Rows with their own memory: random vectors, ids "PREFIX<number>" from `first` on, and for every third row a payload. */
typedef struct test_rows {
    ww_rows rows; /* what add takes */
    float *vectors;
    char **ids;
    char **payloads;
} test_rows;

test_rows test_rows_make(test_random *random, int64_t count, int32_t dim, const char *prefix, int64_t first);
void test_rows_free(test_rows *rows);

/* Adds `count` such rows at once. */
void collection_fill(ww_collection *collection, test_random *random, int64_t count, int32_t dim, const char *prefix,
                     int64_t first);

/* Everything that can be seen of a collection from outside, as bytes: its figures, each row with its id, vector and payload,
 * the way back from each id, and the answers to some searches. Two collections in the same state give the same bytes. */
typedef struct snapshot {
    char *bytes;
    size_t size;
} snapshot;

snapshot snapshot_take(ww_collection *collection);
bool snapshot_equal(const snapshot *a, const snapshot *b);
/* The same except for the statistics, which name the device: what a moved collection keeps. */
bool snapshot_equal_but_figures(const snapshot *a, const snapshot *b);
void snapshot_free(snapshot *taken);

/* Fails unless the collection looks as it did; frees the snapshot. */
void check_unchanged(ww_collection *collection, snapshot *before);

/* Searches and compares with a full sort of all scores from ww_score(): rows and score bits. The mask may be NULL. */
void check_search(ww_collection *collection, const float *queries, int64_t query_count, int64_t query_stride, int32_t k,
                  const uint64_t *mask, int64_t mask_rows);

#endif
