/* ww_cluster_build_ivf(): one index over the rows of all ranks.
 *
 * The sample is the one that a collection with all rows would draw. Every rank gets all of it and runs k-means by itself. Its
 * bits are the same on every device, so all ranks get the same centroids, and none depends on another's. Then each finds the
 * lists of its own rows. If a list is too large on all ranks together, all of them split it, from all its rows.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/hash.h"
#include "mpi/index_change.h"

typedef struct building {
    index_change change;
    ww_ivf_config config;
    int64_t total, first; /* live rows of all ranks, and of the ranks before this one */
    float *centroids;     /* of the first lists */
} building;

static int64_t hash_config(const ww_ivf_config *config)
{
    uint64_t hash = fnv_word(FNV_BEGIN, (uint64_t)config->nlist);
    hash = fnv_word(hash, (uint64_t)config->sample_rows);
    hash = fnv_word(hash, (uint64_t)config->iterations);
    return (int64_t)fnv_word(hash, config->seed);
}

ww_status cluster_draw(cluster_call *call, const part_draw *draw, part_rows *own, collecting *vectors, collecting *rows)
{
    ww_status status = call_agree(call, ww_core()->part_draw_rows(call->cluster->shard, draw, own));
    *vectors = (collecting){own->vectors, own->count * call->cluster->dim * (int64_t)sizeof(float), .to_all = true};
    *rows = (collecting){own->rows, own->count * (int64_t)sizeof *own->rows, .to_all = true};
    if (status == WW_OK)
        status = cluster_collect(call, vectors);
    return status == WW_OK ? cluster_collect(call, rows) : status;
}

static ww_status train(building *b)
{
    cluster_call *call = b->change.call;
    const part_draw draw = {b->config.seed, b->total, b->first, b->config.sample_rows};
    part_rows drawn = {0};
    collecting vectors = {0}, rows = {0};
    ww_status status = cluster_draw(call, &draw, &drawn, &vectors, &rows);
    memory_free(drawn.rows);
    memory_free(drawn.vectors);
    if (status != WW_OK)
        return status;
    status = call_array(call, b->config.nlist * call->cluster->dim, sizeof *b->centroids, "centroids", &b->centroids);
    if (status == WW_OK)
        status = ww_core()->part_train(call->cluster->shard, &b->config, (float *)(void *)vectors.all, b->centroids);
    return call_agree(call, status);
}

/* An outline whose lists have no rows yet, and this rank's rows, which have no lists yet. */
static ww_status prepare(building *b)
{
    const size_t nlist = (size_t)b->config.nlist;
    list_record *none = memory_alloc_zeroed(nlist, sizeof *none);
    ww_status status = none ? change_outline(&b->change, &(list_set){b->config.nlist, b->centroids, none})
                            : memory_failed("lists of an index", nlist * sizeof *none);
    memory_free(none);
    return status == WW_OK ? ww_core()->part_live_rows(b->change.call->cluster->shard, &b->change.own) : status;
}

/* The loss of the index is the mean of all ranks' rows. */
static ww_status share_loss(building *b)
{
    cluster_call *call = b->change.call;
    const double mine = b->change.outline->index->loss;
    memcpy(&call->report.rows_screened, &mine, sizeof mine);
    const ww_status status = call_agree(call, WW_OK);
    for (int32_t r = 0; status == WW_OK && r < call->cluster->ranks; r++) {
        double of_rank;
        memcpy(&of_rank, &call->cluster->reports[r].rows_screened, sizeof of_rank);
        b->change.update.loss += of_rank / (double)b->total;
    }
    return status;
}

static ww_status build(building *b, const ww_ivf_config *given)
{
    cluster_call *call = b->change.call;
    const ww_cluster *c = call->cluster;
    ww_status status = given ? struct_read(&b->config, sizeof b->config, given, call->function, "ww_ivf_config") : WW_OK;
    call->report.rows_live = ww_collection_count(c->shard);
    call->report.index = hash_config(&b->config);
    status = call_agree(call, status);
    if (status != WW_OK)
        return status;
    cluster_count_rows(c, &b->total, &b->first);
    status = ww_core()->ivf_config_check(c->shard->name, b->total, &b->config);
    if (status == WW_OK)
        status = train(b);
    if (status == WW_OK)
        status = change_assign(&b->change, prepare(b));
    if (status == WW_OK)
        status = share_loss(b);
    if (status == WW_OK)
        status = change_split_large(&b->change);
    b->change.update.rows_trained = b->change.own.count;
    return status == WW_OK ? change_install(&b->change) : status;
}

static ww_status build_index(cluster_call *call, void *config)
{
    building b = {.change = {.call = call}};
    const ww_status status = build(&b, config);
    change_free(&b.change);
    return status;
}

ww_status ww_cluster_build_ivf(ww_cluster *cluster, const ww_ivf_config *config)
{
    FLOAT_GUARD();
    return call_run(cluster, CALL_BUILD_IVF, build_index, (void *)(uintptr_t)config);
}
