/* Making, describing and ending a cluster. */
#include "mpi/cluster.h"

#include <inttypes.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"

STRUCT_INIT(ww_cluster_config, {.first_row = -1, .timeout_ms = WW_CLUSTER_TIMEOUT_MS})
STRUCT_INIT(ww_cluster_info, {0})

/* ---- making -------------------------------------------------------------------------------------------------------------- */

/* Ranks cannot tell each other anything before the cluster has its own communicator, so this checks only what every rank can
 * see for itself. The struct and its arrays are blocks that can be left to MPI. */
static ww_status make_struct(MPI_Comm communicator, ww_cluster **made)
{
    int rank, ranks;
    if (MPI_Comm_rank(communicator, &rank) != MPI_SUCCESS || MPI_Comm_size(communicator, &ranks) != MPI_SUCCESS)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_cluster_create: this is not a communicator");
    const size_t arrays = (size_t)ranks * (sizeof *(*made)->reports + sizeof *(*made)->requests + sizeof *(*made)->present) +
                          ((size_t)ranks + 1) * (sizeof *(*made)->first_rows + sizeof *(*made)->row_counts);
    call_block *block = block_take(sizeof(ww_cluster) + arrays);
    if (!block)
        return memory_failed("a cluster", sizeof(ww_cluster) + arrays);
    ww_cluster *c = block_memory(block);
    memset(c, 0, sizeof *c + arrays);
    c->process = process_here();
    c->rank = rank;
    c->ranks = ranks;
    c->communicator = c->roll = MPI_COMM_NULL;
    c->merge = MPI_OP_NULL;
    c->piece_bytes = PIECE_BYTES_DEFAULT;
    c->reports = (rank_report *)(c + 1);
    c->first_rows = (int64_t *)(c->reports + ranks);
    c->row_counts = c->first_rows + ranks + 1;
    c->requests = (MPI_Request *)(c->row_counts + ranks + 1);
    c->present = (bool *)(c->requests + ranks);
    pthread_mutex_init(&c->lock, NULL);
    *made = c;
    return WW_OK;
}

/* Makes two communicators that return errors. While the first one is made only the caller's exists, and its error handler
 * decides about errors; a failure of the second can already name the missing rank. */
