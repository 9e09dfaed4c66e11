/* Computing searches together: each is made ready, those that differ only in their vectors run as one plan (search_stages.c),
 * and each takes its hits from the results. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "server/qdrant/search.h"

/* ---- results that are kept ----------------------------------------------------------------------------------------------- */

ww_status kept_add(kept_results *kept, ww_results *results)
{
    const ww_status status = array_reserve(&kept->list, &kept->capacity, kept->count + 1, sizeof *kept->list, "results");
    if (status == WW_OK)
        kept->list[kept->count++] = results;
    else
        ww_results_destroy(results);
    return status;
}

void kept_free(kept_results *kept)
{
    for (int64_t i = 0; i < kept->count; i++)
        ww_results_destroy(kept->list[i]);
    memory_free(kept->list);
    *kept = (kept_results){0};
}

/* Stores this thread's message as the reason. */
static void search_failed(search *s, ww_status status)
{
    char message[1024];
    text_without_calls(message, sizeof message, ww_error_message());
    if (s->failure_status == 0) {
        s->failure_status = (int)status;
        s->failure = memory_copy_text(message, strlen(message));
    }
}

/* ---- searches that are alike --------------------------------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_reals(double a, double b)
{
    return (a > b) - (a < b);
}

/* Filters with different texts count as different, even if they mean the same. */
static int compare_filters(const search *a, const search *b)
{
    if (a->filter_hash != b->filter_hash)
        return a->filter_hash < b->filter_hash ? -1 : 1;
    return ww_filter_equal(a->filter.filter, b->filter.filter) ? 0 : compare_numbers((intptr_t)a, (intptr_t)b);
}

static int compare_weights(const search *a, const search *b)
{
    if (!a->weights || !b->weights)
        return compare_numbers(a->weights != NULL, b->weights != NULL);
    return memcmp(a->weights, b->weights, a->child_count * sizeof *a->weights);
}

/* Orders trees so that those which one plan can compute are adjacent: then it returns 0. */
static int compare_trees(const search *a, const search *b)
{
    const int64_t numbers[][2] = {{a->kind, b->kind},
                                  {(int64_t)(uintptr_t)a->target, (int64_t)(uintptr_t)b->target},
                                  {a->limit, b->limit},
                                  {a->offset, b->offset},
                                  {a->has_threshold, b->has_threshold},
                                  {parts_fetch(&a->with), parts_fetch(&b->with)},
                                  {a->nprobe, b->nprobe},
                                  {a->diverse, b->diverse},
                                  {a->candidates, b->candidates},
                                  {a->explain, b->explain},
                                  {(int64_t)a->child_count, (int64_t)b->child_count}};
    const double reals[][2] = {{a->threshold, b->threshold},
                               {a->recall, b->recall},
                               {a->diversity, b->diversity},
                               {a->rank_constant, b->rank_constant}};
    int order = 0;
    for (size_t i = 0; order == 0 && i < sizeof numbers / sizeof *numbers; i++)
        order = compare_numbers(numbers[i][0], numbers[i][1]);
    for (size_t i = 0; order == 0 && i < sizeof reals / sizeof *reals; i++)
        order = compare_reals(reals[i][0], reals[i][1]);
    order = order != 0 ? order : compare_filters(a, b);
    order = order != 0 ? order : compare_weights(a, b);
    for (size_t i = 0; order == 0 && i < a->child_count; i++)
        order = compare_trees(&a->children[i], &b->children[i]);
    return order;
}

/* Those that can be computed together come first. */
static int compare_searches(const void *first, const void *second)
{
    const search *a = *(search *const *)first, *b = *(search *const *)second;
    if (a->alone != b->alone)
        return a->alone ? 1 : -1;
    return a->alone ? compare_numbers((intptr_t)a, (intptr_t)b) : compare_trees(a, b);
}

/* ---- making ready -------------------------------------------------------------------------------------------------------- */

/* Replaces conditions on named vectors by the ids of the points that have them. There may be many, so the filter is made when
 * the search is computed, and freed after it. */
static ww_status resolve_filter(const entry *e, search *s)
{
    ww_filter *resolved = NULL;
    const ww_status status = s->filter.by_vector ? filter_resolve(e, &s->filter, &resolved) : WW_OK;
    if (resolved) {
        ww_filter_destroy(s->filter.filter);
        s->filter.filter = resolved;
    }
    return status;
}

