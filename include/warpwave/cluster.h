/* Clusters: one collection over the ranks of MPI, the same answers to the bit as one collection with all the rows.
 *
 * Every rank has a collection of its own, its shard. Row numbers run through all shards: first those of rank 0, then those of
 * rank 1, and so on. A search runs on every shard at once; the ranks merge keys of score, rank and row. No two keys are equal,
 * so the result does not depend on the number of ranks or on the order in which they answer.
 *
 * All ranks of the communicator make the calls that are marked *collective*, in the same order. Such a call first checks that
 * the ranks agree (version, dimension, metric, root, k, queries) and that none has failed by itself. If something is wrong on
 * one rank, all return that error, with the rank in the message.
 *
 * A rank waits for the others no longer than `timeout_ms`. Then the call fails with WW_TIMEOUT, the message names the ranks
 * that did not report, and the cluster can no longer be used: every call fails at once, and ww_cluster_destroy() does not wait.
 * The shard can still be read. No call returns a partial answer.
 *
 * This header is not part of warpwave.h, since it needs MPI: link with -lwarpwave_mpi, built for the same MPI as the program.
 * The program initialises MPI, before the first call, and finalises it, after the last cluster is destroyed. With
 * MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED all calls belong on the main thread; from MPI_THREAD_SERIALIZED on any thread may
 * make them, and calls of one cluster wait for each other. With MPI_THREAD_SERIALIZED the program must not use MPI at the same
 * time.
 */
#ifndef WARPWAVE_CLUSTER_H
#define WARPWAVE_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include <warpwave/device.h>
#include <warpwave/files.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_CLUSTER_TIMEOUT_MS 300000

typedef struct ww_cluster ww_cluster;

/* Which ranks a search answers on. */
typedef enum ww_answer {
    WW_ANSWER_ROOT = 0, /* only the root of the config */
    WW_ANSWER_ALL = 1   /* every rank, with the same bits */
} ww_answer;

typedef struct ww_cluster_config {
    size_t struct_size;
    /* The shard: as in ww_collection_config. Dimension and metric must be the same on all ranks; type, screen, rows and device
     * may differ. */
    const char *name;
    int32_t dim;
    ww_metric metric;
    int32_t keep_host_copy;
    ww_screen screen;
    ww_vector_type type;
    /* A collection of the caller, for example from a store, used as the shard in place of a new one. The caller keeps it, and
     * it must outlive the cluster. name, keep_host_copy, screen, type and rows are ignored; dim and metric are the
     * collection's. */
    ww_collection *collection;
    int64_t first_row;  /* the number of this shard's first row among all; -1, the default: after the shards of lower ranks.
                         * Numbers must ascend with the ranks, without overlap */
    int32_t root;       /* the rank that has the queries and, with WW_ANSWER_ROOT, gets the results; default 0 */
    int32_t timeout_ms; /* how long a rank waits for the others; default WW_CLUSTER_TIMEOUT_MS; 0: no limit */
    ww_row_place rows;  /* of the shard; as in ww_collection_config */
} ww_cluster_config;

typedef struct ww_cluster_info {
    size_t struct_size; /* set by ww_cluster_info_default() */
    int32_t rank;       /* of this process */
    int32_t ranks;
    int32_t root;
    int32_t dim;
    ww_metric metric;
    int64_t rows_live; /* on all ranks */
    int64_t rows_end;  /* row numbers are below it */
    int64_t rank_rows_live;
    int64_t rank_first_row; /* the number of this rank's row 0 */
} ww_cluster_info;

/* first_row is -1, timeout_ms WW_CLUSTER_TIMEOUT_MS, all else zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_cluster_config_init(void *value, size_t struct_size);
WW_API ww_status ww_cluster_info_init(void *value, size_t struct_size);

static inline ww_cluster_config ww_cluster_config_default(void)
{
    ww_cluster_config value;
    ww_cluster_config_init(&value, sizeof value);
    return value;
}
static inline ww_cluster_info ww_cluster_info_default(void)
{
    ww_cluster_info value;
    ww_cluster_info_init(&value, sizeof value);
    return value;
}

/* Collective. Makes a cluster over the ranks of `communicator`, of which it takes duplicates with error handlers that return,
 * and a shard on `device` (which may be NULL if config->collection is given). Returns it in `cluster`. Refuses MPI that is not
 * initialised or is finalised, a bad config, and ranks that disagree. */
WW_API ww_status ww_cluster_create(MPI_Comm communicator, ww_device *device, const ww_cluster_config *config,
                                   ww_cluster **cluster);

/* Frees it, and the shard unless that is the caller's. All ranks do so before MPI_Finalize(); none waits for another. After
 * WW_TIMEOUT it does not free memory that MPI may still write to. Accepts NULL. */
WW_API void ww_cluster_destroy(ww_cluster *cluster);

/* Returns this rank's shard, to add or look up rows. It belongs to the cluster, or to the caller if the config had it. NULL for
 * NULL. */
WW_API ww_collection *ww_cluster_collection(ww_cluster *cluster);

/* Adds this rank's slice of a file to the shard. With n rows and R ranks, rank r adds rows rn/R to (r + 1)n/R - 1; of a binary
 * file it reads nothing else. When every rank has done so with one file, row numbers are those of the file. `options` as
 * ww_matrix_open_with() takes them, NULL: none; ids come from an id column. Not collective: a failure concerns only this rank,
 * whose rows stay as they were. `progress`, in rows of the slice, may be NULL. Blocks on the disk. */
WW_API ww_status ww_cluster_add_file(ww_cluster *cluster, const char *path, const ww_matrix_options *options,
                                     ww_progress progress, void *user);

/* Collective. Describes the cluster into `info`, from ww_cluster_info_default(). */
WW_API ww_status ww_cluster_describe(ww_cluster *cluster, ww_cluster_info *info);

/* Collective. As ww_collection_search() over all shards, with row numbers of the cluster: exact, whatever indexes the shards
 * have. The root has the queries; other ranks set `queries` to NULL to receive them, or to the same queries. A query_tensor,
 * nprobe and recall are refused. query_count, dim and k are given on all ranks. A mask is over the rows of the rank's own
 * shard, a `where` or `filter` is the rank's own, and `stats` are of its own search. `rows` and `scores` are written on the
 * ranks that `answer` names, and may be NULL on others. For ids and payloads, look up the rows that ww_cluster_locate() gives a
 * rank in its shard. */
WW_API ww_status ww_cluster_search(ww_cluster *cluster, const ww_query *query, ww_answer answer, int64_t *rows, float *scores);

/* Finds which rank has a row, by its number in results of this cluster, and its number there, as of the last collective call.
 * WW_NOT_FOUND if no shard has that row. Does not communicate. */
WW_API ww_status ww_cluster_locate(ww_cluster *cluster, int64_t row, int32_t *rank, int64_t *rank_row);

#ifdef __cplusplus
}
#endif

#endif
