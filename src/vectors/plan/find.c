/* Stages that search: a query or a search of the caller's own, of all rows or of those of earlier stages; and the trimming that
 * every stage ends with. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/sort.h"
#include "vectors/collection.h"
#include "vectors/plan/plan.h"

/* ---- one search ---------------------------------------------------------------------------------------------------------- */

/* Questions `first` to `first + count - 1` of a stage. */
typedef struct asking {
    int64_t first, count;
    const ww_filter *filter;
    int64_t depth;
} asking;

/* The number of hits that a stage may have to look at. */
static int64_t wanted_of(const ww_stage *stage)
{
    if (stage->limit == 0)
        return WW_ROWS_MAX;
    return min_i64(min_i64(stage->limit, WW_ROWS_MAX) + min_i64(stage->offset, WW_ROWS_MAX) + stage->exclude_count,
                   WW_ROWS_MAX);
}

/* Asks for `depth` hits: the nearest, or above WW_K_MAX the best of all rows. */
static void set_depth(const stage_run *s, ww_query *query, int64_t depth)
{
    if (depth <= WW_K_MAX || query->match) {
        query->k = (int32_t)min_i64(depth, WW_K_MAX);
        return;
    }
    query->mode = WW_QUERY_RANGE;
    query->bound = s->smaller ? INFINITY : -INFINITY;
    query->limit = depth;
    query->nprobe = 0;
    query->recall = 0.0f;
}

static void add_stats(ww_stage_report *report, const ww_search_stats *stats)
{
    report->rows_screened += stats->rows_screened;
    report->rows_kept += stats->rows_kept;
    report->rows_scored += stats->rows_scored;
    report->lists_read += stats->lists_read;
    report->list_bytes_read += stats->list_bytes_read;
    report->certificate = fminf(report->certificate, stats->certificate);
}

static ww_status ask_query(const plan_run *p, stage_run *s, const asking *a, ww_results **found)
{
    ww_search_stats stats = ww_search_stats_default();
    ww_query query = s->how.query;
    ww_sparse_query sparse = s->sparse;
    ww_multi_query multi = s->multi;
    ww_match match = s->match;
    if (query.query_tensor && a->count < p->plan.question_count)
        return ww_fail(WW_UNSUPPORTED,
                       "ww_plan_run: stage %d: a query_tensor of several questions cannot search among inputs "
                       "or order ties by id; give queries in host memory",
                       s->number);
    if (query.queries)
        query.queries += a->first * (query.query_stride > 0 ? query.query_stride : query.dim);
    if (query.sparse) {
        sparse.vectors += a->first;
        query.sparse = &sparse;
    }
    if (query.multi) {
        multi.vectors += a->first;
        query.multi = &multi;
    }
    if (query.match) {
        match.texts += a->first;
        query.match = &match;
    }
    query.query_count = a->count;
    query.filter = a->filter;
    query.fetch = WW_FETCH_IDS | s->fetched;
    query.stats = &stats;
    query.cancel = p->plan.cancel;
    set_depth(s, &query, a->depth);
    const ww_status status = ww_collection_query(s->home, &query, found);
    if (status == WW_OK)
        add_stats(&s->report, &stats);
    return status;
}

static ww_status ask(const plan_run *p, stage_run *s, const asking *a, ww_results **found)
{
    const ww_finder *finder = &s->how.finder;
    *found = NULL;
    if (s->stage.query)
        return ask_query(p, s, a, found);
    const ww_status status = finder->find(finder->user, a->first, a->filter, a->depth, found);
    if (status != WW_OK)
        return status;
    if (!*found || ww_results_query_count(*found) != 1 || (results_hits(*found) > 0 && !(*found)->ids))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_plan_run: stage %d: the finder must make results of one query, with ids",
                       s->number);
    return WW_OK;
}

/* ---- ties ---------------------------------------------------------------------------------------------------------------- */

/* Are hits of equal score ordered by their ids here? Not with an index that does not read every row. */
static bool orders_ties(const plan_run *p, const stage_run *s)
{
    if (!p->plan.ties_by_id)
        return false;
    return s->stage.query ? s->how.query.nprobe == 0 && !(s->how.query.recall > 0.0f) : !s->how.finder.in_order;
}

