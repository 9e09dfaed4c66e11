/* A cluster from the inside: what a rank keeps, and the steps that every collective call is made of.
 *
 * A collective call goes: call_begin(); checks that only this rank can make; call_agree(), after which all ranks go on or all
 * return the same failure; work; call_agree() again before anyone waits for the work; exchanges; call_end(). Everything that
 * can fail on one rank alone comes before an agreement, never between two exchanges.
 *
 * MPI may still read and write the memory of an operation after the rank has stopped waiting for it. So memory for MPI comes
 * from call_memory(), never from the caller, and the memory of a lost cluster is never freed.
 */
#ifndef WW_CLUSTER_CLUSTER_H
#define WW_CLUSTER_CLUSTER_H

#include <pthread.h>
#include <stdbool.h>

#include <warpwave/cluster.h>

#include "base/status.h"
#include "base/system/process.h"
#include "mpi/keys.h"

enum { FAILURE_BYTES = 1024, PIECE_BYTES_DEFAULT = 64 << 20 };

/* What a rank tells all others before they continue. Its size never changes, so that different versions can detect each other.
 */
typedef struct rank_report {
    int64_t version; /* of the library and of this struct */
    int64_t call;    /* collective_call */
    int64_t status;  /* of this rank; all ranks return the first that is not WW_OK */
    int64_t dim, metric, root;
    int64_t answer, k, query_count, queries_given, queries_hash; /* of the search; 0 if there is none */
    int64_t rows_live, rows_end, first_row;                      /* of the shard */
    int64_t bytes;                                               /* that this rank will send */
    int64_t spare;
} rank_report;
_Static_assert(sizeof(rank_report) == 128, "versions must agree on the size of a report");

typedef enum collective_call { CALL_CREATE = 1, CALL_DESCRIBE, CALL_SEARCH, CALL_COLLECT } collective_call;

struct ww_cluster {
    process_mark process;
    pthread_mutex_t lock; /* protects everything below; collective calls hold it throughout */
    MPI_Comm communicator;
    MPI_Comm roll; /* for the roll call after a timeout (wait.c) */
    MPI_Op merge;
    int32_t rank, ranks, root;
    int32_t dim;
    ww_metric metric;
    double timeout_seconds; /* 0: none */
    size_t piece_bytes;     /* no message is longer: MPI counts in int */
    ww_collection *shard;
    bool shard_is_ours;
    int64_t first_row; /* from the config */

    bool lost; /* a rank did not report, or MPI failed: no exchange is possible any more */
    char why_lost[FAILURE_BYTES];
    ww_status lost_status;

    /* Memory that MPI uses. */
    MPI_Comm copy;        /* while it is being made */
    rank_report report;   /* this rank's */
    rank_report *reports; /* of all ranks, from the last agreement */
    char failure[FAILURE_BYTES];
    MPI_Request *requests; /* the operations that a call waits for; there is room for one per rank */

    bool *present; /* one per rank, in the roll call */
    /* first row of each rank's shard, as of the last call that numbered rows, and the end of the last shard */
    int64_t *first_rows;
    int64_t *row_counts; /* how many row numbers each rank's shard had then */
};

typedef struct call_block call_block;

typedef struct cluster_call {
    ww_cluster *cluster;
    const char *function;
    rank_report report; /* sent with the next agreement */
    call_block *blocks;
} cluster_call;

/* Begins a collective call. Refuses NULL, another process, a thread that may not use MPI, and a lost cluster; other ranks do
 * not learn of these failures, because this rank cannot send. Takes the lock if it returns WW_OK, until call_end(). */
ww_status call_begin(cluster_call *call, ww_cluster *cluster, collective_call kind);
void call_end(cluster_call *call);

/* Returns the public name of a call, or NULL if there is no such call. */
const char *call_name(int64_t kind);

/* Allocates memory until the end of the call, or forever if the cluster is lost by then. Returns NULL if there is not
 * enough. */
void *call_memory(cluster_call *call, size_t bytes);
/* The same for `count` elements; returns a status, with `what` in its message. `to` is the address of a pointer. */
ww_status call_array(cluster_call *call, int64_t count, size_t element_bytes, const char *what, void *to);

/* Collective: sends this rank's status with its message, and call->report, to the others. Returns WW_OK if all ranks succeeded
 * and agree; otherwise all return the same failure. The reports are in cluster->reports then. */
ww_status call_agree_all(cluster_call *call, ww_status mine);
static inline ww_status call_agree(cluster_call *call, ww_status mine)
{
    const ww_status all = call_agree_all(call, mine);
    return all == WW_OK ? mine : all; /* repeated for readers of this file */
}

/* Numbers the rows of all ranks consecutively, from the reports. All ranks get the same status. */
ww_status cluster_number_rows(ww_cluster *cluster);

/* Checks that MPI can be used, here and by this thread. */
ww_status mpi_usable(const char *function);

/* Waits until MPI has done the first `count` of cluster->requests, at most the cluster's timeout. On failure the cluster is
 * lost. `what` is for the message. */
ww_status cluster_wait(ww_cluster *cluster, int count, const char *what);

/* WW_OK for MPI_SUCCESS; otherwise WW_DRIVER_ERROR with what MPI says, and the cluster is lost. */
ww_status cluster_mpi(ww_cluster *cluster, int code, const char *call);

/* Sends `bytes` from the root to all, in pieces. */
ww_status cluster_broadcast(ww_cluster *cluster, void *data, size_t bytes);

/* Collects the bytes of every rank at the root, in order of ranks. The result is valid until call_end(). */
typedef struct collecting {
    const void *mine;
    int64_t bytes;
    unsigned char *all; /* NULL on other ranks */
    int64_t *starts;    /* of each rank's bytes, and the end */
} collecting;
ww_status cluster_collect(cluster_call *call, collecting *what);

/* Merges the lists of all ranks, `k` keys for each query, into `merged`, on every rank. */
typedef struct reduction {
    const rank_key *mine;
    rank_key *merged;
    int64_t query_count;
    int32_t k;
} reduction;
ww_status cluster_reduce(ww_cluster *cluster, const reduction *r);

/* Puts memory that MPI may still use on a list that is never freed. */
void memory_abandon(call_block *block);
call_block *block_take(size_t bytes);
void *block_memory(call_block *block);
call_block *block_of(void *memory);

#endif
