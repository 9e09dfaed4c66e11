/* An inverted index of sparse vectors in memory.
 *
 * Each index that a row has used has a list of entries, rows and values, and the bounds of their blocks. Rows are only
 * appended. A removed row keeps its entries; a mask hides it.
 */
#include <pthread.h>
#include <string.h>

#include "base/array.h"
#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "vectors/collection.h"
#include "vectors/query/query.h"
#include "vectors/sparse/sparse.h"

typedef struct sparse_list {
    uint32_t index;
    uint32_t *rows;
    float *values;
    sparse_block *blocks;
    int64_t count, room, value_room, block_room;
    int64_t removed; /* entries of removed rows */
    int64_t wanted;  /* entries that the batch being added has for it */
} sparse_list;

struct ww_sparse_index {
    pthread_rwlock_t lock;
    sparse_list *lists;
    int64_t list_count, list_room;
    uint32_t *slots; /* number of a list plus 1, by the hash of its index; 0: free. More than half are free */
    int64_t slot_count;
    uint32_t *indices; /* of all rows, one row after the other, to count what a removal takes from each list */
    int64_t index_room;
    int64_t *starts; /* rows + 1 */
    int64_t start_room;
    uint64_t *live;
    int64_t live_room;                     /* words */
    int64_t rows, rows_live, rows_counted; /* counted: live, with a vector that is not empty */
};

/* ---- lists by index ------------------------------------------------------------------------------------------------------ */

static uint32_t *slot_of(const ww_sparse_index *x, uint32_t index)
{
    const uint64_t mask = (uint64_t)x->slot_count - 1;
    uint64_t at = hash_number(hash_process_key(), index) & mask;
    while (x->slots[at] != 0 && x->lists[x->slots[at] - 1].index != index)
        at = (at + 1) & mask;
    return &x->slots[at];
}

static const sparse_list *list_find(const ww_sparse_index *x, uint32_t index)
{
    const uint32_t number = x->slot_count > 0 ? *slot_of(x, index) : 0;
    return number > 0 ? &x->lists[number - 1] : NULL;
}

/* Makes room in the table for one more list. */
static ww_status slots_reserve(ww_sparse_index *x)
{
    enum { SLOTS_MIN = 64 };
    if (2 * (x->list_count + 1) <= x->slot_count)
        return WW_OK;
    const int64_t more = x->slot_count > 0 ? 2 * x->slot_count : SLOTS_MIN;
    uint32_t *slots = memory_alloc_zeroed((size_t)more, sizeof *slots);
    if (!slots)
        return memory_failed("a table of sparse indices", (size_t)more * sizeof *slots);
    memory_free(x->slots);
    x->slots = slots;
    x->slot_count = more;
    for (int64_t i = 0; i < x->list_count; i++)
        *slot_of(x, x->lists[i].index) = (uint32_t)i + 1;
    return WW_OK;
}

/* Finds the list of an index, or makes an empty one. */
static ww_status list_ready(ww_sparse_index *x, uint32_t index, sparse_list **list)
{
    ww_status status = slots_reserve(x);
    if (status == WW_OK)
        status = array_reserve(&x->lists, &x->list_room, x->list_count + 1, sizeof *x->lists, "sparse indices");
    if (status != WW_OK)
        return status;
    uint32_t *slot = slot_of(x, index);
    if (*slot == 0) {
        x->lists[x->list_count] = (sparse_list){.index = index};
        *slot = (uint32_t)++x->list_count;
    }
    *list = &x->lists[*slot - 1];
    return WW_OK;
}

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

/* Makes room for one more entry of a list. */
static ww_status list_reserve(sparse_list *list)
{
    const int64_t count = list->count + ++list->wanted;
    ww_status status = array_reserve(&list->rows, &list->room, count, sizeof *list->rows, "sparse rows");
    if (status == WW_OK)
        status = array_reserve(&list->values, &list->value_room, count, sizeof *list->values, "sparse values");
    return status == WW_OK ? array_reserve(&list->blocks, &list->block_room, divide_up_i64(count, SPARSE_BLOCK),
                                           sizeof *list->blocks, "sparse blocks")
                           : status;
}

static void list_append(sparse_list *list, uint32_t row, float value)
{
    sparse_block *block = &list->blocks[list->count / SPARSE_BLOCK];
    if (list->count % SPARSE_BLOCK == 0)
        *block = (sparse_block){.first = row, .low = value, .high = value};
    block->last = row;
    block->count++;
    block->low = value < block->low ? value : block->low;
    block->high = value > block->high ? value : block->high;
    list->rows[list->count] = row;
    list->values[list->count++] = value;
}

