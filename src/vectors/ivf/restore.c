/* Makes an index from a file's tables, without training (vectors/internal/lists.h).
 *
 * Lists that have changed are rebuilt; the others only get the new rows.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/internal/lists.h"

static ivf *index_create(const ww_collection *c)
{
    ivf *index = memory_alloc_zeroed(1, sizeof *index);
    if (index)
        *index = (ivf){.dim = c->dim,
                       .metric = (int32_t)c->metric,
                       .assigned = c->metric == WW_COSINE ? CANON_COSINE : CANON_L2,
                       .follows = true};
    return index;
}

/* Makes room for all lists and centroids of the file, which are never fewer than before; new ones are empty. */
static ww_status grow_lists(ivf *index, int64_t nlist)
{
    const size_t floats = (size_t)nlist * (size_t)index->dim * sizeof *index->centroids;
    ivf_list *lists = memory_resize(index->lists, (size_t)nlist * sizeof *lists);
    index->lists = lists ? lists : index->lists;
    float *centroids = lists ? memory_resize(index->centroids, floats) : NULL;
    index->centroids = centroids ? centroids : index->centroids;
    if (!centroids)
        return memory_failed("the lists of an index", floats + (size_t)nlist * sizeof *lists);
    memset(lists + index->nlist, 0, (size_t)(nlist - index->nlist) * sizeof *lists);
    index->nlist = nlist;
    return WW_OK;
}

static ww_status replace_centroids(ivf *index, const ww_collection *c, const ivf_update *u)
{
    const size_t bytes = (size_t)index->dim * sizeof *index->centroids;
    row_store store = {0};
    if (u->lists.count == 0)
        return WW_OK;
    for (int64_t i = 0; i < u->lists.count; i++)
        memcpy(index->centroids + (int64_t)u->changed[i] * index->dim, u->lists.centroids + i * index->dim, bytes);
    const ww_status status =
        centroids_create(&store, c->device, c->stream, index->centroids, (ivf_size){index->nlist, index->dim});
    if (status != WW_OK)
        return status;
    store_destroy(&index->store);
    index->store = store;
    return WW_OK;
}

static void empty_changed(ivf *index, const ivf_update *u)
{
    for (int64_t i = 0; i < u->lists.count; i++) {
        ivf_list *list = &index->lists[u->changed[i]];
        index->rows -= list->count;
        ivf_list_free(list);
        *list = (ivf_list){0};
    }
}

static ww_status enter_rows(ivf *index, const ivf_update *u)
{
    ww_status status = WW_OK;
    int64_t *more = memory_alloc_zeroed((size_t)index->nlist, sizeof *more);
    if (!more)
        return memory_failed("the lists of an index", (size_t)index->nlist * sizeof *more);
    for (int64_t i = 0; i < u->row_count; i++)
        more[u->row_lists[i]]++;
    for (int64_t l = 0; status == WW_OK && l < index->nlist; l++)
        if (more[l] > 0)
            status = ivf_list_reserve(&index->lists[l], more[l]);
    for (int64_t i = 0; status == WW_OK && i < u->row_count; i++)
        ivf_list_append(index, &index->lists[u->row_lists[i]], (uint32_t)u->rows[i], &(ivf_place){0});
    if (status == WW_OK)
        index->rows += u->row_count;
    memory_free(more);
    return status;
}

/* Takes the bounds of the rows from the file; they also cover removed rows. */
static void set_records(const ivf *index, const uint32_t *numbers, const list_record *records, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        ivf_list *list = &index->lists[numbers[i]];
        list->farthest = records[i].farthest;
        list->nearest = records[i].nearest;
        list->unbounded = records[i].unbounded;
        list->was_split = records[i].was_split;
        list->equal_rows = records[i].equal_rows;
    }
}

static ww_status set_calibration(ivf *index, const ivf_calibration *from)
{
    ivf_calibration made = *from;
    made.rules = NULL;
    if (from->k > 0) {
        made.rules = memory_alloc((size_t)from->k * sizeof *made.rules);
        if (!made.rules)
            return memory_failed("the calibration of an index", (size_t)from->k * sizeof *made.rules);
        memcpy(made.rules, from->rules, (size_t)from->k * sizeof *made.rules);
    }
    memory_free(index->calibration.rules);
    index->calibration = made;
    return WW_OK;
}

/* A complete index must have every live row, and no row twice. */
static ww_status check_rows(const ww_collection *c, const ivf_update *u)
{
    int64_t live = 0;
    for (int64_t i = 0; i < u->row_count; i++)
        live += store_is_live(&c->store, u->rows[i]);
    if (u->lists.count < u->nlist || live == c->store.rows_live)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': %lld of %lld rows are in the lists of the index", c->name,
                   (long long)live, (long long)c->store.rows_live);
}

/* Called with the writer's lock. If it fails, the index is unusable. */
static ww_status apply(ww_collection *c, const ivf_update *u)
{
    ww_status status = check_rows(c, u);
    if (status != WW_OK)
        return status;
    if (u->lists.count == u->nlist) { /* all lists are replaced, so nothing of the old index is kept, not even on the device */
        ivf_destroy(c->index);
        c->index = NULL;
    }
    if (!c->index)
        c->index = index_create(c);
    ivf *index = c->index;
    if (!index)
        return memory_failed("an index", sizeof *index);
    status = grow_lists(index, u->nlist);
    if (status == WW_OK)
        status = replace_centroids(index, c, u);
    if (status == WW_OK) {
        empty_changed(index, u);
        status = enter_rows(index, u);
    }
    if (status == WW_OK)
        status = set_calibration(index, &u->calibration);
    if (status != WW_OK)
        return status;
    set_records(index, u->changed, u->lists.records, u->lists.count);
    set_records(index, u->touched, u->touched_records, u->touched_count);
    index->loss = u->loss;
    index->rows_trained = u->rows_trained;
    index->rows_added = u->rows_added;
    index->lists_split = u->lists_split;
    ivf_changed(index);
    return WW_OK;
}

ww_status ivf_restore(ww_collection *c, const ivf_update *update)
{
    FLOAT_GUARD();
    collection_lock_write(c);
    const ww_status status = apply(c, update);
    if (status != WW_OK) {
        ivf_destroy(c->index);
        c->index = NULL;
    }
    collection_unlock(c);
    return status;
}
