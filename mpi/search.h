/* A search over ranks in its steps: what all ranks must agree on, and what follows each shard's own search. */
#ifndef WW_CLUSTER_SEARCH_H
#define WW_CLUSTER_SEARCH_H

#include "mpi/cluster.h"

/* Reads the caller's query into `query`, and checks what all ranks must agree on; `first` is the status of the caller's own
 * checks. Then sends the queries to the ranks that have none: query->queries and query_stride are what this rank searches with.
 * Returns the same on all ranks. */
ww_status search_open(cluster_call *call, ww_query *query, ww_answer answer, ww_status first);

/* Tells the others the status and the stats of this rank's own search; `rows_found` is larger than every row that it found.
 * Then rows are numbered over all ranks. */
ww_status search_agree(cluster_call *call, ww_status mine, const ww_search_stats *stats, int64_t rows_found);

/* Writes the combined stats of the last reports to the caller's struct, which may be NULL. */
void search_stats_write(const cluster_call *call, ww_search_stats *stats);

/* Merges the lists of all ranks, `k` keys for each query, into `merged`, on every rank. */
typedef struct reduction {
    const rank_key *mine;
    rank_key *merged;
    int64_t query_count;
    int32_t k;
} reduction;
ww_status cluster_reduce(ww_cluster *cluster, const reduction *r);

#endif