/* May there be more rows with the score of the last hit that is wanted? */
static bool cuts_ties(const stage_run *s, const found_list *list, int64_t depth)
{
    const int64_t count = ww_results_count(list->results, list->query), wanted = wanted_of(&s->stage);
    const float *scores = ww_results_scores(list->results, list->query);
    const int64_t most = s->stage.query && s->how.query.match ? WW_K_MAX : WW_ROWS_MAX;
    return depth < most && count == depth && wanted <= count && wanted > 0 && scores[count - 1] == scores[wanted - 1];
}

/* Asks for more hits until those that tie with the last one are all there. */
static ww_status complete_ties(const plan_run *p, stage_run *s, asking *a, found_list *list)
{
    ww_status status = WW_OK;
    while (status == WW_OK && orders_ties(p, s) && cuts_ties(s, list, a->depth)) {
        if (list->owned)
            ww_results_destroy(list->results);
        *list = (found_list){.owned = true};
        a->depth = a->depth < WW_ROWS_MAX / 4 ? 4 * a->depth : WW_ROWS_MAX;
        if (s->stage.query && s->how.query.match)
            a->depth = min_i64(a->depth, WW_K_MAX);
        status = ask(p, s, a, &list->results);
    }
    return status;
}

/* ---- the stage ----------------------------------------------------------------------------------------------------------- */

/* The filter of a stage with inputs: the rows of these that its own filter admits. */
static ww_status filter_among(const plan_run *p, stage_run *s, int64_t question, const ww_filter *own, ww_filter **among)
{
    merged_rows merged = {0};
    ww_status status = merged_rows_make(p, s, question, &merged);
    s->report.rows_in += merged.count;
    if (status == WW_OK)
        status = ww_filter_create(among);
    if (status == WW_OK)
        status = ww_filter_add_ids(*among, merged.ids, merged.count);
    if (status == WW_OK)
        status = ww_filter_add_filter(*among, own);
    merged_rows_free(&merged);
    return status;
}

static ww_status find_one(const plan_run *p, stage_run *s, asking *a, found_list *list)
{
    const ww_filter *own = a->filter;
    ww_filter *among = NULL;
    ww_status status = s->stage.input_count > 0 ? filter_among(p, s, a->first, own, &among) : WW_OK;
    if (status == WW_OK) {
        a->filter = among ? among : own;
        list->owned = true;
        status = ask(p, s, a, &list->results);
    }
    if (status == WW_OK)
        status = complete_ties(p, s, a, list);
    ww_filter_destroy(among);
    return status;
}

ww_status stage_find(const plan_run *p, stage_run *s, found_list *lists)
{
    const int64_t questions = p->plan.question_count;
    const ww_filter *own = s->stage.query ? s->how.query.filter : s->how.finder.filter;
    const int64_t depth = min_i64(wanted_of(&s->stage) + orders_ties(p, s), WW_ROWS_MAX);
    const bool together = s->stage.query && s->stage.input_count == 0;
    ww_status status = WW_OK;
    s->report.certificate = INFINITY;
    if (together && questions > 0) {
        lists[questions].owned = true;
        status = ask(p, s, &(asking){0, questions, own, depth}, &lists[questions].results);
        for (int64_t q = 0; status == WW_OK && q < questions; q++)
            lists[q] = (found_list){lists[questions].results, q, false};
    }
    for (int64_t q = 0; status == WW_OK && q < questions; q++) {
        asking a = {q, 1, own, depth};
        status = together ? complete_ties(p, s, &a, &lists[q]) : find_one(p, s, &a, &lists[q]);
    }
    return status;
}

/* ---- trimming ------------------------------------------------------------------------------------------------------------ */

/* Numbers first, in their order; other ids by their bytes. */
static int compare_ids(const char *a, const char *b)
{
    const size_t digits_a = strspn(a, "0123456789"), digits_b = strspn(b, "0123456789");
    const bool number_a = digits_a > 0 && a[digits_a] == '\0', number_b = digits_b > 0 && b[digits_b] == '\0';
    if (number_a != number_b)
        return number_a ? -1 : 1;
    if (number_a) {
        const char *from_a = a + strspn(a, "0"), *from_b = b + strspn(b, "0");
        const size_t length_a = strlen(from_a), length_b = strlen(from_b);
        if (length_a != length_b)
            return length_a < length_b ? -1 : 1;
        const int order = strcmp(from_a, from_b);
        if (order != 0)
            return order;
    }
    return strcmp(a, b);
}

