/* The library ranks results of its own collections, so the hits of shards become rows of one that lives as long as the call. */
#include "server/nodes/fusing.h"

#include <string.h>
#include <sys/random.h>

#include <warpwave/ranking.h>

#include "base/json/json_value.h"
#include "base/memory.h"

/* Rows with ids, and with vectors if `dim` is not 0. */
typedef struct row_list {
    const char **ids;
    float *vectors;
    int64_t count;
    int32_t dim;
} row_list;

static ww_status rows_collect(ww_device *device, ww_metric metric, const row_list *rows, ww_collection **made)
{
    ww_collection_config config = ww_collection_config_default();
    ww_rows added = ww_rows_default();
    config.dim = rows->dim;
    config.metric = metric;
    config.screen = WW_SCREEN_NONE;
    added.count = rows->count;
    added.dim = rows->dim;
    added.ids = rows->ids;
    added.vectors = rows->vectors;
    const ww_status status = ww_collection_create(device, &config, made);
    return status == WW_OK && rows->count > 0 ? ww_collection_add(*made, &added) : status;
}

/* The hits of a list as results with their scores. */
static ww_status results_of(ww_collection *collection, const hit_list *list, uint32_t fetch, ww_results **results)
{
    const char **ids = memory_alloc((size_t)(list->count + 1) * sizeof *ids);
    ww_picked_hit *picked = memory_alloc((size_t)(list->count + 1) * sizeof *picked);
    ww_get get = ww_get_default();
    ww_results *found = NULL;
    ww_status status = ids && picked ? WW_OK : memory_failed("hits", (size_t)list->count * sizeof *picked);
    for (int64_t i = 0; status == WW_OK && i < list->count; i++)
        ids[i] = list->hits[i].id;
    get.ids = ids;
    get.count = list->count;
    get.fetch = fetch;
    if (status == WW_OK)
        status = ww_collection_get(collection, &get, &found);
    for (int64_t i = 0; status == WW_OK && i < list->count; i++)
        picked[i] = (ww_picked_hit){found, 0, i, (float)list->hits[i].score};
    if (status == WW_OK)
        status = ww_results_pick(picked, list->count, results);
    ww_results_destroy(found);
    memory_free(ids);
    memory_free(picked);
    return status;
}

/* ---- fusing -------------------------------------------------------------------------------------------------------------- */

static int compare_ids(const void *first, const void *second)
{
    return strcmp(*(const char *const *)first, *(const char *const *)second);
}

/* Each id of the lists once. */
static ww_status ids_collect(hit_list *const *lists, size_t count, row_list *rows)
{
    int64_t total = 0, kept = 0;
    for (size_t k = 0; k < count; k++)
        total += lists[k]->count;
    rows->ids = memory_alloc((size_t)(total + 1) * sizeof *rows->ids);
    if (!rows->ids)
        return memory_failed("ids", (size_t)total * sizeof *rows->ids);
    for (size_t k = 0; k < count; k++)
        for (int64_t i = 0; i < lists[k]->count; i++)
            rows->ids[rows->count++] = lists[k]->hits[i].id;
    const ww_status status = job_sort(rows->ids, (size_t)rows->count, sizeof *rows->ids, compare_ids);
    for (int64_t i = 0; i < rows->count; i++)
        if (kept == 0 || strcmp(rows->ids[kept - 1], rows->ids[i]) != 0)
            rows->ids[kept++] = rows->ids[i];
    rows->count = kept;
    return status;
}

static ww_status take_fused(const ww_results *results, hit_list *fused)
{
    const float *scores = ww_results_scores(results, 0);
    for (int64_t i = 0; i < ww_results_count(results, 0); i++) {
        char *id = (char *)(uintptr_t)ww_results_id(results, 0, i);
        hits_append(fused, &(part_hit){.id = id, .score = (double)scores[i]});
    }
    return fused->status;
}

ww_status hits_fuse(ww_device *device, const search *s, hit_list *const *lists, size_t count, hit_list *fused)
{
    row_list rows = {.dim = 1};
    ww_collection *collection = NULL;
    ww_results **given = memory_alloc_zeroed(count + 1, sizeof *given), *made = NULL;
    ww_fuse how;
    ww_status status = given ? ids_collect(lists, count, &rows) : memory_failed("lists", count * sizeof *given);
    rows.vectors = memory_alloc_zeroed((size_t)rows.count + 1, sizeof *rows.vectors);
    if (status == WW_OK)
        status = rows.vectors ? rows_collect(device, WW_DOT, &rows, &collection)
                              : memory_failed("lists", (size_t)rows.count * sizeof *rows.vectors);
    for (size_t k = 0; status == WW_OK && k < count; k++)
        status = results_of(collection, lists[k], WW_FETCH_IDS, &given[k]);
    search_fusion(s, &how);
    how.by_id = true; /* a point is what its id says */
    if (status == WW_OK)
        status = ww_results_fuse((const ww_results *const *)given, (int64_t)count, &how, &made);
    if (status == WW_OK)
        status = take_fused(made, fused);
    for (size_t k = 0; given && k < count; k++)
        ww_results_destroy(given[k]);
    ww_results_destroy(made);
    ww_collection_destroy(collection);
    memory_free(given);
    memory_free(rows.ids);
    memory_free(rows.vectors);
    return status;
}

