/* Searches that score every row against every example: recommend with a strategy, discover and context, with the scores that
 * Qdrant defines for them. Larger scores must be better, so distances are squared and negated. Against a sparse vector without
 * a common index a row has the score 0. */
#include <math.h>
#include <string.h>

#include <warpwave/ranking.h>
#include <warpwave/selection.h>

#include "base/array.h"
#include "base/memory.h"
#include "server/qdrant/manhattan.h"
#include "server/qdrant/search.h"

/* ---- scores -------------------------------------------------------------------------------------------------------------- */

static float sigmoid(float x)
{
    return isfinite(x) ? x / (1 + fabsf(x)) : x;
}

/* Returns 0 to 1. */
static float scaled_sigmoid(float x)
{
    return 0.5F * (sigmoid(x) + 1);
}

/* What the examples so far say about a row. */
typedef struct scored_row {
    int64_t handle;
    float first, second; /* of the kind: best scores, sums; the target's score and the rank; the sum */
    int32_t scores;      /* how many there are: a row that was added or removed meanwhile has fewer than the others */
} scored_row;

/* Adds the scores of a row against `count` examples, from number `first` on: pairs stay together. */
static void add_scores(const search *s, scored_row *row, const float *scores, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const bool negative = s->examples[first + i].negative;
        const float before = i > 0 ? scores[i - 1] : 0; /* of a pair: its positive example, which comes first */
        float *side = negative ? &row->second : &row->first;
        if (s->kind == SEARCH_BEST_SCORE)
            *side = fmaxf(*side, scores[i]);
        else if (s->kind == SEARCH_SUM_SCORES)
            *side += scores[i];
        else if (s->kind == SEARCH_DISCOVER && first + i == 0)
            row->first = scores[0];
        else if (s->kind == SEARCH_DISCOVER && negative)
            row->second += (float)((before > scores[i]) - (before < scores[i]));
        else if (s->kind == SEARCH_CONTEXT && negative)
            row->first += sigmoid(fminf(before - scores[i] - 1.1920929e-7F, 0));
    }
    row->scores += (int32_t)count;
}

static float final_score(const search *s, const scored_row *row)
{
    switch (s->kind) {
    case SEARCH_BEST_SCORE:
        return row->first > row->second ? scaled_sigmoid(row->first) : -scaled_sigmoid(row->second);
    case SEARCH_SUM_SCORES:
        return row->first - row->second;
    case SEARCH_DISCOVER: /* the number of pairs with the row on their positive side minus the others; then the target decides
                           */
        return row->second + scaled_sigmoid(row->first);
    default:
        return row->first;
    }
}

/* ---- all rows ------------------------------------------------------------------------------------------------------------ */

enum { EXAMPLES_AT_ONCE = 8 }; /* even; all rows are scored against this many at a time */

/* A search, and the rows that its stage of a plan admits. */
typedef struct scoring {
    const search *search;
    const ww_filter *filter;
} scoring;

static void set_range(const scoring *from, ww_query *query, size_t count)
{
    const entry *e = from->search->target;
    query->cancel = job_cancel();
    query->query_count = (int64_t)count;
    query->dim = e->dim;
    query->filter = from->filter;
    query->mode = WW_QUERY_RANGE;
    query->bound = e->metric == WW_L2 && !e->sparse ? INFINITY : -INFINITY;
    query->limit = WW_ROWS_MAX;
}

static ww_status score_sparse(const scoring *from, size_t first, size_t count, ww_results **results)
{
    const search *s = from->search;
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    ww_sparse_vector *vectors = memory_alloc((count + 1) * sizeof *vectors);
    if (!vectors)
        return memory_failed("queries", count * sizeof *vectors);
    for (size_t i = 0; i < count; i++)
        vectors[i] = s->examples[first + i].sparse;
    sparse.vectors = vectors;
    sparse.modifier = s->target->idf ? WW_SPARSE_IDF : WW_SPARSE_PLAIN;
    query.sparse = &sparse;
    set_range(from, &query, count);
    const ww_status status = ww_collection_query(s->target->collection, &query, results);
    memory_free(vectors);
    return status;
}

/* Scores every row that the filter admits against some examples. */
static ww_status score_rows(const scoring *from, size_t first, size_t count, ww_results **results)
{
    const search *s = from->search;
    const size_t dim = (size_t)s->target->dim;
    if (s->target->sparse)
        return score_sparse(from, first, count, results);
    ww_query query = ww_query_default();
    float *vectors = memory_alloc((count * dim + 1) * sizeof *vectors);
    if (!vectors)
        return memory_failed("queries", count * dim * sizeof *vectors);
    for (size_t i = 0; i < count; i++)
        memcpy(vectors + i * dim, s->examples[first + i].vector, dim * sizeof *vectors);
    query.queries = vectors;
    set_range(from, &query, count);
    const ww_status status = ww_collection_query(s->target->collection, &query, results);
    memory_free(vectors);
    return status;
}

