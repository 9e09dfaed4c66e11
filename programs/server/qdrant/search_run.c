/* Computing searches together. The leaves of all trees come first: those with the same k, filter and selection share one
 * library call. Then each tree is evaluated from its leaves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "server/qdrant/manhattan.h"
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

/* ---- one call for searches that are alike -------------------------------------------------------------------------------- */

int64_t search_depth(const search *s)
{
    return s->limit + s->offset + (s->excludes_examples ? (int64_t)s->example_count : 0);
}

/* One more where ties are ordered by ids: it shows whether the last hits have the score of others. */
static int64_t depth_of(const search *s)
{
    return search_depth(s) + (s->target && s->target->by_id ? 1 : 0);
}

static int compare_numbers(int64_t a, int64_t b)
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

/* Orders leaves so that those which one call of the library can compute are adjacent: then it returns 0. */
static int compare_leaves(const search *a, const search *b)
{
    int order = compare_numbers((int64_t)(uintptr_t)a->target, (int64_t)(uintptr_t)b->target);
    order = order != 0 ? order : compare_numbers(depth_of(a), depth_of(b));
    order = order != 0 ? order : compare_numbers(parts_fetch(&a->with), parts_fetch(&b->with));
    order = order != 0 ? order : compare_numbers(a->nprobe, b->nprobe);
    order = order != 0 ? order : (a->recall > b->recall) - (a->recall < b->recall);
    return order != 0 ? order : compare_filters(a, b);
}

/* The searches that are ready come first. */
static int compare_ready(const void *first, const void *second)
{
    const search *a = *(search *const *)first, *b = *(search *const *)second;
    if (a->ready != b->ready)
        return a->ready ? -1 : 1;
    return a->ready ? compare_leaves(a, b) : 0;
}

/* A row is screened by its codes, a byte per element, and scored by its vector. With an index the library counts the bytes of
 * codes itself. */
static void set_cost(search *const *searches, size_t count, const ww_search_stats *stats)
{
    static const int64_t ELEMENT_BYTES[] = {
        [WW_VECTOR_F32] = 4, [WW_VECTOR_F16] = 2, [WW_VECTOR_BF16] = 2, [WW_VECTOR_I8] = 1, [WW_VECTOR_U8] = 1};
    const entry *e = searches[0]->target;
    const int64_t codes = stats->lists_read > 0 ? stats->list_bytes_read : stats->rows_screened * e->dim;
    const search_cost cost = {stats->rows_screened, stats->rows_scored, stats->lists_read,
                              codes + stats->rows_scored * e->dim * ELEMENT_BYTES[e->type], (int64_t)count};
    for (size_t i = 0; i < count; i++)
        searches[i]->cost = cost;
}

/* Counts searches and the rows that they read. */
static void count_searches(const entry *e, size_t count, int64_t rows)
{
    metrics *m = &e->queue.server->metrics;
    atomic_fetch_add(&m->searches, (long long)count);
    atomic_fetch_add(&m->rows_read, rows);
}

/* Searches by Manhattan distance, which reads every row. */
static ww_status query_manhattan(search *s, ww_results **results)
{
    ww_search_stats stats = ww_search_stats_default();
    const manhattan_query query = {s->vector, s->filter.filter, search_depth(s), parts_fetch(&s->with)};
    const ww_status status = manhattan_search(s->target, &query, results, &stats.rows_scored);
    set_cost(&s, 1, &stats);
    count_searches(s->target, 1, stats.rows_scored);
    return status;
}

