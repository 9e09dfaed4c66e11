/* The other operations of all ranks on an index: describe it, drop it, and compact with it. */
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "mpi/index_change.h"

static bool has_part(const cluster_call *call)
{
    return ww_core()->part_of(call->cluster->shard) != 0;
}

static ww_status not_found(const cluster_call *call)
{
    return ww_fail(WW_NOT_FOUND, "%s: there is no index over ranks; build one first", call->function);
}

/* ---- describing ---------------------------------------------------------------------------------------------------------- */

/* Numbers that each rank has for itself. */
enum { OWN_BYTES, OWN_ADDED, OWN_CALIBRATION_ADDED, OWN_CALIBRATION_REMOVED, OWN_CALIBRATION_TIME, OWN_NUMBERS };

static ww_status sum_own(cluster_call *call, ww_ivf_info *info)
{
    int64_t *mine = NULL, *all = NULL;
    ww_status status = ww_collection_describe_ivf(call->cluster->shard, info);
    if (status == WW_OK)
        status = call_array(call, OWN_NUMBERS, sizeof *mine, "the numbers of an index", &mine);
    if (status == WW_OK)
        status = call_array(call, OWN_NUMBERS, sizeof *all, "the numbers of an index", &all);
    if (status == WW_OK) {
        mine[OWN_BYTES] = info->bytes;
        mine[OWN_ADDED] = info->rows_added;
        mine[OWN_CALIBRATION_ADDED] = info->calibration_rows_added;
        mine[OWN_CALIBRATION_REMOVED] = info->calibration_rows_removed;
        mine[OWN_CALIBRATION_TIME] = call->cluster->rank == 0 ? info->calibration_time : 0; /* clocks may differ */
    }
    status = call_agree(call, status);
    if (status == WW_OK)
        status = cluster_sum(call->cluster, mine, all, OWN_NUMBERS);
    if (status != WW_OK)
        return status;
    info->bytes = all[OWN_BYTES];
    info->rows_added = all[OWN_ADDED];
    info->calibration_rows_added = all[OWN_CALIBRATION_ADDED];
    info->calibration_rows_removed = all[OWN_CALIBRATION_REMOVED];
    info->calibration_time = all[OWN_CALIBRATION_TIME];
    return WW_OK;
}

static ww_status describe(cluster_call *call, void *info)
{
    ww_ivf_info whole = ww_ivf_info_default();
    part_counts counts = {0};
    ww_status status = struct_check(info, call->function, "ww_ivf_info");
    if (status == WW_OK && !has_part(call))
        status = not_found(call);
    call->report.index = (int64_t)ww_core()->part_of(call->cluster->shard);
    status = call_agree(call, status);
    if (status == WW_OK)
        status = lists_count(call, NULL, &counts);
    if (status == WW_OK)
        status = sum_own(call, &whole);
    if (status != WW_OK)
        return status;
    whole.rows = counts.rows;
    whole.rows_trained = counts.trained;
    whole.rows_mean = (double)counts.rows / (double)counts.nlist;
    whole.rows_largest = 0;
    for (int64_t l = 0; l < counts.nlist; l++)
        whole.rows_largest = max_i64(whole.rows_largest, counts.records[l].rows);
    return struct_write(info, &whole, sizeof whole, call->function, "ww_ivf_info");
}

ww_status ww_cluster_describe_ivf(ww_cluster *cluster, ww_ivf_info *info)
{
    FLOAT_GUARD();
    return call_run(cluster, CALL_DESCRIBE_IVF, describe, info);
}

/* ---- dropping ------------------------------------------------------------------------------------------------------------ */

/* If a rank has no part, or another one, the others still drop theirs. */
static ww_status drop(cluster_call *call, void *unused)
{
    const ww_cluster *c = call->cluster;
    (void)unused;
    const bool mine = has_part(call);
    bool any = false;
    call->report.queries_given = mine;
    const ww_status status = call_agree(call, WW_OK);
    if (status != WW_OK)
        return status;
    for (int32_t r = 0; r < c->ranks; r++)
        any = any || c->reports[r].queries_given;
    if (mine)
        (void)ww_collection_drop_ivf(c->shard); /* only fails if there is no index any more */
    return any ? WW_OK : not_found(call);
}

ww_status ww_cluster_drop_ivf(ww_cluster *cluster)
{
    FLOAT_GUARD();
    return call_run(cluster, CALL_DROP_IVF, drop, NULL);
}

/* ---- compacting ---------------------------------------------------------------------------------------------------------- */

typedef struct compacting {
    ww_progress progress;
    void *user;
} compacting;

/* As in one collection: an index without rows is dropped, and tiny lists stay if there is no memory to merge them. */
static ww_status tidy_lists(cluster_call *call)
{
    part_counts counts = {0};
    ww_status status = lists_count(call, NULL, &counts);
    if (status != WW_OK)
        return status;
    if (counts.rows == 0)
        return ww_collection_drop_ivf(call->cluster->shard);
    status = index_merge_tiny(call, &counts);
    return call->cluster->lost ? status : WW_OK;
}

static ww_status compact(cluster_call *call, void *given)
{
    const compacting *job = given;
    const bool indexed = has_part(call);
    part_counts counts = {0};
    call->report.index = (int64_t)ww_core()->part_of(call->cluster->shard);
    ww_status status = call_agree(call, WW_OK);
    if (status == WW_OK && indexed)
        status = lists_count(call, NULL, &counts); /* lists are split before rows leave them */
    if (status != WW_OK)
        return status;
    status = call_agree(call, ww_collection_compact(call->cluster->shard, job->progress, job->user));
    return status == WW_OK && indexed ? tidy_lists(call) : status;
}

ww_status ww_cluster_compact(ww_cluster *cluster, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    return call_run(cluster, CALL_COMPACT, compact, &(compacting){progress, user});
}