/* Finds the vector to search for. */
static ww_status resolve_vector(entry *e, search *s)
{
    const bool sparse = s->target->sparse;
    if (s->diverse && s->target->manhattan)
        return ww_fail(WW_UNSUPPORTED, "query.mmr: is not supported for Manhattan distance");
    if (s->kind == SEARCH_MULTI || (s->example_count > 0 && s->target->multi))
        return multi_ready(s);
    if (s->kind == SEARCH_SPARSE && !sparse)
        return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: the vector '%s' is not sparse, and the query is", s->using);
    if (s->kind == SEARCH_WORDS && sparse) {
        s->kind = SEARCH_SPARSE;
        return sparse_of_words(s->words, &s->sparse);
    }
    return s->example_count > 0 ? examples_resolve(e, s) : WW_OK;
}

/* Prepares everything that a search and its prefetches need before they can be computed. */
static ww_status make_ready(entry *e, search *s)
{
    const bool by_vector = s->example_count > 0 || s->words || s->kind == SEARCH_SPARSE || s->kind == SEARCH_MULTI;
    ww_status status = job_check();
    s->target = by_vector ? entry_part(e, s->using) : e;
    if (status == WW_OK && !s->target)
        status = ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s", s->using);
    if (status == WW_OK)
        status = by_vector ? resolve_vector(e, s) : WW_OK;
    if (status == WW_OK && s->formula)
        status = formula_resolve(e, s);
    if (status == WW_OK)
        status = resolve_filter(e, s);
    const bool query =
        s->kind == SEARCH_NEAREST || s->kind == SEARCH_SPARSE || s->kind == SEARCH_MULTI || s->kind == SEARCH_WORDS;
    s->alone = !(query || s->kind == SEARCH_RRF || s->kind == SEARCH_DBSF) || s->excludes_examples || s->counts.found ||
               (s->target && s->target->manhattan && query);
    for (size_t i = 0; status == WW_OK && i < s->child_count; i++) {
        status = make_ready(e, &s->children[i]);
        s->alone = s->alone || s->children[i].alone;
    }
    return status;
}

static void forget_filters(search *s)
{
    ww_filter_destroy(s->filter.filter);
    s->filter.filter = NULL;
    for (size_t i = 0; i < s->child_count; i++)
        forget_filters(&s->children[i]);
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

/* Takes the hits of a search. Those of a list by values have these, too: the list is in the same order, and may have rows that
 * were removed meanwhile. */
static ww_status take_hits(search *s, const ww_results *results, int64_t query)
{
    const int64_t count = ww_results_count(results, query);
    const float *scores = ww_results_scores(results, query);
    int64_t at = 0;
    s->found = memory_alloc((size_t)(count + 1) * sizeof *s->found);
    if (!s->found)
        return memory_failed("hits", (size_t)count * sizeof *s->found);
    s->results = results;
    s->query = query;
    for (int64_t i = 0; i < count; i++) {
        const char *id = ww_results_id(results, query, i);
        if (i == 0)
            at = s->list.count > 0 ? s->offset : 0;
        while (at < s->list.count && strcmp(s->list.rows[at].id, id) != 0)
            at++;
        s->found[s->found_count++] = (found_point){id, (double)scores[i], i, at < s->list.count ? s->list.rows[at].value : 0};
        at++;
    }
    return WW_OK;
}

/* Runs searches that are alike. */
static void run_group(entry *e, search **group, size_t count, kept_results *kept)
{
    ww_results *results = NULL;
    ww_status status = stages_run(e, group, count, &results);
    if (status == WW_OK)
        status = kept_add(kept, results);
    for (size_t i = 0; i < count; i++) {
        const ww_status taken = status == WW_OK ? take_hits(group[i], results, (int64_t)i) : status;
        if (taken != WW_OK)
            search_failed(group[i], taken);
    }
}

void searches_run(entry *e, search **searches, size_t count, kept_results *kept)
{
    size_t ready = 0;
    search **list = memory_alloc((count + 1) * sizeof *list);
    ww_status status = list ? WW_OK : memory_failed("searches", count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        const ww_status made = status == WW_OK ? make_ready(e, searches[i]) : status;
        if (made != WW_OK)
            search_failed(searches[i], made);
        else
            list[ready++] = searches[i];
    }
    if (status == WW_OK)
        status = job_sort(list, ready, sizeof *list, compare_searches);
    for (size_t first = 0, end; first < ready; first = end) {
        for (end = first + 1; end < ready && !list[first]->alone && compare_searches(&list[first], &list[end]) == 0;)
            end++;
        const ww_status over = status == WW_OK ? job_check() : status;
        if (over == WW_OK)
            run_group(e, list + first, end - first, kept);
        for (size_t i = first; over != WW_OK && i < end; i++)
            search_failed(list[i], over);
    }
    for (size_t i = 0; i < count; i++)
        forget_filters(searches[i]);
    memory_free(list);
}