/* Searches for `count` queries of the same depth, filter and selection. */
static ww_status query_together(search *const *alike_ones, size_t count, ww_results **results)
{
    const search *first = alike_ones[0];
    const entry *e = first->target;
    const size_t dim = (size_t)e->dim;
    float *vectors = memory_alloc(count * dim * sizeof *vectors);
    ww_search_stats stats = ww_search_stats_default();
    if (!vectors)
        return memory_failed("queries", count * dim * sizeof *vectors);
    for (size_t i = 0; i < count; i++)
        memcpy(vectors + i * dim, alike_ones[i]->vector, dim * sizeof *vectors);
    ww_query query = ww_query_default();
    query.cancel = job_cancel();
    query.queries = vectors;
    query.query_count = (int64_t)count;
    query.dim = e->dim;
    query.filter = first->filter.filter;
    query.fetch = parts_fetch(&first->with);
    query.stats = &stats;
    query.nprobe = depth_of(first) <= WW_K_MAX ? first->nprobe : 0;
    query.recall = depth_of(first) <= WW_K_MAX ? (float)first->recall : 0;
    if (depth_of(first) <= WW_K_MAX) {
        query.k = (int32_t)depth_of(first);
    } else { /* score all rows and take the best */
        query.mode = WW_QUERY_RANGE;
        query.bound = e->metric == WW_L2 ? INFINITY : -INFINITY;
        query.limit = depth_of(first) < WW_ROWS_MAX ? depth_of(first) : WW_ROWS_MAX;
    }
    const ww_status status = ww_collection_query(e->collection, &query, results);
    memory_free(vectors);
    set_cost(alike_ones, count, &stats);
    count_searches(e, count, stats.rows_screened + stats.rows_scored);
    return status;
}

/* Runs searches that are alike. */
static void run_group(search **group, size_t count, kept_results *kept)
{
    ww_results *results = NULL;
    ww_status status = query_together(group, count, &results);
    if (status == WW_OK)
        status = kept_add(kept, results);
    for (size_t i = 0; i < count; i++) {
        group[i]->results = results;
        group[i]->query = (int64_t)i;
        if (status != WW_OK)
            search_failed(group[i], status);
    }
}

/* Runs all leaves that are ready, group by group. */
static ww_status run_groups(search **leaves, size_t count, kept_results *kept)
{
    ww_status status = job_sort(leaves, count, sizeof *leaves, compare_ready);
    for (size_t first = 0, end; status == WW_OK && first < count && leaves[first]->ready; first = end) {
        for (end = first + 1; end < count && leaves[end]->ready && compare_leaves(leaves[first], leaves[end]) == 0;)
            end++;
        run_group(leaves + first, end - first, kept);
        status = job_check();
    }
    return status;
}

/* ---- leaves -------------------------------------------------------------------------------------------------------------- */

static size_t count_leaves(const search *s)
{
    size_t count = s->child_count == 0;
    for (size_t i = 0; i < s->child_count; i++)
        count += count_leaves(&s->children[i]);
    return count;
}

/* Prepares everything that a search needs before it can be computed. */
static ww_status make_ready(entry *e, search *s)
{
    ww_status status = job_check();
    const bool other = s->kind == SEARCH_SPARSE || s->kind == SEARCH_MULTI;
    s->target = s->example_count > 0 || s->words || other ? entry_part(e, s->using) : e;
    if (status == WW_OK && !s->target)
        status = ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s", s->using);
    if (status == WW_OK && (s->kind == SEARCH_SPARSE || ((s->example_count > 0 || s->words) && s->target->sparse)))
        return sparse_ready(s);
    if (status == WW_OK && (s->kind == SEARCH_MULTI || (s->example_count > 0 && s->target->multi)))
        return multi_ready(s);
    return status == WW_OK && s->example_count > 0 ? examples_resolve(e, s) : status;
}

/* The leaves of a tree, in the order of reading. */
typedef struct leaf_list {
    search **leaves;
    size_t count;
} leaf_list;

static void collect_leaves(entry *e, search *s, leaf_list *all)
{
    for (size_t i = 0; i < s->child_count; i++)
        collect_leaves(e, &s->children[i], all);
    const ww_status status = make_ready(e, s);
    if (status != WW_OK) {
        search_failed(s, status);
        return;
    }
    if (s->child_count > 0)
        return;
    s->ready = s->vector != NULL && !s->diverse && !s->filter.by_vector && !s->target->manhattan;
    all->leaves[all->count++] = s;
}

