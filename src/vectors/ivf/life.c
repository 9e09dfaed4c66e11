/* What happens to an index when its collection is written, compacted or moved. */
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

/* ---- new rows ------------------------------------------------------------------------------------------------------------ */

static ww_status find_places(const ww_collection *c, int64_t first, int64_t count, ivf_place *places)
{
    ivf_reader reader;
    const int64_t piece = min_i64(ivf_piece_rows(c->dim), count);
    int64_t *numbers = memory_alloc((size_t)piece * sizeof *numbers);
    if (!numbers)
        return memory_failed("new rows of an index", (size_t)piece * sizeof *numbers);
    ww_status status = ivf_reader_create(&reader, c, c->index, piece);
    for (int64_t done = 0; status == WW_OK && done < count; done += piece) {
        const int64_t some = min_i64(piece, count - done);
        for (int64_t i = 0; i < some; i++)
            numbers[i] = first + done + i;
        status = ivf_find_places(&reader, numbers, some, places + done);
    }
    ivf_reader_free(&reader);
    memory_free(numbers);
    return status;
}

ww_status ivf_lists_reserve(const ivf *index, const uint32_t *numbers, const ivf_place *places, int64_t count)
{
    ww_status status = WW_OK;
    int64_t *more = memory_alloc_zeroed((size_t)index->nlist, sizeof *more);
    if (!more)
        return memory_failed("lists of an index", (size_t)index->nlist * sizeof *more);
    for (int64_t i = 0; i < count; i++)
        more[places[i].list]++;
    for (int64_t l = 0; status == WW_OK && l < index->nlist; l++)
        if (!numbers || numbers[l] < index->nlist)
            status = ivf_list_reserve(&index->lists[l], more[numbers ? numbers[l] : l]);
    memory_free(more);
    return status;
}

ww_status ivf_stage(ww_collection *c, int64_t first, int64_t count, ivf_place **places)
{
    *places = NULL;
    if (!c->index)
        return WW_OK;
    ivf_place *found = memory_alloc((size_t)count * sizeof *found);
    if (!found)
        return memory_failed("new rows of an index", (size_t)count * sizeof *found);
    ww_status status = find_places(c, first, count, found);
    if (status == WW_OK)
        status = ivf_lists_reserve(c->index, NULL, found, count);
    if (status == WW_OK)
        *places = found;
    else
        memory_free(found);
    return status;
}

void ivf_commit(ww_collection *c, int64_t first, int64_t count, const ivf_place *places)
{
    ivf *index = c->index;
    if (!index || !places)
        return;
    for (int64_t i = 0; i < count; i++)
        ivf_list_append(index, &index->lists[places[i].list], (uint32_t)(first + i), &places[i]);
    index->rows += count;
    index->rows_added += count;
    ivf_changed(index);
    if (!index->follows)
        (void)ivf_split_large(index, c);
}

/* ---- compact ------------------------------------------------------------------------------------------------------------- */

/* A word of the store's live mask, in the order of rows. */
static uint64_t live_word(const row_store *store, int64_t word)
{
    const int64_t s = store_segment_of(store, word * PAGE_ROWS);
    return store->shelves[s].live[word - store->segments[s].first_row / PAGE_ROWS];
}

ww_status ivf_rank(const ww_collection *c, int64_t **ranks)
{
    *ranks = NULL;
    if (!c->index)
        return WW_OK;
    const int64_t words = divide_up_i64(c->store.rows_count, PAGE_ROWS);
    int64_t *made = memory_alloc((size_t)words * sizeof *made);
    if (!made)
        return memory_failed("new numbers of an index's rows", (size_t)words * sizeof *made);
    for (int64_t w = 0, before = 0; w < words; w++) {
        made[w] = before;
        before += __builtin_popcountll(live_word(&c->store, w));
    }
    *ranks = made;
    return WW_OK;
}

/* Frees the unused memory of a list, if there is memory for the smaller array. */
static void shrink(ivf_list *list)
{
    uint32_t *rows = list->count > 0 ? memory_resize(list->rows, (size_t)list->count * sizeof *rows) : NULL;
    if (list->count == 0)
        ivf_list_free(list);
    list->rows = rows ? rows : list->rows;
    list->capacity = rows || list->count == 0 ? list->count : list->capacity;
}

void ivf_compact(ww_collection *c, const int64_t *ranks)
{
    ivf *index = c->index;
    if (!index || !ranks)
        return;
    index->rows = 0;
    ivf_changed(index);
    for (int64_t l = 0; l < index->nlist; l++) {
        ivf_list *list = &index->lists[l];
        int64_t kept = 0;
        for (int64_t i = 0; i < list->count; i++) {
            const int64_t row = list->rows[i];
            const uint64_t live = live_word(&c->store, row / PAGE_ROWS), bit = UINT64_C(1) << row % PAGE_ROWS;
            if (!(live & bit))
                continue;
            list->rows[kept++] = (uint32_t)(ranks[row / PAGE_ROWS] + __builtin_popcountll(live & (bit - 1)));
        }
        list->count = kept;
        list->held = 0; /* its rows have new numbers */
        index->rows += kept;
        shrink(list);
    }
}

void ivf_compacted(ww_collection *c)
{
    if (c->index && !c->index->follows)
        (void)ivf_merge_tiny(c->index, c);
}

void ivf_empty(ww_collection *c)
{
    ivf_destroy(c->index);
    c->index = NULL;
}

/* ---- move ---------------------------------------------------------------------------------------------------------------- */

ww_status ivf_place_centroids(const ww_collection *c, ww_device *device, device_stream *stream, row_store *store)
{
    *store = (row_store){0};
    if (!c->index)
        return WW_OK;
    return centroids_create(store, device, stream, c->index->centroids, (ivf_size){c->index->nlist, c->dim});
}