/* Makes room for everything, so that what follows cannot fail. */
static ww_status batch_reserve(ww_sparse_index *x, const sparse_sorted *rows, int64_t count)
{
    const int64_t total = x->rows + count;
    int64_t entries = x->rows > 0 ? x->starts[x->rows] : 0;
    ww_status status = array_reserve(&x->starts, &x->start_room, total + 1, sizeof *x->starts, "sparse rows");
    if (status == WW_OK)
        status = array_reserve(&x->live, &x->live_room, total / 64 + 1, sizeof *x->live, "live rows");
    if (status == WW_OK && x->rows == 0)
        x->starts[0] = 0;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const ww_sparse_vector *v = &rows[i].vector;
        entries += v->count;
        for (int64_t j = 0; status == WW_OK && j < v->count; j++) {
            sparse_list *list = NULL;
            status = list_ready(x, v->indices[j], &list);
            if (status == WW_OK)
                status = list_reserve(list);
        }
    }
    for (int64_t i = 0; i < x->list_count; i++)
        x->lists[i].wanted = 0;
    return status == WW_OK ? array_reserve(&x->indices, &x->index_room, entries, sizeof *x->indices, "sparse indices") : status;
}

static void batch_commit(ww_sparse_index *x, const sparse_sorted *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const ww_sparse_vector *v = &rows[i].vector;
        const int64_t row = x->rows++, start = x->starts[row];
        for (int64_t j = 0; j < v->count; j++) {
            x->indices[start + j] = v->indices[j];
            list_append(&x->lists[*slot_of(x, v->indices[j]) - 1], (uint32_t)row, v->values[j]);
        }
        x->starts[row + 1] = start + v->count;
        if (row % 64 == 0)
            x->live[row / 64] = 0;
        x->live[row / 64] |= UINT64_C(1) << (row % 64);
        x->rows_live++;
        x->rows_counted += v->count > 0;
    }
}