/* ---- trees --------------------------------------------------------------------------------------------------------------- */

bool score_is_within(const search *s, double score)
{
    if (!s->has_threshold)
        return true;
    const bool distance = s->target->metric == WW_L2 && s->kind == SEARCH_NEAREST;
    return distance ? score <= s->threshold : score >= s->threshold;
}

/* Takes the hits that the search asks for from those of a leaf or a rescoring. */
static ww_status take_hits(search *s, kept_results *kept)
{
    int64_t *order = NULL, skipped = 0;
    const ww_status status = s->target->by_id ? ties_order(s, kept, &order) : WW_OK;
    if (status != WW_OK)
        return status;
    const int64_t hits = ww_results_count(s->results, s->query);
    const float *scores = ww_results_scores(s->results, s->query);
    s->found = memory_alloc((size_t)(hits + 1) * sizeof *s->found);
    for (int64_t i = 0; s->found && i < hits && s->found_count < s->limit && !job_is_over(); i++) {
        const int64_t hit = order ? order[i] : i;
        const char *id = ww_results_id(s->results, s->query, hit);
        if (!id || example_is(s, id) || !score_is_within(s, (double)scores[hit]))
            continue;
        if (skipped++ < s->offset)
            continue;
        s->found[s->found_count++] = (found_point){id, (double)scores[hit], s->results, s->query, hit, 0};
    }
    memory_free(order);
    return s->found ? WW_OK : memory_failed("hits", (size_t)hits * sizeof *s->found);
}

/* Takes what a search asks for from results of one query, which are kept. */
static ww_status keep(search *s, kept_results *kept, ww_results *results)
{
    s->results = results;
    const ww_status status = kept_add(kept, results);
    return status == WW_OK ? take_hits(s, kept) : status;
}

/* A search without a vector: by ids, by values or at random, all with score 1. */
static ww_status list_points(entry *e, search *s)
{
    const bool all = s->kind == SEARCH_SAMPLE || s->limit >= WW_ROWS_MAX || s->offset >= WW_ROWS_MAX;
    listing *l = &s->list;
    ww_status status = listing_make(l, e, &s->filter, &s->order, (list_part){NULL, all ? 0 : s->offset + s->limit});
    if (status == WW_OK && s->kind == SEARCH_SAMPLE)
        listing_shuffle(l);
    const int64_t rest = l->count > s->offset ? l->count - s->offset : 0;
    const int64_t count = rest < s->limit ? rest : s->limit;
    s->found = status == WW_OK ? memory_alloc((size_t)(count + 1) * sizeof *s->found) : NULL;
    if (status == WW_OK && !s->found)
        status = memory_failed("hits", (size_t)count * sizeof *s->found);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const listed *row = &l->rows[s->offset + i];
        s->found[s->found_count++] = (found_point){.id = row->id, .score = 1, .order = row->value};
    }
    return status;
}

/* Restricts a search to what was prefetched. */
static ww_status restrict_to_children(search *s)
{
    int64_t count = 0, total = 0;
    ww_filter *among = NULL;
    for (size_t c = 0; c < s->child_count; c++)
        total += s->children[c].found_count;
    const char **ids = memory_alloc((size_t)(total + 1) * sizeof *ids);
    if (!ids)
        return memory_failed("a filter", (size_t)total * sizeof *ids);
    for (size_t c = 0; c < s->child_count; c++)
        for (int64_t i = 0; i < s->children[c].found_count; i++)
            ids[count++] = s->children[c].found[i].id;
    ww_status status = ww_filter_create(&among);
    if (status == WW_OK)
        status = ww_filter_add_ids(among, ids, count);
    if (status == WW_OK)
        status = ww_filter_add_filter(among, s->filter.filter);
    memory_free(ids);
    if (status != WW_OK) {
        ww_filter_destroy(among);
        return status;
    }
    ww_filter_destroy(s->filter.filter);
    s->filter.filter = among;
    return WW_OK;
}

