/* Searches by the lists of an index over ranks. Before any rank reads a list, all ranks know how many admitted rows each list
 * has on all ranks, and their bounds. So every rank reads the lists that one collection with all rows would read, and the
 * answer has the same bits. */
#ifndef WW_CLUSTER_LISTS_H
#define WW_CLUSTER_LISTS_H

#include "mpi/cluster.h"
#include "vectors/internal/core.h"

typedef struct lists_plan {
    bool asked;         /* the query has nprobe or recall */
    bool exact;         /* it reads all rows anyway */
    part_counts counts; /* over all ranks; the arrays are memory of the call */
    ivf_whole whole;
} lists_plan;

/* Collective: makes the plan of a query on which all ranks agree. Without nprobe and recall it only records that. */
ww_status lists_plan_make(cluster_call *call, const ww_query *query, lists_plan *plan);

/* Runs this rank's own search. */
ww_status lists_query(cluster_call *call, const lists_plan *plan, const ww_query *query, ww_results **results);

/* Sets how many hits of each query are proven, in results of all ranks. */
ww_status lists_prove(cluster_call *call, const lists_plan *plan, const ww_query *query, ww_results *results);

/* Collective: counts the lists of all ranks for a query; NULL: without a query, when all live rows are admitted. Lists that
 * have grown too large since the last time are split first. Arrays are memory of the call. */
ww_status lists_count(cluster_call *call, const ww_query *query, part_counts *counts);

/* Collective: turns this rank's counts into those of all; new arrays in memory of the call replace the old ones, which are
 * freed. `mine` is this rank's status so far. */
ww_status lists_reduce(cluster_call *call, ww_status mine, part_counts *counts);

/* Collective: draws rows from all ranks, and sends their vectors and numbers to all ranks. `own` are this rank's. */
ww_status cluster_draw(cluster_call *call, const part_draw *draw, part_rows *own, collecting *vectors, collecting *rows);

/* Collective: combines `count` numbers of all ranks, by sum or by maximum. `from` and `to` are memory of the call. */
ww_status cluster_sum(ww_cluster *cluster, const int64_t *from, int64_t *to, int64_t count);
ww_status cluster_max(ww_cluster *cluster, const double *from, double *to, int64_t count);

#endif
