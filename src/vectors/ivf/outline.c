/* An index without rows: a store's writer uses it to find the lists of new rows, and to split and merge lists
 * (vectors/internal/lists.h). */
#include "vectors/internal/lists.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"

static list_record record_of(const ivf_list *list)
{
    return (list_record){.rows = list->count,
                         .farthest = list->farthest,
                         .nearest = list->nearest,
                         .unbounded = list->unbounded,
                         .was_split = list->was_split,
                         .equal_rows = list->equal_rows};
}

/* A list without rows. */
static ivf_list list_of(const list_record *record)
{
    return (ivf_list){.count = record->rows,
                      .farthest = record->farthest,
                      .nearest = record->nearest,
                      .unbounded = record->unbounded,
                      .was_split = record->was_split,
                      .equal_rows = record->equal_rows};
}

void outline_set_records(ww_collection *outline, const list_record *records)
{
    ivf *index = outline->index;
    index->rows = 0;
    for (int64_t i = 0; i < index->nlist; i++) {
        index->lists[i] = list_of(&records[i]);
        index->rows += records[i].rows;
    }
}

static ww_status index_create(ww_collection *outline, const list_set *lists)
{
    const size_t nlist = (size_t)lists->count, floats = nlist * (size_t)outline->dim * sizeof(float);
    ivf *index = memory_alloc_zeroed(1, sizeof *index);
    if (!index)
        return memory_failed("the lists of an index", sizeof *index);
    outline->index = index;
    *index = (ivf){.dim = outline->dim,
                   .metric = (int32_t)outline->metric,
                   .assigned = outline->metric == WW_COSINE ? CANON_COSINE : CANON_L2,
                   .nlist = lists->count,
                   .centroids = memory_alloc(floats),
                   .lists = memory_alloc_zeroed(nlist, sizeof *index->lists)};
    if (!index->centroids || !index->lists)
        return memory_failed("the lists of an index", floats + nlist * sizeof *index->lists);
    memcpy(index->centroids, lists->centroids, floats);
    outline_set_records(outline, lists->records);
    return centroids_create(&index->store, outline->device, outline->stream, index->centroids,
                            (ivf_size){lists->count, outline->dim});
}

ww_status outline_create(ww_device *device, const ww_collection_config *config, const list_set *lists, ww_collection **outline)
{
    FLOAT_GUARD();
    ww_collection *made = NULL;
    ww_status status = ww_collection_create(device, config, &made);
    if (status != WW_OK)
        return status;
    status = index_create(made, lists);
    if (status == WW_OK)
        *outline = made;
    else
        ww_collection_destroy(made);
    return status;
}

/* Like ivf_list_append() for a row that is not stored. */
static void count_row(const ivf *index, ivf_list *list, const ivf_place *place)
{
    const bool l2 = index->assigned == CANON_L2, first = list->count == 0;
    if (first || (l2 ? place->score > list->farthest : place->score < list->farthest))
        list->farthest = place->score;
    if (first || (l2 ? place->score < list->nearest : place->score > list->nearest))
        list->nearest = place->score;
    list->unbounded = list->unbounded || place->unbounded;
    list->count++;
}

ww_status outline_assign(ww_collection *outline, const float *vectors, int64_t count, uint32_t *lists)
{
    FLOAT_GUARD();
    ivf *index = outline->index;
    ivf_place *places = memory_alloc((size_t)count * sizeof *places);
    if (!places)
        return memory_failed("the lists of new rows", (size_t)count * sizeof *places);
    const ww_status status = centroids_nearest(index, (ivf_vectors){vectors, count, false}, places);
    if (status == WW_OK)
        centroids_mark_unbounded(index, vectors, count, places);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const double score = (double)places[i].score;
        index->loss += index->assigned == CANON_L2 ? score * score : 1.0 - score;
        count_row(index, &index->lists[places[i].list], &places[i]);
        lists[i] = places[i].list;
        index->rows++;
    }
    memory_free(places);
    return status;
}

void outline_remove(ww_collection *outline, uint32_t list)
{
    outline->index->lists[list].count--;
    outline->index->rows--;
}

int64_t outline_to_split(const ww_collection *outline)
{
    const ivf_list *list = ivf_list_to_split(outline->index);
    return list ? list - outline->index->lists : -1;
}

/* Makes these the rows of the outline, without adding them to lists. */
static ww_status hold_rows(ww_collection *outline, const outline_rows *rows)
{
    const ww_rows added = {.count = rows->count,
                           .dim = outline->dim,
                           .elements = rows->elements,
                           .type = outline->type,
                           .row_stride = outline->dim};
    ivf *index = outline->index;
    outline->index = NULL;
    ww_status status = memory_clear(outline);
    if (status == WW_OK)
        status = memory_write(outline, &added, WRITE_ADD);
    outline->index = index;
    return status;
}

