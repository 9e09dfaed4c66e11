/* Manhattan distance: the sum of the differences' magnitudes. The library has no such metric, so every row is read and scored
 * here, in the order of its elements and with 53 bits, which gives the same bits on every device. The store keeps these vectors
 * as those of a Euclidean collection. */
#ifndef WW_SERVER_QDRANT_MANHATTAN_H
#define WW_SERVER_QDRANT_MANHATTAN_H

#include "server/qdrant/filter.h"
#include "server/state.h"

double manhattan_distance(const float *a, const float *b, int64_t dim);

typedef struct manhattan_query {
    const float *vector;
    const ww_filter *filter; /* NULL: every row */
    int64_t count;           /* hits at most */
    uint32_t fetch;
} manhattan_query;

/* The nearest rows, the best first; those with the same distance in the order of their handles. `rows` gets the number that was
 * scored. */
ww_status manhattan_search(const entry *e, const manhattan_query *q, ww_results **results, int64_t *rows);

/* Calls `tell` for pieces of the rows that the filter admits, in the order of their handles, with their vectors. */
ww_status manhattan_each(const entry *e, const ww_filter *filter, ww_status (*tell)(void *user, const ww_results *rows),
                         void *user);

#endif