/* ---- maximal marginal relevance ------------------------------------------------------------------------------------------ */

/* Reads the vectors of the candidates; those that were removed meanwhile have none and are left out. */
static ww_status vectors_read(hit_list *l, row_list *rows)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < l->count; i++) {
        const bool whole = l->hits[i].vector && json_type_of(l->hits[i].vector) == JSON_LIST;
        const int64_t dim = whole ? json_numbers_count(l->hits[i].vector) : -1;
        if (whole && (dim <= 0 || dim > WW_DIM_MAX || (rows->dim > 0 && dim != rows->dim)))
            return odd_answer();
        rows->dim = whole ? (int32_t)dim : rows->dim;
        if (whole)
            l->hits[kept++] = l->hits[i];
        else
            memory_free(l->hits[i].id);
    }
    l->count = rows->count = kept;
    rows->ids = memory_alloc((size_t)(kept + 1) * sizeof *rows->ids);
    rows->vectors = memory_alloc(((size_t)kept * (size_t)rows->dim + 1) * sizeof *rows->vectors);
    if (!rows->ids || !rows->vectors)
        return memory_failed("candidates", (size_t)kept * (size_t)rows->dim * sizeof *rows->vectors);
    for (int64_t i = 0; i < kept; i++) {
        rows->ids[i] = l->hits[i].id;
        if (!json_numbers_read(l->hits[i].vector, rows->vectors + i * rows->dim))
            return odd_answer();
    }
    return WW_OK;
}

/* Puts the hits in the order of the results. */
static ww_status reorder(hit_list *l, const ww_results *results)
{
    const int64_t count = ww_results_count(results, 0), *handles = ww_results_handles(results, 0);
    part_hit *ordered = memory_alloc_zeroed((size_t)l->count + 1, sizeof *ordered);
    if (!ordered)
        return memory_failed("hits", (size_t)l->count * sizeof *ordered);
    for (int64_t i = 0; i < count; i++) { /* a new collection's handles are the numbers of its rows */
        ordered[i] = l->hits[handles[i]];
        l->hits[handles[i]].id = NULL;
    }
    for (int64_t i = 0; i < l->count; i++)
        memory_free(l->hits[i].id);
    memory_free(l->hits);
    l->hits = ordered;
    l->capacity = l->count + 1;
    l->count = count;
    return WW_OK;
}

ww_status hits_diversify(ww_device *device, const search *s, ww_metric metric, hit_list *candidates)
{
    row_list rows = {0};
    ww_collection *collection = NULL;
    ww_results *given = NULL, *made = NULL;
    ww_diversity how = ww_diversity_default();
    how.metric = metric;
    how.lambda = 1 - s->diversity;
    ww_status status = vectors_read(candidates, &rows);
    if (status == WW_OK && rows.count > 0)
        status = rows_collect(device, metric, &rows, &collection);
    if (collection && status == WW_OK)
        status = results_of(collection, candidates, WW_FETCH_IDS | WW_FETCH_VECTORS, &given);
    if (given && status == WW_OK)
        status = ww_results_diversify(given, &how, &made);
    if (made && status == WW_OK)
        status = reorder(candidates, made);
    ww_results_destroy(given);
    ww_results_destroy(made);
    ww_collection_destroy(collection);
    memory_free(rows.ids);
    memory_free(rows.vectors);
    return status;
}

/* ---- random samples ------------------------------------------------------------------------------------------------------ */

ww_status hits_draw(const char *const *ones, size_t shards, int64_t wanted, hit_list *drawn)
{
    struct {
        const char *at;
        int64_t rest;
    } *from = memory_alloc_zeroed(shards + 1, sizeof *from);
    int64_t total = 0;
    if (!from)
        return memory_failed("a sample", shards * sizeof *from);
    for (size_t k = 0; k < shards; k++) {
        const char *points = json_given(ones[k], "points"), *number = json_given(ones[k], "total");
        from[k].at = points && json_type_of(points) == JSON_LIST ? json_first(points) : NULL;
        from[k].rest = from[k].at && number ? json_number_of(number).integer : 0;
        total += from[k].rest;
    }
    while (drawn->status == WW_OK && drawn->count < wanted && total > 0) {
        uint64_t random = 0;
        size_t k = 0;
        (void)!getrandom(&random, sizeof random, 0);
        int64_t turn = (int64_t)(random % (uint64_t)total); /* 2^64 is so much larger that the remainder is uniform */
        for (; turn >= from[k].rest; k++)
            turn -= from[k].rest;
        char *id = from[k].at && json_given(from[k].at, "id") ? hits_copy_id(json_given(from[k].at, "id")) : NULL;
        if (!id)
            drawn->status = odd_answer();
        else
            hits_append(drawn, &(part_hit){.text = from[k].at, .id = id, .score = 1});
        memory_free(id);
        from[k].at = from[k].at ? json_next(from[k].at) : NULL;
        from[k].rest--;
        total--;
    }
    memory_free(from);
    return drawn->status;
}