/* Frees the rows of a list that was split; its record stays. */
static void forget_rows(ivf_list *list)
{
    ivf_list_free(list);
    list->capacity = 0;
}

ww_status outline_split(ww_collection *outline, int64_t list, const outline_rows *rows, bool *moved)
{
    FLOAT_GUARD();
    ivf *index = outline->index;
    ivf_list *whole = &index->lists[list];
    const int64_t nlist = index->nlist;
    ww_status status = hold_rows(outline, rows);
    whole->count = 0;
    if (status == WW_OK)
        status = ivf_list_reserve(whole, rows->count);
    for (int64_t i = 0; status == WW_OK && i < rows->count; i++)
        whole->rows[i] = (uint32_t)i;
    whole->count = rows->count;
    if (status == WW_OK)
        status = ivf_split_list(index, outline, whole);
    memset(moved, 0, (size_t)rows->count * sizeof *moved);
    if (status == WW_OK && index->nlist > nlist) {
        ivf_list *new = &index->lists[nlist];
        for (int64_t i = 0; i < new->count; i++)
            moved[new->rows[i]] = true;
        forget_rows(new);
    }
    forget_rows(&index->lists[list]);
    return status;
}

/* An outline without its removed lists. */
typedef struct fewer_lists {
    ivf_list *lists;
    float *centroids;
    row_store store;
} fewer_lists;

static ww_status make_fewer(const ivf *index, const uint32_t *numbers, int64_t kept, fewer_lists *made)
{
    const size_t dim = (size_t)index->dim, bytes = dim * sizeof *made->centroids;
    made->lists = memory_alloc((size_t)kept * sizeof *made->lists);
    made->centroids = memory_alloc((size_t)kept * bytes);
    if (!made->lists || !made->centroids)
        return memory_failed("merging lists of an index", (size_t)kept * (bytes + sizeof *made->lists));
    for (int64_t l = 0; l < index->nlist; l++) {
        if (numbers[l] == IVF_LIST_GOES)
            continue;
        made->lists[numbers[l]] = index->lists[l];
        memcpy(made->centroids + numbers[l] * dim, index->centroids + (size_t)l * dim, bytes);
    }
    return centroids_create(&made->store, index->store.device, index->store.stream, made->centroids,
                            (ivf_size){kept, index->dim});
}

ww_status outline_merge(ww_collection *outline, int64_t rows_trained, uint32_t *numbers)
{
    FLOAT_GUARD();
    ivf *index = outline->index;
    int64_t kept = 0;
    index->rows_trained = rows_trained;
    ww_status status = ivf_choose_tiny(index, numbers, &kept);
    if (status != WW_OK || kept == index->nlist)
        return status;
    fewer_lists made = {0};
    status = make_fewer(index, numbers, kept, &made);
    if (status == WW_OK) {
        const fewer_lists old = {index->lists, index->centroids, index->store};
        for (int64_t l = 0; l < index->nlist; l++)
            index->rows -= numbers[l] == IVF_LIST_GOES ? index->lists[l].count : 0;
        index->nlist = kept;
        index->lists = made.lists;
        index->centroids = made.centroids;
        index->store = made.store;
        made = old;
    }
    store_destroy(&made.store);
    memory_free(made.centroids);
    memory_free(made.lists);
    return status;
}

int64_t outline_lists(const ww_collection *outline)
{
    return outline->index->nlist;
}

list_record outline_record(const ww_collection *outline, int64_t list)
{
    return record_of(&outline->index->lists[list]);
}

const float *outline_centroid(const ww_collection *outline, int64_t list)
{
    return outline->index->centroids + list * outline->dim;
}

/* ---- for a new index
   ------------------------------------------------------------------------------------------------------- */

ww_status ivf_list_set(const ivf *index, list_set *lists)
{
    const size_t nlist = (size_t)index->nlist, floats = nlist * (size_t)index->dim * sizeof(float);
    list_record *records = memory_alloc(nlist * sizeof *records);
    float *centroids = memory_alloc(floats);
    if (!records || !centroids) {
        memory_free(records);
        memory_free(centroids);
        return memory_failed("the lists of an index", nlist * sizeof *records + floats);
    }
    for (size_t i = 0; i < nlist; i++)
        records[i] = record_of(&index->lists[i]);
    memcpy(centroids, index->centroids, floats);
    *lists = (list_set){index->nlist, centroids, records};
    return WW_OK;
}

const uint32_t *ivf_list_rows(const ivf *index, int64_t list, int64_t *count)
{
    *count = index->lists[list].count;
    return index->lists[list].rows;
}
