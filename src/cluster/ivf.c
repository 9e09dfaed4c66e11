/* ww_cluster_build_ivf(): one index over the rows of all ranks.
 *
 * The sample is the one that a collection with all rows would draw. Every rank gets all of it and runs k-means by itself, whose
 * bits are the same on every device, so all have the same centroids and none has to be trusted with them. Then each finds the
 * lists of its own rows. A list that is too large on all ranks together is split by all of them from all its rows.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "cluster/lists.h"

typedef struct building {
    cluster_call *call;
    ww_ivf_config config;
    int64_t total, first;   /* live rows of all ranks, and of those before this one */
    float *centroids;       /* of the first lists */
    ww_collection *outline; /* all lists, with the counts of all ranks */
    part_rows own;
    double loss;
} building;

static const uint64_t HASH_BEGIN = UINT64_C(0xcbf29ce484222325);

static uint64_t hash_more(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(0x100000001b3);
}

static int64_t hash_config(const ww_ivf_config *config)
{
    uint64_t hash = hash_more(HASH_BEGIN, (uint64_t)config->nlist);
    hash = hash_more(hash, (uint64_t)config->sample_rows);
    hash = hash_more(hash, (uint64_t)config->iterations);
    return (int64_t)hash_more(hash, config->seed);
}

static uint64_t hash_floats(const float *values, int64_t count)
{
    uint64_t hash = HASH_BEGIN;
    for (int64_t i = 0; i < count; i++)
        hash = hash_more(hash, canon_float_bits(values[i]));
    return hash;
}

/* ---- centroids ------------------------------------------------------------------------------------------------------------
 */

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
    ww_collection *shard = b->call->cluster->shard;
    const part_draw draw = {b->config.seed, b->total, b->first, b->config.sample_rows};
    part_rows drawn = {0};
    collecting vectors = {0}, rows = {0};
    ww_status status = cluster_draw(b->call, &draw, &drawn, &vectors, &rows);
    memory_free(drawn.rows);
    memory_free(drawn.vectors);
    if (status != WW_OK)
        return status;
    status = call_array(b->call, b->config.nlist * b->call->cluster->dim, sizeof *b->centroids, "centroids", &b->centroids);
    if (status == WW_OK)
        status = ww_core()->part_train(shard, &b->config, (float *)(void *)vectors.all, b->centroids);
    return call_agree(b->call, status);
}

/* ---- lists ----------------------------------------------------------------------------------------------------------------
 */

static ww_status make_outline(building *b, const list_record *records)
{
    const ww_cluster *c = b->call->cluster;
    ww_collection_config config = ww_collection_config_default();
    config.dim = c->dim;
    config.metric = (ww_metric)c->metric;
    const list_set lists = {b->config.nlist, b->centroids, records};
    return ww_core()->outline_create(c->shard->device, &config, &lists, &b->outline);
}

/* The lists of this rank's rows; the outline gets the counts of all ranks. */
static ww_status assign(building *b)
{
    ww_cluster *c = b->call->cluster;
    part_counts counts = {.nlist = b->config.nlist};
    counts.records = memory_alloc_zeroed((size_t)counts.nlist, sizeof *counts.records);
    ww_status status =
        counts.records ? make_outline(b, counts.records) : memory_failed("lists of an index", (size_t)counts.nlist);
    if (status == WW_OK)
        status = ww_core()->part_assign(c->shard, b->outline, &b->own);
    for (int64_t l = 0; status == WW_OK && l < counts.nlist; l++)
        counts.records[l] = ww_core()->outline_record(b->outline, l);
    const double loss = status == WW_OK ? b->outline->index->loss : 0.0;
    memcpy(&b->call->report.rows_screened, &loss, sizeof loss);
    status = lists_reduce(b->call, status, &counts);
    if (status != WW_OK)
        return status;
    ww_core()->outline_set_records(b->outline, counts.records);
    for (int32_t r = 0; r < c->ranks; r++) {
        double of_rank;
        memcpy(&of_rank, &c->reports[r].rows_screened, sizeof of_rank);
        b->loss += of_rank / (double)b->total;
    }
    return WW_OK;
}

/* The vectors of this rank's rows in a list. */
static ww_status read_list(const building *b, int64_t list, part_rows *rows)
{
    const int64_t dim = b->call->cluster->dim;
    for (int64_t i = 0; i < b->own.count; i++)
        rows->count += b->own.lists[i] == list;
    rows->rows = memory_alloc((size_t)rows->count * sizeof *rows->rows);
    rows->vectors = memory_alloc((size_t)(rows->count * dim) * sizeof *rows->vectors);
    if (!rows->rows || !rows->vectors)
        return memory_failed("the rows of a list", (size_t)(rows->count * dim) * sizeof *rows->vectors);
    for (int64_t i = 0, count = 0; i < b->own.count; i++)
        if (b->own.lists[i] == list)
            rows->rows[count++] = b->own.rows[i];
    return ww_core()->part_vectors(b->call->cluster->shard, rows->rows, rows->count, rows->vectors);
}