/* Searches by a vector alone, perhaps among what was prefetched. */
static ww_status rescore(search *s, kept_results *kept)
{
    ww_results *results = NULL;
    const ww_status status = s->target->manhattan ? query_manhattan(s, &results) : query_together(&s, 1, &results);
    return status == WW_OK ? keep(s, kept, results) : status;
}

/* What a search has found, with vectors, as results. */
static ww_status found_with_vectors(const search *s, ww_results **results)
{
    const char **ids = memory_alloc((size_t)(s->found_count + 1) * sizeof *ids);
    ww_picked_hit *hits = memory_alloc((size_t)(s->found_count + 1) * sizeof *hits);
    ww_results *rows = NULL;
    ww_status status = ids && hits ? WW_OK : memory_failed("candidates", (size_t)s->found_count * sizeof *hits);
    int64_t count = 0;
    for (int64_t i = 0; status == WW_OK && i < s->found_count; i++)
        ids[i] = s->found[i].id;
    if (status == WW_OK)
        status = points_get(s->target, ids, s->found_count, WW_FETCH_IDS | WW_FETCH_VECTORS, &rows);
    for (int64_t i = 0; status == WW_OK && i < s->found_count; i++)
        if (ww_results_id(rows, 0, i)) /* otherwise it was removed in the meantime */
            hits[count++] = (ww_picked_hit){rows, 0, i, (float)s->found[i].score};
    if (status == WW_OK)
        status = ww_results_pick(hits, count, results);
    ww_results_destroy(rows);
    memory_free(ids);
    memory_free(hits);
    return status;
}

int64_t search_candidates(const search *s)
{
    const int64_t depth = search_depth(s), wanted = depth < WW_K_MAX ? depth : WW_K_MAX;
    return s->candidates > wanted ? s->candidates : wanted;
}

/* Chooses among the nearest points those that are not like the ones before, by maximal marginal relevance. */
static ww_status diversify(search *s, kept_results *kept)
{
    search near = {.vector = s->vector, .target = s->target, .filter = s->filter, .limit = search_candidates(s)};
    ww_diversity how = ww_diversity_default();
    ww_results *candidates = NULL, *chosen = NULL;
    if (s->target->manhattan)
        return ww_fail(WW_UNSUPPORTED, "query.mmr: is not supported for Manhattan distance");
    how.metric = s->target->metric;
    how.lambda = 1 - s->diversity;
    how.limit = search_depth(s);
    ww_status status = rescore(&near, kept);
    if (status == WW_OK)
        status = found_with_vectors(&near, &candidates);
    if (status == WW_OK)
        status = ww_results_diversify(candidates, &how, &chosen);
    ww_results_destroy(candidates);
    memory_free(near.found);
    s->cost = near.cost;
    s->only_ids = true;
    return status == WW_OK ? keep(s, kept, chosen) : status;
}

/* May there be more rows with the score of the last hit that is needed, in a collection that orders these by ids? */
static bool cuts_ties(const search *s, const ww_results *results, int64_t k)
{
    const int64_t count = ww_results_count(results, 0), depth = search_depth(s);
    const float *scores = ww_results_scores(results, 0);
    return s->target->by_id && count == k && depth > 0 && depth <= count && scores[count - 1] == scores[depth - 1];
}

/* Finds the points whose texts have the words, the best by BM25. */
static ww_status find_words(search *s, kept_results *kept)
{
    const char *const texts[1] = {s->words};
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    query.cancel = job_cancel();
    ww_results *results = NULL;
    match.texts = texts;
    match.mode = WW_MATCH_TEXT;
    match.counts = s->counts.found ? &s->counts : NULL;
    query.match = &match;
    query.query_count = 1;
    query.dim = s->target->dim;
    query.k = (int32_t)(depth_of(s) < WW_K_MAX ? depth_of(s) : WW_K_MAX); /* groups look at the best of them only */
    query.filter = s->filter.filter;
    query.fetch = WW_FETCH_IDS;
    ww_status status = ww_collection_query(s->target->collection, &query, &results);
    while (status == WW_OK && cuts_ties(s, results, query.k) && query.k < WW_K_MAX) {
        ww_results_destroy(results);
        results = NULL;
        query.k = query.k < WW_K_MAX / 4 ? 4 * query.k : WW_K_MAX;
        status = ww_collection_query(s->target->collection, &query, &results);
    }
    atomic_fetch_add(&s->target->queue.server->metrics.searches, 1);
    return status == WW_OK ? keep(s, kept, results) : status;
}

