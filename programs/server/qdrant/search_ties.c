/* Rows of equal score in the order of their ids.
 *
 * A collection orders them by when they arrived, which differs between servers that follow the same table. So for a followed
 * collection a search looks at one hit more than it needs; if that one has the last hit's score, it lists all rows with this
 * score, and takes those with the smallest ids. */
#include "base/memory.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/search.h"

typedef struct tied_hit {
    const char *id;
    int64_t hit;
} tied_hit;

static int compare_tied(const void *first, const void *second)
{
    const tied_hit *a = first, *b = second;
    return point_id_compare(a->id ? a->id : "", b->id ? b->id : "");
}

/* Finds all rows that are at least as good as `bound`. Only their ids are fetched, because there may be many. */
static ww_status list_ties(search *s, kept_results *kept, float bound)
{
    ww_results *results = NULL;
    ww_query query = ww_query_default();
    query.cancel = job_cancel();
    query.queries = s->vector;
    query.query_count = 1;
    query.dim = s->target->dim;
    query.filter = s->filter.filter;
    query.fetch = WW_FETCH_IDS;
    query.mode = WW_QUERY_RANGE;
    query.bound = bound;
    query.limit = WW_ROWS_MAX;
    ww_status status = ww_collection_query(s->target->collection, &query, &results);
    if (status == WW_OK)
        status = kept_add(kept, results);
    if (status != WW_OK)
        return status;
    s->results = results;
    s->query = 0;
    s->only_ids = true;
    return WW_OK;
}

/* Sorts a run of hits with the same score. */
static ww_status sort_run(const search *s, tied_hit *run, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        run[i] = (tied_hit){ww_results_id(s->results, s->query, first + i), first + i};
    return count > 1 ? job_sort(run, (size_t)count, sizeof *run, compare_tied) : WW_OK;
}

ww_status ties_order(search *s, kept_results *kept, int64_t **order)
{
    const int64_t depth = search_depth(s);
    ww_status status = WW_OK;
    *order = NULL;
    if (s->diverse || s->kind == SEARCH_RRF ||
        s->kind == SEARCH_DBSF) /* in an order of their own, of lists that are in order */
        return WW_OK;
    const float *scores = ww_results_scores(s->results, s->query);
    if (s->vector && s->nprobe == 0 && s->recall == 0 && depth > 0 && ww_results_count(s->results, s->query) > depth &&
        scores[depth - 1] == scores[depth])
        status = list_ties(s, kept, scores[depth]);
    if (status != WW_OK)
        return status;
    const int64_t count = ww_results_count(s->results, s->query);
    scores = ww_results_scores(s->results, s->query);
    tied_hit *run = memory_alloc((size_t)(count + 1) * sizeof *run);
    int64_t *made = memory_alloc((size_t)(count + 1) * sizeof *made);
    if (!run || !made)
        status = memory_failed("hits", (size_t)count * (sizeof *run + sizeof *made));
    for (int64_t first = 0, end; status == WW_OK && first < count; first = end) {
        for (end = first + 1; end < count && scores[end] == scores[first];)
            end++;
        status = sort_run(s, run, first, end - first);
        for (int64_t i = first; status == WW_OK && i < end; i++)
            made[i] = run[i - first].hit;
    }
    memory_free(run);
    if (status == WW_OK)
        *order = made;
    else
        memory_free(made);
    return status;
}