static ww_status split(building *b, int64_t list)
{
    const ww_cluster *c = b->call->cluster;
    const int64_t row_bytes = c->dim * (int64_t)sizeof(float), lists = ww_core()->outline_lists(b->outline);
    part_rows rows = {0};
    bool *moved = NULL;
    ww_status status = call_agree(b->call, read_list(b, list, &rows));
    collecting all = {rows.vectors, rows.count * row_bytes, .to_all = true};
    if (status == WW_OK)
        status = cluster_collect(b->call, &all);
    memory_free(rows.rows);
    memory_free(rows.vectors);
    if (status != WW_OK)
        return status;
    const int64_t count = all.starts[c->ranks] / row_bytes, first = all.starts[c->rank] / row_bytes;
    status = call_array(b->call, count, sizeof *moved, "the rows of a list", &moved);
    if (status == WW_OK)
        status = ww_core()->outline_split(b->outline, list, &(outline_rows){count, all.all}, moved);
    const bool divided = status == WW_OK && ww_core()->outline_lists(b->outline) > lists;
    for (int64_t i = 0, at = first; divided && i < b->own.count; i++)
        if (b->own.lists[i] == list && moved[at++])
            b->own.lists[i] = (uint32_t)lists;
    return call_agree(b->call, status);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------
 */

/* Everything of an update that is an array. */
typedef struct update_arrays {
    uint32_t *numbers;
    float *centroids;
    list_record *records;
} update_arrays;

static ww_status fill_arrays(const building *b, int64_t nlist, update_arrays *a)
{
    const int64_t dim = b->call->cluster->dim;
    ww_status status = call_array(b->call, nlist, sizeof *a->numbers, "lists of an index", &a->numbers);
    if (status == WW_OK)
        status = call_array(b->call, nlist * dim, sizeof *a->centroids, "centroids", &a->centroids);
    if (status == WW_OK)
        status = call_array(b->call, nlist, sizeof *a->records, "lists of an index", &a->records);
    for (int64_t l = 0; status == WW_OK && l < nlist; l++) {
        a->numbers[l] = (uint32_t)l;
        a->records[l] = ww_core()->outline_record(b->outline, l);
        memcpy(a->centroids + l * dim, ww_core()->outline_centroid(b->outline, l), (size_t)dim * sizeof(float));
    }
    return status;
}

static ww_status install(building *b)
{
    ww_collection *shard = b->call->cluster->shard;
    const int64_t nlist = ww_core()->outline_lists(b->outline);
    update_arrays arrays = {0};
    ww_status status = call_agree(b->call, fill_arrays(b, nlist, &arrays));
    if (status != WW_OK)
        return status;
    const ivf_update update = {.nlist = nlist,
                               .loss = b->loss,
                               .rows_trained = b->own.count,
                               .lists_split = nlist - b->config.nlist,
                               .changed = arrays.numbers,
                               .lists = {nlist, arrays.centroids, arrays.records},
                               .rows = b->own.rows,
                               .row_lists = b->own.lists,
                               .row_count = b->own.count};
    ivf *made = NULL;
    status = ww_core()->part_make(shard, &update, hash_floats(arrays.centroids, nlist * b->call->cluster->dim) | 1, &made);
    status = call_agree(b->call, status);
    if (status == WW_OK)
        ww_core()->part_take(shard, made);
    else
        ww_core()->ivf_destroy(made);
    return status;
}

static ww_status build(building *b, const ww_ivf_config *given)
{
    cluster_call *call = b->call;
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
        status = assign(b);
    for (int64_t list = -1; status == WW_OK && (list = ww_core()->outline_to_split(b->outline)) >= 0;)
        status = split(b, list);
    return status == WW_OK ? install(b) : status;
}

ww_status ww_cluster_build_ivf(ww_cluster *cluster, const ww_ivf_config *config)
{
    FLOAT_GUARD();
    cluster_call call;
    ww_status status = call_begin(&call, cluster, CALL_BUILD_IVF, "ww_cluster_build_ivf");
    if (status != WW_OK)
        return status;
    building b = {.call = &call};
    status = build(&b, config);
    ww_collection_destroy(b.outline);
    memory_free(b.own.rows);
    memory_free(b.own.lists);
    call_end(&call);
    return status;
}
