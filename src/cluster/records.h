/* Hits on their way between ranks: each with its key, its handle and what was asked for about it.
 *
 * What a rank sends begins with a table, two words a query: how many of its hits follow, and how many it found. Then the hits,
 * query by query, best first.
 */
#ifndef WW_CLUSTER_RECORDS_H
#define WW_CLUSTER_RECORDS_H

#include "cluster/cluster.h"

/* What this rank sends: of each query the first counts[q] hits of its own results. */
typedef struct records_own {
    const ww_results *results;
    const int64_t *counts;
    uint32_t fetch;
} records_own;

/* Writes it into memory of the call. */
ww_status records_pack(cluster_call *call, const records_own *own, unsigned char **packed, int64_t *bytes);

/* What came from all ranks. */
typedef struct records_all {
    const unsigned char *packed;
    const int64_t *starts; /* of each rank's, and the end */
    int64_t query_count;
    int64_t limit; /* hits of a query at most */
    uint32_t fetch;
    bool ranged; /* totals are kept */
} records_all;

/* Merges them into results with the rows numbered through. */
ww_status records_merge(cluster_call *call, const records_all *all, ww_results **made);

#endif