static const char *id_of(const ww_results *r, int64_t hit)
{
    return r->ids && r->ids[hit] >= 0 ? r->text + r->ids[hit] : "";
}

static int by_id(const void *first, const void *second)
{
    const picked_hit *a = first, *b = second;
    const int order = compare_ids(id_of(a->from, a->hit), id_of(b->from, b->hit));
    return order != 0 ? order : (a->hit > b->hit) - (a->hit < b->hit);
}

static ww_status sort_ties(picked_hit *hits, int64_t count)
{
    ww_status status = WW_OK;
    for (int64_t first = 0, end; status == WW_OK && first < count; first = end) {
        for (end = first + 1; end < count && hits[end].score == hits[first].score;)
            end++;
        if (end > first + 1)
            status = sort_elements(hits + first, (size_t)(end - first), sizeof *hits, by_id);
    }
    return status;
}

static bool is_worse(const stage_run *s, float score)
{
    if (!s->stage.has_threshold)
        return false;
    return s->smaller ? (double)score > s->stage.threshold : (double)score < s->stage.threshold;
}

static bool is_excluded(const stage_run *s, const char *id)
{
    for (int64_t i = 0; i < s->stage.exclude_count; i++)
        if (strcmp(s->stage.exclude[i], id) == 0)
            return true;
    return false;
}

/* Keeps the hits of one question that the stage asks for. Returns their number. */
static int64_t trim_hits(stage_run *s, picked_hit *hits, int64_t count)
{
    ww_stage_report *report = &s->report;
    int64_t kept = 0, skipped = 0;
    for (int64_t i = 0; i < count; i++) {
        if (is_worse(s, hits[i].score))
            report->rows_worse++;
        else if (is_excluded(s, id_of(hits[i].from, hits[i].hit)))
            report->rows_excluded++;
        else if (skipped < s->stage.offset)
            skipped++;
        else if (s->stage.limit == 0 || kept < s->stage.limit)
            hits[kept++] = hits[i];
    }
    report->rows_found += count;
    report->rows_skipped += skipped;
    report->hits += kept;
    return kept;
}

/* The hits that are kept are still the nearest in order, as far as they were proven. */
static void keep_proven(ww_results *made, const found_list *lists, const picked_hit *picked)
{
    for (int64_t q = 0; q < made->query_count; q++) {
        const ww_results *from = lists[q].results;
        const int64_t end = from->starts[lists[q].query] + ww_results_proven(from, lists[q].query);
        while (made->starts[q] + made->proven[q] < made->starts[q + 1] && picked[made->starts[q] + made->proven[q]].hit < end)
            made->proven[q]++;
    }
}

ww_status stage_trim(const plan_run *p, stage_run *s, const found_list *lists)
{
    const int64_t questions = p->plan.question_count;
    const bool ties = (s->stage.query || s->stage.finder) && orders_ties(p, s);
    int64_t room = 0, *starts = NULL;
    picked_hit *picked = NULL;
    bool same = !ties && questions > 0;
    for (int64_t q = 0; q < questions; q++) {
        room += ww_results_count(lists[q].results, lists[q].query);
        same = same && lists[q].results == lists[0].results;
    }
    ww_status status = picked_create(questions, room, &starts, &picked);
    for (int64_t q = 0; status == WW_OK && q < questions; q++) {
        const ww_results *from = lists[q].results;
        const int64_t count = ww_results_count(from, lists[q].query);
        picked_hit *own = picked + starts[q];
        for (int64_t i = 0; i < count; i++) {
            const int64_t hit = from->starts[lists[q].query] + i;
            own[i] = (picked_hit){from, hit, from->scores[hit]};
        }
        status = ties ? sort_ties(own, count) : WW_OK;
        starts[q + 1] = status == WW_OK ? starts[q] + trim_hits(s, own, count) : 0;
    }
    /* Nothing was left out: the results of the search are those of the stage, with what is known to be proven. */
    if (status == WW_OK && !(same && starts[questions] == results_hits(lists[0].results)))
        status = results_pick(&(picked_hits){questions, starts, picked}, &s->results);
    if (status == WW_OK && s->results && s->results->proven && s->stage.query && !ties)
        keep_proven(s->results, lists, picked);
    memory_free(starts);
    memory_free(picked);
    return status;
}