/* All rows, in the order of their handles, and room for the scores of some examples for each. */
typedef struct scored_rows {
    scored_row *rows;
    float *scores; /* EXAMPLES_AT_ONCE for each row */
    uint8_t *told; /* how many of them there are */
    int64_t count, capacity;
} scored_rows;

static void scored_rows_free(scored_rows *all)
{
    memory_free(all->rows);
    memory_free(all->scores);
    memory_free(all->told);
}

static int compare_handles(const void *first, const void *second)
{
    const scored_row *a = first, *b = second;
    return (a->handle > b->handle) - (a->handle < b->handle);
}

/* Makes the list from results with all rows. */
static ww_status scored_rows_make(scored_rows *all, const search *s, const ww_results *results)
{
    const int64_t count = ww_results_count(results, 0);
    const float none = s->kind == SEARCH_BEST_SCORE ? -INFINITY : 0;
    all->count = count;
    all->rows = memory_alloc((size_t)(count + 1) * sizeof *all->rows);
    all->scores = memory_alloc((size_t)(count + 1) * EXAMPLES_AT_ONCE * sizeof *all->scores);
    all->told = memory_alloc((size_t)count + 1);
    if (!all->rows || !all->scores || !all->told)
        return memory_failed("scores", (size_t)count * (sizeof *all->rows + EXAMPLES_AT_ONCE * sizeof *all->scores));
    for (int64_t i = 0; i < count; i++)
        all->rows[i] = (scored_row){ww_results_handles(results, 0)[i], none, none, 0};
    return job_sort(all->rows, (size_t)count, sizeof *all->rows, compare_handles);
}

/* The number of the row with a handle; -1: it was added meanwhile. Handles are mostly consecutive, so the guess mostly holds.
 */
static int64_t row_of(const scored_rows *all, int64_t handle)
{
    int64_t first = 0, end = all->count;
    const int64_t guess = all->count > 0 ? handle - all->rows[0].handle : -1;
    if (guess >= 0 && guess < all->count && all->rows[guess].handle == handle)
        return guess;
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        if (all->rows[middle].handle < handle)
            first = middle + 1;
        else
            end = middle;
    }
    return first < all->count && all->rows[first].handle == handle ? first : -1;
}

/* Adds the scores against `count` examples, from number `first` on, to all rows. */
static ww_status add_results(scored_rows *all, const search *s, const ww_results *results, size_t first, size_t count)
{
    ww_status status = WW_OK;
    memset(all->told, 0, (size_t)all->count);
    memset(all->scores, 0, (size_t)all->count * EXAMPLES_AT_ONCE * sizeof *all->scores);
    for (size_t k = 0; k < count; k++) {
        const int64_t hits = ww_results_count(results, (int64_t)k), *handles = ww_results_handles(results, (int64_t)k);
        const float *scores = ww_results_scores(results, (int64_t)k);
        for (int64_t i = 0; status == WW_OK && i < hits; i++) {
            const int64_t row = row_of(all, handles[i]);
            status = job_look(i);
            if (row < 0)
                continue;
            all->scores[(size_t)row * EXAMPLES_AT_ONCE + k] = s->target->metric == WW_L2 ? -(scores[i] * scores[i]) : scores[i];
            all->told[row]++;
        }
    }
    for (int64_t row = 0; status == WW_OK && row < all->count; row++)
        if (s->target->sparse || all->told[row] == count)
            add_scores(s, &all->rows[row], all->scores + (size_t)row * EXAMPLES_AT_ONCE, first, count);
    return status;
}

/* A row with its score. */
typedef struct best_row {
    const char *id;
    float score;
    int64_t number; /* of all rows, later of those that are fetched */
} best_row;

/* Compares by score, the best first. Ties are the rule here: every point on the positive side of a context has the same score.
 * Qdrant gives them from the last to the first. */
static int compare_scores(const void *first, const void *second)
{
    const best_row *a = first, *b = second;
    if (a->score != b->score)
        return (a->score < b->score) - (a->score > b->score);
    return (a->number < b->number) - (a->number > b->number);
}

/* Compares by score, the best first; ties by id. */
static int compare_by_id(const void *first, const void *second)
{
    const best_row *a = first, *b = second;
    if (a->score != b->score)
        return (a->score < b->score) - (a->score > b->score);
    return point_id_compare(a->id ? a->id : "", b->id ? b->id : "");
}

/* Takes the best of the rows; in a collection that orders ties by ids, with all that tie with the last of them. */
static ww_status best_rows(const search *s, const scored_rows *all, int64_t limit, best_row **best, int64_t *count)
{
    int64_t found = 0;
    best_row *made = memory_alloc((size_t)(all->count + 1) * sizeof *made);
    *best = made;
    if (!made)
        return memory_failed("hits", (size_t)all->count * sizeof *made);
    for (int64_t i = 0; i < all->count; i++)
        if (all->rows[i].scores == (int32_t)s->example_count)
            made[found++] = (best_row){NULL, final_score(s, &all->rows[i]), i};
    const ww_status status = job_sort(made, (size_t)found, sizeof *made, compare_scores);
    *count = found < limit ? found : limit;
    while (s->target->by_id && *count > 0 && *count < found && made[*count].score == made[*count - 1].score)
        ++*count;
    return status;
}

