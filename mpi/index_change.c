/* The steps of changing an index over ranks (index_change.h), and maintenance of an existing one: large lists are split and
 * tiny ones merged by the counts of all ranks, so that all get the same lists. */
#include "mpi/index_change.h"

#include <string.h>

#include "base/memory.h"
#include "base/tables/hash.h"

void change_free(index_change *m)
{
    ww_collection_destroy(m->outline);
    memory_free(m->own.rows);
    memory_free(m->own.lists);
    memory_free(m->centroids);
    memory_free(m->update.calibration.rules);
}

ww_status change_outline(index_change *m, const list_set *lists)
{
    const ww_cluster *c = m->call->cluster;
    ww_collection_config config = ww_collection_config_default();
    config.dim = c->dim;
    config.metric = (ww_metric)c->metric;
    return ww_core()->outline_create(c->shard->device, &config, lists, &m->outline);
}

/* ---- lists of rows ------------------------------------------------------------------------------------------------------- */

/* Counts this rank's rows in each list. */
static ww_status count_own(const index_change *m, part_counts *counts)
{
    counts->nlist = ww_core()->outline_lists(m->outline);
    counts->records = memory_alloc((size_t)counts->nlist * sizeof *counts->records);
    if (!counts->records)
        return memory_failed("lists of an index", (size_t)counts->nlist * sizeof *counts->records);
    for (int64_t l = 0; l < counts->nlist; l++) {
        counts->records[l] = ww_core()->outline_record(m->outline, l);
        counts->records[l].rows = 0;
    }
    for (int64_t i = 0; i < m->own.count; i++)
        if (m->own.lists[i] != PART_NO_LIST)
            counts->records[m->own.lists[i]].rows++;
    return WW_OK;
}

ww_status change_assign(index_change *m, ww_status mine)
{
    part_counts counts = {0};
    ww_status status = mine == WW_OK ? count_own(m, &counts) : mine;
    if (status == WW_OK) {
        ww_core()->outline_set_records(m->outline, counts.records);
        status = ww_core()->part_assign(m->call->cluster->shard, m->outline, &m->own);
    }
    for (int64_t l = 0; status == WW_OK && l < counts.nlist; l++)
        counts.records[l] = ww_core()->outline_record(m->outline, l);
    status = lists_reduce(m->call, status, &counts);
    if (status == WW_OK)
        ww_core()->outline_set_records(m->outline, counts.records);
    return status;
}

/* ---- splitting ----------------------------------------------------------------------------------------------------------- */

/* Reads the vectors of this rank's rows in a list. */
static ww_status read_list(const index_change *m, int64_t list, part_rows *rows)
{
    const int64_t dim = m->call->cluster->dim;
    for (int64_t i = 0; i < m->own.count; i++)
        rows->count += m->own.lists[i] == list;
    rows->rows = memory_alloc((size_t)rows->count * sizeof *rows->rows);
    rows->vectors = memory_alloc((size_t)(rows->count * dim) * sizeof *rows->vectors);
    if (!rows->rows || !rows->vectors)
        return memory_failed("the rows of a list", (size_t)(rows->count * dim) * sizeof *rows->vectors);
    for (int64_t i = 0, count = 0; i < m->own.count; i++)
        if (m->own.lists[i] == list)
            rows->rows[count++] = m->own.rows[i];
    return ww_core()->part_vectors(m->call->cluster->shard, rows->rows, rows->count, rows->vectors);
}

static ww_status split(index_change *m, int64_t list)
{
    const ww_cluster *c = m->call->cluster;
    const int64_t row_bytes = c->dim * (int64_t)sizeof(float), lists = ww_core()->outline_lists(m->outline);
    part_rows rows = {0};
    bool *moved = NULL;
    ww_status status = call_agree(m->call, read_list(m, list, &rows));
    collecting all = {rows.vectors, rows.count * row_bytes, .to_all = true};
    if (status == WW_OK)
        status = cluster_collect(m->call, &all);
    memory_free(rows.rows);
    memory_free(rows.vectors);
    if (status != WW_OK)
        return status;
    const int64_t count = all.starts[c->ranks] / row_bytes, first = all.starts[c->rank] / row_bytes;
    status = call_array(m->call, count, sizeof *moved, "the rows of a list", &moved);
    if (status == WW_OK)
        status = ww_core()->outline_split(m->outline, list, &(outline_rows){count, all.all}, moved);
    const bool divided = status == WW_OK && ww_core()->outline_lists(m->outline) > lists;
    for (int64_t i = 0, at = first; divided && i < m->own.count; i++)
        if (m->own.lists[i] == list && moved[at++])
            m->own.lists[i] = (uint32_t)lists;
    m->update.lists_split += divided;
    return call_agree(m->call, status);
}