/* Finds the points whose sparse vectors have an index of the query's, or those with multivectors, the best by their score. */
static ww_status find_other(search *s, kept_results *kept)
{
    ww_status (*const query)(const search *, int64_t, ww_results **) = s->kind == SEARCH_SPARSE ? sparse_query : multi_query;
    int64_t depth = depth_of(s) < WW_ROWS_MAX ? depth_of(s) : WW_ROWS_MAX;
    ww_results *results = NULL;
    ww_status status = query(s, depth, &results);
    while (status == WW_OK && cuts_ties(s, results, depth)) {
        ww_results_destroy(results);
        results = NULL;
        depth = depth < WW_ROWS_MAX / 4 ? 4 * depth : WW_ROWS_MAX;
        status = query(s, depth, &results);
    }
    return status == WW_OK ? keep(s, kept, results) : status;
}

/* Fetches the selected parts of points of which only the id was found. */
static ww_status complete(entry *e, search *s, kept_results *kept)
{
    const char **ids = memory_alloc((size_t)(s->found_count + 1) * sizeof *ids);
    ww_results *results = NULL;
    if (!ids)
        return memory_failed("ids", (size_t)s->found_count * sizeof *ids);
    for (int64_t i = 0; i < s->found_count; i++)
        ids[i] = s->found[i].id;
    ww_status status = points_get(e, ids, s->found_count, parts_fetch(&s->with), &results);
    if (status == WW_OK)
        status = kept_add(kept, results);
    int64_t there = 0;
    for (int64_t i = 0; status == WW_OK && i < s->found_count; i++)
        if (ww_results_id(results, 0, i)) /* otherwise it was removed in the meantime */
            s->found[there++] = (found_point){s->found[i].id, s->found[i].score, results, 0, i, s->found[i].order};
    s->found_count = status == WW_OK ? there : 0;
    memory_free(ids);
    return status;
}

/* Makes results of what a search has found. */
static ww_status results_of(entry *e, search *s, kept_results *kept, ww_results **results)
{
    ww_picked_hit *hits = memory_alloc((size_t)(s->found_count + 1) * sizeof *hits);
    ww_status status = hits ? WW_OK : memory_failed("hits", (size_t)s->found_count * sizeof *hits);
    if (status == WW_OK && s->found_count > 0 && !s->found[0].results)
        status = complete(e, s, kept);
    for (int64_t i = 0; status == WW_OK && i < s->found_count; i++) {
        const found_point *f = &s->found[i];
        hits[i] = (ww_picked_hit){f->results, f->query, f->hit, (float)f->score};
    }
    if (status == WW_OK)
        status = ww_results_pick(hits, s->found_count, results);
    memory_free(hits);
    return status;
}

void search_fusion(const search *s, ww_fuse *how)
{
    *how = ww_fuse_default();
    how->fusion = s->kind == SEARCH_RRF ? WW_FUSION_SCALED_RANKS : WW_FUSION_DISTRIBUTIONS;
    how->constant = s->rank_constant - 1; /* ranks count from 0 in Qdrant's formula */
    how->weights = s->weights;
    how->limit = s->offset + s->limit;
    how->by_id = true; /* a point is what its id says */
    how->cancel = job_cancel();
}