ww_status ww_sparse_add(ww_sparse_index *index, const ww_sparse_vector *vectors, int64_t count)
{
    FLOAT_GUARD();
    static const char function[] = "ww_sparse_add";
    if (!index || (!vectors && count > 0))
        return fail_null(function, index ? "vectors" : "index");
    if (count < 0 || count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: count is %lld; it must be 0 to %lld", function, (long long)count,
                       (long long)WW_ROWS_MAX);
    sparse_sorted *sorted = memory_alloc_zeroed((size_t)count + 1, sizeof *sorted);
    ww_status status = sorted ? WW_OK : memory_failed("sparse vectors", (size_t)count * sizeof *sorted);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = sparse_sort("row", i, &vectors[i], &sorted[i]);
    if (status == WW_OK) {
        pthread_rwlock_wrlock(&index->lock);
        status = index->rows + count < WW_ROWS_MAX
                     ? batch_reserve(index, sorted, count)
                     : ww_fail(WW_OUT_OF_RANGE, "%s: more than %lld rows", function, (long long)WW_ROWS_MAX);
        if (status == WW_OK)
            batch_commit(index, sorted, count);
        pthread_rwlock_unlock(&index->lock);
    }
    for (int64_t i = 0; sorted && i < count; i++)
        sparse_sorted_free(&sorted[i]);
    memory_free(sorted);
    return status;
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

ww_status ww_sparse_create(ww_sparse_index **index)
{
    FLOAT_GUARD();
    if (!index)
        return fail_null("ww_sparse_create", "index");
    ww_sparse_index *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a sparse index", sizeof *made);
    const ww_status status = collection_lock_create(&made->lock);
    if (status == WW_OK)
        *index = made;
    else
        memory_free(made);
    return status;
}

void ww_sparse_destroy(ww_sparse_index *index)
{
    if (!index)
        return;
    for (int64_t i = 0; i < index->list_count; i++) {
        memory_free(index->lists[i].rows);
        memory_free(index->lists[i].values);
        memory_free(index->lists[i].blocks);
    }
    pthread_rwlock_destroy(&index->lock);
    memory_free(index->lists);
    memory_free(index->slots);
    memory_free(index->indices);
    memory_free(index->starts);
    memory_free(index->live);
    memory_free(index);
}

int64_t ww_sparse_count(ww_sparse_index *index)
{
    if (!index)
        return 0;
    pthread_rwlock_rdlock(&index->lock);
    const int64_t count = index->rows_live;
    pthread_rwlock_unlock(&index->lock);
    return count;
}

ww_status ww_sparse_remove(ww_sparse_index *index, int64_t row)
{
    FLOAT_GUARD();
    if (!index)
        return fail_null("ww_sparse_remove", "index");
    pthread_rwlock_wrlock(&index->lock);
    const bool there = row >= 0 && row < index->rows && index->live[row / 64] >> (row % 64) & 1;
    if (there) {
        index->live[row / 64] &= ~(UINT64_C(1) << (row % 64));
        index->rows_live--;
        index->rows_counted -= index->starts[row + 1] > index->starts[row];
        for (int64_t i = index->starts[row]; i < index->starts[row + 1]; i++)
            index->lists[*slot_of(index, index->indices[i]) - 1].removed++;
    }
    pthread_rwlock_unlock(&index->lock);
    return there ? WW_OK : ww_fail(WW_NOT_FOUND, "ww_sparse_remove: there is no row %lld", (long long)row);
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

typedef struct index_search {
    const sparse_list **lists; /* of the terms */
    sparse_term *terms;
    float *weights;
    uint64_t *mask; /* live rows that the query admits */
} index_search;

static ww_status load(void *user, int64_t term, int64_t block, sparse_entries *entries)
{
    const index_search *s = user;
    const sparse_list *list = s->lists[term];
    *entries = (sparse_entries){list->rows + block * SPARSE_BLOCK, list->values + block * SPARSE_BLOCK};
    return WW_OK;
}

static ww_status search_one(const ww_sparse_index *x, const ww_query *query, int64_t number, index_search *s, key_list *hits)
{
    const ww_sparse_vector *v = &query->sparse->vectors[number];
    sparse_search search = {.terms = s->terms,
                            .load = load,
                            .user = s,
                            .admitted = s->mask,
                            .admitted_rows = x->rows,
                            .range = query->mode == WW_QUERY_RANGE,
                            .bound = query->bound,
                            .limit = sparse_limit(query)};
    for (int64_t i = 0; i < v->count; i++) {
        const sparse_list *list = list_find(x, v->indices[i]);
        const int64_t with = list ? list->count - list->removed : 0;
        float weight = v->values[i];
        if (query->sparse->modifier == WW_SPARSE_IDF)
            weight = sparse_idf(weight, x->rows_counted, with);
        if (with == 0)
            continue;
        s->weights[search.term_count] = weight;
        s->lists[search.term_count] = list;
        s->terms[search.term_count++] = (sparse_term){weight, list->blocks, divide_up_i64(list->count, SPARSE_BLOCK)};
    }
    const ww_status status = sparse_check_weights(number, s->weights, search.term_count);
    return status == WW_OK && (search.range || search.limit > 0) ? sparse_search_run(&search, hits) : status;
}

static ww_status search_all(const ww_sparse_index *x, const ww_query *query, key_list *lists)
{
    int64_t terms_max = 0;
    const int64_t words = x->rows / 64 + 1;
    for (int64_t q = 0; q < query->query_count; q++)
        terms_max = max_i64(terms_max, query->sparse->vectors[q].count);
    index_search s = {.lists = memory_alloc((size_t)(terms_max + 1) * sizeof *s.lists),
                      .terms = memory_alloc((size_t)(terms_max + 1) * sizeof *s.terms),
                      .weights = memory_alloc((size_t)(terms_max + 1) * sizeof *s.weights),
                      .mask = memory_alloc_zeroed((size_t)words, sizeof *s.mask)};
    ww_status status =
        s.lists && s.terms && s.weights && s.mask ? WW_OK : memory_failed("a sparse search", (size_t)words * sizeof *s.mask);
    for (int64_t i = 0; status == WW_OK && i < divide_up_i64(x->rows, 64); i++) {
        s.mask[i] = x->live[i];
        for (int64_t row = 64 * i; query->mask && row < 64 * i + 64; row++)
            if (row >= query->mask_rows || !(query->mask[i] >> (row % 64) & 1))
                s.mask[i] &= ~(UINT64_C(1) << (row % 64));
    }
    for (int64_t q = 0; status == WW_OK && q < query->query_count; q++)
        status = search_one(x, query, q, &s, &lists[q]);
    memory_free(s.lists);
    memory_free(s.terms);
    memory_free(s.weights);
    memory_free(s.mask);
    return status;
}

ww_status ww_sparse_search(ww_sparse_index *index, const ww_query *query, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_sparse_search";
    ww_query asked;
    sparse_asked sparse = {0};
    key_list *lists = NULL;
    if (!index || !query || !results)
        return fail_null(function, !index ? "index" : query ? "results" : "query");
    ww_status status = query_read_rows_only(function, query, &asked);
    if (status == WW_OK && !asked.sparse)
        status = fail_null(function, "query->sparse");
    CANCEL_BY(status == WW_OK ? asked.cancel : NULL);
    if (status == WW_OK)
        status = sparse_asked_read(function, &asked, &sparse);
    asked.sparse = &sparse.query;
    if (status == WW_OK)
        status = sparse_lists_create(asked.query_count, &lists);
    if (status == WW_OK) {
        pthread_rwlock_rdlock(&index->lock);
        status = search_all(index, &asked, lists);
        pthread_rwlock_unlock(&index->lock);
    }
    if (status == WW_OK)
        status = sparse_results(&asked, lists, results);
    sparse_lists_free(lists, asked.query_count);
    sparse_asked_free(&sparse);
    return status;
}