/* Fetches the ids of the best rows. */
static ww_status get_best(const search *s, const scored_rows *all, best_row *best, int64_t count, ww_results **named)
{
    int64_t *handles = memory_alloc((size_t)(count + 1) * sizeof *handles);
    ww_get get = ww_get_default();
    if (!handles)
        return memory_failed("handles", (size_t)count * sizeof *handles);
    for (int64_t i = 0; i < count; i++)
        handles[i] = all->rows[best[i].number].handle;
    get.handles = handles;
    get.count = count;
    get.fetch = WW_FETCH_IDS;
    get.cancel = job_cancel();
    ww_status status = ww_collection_get(s->target->collection, &get, named);
    memory_free(handles);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        best[i] = (best_row){ww_results_id(*named, 0, i), best[i].score, i};
    return status == WW_OK && s->target->by_id ? job_sort(best, (size_t)count, sizeof *best, compare_by_id) : status;
}

static ww_status take_best(const search *s, const scored_rows *all, int64_t limit, ww_results **results)
{
    int64_t count = 0, there = 0;
    best_row *best = NULL;
    ww_results *named = NULL;
    ww_status status = best_rows(s, all, limit, &best, &count);
    if (status == WW_OK)
        status = get_best(s, all, best, count, &named);
    ww_picked_hit *hits = memory_alloc((size_t)(count + 1) * sizeof *hits);
    if (status == WW_OK && !hits)
        status = memory_failed("hits", (size_t)count * sizeof *hits);
    for (int64_t i = 0; status == WW_OK && i < count && there < limit; i++)
        if (best[i].id) /* otherwise it was removed in the meantime */
            hits[there++] = (ww_picked_hit){named, 0, best[i].number, best[i].score};
    if (status == WW_OK)
        status = ww_results_pick(hits, there, results);
    ww_results_destroy(named);
    memory_free(best);
    memory_free(hits);
    return status;
}

/* What scores rows by Manhattan distance, piece by piece. */
typedef struct manhattan_scoring {
    const search *search;
    scored_rows *all;
} manhattan_scoring;

static ww_status score_manhattan(void *user, const ww_results *rows)
{
    const manhattan_scoring *m = user;
    const search *s = m->search;
    scored_rows *all = m->all;
    const int64_t count = ww_results_count(rows, 0), *handles = ww_results_handles(rows, 0);
    const float none = s->kind == SEARCH_BEST_SCORE ? -INFINITY : 0;
    float scores[EXAMPLES_MAX + 1];
    ww_status status = array_reserve(&all->rows, &all->capacity, all->count + count, sizeof *all->rows, "scores");
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        scored_row *row = &all->rows[all->count++];
        *row = (scored_row){handles[i], none, none, 0};
        for (size_t k = 0; k < s->example_count; k++)
            scores[k] = -(float)manhattan_distance(s->examples[k].vector, ww_results_vector(rows, 0, i), s->target->dim);
        add_scores(s, row, scores, 0, s->example_count);
        status = job_look(i);
    }
    return status;
}

/* Rows without a common index are in no results: so all rows are listed first. */
static ww_status list_all(const scoring *from, scored_rows *all)
{
    ww_selection rows = ww_selection_default();
    ww_results *results = NULL;
    rows.filter = from->filter;
    rows.cancel = job_cancel();
    ww_status status = ww_collection_select(from->search->target->collection, &rows, 0, &results);
    if (status == WW_OK)
        status = scored_rows_make(all, from->search, results);
    ww_results_destroy(results);
    return status;
}

/* Scores all rows against all examples, some at a time. */
static ww_status score_all(const scoring *from, scored_rows *all)
{
    const search *s = from->search;
    ww_status status = s->target->sparse ? list_all(from, all) : WW_OK;
    for (size_t first = 0, count; status == WW_OK && first < s->example_count; first += count) {
        /* after the target of a discovery pairs begin at odd numbers */
        const size_t rest = s->example_count - first, most = s->kind == SEARCH_DISCOVER && first == 0 ? 1 : EXAMPLES_AT_ONCE;
        ww_results *results = NULL;
        count = rest < most ? rest : most;
        status = score_rows(from, first, count, &results);
        if (status == WW_OK && first == 0 && !s->target->sparse)
            status = scored_rows_make(all, s, results);
        if (status == WW_OK)
            status = add_results(all, s, results, first, count);
        ww_results_destroy(results);
    }
    return status;
}

ww_status examples_find(const search *s, const ww_filter *filter, int64_t limit, ww_results **results)
{
    scored_rows all = {0};
    ww_status status = s->example_count == 0 ? ww_fail(WW_INVALID_ARGUMENT, "query: an example is needed") : WW_OK;
    if (status == WW_OK)
        status = s->target->manhattan ? manhattan_each(s->target, filter, score_manhattan, &(manhattan_scoring){s, &all})
                                      : score_all(&(scoring){s, filter}, &all);
    if (status == WW_OK)
        status = take_best(s, &all, limit, results);
    scored_rows_free(&all);
    return status;
}