ww_status change_split_large(index_change *m)
{
    ww_status status = WW_OK;
    for (int64_t list = -1; status == WW_OK && (list = ww_core()->outline_to_split(m->outline)) >= 0;)
        status = split(m, list);
    return status;
}

/* ---- the new part -------------------------------------------------------------------------------------------------------- */

/* The arrays of an update. */
typedef struct update_arrays {
    uint32_t *numbers;
    float *centroids;
    list_record *records;
} update_arrays;

static ww_status fill_arrays(const index_change *m, int64_t nlist, update_arrays *a)
{
    const int64_t dim = m->call->cluster->dim;
    ww_status status = call_array(m->call, nlist, sizeof *a->numbers, "lists of an index", &a->numbers);
    if (status == WW_OK)
        status = call_array(m->call, nlist * dim, sizeof *a->centroids, "centroids", &a->centroids);
    if (status == WW_OK)
        status = call_array(m->call, nlist, sizeof *a->records, "lists of an index", &a->records);
    for (int64_t l = 0; status == WW_OK && l < nlist; l++) {
        a->numbers[l] = (uint32_t)l;
        a->records[l] = ww_core()->outline_record(m->outline, l);
        memcpy(a->centroids + l * dim, ww_core()->outline_centroid(m->outline, l), (size_t)dim * sizeof(float));
    }
    return status;
}

static uint64_t hash_floats(const float *values, int64_t count)
{
    uint64_t hash = FNV_BEGIN;
    for (int64_t i = 0; i < count; i++)
        hash = fnv_word(hash, canon_float_bits(values[i]));
    return hash;
}

ww_status change_install(index_change *m)
{
    ww_collection *shard = m->call->cluster->shard;
    const int64_t nlist = ww_core()->outline_lists(m->outline);
    update_arrays arrays = {0};
    ww_status status = call_agree(m->call, fill_arrays(m, nlist, &arrays));
    if (status != WW_OK)
        return status;
    m->update.nlist = nlist;
    m->update.changed = arrays.numbers;
    m->update.lists = (list_set){nlist, arrays.centroids, arrays.records};
    m->update.rows = m->own.rows;
    m->update.row_lists = m->own.lists;
    m->update.row_count = m->own.count;
    ivf *made = NULL;
    const uint64_t part = hash_floats(arrays.centroids, nlist * m->call->cluster->dim) | 1;
    status = call_agree(m->call, ww_core()->part_make(shard, &m->update, part, &made));
    if (status == WW_OK)
        ww_core()->part_take(shard, made);
    else
        ww_core()->ivf_destroy(made);
    return status;
}

/* ---- an existing index
   ----------------------------------------------------------------------------------------------------- */

static ww_status change_open(index_change *m, const part_counts *counts)
{
    ww_status status = ww_core()->part_copy(m->call->cluster->shard, &m->own, &m->centroids, &m->update);
    if (status == WW_OK)
        status = change_outline(m, &(list_set){counts->nlist, m->centroids, counts->records});
    return call_agree(m->call, status);
}

ww_status index_split_large(cluster_call *call, const part_counts *counts)
{
    index_change m = {.call = call};
    ww_status status = change_open(&m, counts);
    if (status == WW_OK)
        status = change_split_large(&m);
    if (status == WW_OK)
        status = change_install(&m);
    change_free(&m);
    return status;
}

/* Removes tiny lists and finds other lists for their rows. Sets `more` if there were any. */
static ww_status merge_once(index_change *m, int64_t rows_trained, bool *more)
{
    const int64_t lists = ww_core()->outline_lists(m->outline);
    uint32_t *numbers = memory_alloc((size_t)lists * sizeof *numbers);
    ww_status status = numbers ? ww_core()->outline_merge(m->outline, rows_trained, numbers)
                               : memory_failed("merging lists of an index", (size_t)lists * sizeof *numbers);
    *more = status == WW_OK && ww_core()->outline_lists(m->outline) < lists;
    for (int64_t i = 0; *more && i < m->own.count; i++)
        m->own.lists[i] = numbers[m->own.lists[i]]; /* IVF_LIST_GOES is PART_NO_LIST */
    memory_free(numbers);
    status = call_agree(m->call, status);
    return status == WW_OK && *more ? change_assign(m, WW_OK) : status;
}

ww_status index_merge_tiny(cluster_call *call, const part_counts *counts)
{
    index_change m = {.call = call};
    bool more = true;
    ww_status status = change_open(&m, counts);
    while (status == WW_OK && more)
        status = merge_once(&m, counts->trained, &more);
    if (status == WW_OK && ww_core()->outline_lists(m.outline) < counts->nlist)
        status = change_install(&m);
    change_free(&m);
    return status;
}
