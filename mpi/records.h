/* Hits in the format that ranks send: each with its key, its handle and the requested fields.
 *
 * It starts with a table of two words per query: how many of its hits follow, and how many were found. Then the hits follow,
 * query by query, best first.
 */
#ifndef WW_CLUSTER_RECORDS_H
#define WW_CLUSTER_RECORDS_H

#include "mpi/cluster.h"

/* What this rank sends: the first counts[q] hits of its own results for each query q. */
typedef struct records_own {
    const ww_results *results;
    const int64_t *counts;
    uint32_t fetch;
} records_own;

/* Packs it into memory of the call. */
ww_status records_pack(cluster_call *call, const records_own *own, unsigned char **packed, int64_t *bytes);

/* What all ranks sent. */
typedef struct records_all {
    const unsigned char *packed;
    const int64_t *starts; /* where each rank's data starts, and the end */
    int64_t query_count;
    int64_t limit; /* maximum number of hits of a query */
    uint32_t fetch;
    bool ranged; /* totals are kept */
} records_all;

/* Merges them into results whose rows are numbered over all ranks. */
ww_status records_merge(cluster_call *call, const records_all *all, ww_results **made);

#endif