static ww_status make_communicators(ww_cluster *c, MPI_Comm callers)
{
    MPI_Comm from = callers;
    MPI_Comm *const made[] = {&c->roll, &c->communicator};
    ww_status status = WW_OK;
    for (int i = 0; i < 2 && status == WW_OK; i++) {
        status = cluster_mpi(c, MPI_Comm_idup(from, &c->copy, &c->requests[0]), "MPI_Comm_idup");
        if (status == WW_OK)
            status = cluster_wait(c, 1, "ww_cluster_create");
        if (status == WW_OK)
            status = cluster_mpi(c, MPI_Comm_set_errhandler(c->copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        if (status == WW_OK)
            *made[i] = from = c->copy;
    }
    if (status == WW_OK)
        status = cluster_mpi(c, MPI_Op_create(rank_keys_reduce, 1, &c->merge), "MPI_Op_create");
    return status;
}

static ww_status check_config(const ww_cluster *c, const ww_cluster_config *config)
{
    if (strcmp(ww_version(), WW_VERSION_TEXT) != 0)
        return ww_fail(WW_UNSUPPORTED, "libwarpwave_mpi is of version %s, libwarpwave of %s; install both of one version",
                       WW_VERSION_TEXT, ww_version());
    if (config->root < 0 || config->root >= c->ranks)
        return ww_fail(WW_OUT_OF_RANGE, "ww_cluster_create: root is %d; the communicator has ranks 0 to %d", config->root,
                       c->ranks - 1);
    if (config->timeout_ms < 0)
        return ww_fail(WW_OUT_OF_RANGE, "ww_cluster_create: timeout_ms is %d; it must not be negative", config->timeout_ms);
    if (config->first_row < -1)
        return ww_fail(WW_OUT_OF_RANGE, "ww_cluster_create: first_row is %" PRId64 "; it must be -1 or a row number",
                       config->first_row);
    return WW_OK;
}

static ww_status make_shard(ww_cluster *c, ww_device *device, const ww_cluster_config *config)
{
    if (config->collection) {
        ww_collection_info info = ww_collection_info_default();
        c->shard = config->collection;
        const ww_status status = ww_collection_describe(c->shard, &info);
        c->dim = info.dim;
        c->metric = info.metric;
        return status;
    }
    ww_collection_config shard = ww_collection_config_default();
    shard.name = config->name;
    shard.dim = config->dim;
    shard.metric = config->metric;
    shard.keep_host_copy = config->keep_host_copy;
    shard.screen = config->screen;
    shard.rows = config->rows;
    shard.type = config->type;
    c->dim = config->dim;
    c->metric = config->metric;
    if (!device)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_cluster_create: device is NULL, and there is no collection in the config");
    const ww_status status = ww_collection_create(device, &shard, &c->shard);
    c->shard_is_ours = status == WW_OK;
    return status;
}

ww_status ww_cluster_create(MPI_Comm communicator, ww_device *device, const ww_cluster_config *config, ww_cluster **cluster)
{
    FLOAT_GUARD();
    ww_cluster_config asked = {0};
    ww_cluster *c = NULL;
    cluster_call call;
    if (!cluster)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_cluster_create: cluster is NULL");
    *cluster = NULL;
    ww_status status = mpi_usable("ww_cluster_create");
    if (status == WW_OK)
        status = make_struct(communicator, &c);
    if (status != WW_OK)
        return status;
    /* From here on other ranks learn about failures. If the config cannot be read, the default timeout applies. */
    ww_status mine = struct_read(&asked, sizeof asked, config, "ww_cluster_create", "ww_cluster_config");
    if (mine == WW_OK)
        mine = check_config(c, &asked);
    c->timeout_seconds = mine == WW_OK ? asked.timeout_ms * 1e-3 : WW_CLUSTER_TIMEOUT_MS * 1e-3;
    c->root = mine == WW_OK ? asked.root : 0;
    c->first_row = asked.first_row;
    if (mine == WW_OK)
        mine = make_shard(c, device, &asked);
    status = make_communicators(c, communicator);
    if (status == WW_OK)
        status = call_begin(&call, c, CALL_CREATE);
    if (status == WW_OK) {
        status = call_agree(&call, mine);
        call_end(&call);
    }
    if (status == WW_OK)
        *cluster = c;
    else
        ww_cluster_destroy(c);
    return status;
}

void ww_cluster_destroy(ww_cluster *cluster)
{
    int ended = 0;
    if (!cluster || !process_is_ours(cluster->process))
        return;
    if (cluster->shard_is_ours)
        ww_collection_destroy(cluster->shard);
    if (cluster->lost) { /* the operations that are still running cannot be ended */
        memory_abandon(block_of(cluster));
        return;
    }
    if (MPI_Finalized(&ended) == MPI_SUCCESS && !ended) {
        if (cluster->merge != MPI_OP_NULL)
            MPI_Op_free(&cluster->merge);
        if (cluster->communicator != MPI_COMM_NULL)
            MPI_Comm_free(&cluster->communicator);
        if (cluster->roll != MPI_COMM_NULL)
            MPI_Comm_free(&cluster->roll);
    }
    pthread_mutex_destroy(&cluster->lock);
    memory_free(block_of(cluster));
}

/* ---- looking ------------------------------------------------------------------------------------------------------------- */

ww_collection *ww_cluster_collection(ww_cluster *cluster)
{
    return cluster ? cluster->shard : NULL;
}

static ww_status describe(cluster_call *call, ww_cluster_info *info)
{
    ww_cluster *c = call->cluster;
    ww_collection_info shard = ww_collection_info_default();
    ww_status status = struct_check(info, "ww_cluster_describe", "ww_cluster_info");
    if (status == WW_OK)
        status = ww_collection_describe(c->shard, &shard);
    call->report.rows_live = shard.rows_live;
    call->report.rows_end = shard.mask_rows;
    status = call_agree(call, status);
    if (status == WW_OK)
        status = cluster_number_rows(c);
    if (status != WW_OK)
        return status;
    ww_cluster_info ours = {.rank = c->rank,
                            .ranks = c->ranks,
                            .root = c->root,
                            .dim = c->dim,
                            .metric = c->metric,
                            .rows_end = c->first_rows[c->ranks],
                            .rank_rows_live = shard.rows_live,
                            .rank_first_row = c->first_rows[c->rank]};
    for (int32_t r = 0; r < c->ranks; r++)
        ours.rows_live += c->reports[r].rows_live;
    return struct_write(info, &ours, sizeof ours, "ww_cluster_describe", "ww_cluster_info");
}

ww_status ww_cluster_describe(ww_cluster *cluster, ww_cluster_info *info)
{
    FLOAT_GUARD();
    cluster_call call;
    ww_status status = call_begin(&call, cluster, CALL_DESCRIBE);
    if (status != WW_OK)
        return status;
    status = describe(&call, info);
    call_end(&call);
    return status;
}

ww_status ww_cluster_locate(ww_cluster *cluster, int64_t row, int32_t *rank, int64_t *rank_row)
{
    FLOAT_GUARD();
    if (!cluster || !rank || !rank_row)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_cluster_locate: cluster, rank or rank_row is NULL");
    ww_status status = process_check(cluster->process, "cluster");
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&cluster->lock);
    status = WW_NOT_FOUND;
    for (int32_t r = 0; r < cluster->ranks && status != WW_OK; r++) {
        const int64_t inside = row - cluster->first_rows[r];
        if (row < 0 || inside < 0 || inside >= cluster->row_counts[r])
            continue;
        *rank = r;
        *rank_row = inside;
        status = WW_OK;
    }
    pthread_mutex_unlock(&cluster->lock);
    return status == WW_OK
               ? status
               : ww_fail(status, "ww_cluster_locate: no shard has row %" PRId64 " as of the last collective call", row);
}
