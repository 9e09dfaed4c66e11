/* Merges lists that have become tiny by removals: their centroids are removed, and their rows enter the nearest remaining
 *lists.
 *
 * Every centroid costs time in each search, and a list with a row or two saves nothing. Compacting merges such lists, so the
 * number of lists decreases with the number of rows, as it increases by splits. Each round removes at most half of the lists,
 * the smallest first, until none is tiny. The lists, the centroids and their store are made beside the index and swapped in
 * when they are complete.
 */
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

enum {
    TINY_PART = 16, /* a list with less than 1/16 of the mean is tiny */
    MEAN_MIN = 64,  /* lower bound for the mean, unless the mean was lower when the index was built */
};

typedef struct merge {
    ivf *index;
    const ww_collection *collection;
    uint32_t *numbers; /* the new number of each list, or IVF_LIST_GOES */
    int64_t kept;      /* lists that are kept */
    int64_t count;     /* rows that need another list */
    int64_t *rows;
    float *vectors;
    ivf_place *places;
    ivf_list *lists; /* the lists that are kept */
    ivf after;       /* dim, metrics, centroids and store of the merged index */
} merge;

static bool is_tiny(const ivf *index, const ivf_list *list)
{
    return list->count * TINY_PART * index->nlist < max_i64(index->rows, min_i64(index->rows_trained, MEAN_MIN * index->nlist));
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

ww_status ivf_choose_tiny(const ivf *index, uint32_t *numbers, int64_t *kept)
{
    const size_t nlist = (size_t)index->nlist;
    int64_t count = 0;
    uint64_t *tiny = memory_alloc(nlist * sizeof *tiny); /* size and number of each list, the smallest first */
    *kept = 0;
    if (!tiny)
        return memory_failed("merging lists of an index", nlist * sizeof *tiny);
    for (int64_t l = 0; l < index->nlist; l++)
        if (is_tiny(index, &index->lists[l]))
            tiny[count++] = (uint64_t)index->lists[l].count << 32 | (uint64_t)l;
    qsort(tiny, (size_t)count, sizeof *tiny, by_value);
    memset(numbers, 0, nlist * sizeof *numbers);
    for (int64_t i = 0; i < min_i64(count, index->nlist / 2); i++)
        numbers[(uint32_t)tiny[i]] = IVF_LIST_GOES;
    for (int64_t l = 0; l < index->nlist; l++)
        if (numbers[l] != IVF_LIST_GOES)
            numbers[l] = (uint32_t)(*kept)++;
    memory_free(tiny);
    return WW_OK;
}

/* Chooses the lists to remove, and counts their rows. */
static ww_status choose(merge *m)
{
    const ivf *index = m->index;
    m->numbers = memory_alloc((size_t)index->nlist * sizeof *m->numbers);
    if (!m->numbers)
        return memory_failed("merging lists of an index", (size_t)index->nlist * sizeof *m->numbers);
    const ww_status status = ivf_choose_tiny(index, m->numbers, &m->kept);
    for (int64_t l = 0; status == WW_OK && l < index->nlist; l++)
        m->count += m->numbers[l] == IVF_LIST_GOES ? index->lists[l].count : 0;
    return status;
}

static ww_status take_memory(merge *m)
{
    const size_t dim = (size_t)m->index->dim, kept = (size_t)m->kept, count = (size_t)m->count;
    m->rows = memory_alloc(count * sizeof *m->rows);
    m->vectors = memory_alloc(count * dim * sizeof *m->vectors);
    m->places = memory_alloc(count * sizeof *m->places);
    m->lists = memory_alloc(kept * sizeof *m->lists);
    m->after = (ivf){.dim = m->index->dim, .metric = m->index->metric, .assigned = m->index->assigned, .nlist = m->kept};
    m->after.centroids = memory_alloc(kept * dim * sizeof *m->after.centroids);
    if (m->rows && m->vectors && m->places && m->lists && m->after.centroids)
        return WW_OK;
    return memory_failed("merging lists of an index",
                         count * dim * sizeof *m->vectors + kept * (sizeof *m->lists + dim * sizeof *m->after.centroids));
}

static void free_memory(merge *m)
{
    store_destroy(&m->after.store);
    memory_free(m->after.centroids);
    memory_free(m->lists);
    memory_free(m->places);
    memory_free(m->vectors);
    memory_free(m->rows);
    memory_free(m->numbers);
}

/* Finds the new lists of the rows, and makes room for them there. */
static ww_status find_lists(merge *m)
{
    const ivf *index = m->index;
    const int64_t dim = index->dim;
    int64_t count = 0;
    for (int64_t l = 0; l < index->nlist; l++) {
        if (m->numbers[l] != IVF_LIST_GOES)
            memcpy(m->after.centroids + m->numbers[l] * dim, index->centroids + l * dim, (size_t)dim * sizeof(float));
        for (int64_t i = 0; m->numbers[l] == IVF_LIST_GOES && i < index->lists[l].count; i++)
            m->rows[count++] = index->lists[l].rows[i];
    }
    ww_status status = centroids_create(&m->after.store, index->store.device, index->store.stream, m->after.centroids,
                                        (ivf_size){m->kept, index->dim});
    if (status == WW_OK && count > 0)
        status = ivf_read_rows(m->collection, m->rows, count, m->vectors);
    if (status == WW_OK && count > 0)
        status = centroids_nearest(&m->after, (ivf_vectors){m->vectors, count, false}, m->places);
    if (status == WW_OK)
        centroids_mark_unbounded(&m->after, m->vectors, count, m->places);
    return status == WW_OK && count > 0 ? ivf_lists_reserve(index, m->numbers, m->places, count) : status;
}

static int by_row(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void commit(merge *m)
{
    ivf *index = m->index;
    ivf_forget(index);
    for (int64_t l = 0; l < index->nlist; l++)
        if (m->numbers[l] != IVF_LIST_GOES)
            m->lists[m->numbers[l]] = index->lists[l];
        else
            ivf_list_free(&index->lists[l]);
    for (int64_t i = 0; i < m->count; i++)
        ivf_list_append(index, &m->lists[m->places[i].list], (uint32_t)m->rows[i], &m->places[i]);
    for (int64_t l = 0; l < m->kept; l++)
        if (m->lists[l].count > 0 && m->count > 0)
            qsort(m->lists[l].rows, (size_t)m->lists[l].count, sizeof *m->lists[l].rows, by_row);
    ivf_list *const lists = index->lists;
    float *const centroids = index->centroids;
    const row_store store = index->store;
    index->lists = m->lists;
    index->centroids = m->after.centroids;
    index->store = m->after.store;
    index->nlist = m->kept;
    m->lists = lists;
    m->after.centroids = centroids;
    m->after.store = store;
}

/* Merges once. Sets `more` if there is anything left to do. */
static ww_status merge_once(ivf *index, const ww_collection *c, bool *more)
{
    merge m = {.index = index, .collection = c};
    ww_status status = choose(&m);
    *more = status == WW_OK && m.kept < index->nlist;
    if (*more)
        status = take_memory(&m);
    if (status == WW_OK && *more)
        status = find_lists(&m);
    if (status == WW_OK && *more)
        commit(&m);
    free_memory(&m);
    return status;
}

ww_status ivf_merge_tiny(ivf *index, const ww_collection *c)
{
    bool more = true;
    ww_status status = WW_OK;
    while (status == WW_OK && more)
        status = merge_once(index, c, &more);
    return status;
}