/* Fuses the hits of the children. */
static ww_status fuse(entry *e, search *s, kept_results *kept)
{
    ww_results **lists = memory_alloc_zeroed(s->child_count, sizeof *lists), *fused = NULL;
    ww_status status = lists ? WW_OK : memory_failed("lists", s->child_count * sizeof *lists);
    ww_fuse how;
    search_fusion(s, &how);
    for (size_t c = 0; status == WW_OK && c < s->child_count; c++)
        status = results_of(e, &s->children[c], kept, &lists[c]);
    if (status == WW_OK)
        status = ww_results_fuse((const ww_results *const *)lists, (int64_t)s->child_count, &how, &fused);
    for (size_t c = 0; lists && c < s->child_count; c++)
        ww_results_destroy(lists[c]);
    memory_free(lists);
    return status == WW_OK ? keep(s, kept, fused) : status;
}

/* Computes a search whose children are done. */
static ww_status compute_one(entry *e, search *s, kept_results *kept)
{
    if (s->kind == SEARCH_RRF || s->kind == SEARCH_DBSF)
        return fuse(e, s, kept);
    if (s->kind == SEARCH_LIST || s->kind == SEARCH_SAMPLE)
        return list_points(e, s);
    if (s->kind == SEARCH_SPARSE || s->kind == SEARCH_MULTI)
        return find_other(s, kept);
    if (s->kind == SEARCH_WORDS)
        return find_words(s, kept);
    if (s->kind != SEARCH_NEAREST)
        return examples_score(s, kept);
    if (s->diverse)
        return diversify(s, kept);
    return s->ready ? take_hits(s, kept) : rescore(s, kept);
}

/* Replaces conditions on named vectors by the ids of the points that have them. There may be many, so the filter is made when
 * the search is computed, and freed after it. */
static ww_status resolve_filter(const entry *e, search *s)
{
    ww_filter *resolved = NULL;
    const ww_status status = filter_resolve(e, &s->filter, &resolved);
    if (resolved) {
        ww_filter_destroy(s->filter.filter);
        s->filter.filter = resolved;
    }
    return status;
}

static ww_status finish_one(entry *e, search *s, kept_results *kept)
{
    const bool fused = s->kind == SEARCH_RRF || s->kind == SEARCH_DBSF;
    ww_status status = job_check();
    if (status == WW_OK && s->filter.by_vector && !fused)
        status = resolve_filter(e, s);
    if (status == WW_OK && s->child_count > 0 && !fused)
        status = restrict_to_children(s);
    if (status == WW_OK)
        status = compute_one(e, s, kept);
    ww_filter_destroy(s->filter.filter);
    s->filter.filter = NULL;
    return status;
}

static void finish(entry *e, search *s, kept_results *kept, bool top)
{
    for (size_t i = 0; s->failure_status == 0 && i < s->child_count; i++) {
        finish(e, &s->children[i], kept, false);
        if (s->children[i].failure_status != 0 && s->failure_status == 0) {
            s->failure_status = s->children[i].failure_status;
            s->failure = s->children[i].failure;
            s->children[i].failure = NULL;
        }
    }
    if (s->failure_status != 0)
        return;
    ww_status status = finish_one(e, s, kept);
    if (status == WW_OK && top && (s->kind != SEARCH_NEAREST || s->only_ids))
        status = complete(e, s, kept);
    if (status != WW_OK)
        search_failed(s, status);
}

void searches_run(entry *e, search **searches, size_t count, kept_results *kept)
{
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++)
        capacity += count_leaves(searches[i]);
    leaf_list all = {memory_alloc((capacity + 1) * sizeof *all.leaves), 0};
    ww_status status = all.leaves ? WW_OK : memory_failed("searches", capacity * sizeof *all.leaves);
    for (size_t i = 0; status == WW_OK && i < count; i++)
        collect_leaves(e, searches[i], &all);
    if (status == WW_OK)
        status = run_groups(all.leaves, all.count, kept);
    for (size_t i = 0; i < count; i++) {
        if (status != WW_OK)
            search_failed(searches[i], status);
        finish(e, searches[i], kept, true);
    }
    memory_free(all.leaves);
}
