/* A search as ranks see it: what all of them must agree on, in one form for ww_search, ww_query and ww_range. */
#ifndef WW_CLUSTER_SEARCH_H
#define WW_CLUSTER_SEARCH_H

#include "cluster/cluster.h"

typedef struct rank_search {
    const float *queries; /* NULL: the root's are sent */
    int64_t query_count;
    int32_t dim;
    int64_t query_stride;
    int32_t k; /* of a search or query; 0 of a range */
    uint32_t fetch;
    int64_t limit; /* of a range */
    float bound;   /* likewise */
    ww_answer answer;
    ww_search_stats *stats;
} rank_search;

/* Checks what all ranks must agree on; `first` is what the caller has found wrong before. Then sends the queries to whom has
 * none: s->queries and query_stride are this rank's to search with. Returns the same on all ranks. */
ww_status search_open(cluster_call *call, rank_search *s, ww_status first);

/* Tells the others how this rank's own search went, with its stats; `rows_found` is above every row that it found. Then rows
 * are numbered through. */
ww_status search_agree(cluster_call *call, ww_status mine, const ww_search_stats *stats, int64_t rows_found);

/* Writes the stats of all ranks' searches, as reported last, for the caller. */
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
