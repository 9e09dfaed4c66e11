/* Searches by examples: recommend, discover and context, with the scores that Qdrant defines for them. Each combines the scores
 * of a row against every example. Larger scores must be better, so distances are squared and negated. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/manhattan.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/search.h"
#include "server/work/documents.h"

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static bool reserve(request *r, search *s, size_t count)
{
    if (count > EXAMPLES_MAX)
        return request_fail(r, 400, "query: %zu examples; the maximum is %d", count, EXAMPLES_MAX);
    s->examples = memory_alloc_zeroed(count + 1, sizeof *s->examples);
    return s->examples ? true : request_fail_status(r, memory_failed("examples", count * sizeof *s->examples));
}

/* Reads a text that a model embeds. */
static bool read_document(request *r, const char *value, search_example *x)
{
    x->dim = document_add(r, value, &x->vector, 0);
    if (x->dim < 0)
        return false;
    x->vector = memory_alloc_zeroed((size_t)x->dim, sizeof *x->vector);
    return x->vector ? true : request_fail_status(r, memory_failed("a query", (size_t)x->dim * sizeof *x->vector));
}

/* Adds a vector, the id of a point, or a text. The caller has made room. */
static bool add_example(request *r, const char *value, bool negative, search *s)
{
    search_example *x = &s->examples[s->example_count++];
    x->negative = negative;
    if (value && (json_type_of(value) == JSON_LIST || json_given(value, "indices")))
        return point_vector_read(r, value, "query", &x->vector, &x->dim);
    if (is_document(value))
        return read_document(r, value, x);
    if (value && point_id_read(value, x->id))
        return true;
    return request_fail(r, 400, "query: a list of numbers, an unsigned number of 64 bits or a UUID is needed");
}

static bool read_words(request *r, const char *value, search *s)
{
    s->kind = SEARCH_WORDS;
    if (s->limit + s->offset > WW_K_MAX)
        return request_fail(r, 400, "limit: limit and offset of a search by words are %d together at most", WW_K_MAX);
    const char *text = json_given(value, "text");
    if (text && json_end(text) - text > MATCH_TEXT_BYTES_MAX)
        return request_fail(r, 400, "query.text: has more than %d bytes", MATCH_TEXT_BYTES_MAX);
    s->words = request_copy_text(r, text, "query.text");
    return s->words != NULL;
}

bool search_read_nearest(request *r, const char *value, search *s)
{
    if (is_words(value))
        return read_words(r, value, s);
    if (is_sparse(value)) {
        s->kind = SEARCH_SPARSE;
        return sparse_value_read(r, value, "query", &s->sparse);
    }
    if (is_multi(value)) {
        s->kind = SEARCH_MULTI;
        return multi_value_read(r, value, "query", &s->multi);
    }
    s->kind = SEARCH_NEAREST;
    return reserve(r, s, 1) && add_example(r, value, false, s);
}

static size_t count_elements(const char *list)
{
    size_t count = 0;
    for (const char *at = list && json_type_of(list) == JSON_LIST ? json_first(list) : NULL; at; at = json_next(at))
        count++;
    return count;
}

static bool add_examples(request *r, const char *list, bool negative, search *s)
{
    if (list && json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "query.recommend.%s: a list is needed", negative ? "negative" : "positive");
    for (const char *at = list ? json_first(list) : NULL; at; at = json_next(at))
        if (!add_example(r, at, negative, s))
            return false;
    return true;
}

bool search_read_recommend(request *r, const char *value, search *s)
{
    static const struct {
        const char *name;
        search_kind kind;
    } STRATEGIES[] = {{"average_vector", SEARCH_NEAREST}, {"best_score", SEARCH_BEST_SCORE}, {"sum_scores", SEARCH_SUM_SCORES}};
    const char *positive = json_given(value, "positive"), *negative = json_given(value, "negative");
    const char *strategy = json_given(value, "strategy");
    bool known = !strategy;
    s->kind = SEARCH_NEAREST;
    for (size_t i = 0; strategy && json_type_of(strategy) == JSON_TEXT && i < sizeof STRATEGIES / sizeof *STRATEGIES; i++)
        if (json_text_is(strategy, STRATEGIES[i].name, strlen(STRATEGIES[i].name))) {
            s->kind = STRATEGIES[i].kind;
            known = true;
        }
    if (!known)
        return request_fail(r, 400, "query.recommend.strategy: average_vector, best_score or sum_scores is needed");
    if (count_elements(positive) + (s->kind == SEARCH_NEAREST ? 0 : count_elements(negative)) == 0)
        return request_fail(r, 400, "query.recommend: %s",
                            s->kind == SEARCH_NEAREST ? "a positive example is needed" : "an example is needed");
    return reserve(r, s, count_elements(positive) + count_elements(negative)) && add_examples(r, positive, false, s) &&
           add_examples(r, negative, true, s);
}

/* Reads {"positive": ..., "negative": ...}, or a list of such pairs, after `target` if there is one. */
static bool read_pairs(request *r, const char *target, const char *pairs, search *s)
{
    const bool list = pairs && json_type_of(pairs) == JSON_LIST;
    if (!reserve(r, s, 1 + 2 * (list ? count_elements(pairs) : 1)) || (target && !add_example(r, target, false, s)))
        return false;
    for (const char *at = list ? json_first(pairs) : pairs; at; at = list ? json_next(at) : NULL) {
        if (json_type_of(at) != JSON_OBJECT)
            return request_fail(r, 400, "query: a pair is {\"positive\": ..., \"negative\": ...}");
        if (!add_example(r, json_given(at, "positive"), false, s) || !add_example(r, json_given(at, "negative"), true, s))
            return false;
    }
    return true;
}

bool search_read_discover(request *r, const char *value, search *s)
{
    const char *target = json_given(value, "target");
    s->kind = SEARCH_DISCOVER;
    if (!target)
        return request_fail(r, 400, "query.discover.target: is needed");
    return read_pairs(r, target, json_given(value, "context"), s);
}

bool search_read_context(request *r, const char *value, search *s)
{
    s->kind = SEARCH_CONTEXT;
    return read_pairs(r, NULL, value, s);
}

bool search_read_lookup(request *r, const char *value, search *s)
{
    const char *collection = json_given(value, "collection"), *vector = json_given(value, "vector");
    s->lookup.has_vector = vector != NULL;
    if (!collection || json_type_of(collection) != JSON_TEXT ||
        (size_t)(json_end(collection) - collection) > sizeof s->lookup.collection ||
        !vector_name_read(vector, s->lookup.vector))
        return request_fail(r, 400,
                            "lookup_from: the name of a collection is needed, and that of a vector if vectors have names");
    s->lookup.collection[json_text_read(collection, s->lookup.collection)] = '\0';
    return access_lookup(r, s->lookup.collection);
}

/* ---- vectors ------------------------------------------------------------------------------------------------------------- */

bool example_is(const search *s, const char *id)
{
    for (size_t i = 0; s->excludes_examples && i < s->example_count; i++)
        if (strcmp(s->examples[i].id, id) == 0)
            return true;
    return false;
}

/* Vectors of a cosine collection count as vectors of length 1. */
static void normalize(float *vector, int32_t dim)
{
    double sum = 0;
    for (int32_t i = 0; i < dim; i++)
        sum += (double)vector[i] * (double)vector[i];
    for (int32_t i = 0; sum > 0 && i < dim; i++)
        vector[i] = (float)((double)vector[i] / sqrt(sum));
}

/* Fetches a point's vector. The node that asks for a part has sent it, because the point may be of another shard. */
static ww_status get_vector(const entry *from, search_example *x, const search *s)
{
    ww_results *found = NULL;
    const size_t bytes = (size_t)from->dim * sizeof *x->vector;
    const ww_filter *seen = s->excludes_examples ? s->filter.always : NULL; /* another collection is seen as a whole */
    ww_status status = x->vector ? WW_OK : point_get(from, x->id, seen, WW_FETCH_VECTORS, &found);
    if (status == WW_OK && !x->vector) {
        x->vector = memory_alloc(bytes);
        x->dim = from->dim;
        status = x->vector ? WW_OK : memory_failed("a query", bytes);
        if (status == WW_OK)
            memcpy(x->vector, ww_results_vector(found, 0, 0), bytes);
    }
    if (status == WW_OK && s->example_count > 1 && from->metric == WW_COSINE)
        normalize(x->vector, (int32_t)x->dim);
    ww_results_destroy(found);
    return status;
}

/* The mean of the positive examples, moved away from the mean of the negative ones by their difference. */
static ww_status average(search *s)
{
    const size_t dim = (size_t)s->target->dim;
    size_t positive = 0;
    for (size_t k = 0; k < s->example_count; k++)
        positive += !s->examples[k].negative;
    if (s->example_count == 1) {
        s->vector = s->examples[0].vector;
        s->examples[0].vector = NULL;
        return WW_OK;
    }
    s->vector = memory_alloc(dim * sizeof *s->vector);
    if (!s->vector)
        return memory_failed("a query", dim * sizeof *s->vector);
    for (size_t i = 0; i < dim; i++) {
        double sums[2] = {0, 0};
        for (size_t k = 0; k < s->example_count; k++)
            sums[s->examples[k].negative] += (double)s->examples[k].vector[i];
        const double mean = sums[0] / (double)positive, other = sums[1] / (double)(s->example_count - positive);
        s->vector[i] = (float)(positive < s->example_count ? mean + mean - other : mean);
    }
    return WW_OK;
}

ww_status examples_resolve(const entry *e, search *s)
{
    server *owner = e->queue.server;
    entry *other = s->lookup.collection[0] != '\0' ? entry_open(owner, s->lookup.collection) : NULL;
    const entry *from = s->lookup.collection[0] != '\0' ? other : e;
    const entry *part = from ? entry_part(from, s->lookup.has_vector ? s->lookup.vector : s->using) : NULL;
    ww_status status = WW_OK;
    s->excludes_examples = from == e;
    for (size_t i = 0; status == WW_OK && i < s->example_count; i++) {
        search_example *x = &s->examples[i];
        if (x->id[0] != '\0') {
            if (!from)
                status = ww_fail(WW_NOT_FOUND, "Not found: Collection `%s` doesn't exist!", s->lookup.collection);
            else
                status = part ? get_vector(part, x, s)
                              : ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s",
                                        s->lookup.has_vector ? s->lookup.vector : s->using);
        }
        if (status == WW_OK && x->dim != s->target->dim)
            status = ww_fail(WW_DIMENSION_MISMATCH, "Wrong input: Vector dimension error: expected dim: %d, got %lld",
                             (int)s->target->dim, (long long)x->dim);
    }
    if (other)
        entry_release(owner, other);
    return status == WW_OK && s->kind == SEARCH_NEAREST ? average(s) : status;
}

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

/* Scores every row that the filter admits against some examples. */
static ww_status score_rows(const search *s, size_t first, size_t count, ww_results **results)
{
    const entry *e = s->target;
    const size_t dim = (size_t)e->dim;
    float *vectors = memory_alloc((count * dim + 1) * sizeof *vectors);
    if (!vectors)
        return memory_failed("queries", count * dim * sizeof *vectors);
    for (size_t i = 0; i < count; i++)
        memcpy(vectors + i * dim, s->examples[first + i].vector, dim * sizeof *vectors);
    ww_query query = ww_query_default();
    query.cancel = job_cancel();
    query.queries = vectors;
    query.query_count = (int64_t)count;
    query.dim = e->dim;
    query.filter = s->filter.filter;
    query.mode = WW_QUERY_RANGE;
    query.bound = e->metric == WW_L2 ? INFINITY : -INFINITY;
    query.limit = WW_ROWS_MAX;
    const ww_status status = ww_collection_query(e->collection, &query, results);
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

/* Makes the list from the results of the first examples. */
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
        if (all->told[row] == count)
            add_scores(s, &all->rows[row], all->scores + (size_t)row * EXAMPLES_AT_ONCE, first, count);
    return status;
}

/* Compares by score, the best first. Ties are the rule here: every point on the positive side of a context has the same score.
 * Qdrant gives them from the last to the first. */
static int compare_found_scores(const void *first, const void *second)
{
    const found_point *a = first, *b = second;
    if (a->score != b->score)
        return (a->score < b->score) - (a->score > b->score);
    return (a->hit < b->hit) - (a->hit > b->hit);
}

/* Takes the best of the rows: more than are wanted by the number of examples, some of which may be among them. */
static ww_status best_rows(const search *s, const scored_rows *all, found_point **best, int64_t *count)
{
    int64_t found = 0;
    found_point *made = memory_alloc((size_t)(all->count + 1) * sizeof *made);
    if (!made)
        return memory_failed("hits", (size_t)all->count * sizeof *made);
    for (int64_t i = 0; i < all->count; i++) {
        const double score = (double)final_score(s, &all->rows[i]);
        if (all->rows[i].scores == (int32_t)s->example_count && score_is_within(s, score))
            made[found++] = (found_point){.score = score, .hit = i};
    }
    const ww_status status = job_sort(made, (size_t)found, sizeof *made, compare_found_scores);
    const int64_t wanted = s->limit + s->offset + (int64_t)s->example_count;
    *best = made;
    *count = found < wanted ? found : wanted;
    while (s->target->by_id && *count > 0 && *count < found && made[*count].score == made[*count - 1].score)
        ++*count;
    return status;
}

/* Compares by score, the best first; ties by id. */
static int compare_by_id(const void *first, const void *second)
{
    const found_point *a = first, *b = second;
    if (a->score != b->score)
        return (a->score < b->score) - (a->score > b->score);
    return point_id_compare(a->id ? a->id : "", b->id ? b->id : "");
}

/* Finds the ids of the best rows, and leaves out the examples. */
static ww_status take_best(search *s, const scored_rows *all, kept_results *kept)
{
    int64_t count = 0, passed = 0;
    ww_results *named = NULL;
    ww_get get = ww_get_default();
    ww_status status = best_rows(s, all, &s->found, &count);
    int64_t *handles = status == WW_OK ? memory_alloc((size_t)(count + 1) * sizeof *handles) : NULL;
    if (status == WW_OK && !handles)
        status = memory_failed("handles", (size_t)count * sizeof *handles);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        handles[i] = all->rows[s->found[i].hit].handle;
    get.handles = handles;
    get.count = count;
    get.fetch = WW_FETCH_IDS;
    get.cancel = job_cancel();
    if (status == WW_OK)
        status = ww_collection_get(s->target->collection, &get, &named);
    memory_free(handles);
    if (status == WW_OK)
        status = kept_add(kept, named);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        s->found[i] = (found_point){ww_results_id(named, 0, i), s->found[i].score, named, 0, i, 0};
    if (status == WW_OK && s->target->by_id)
        status = job_sort(s->found, (size_t)count, sizeof *s->found, compare_by_id);
    for (int64_t i = 0; status == WW_OK && i < count && s->found_count < s->limit; i++) {
        const char *id = s->found[i].id;
        if (id && !example_is(s, id) && passed++ >= s->offset)
            s->found[s->found_count++] = s->found[i];
    }
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

ww_status examples_score(search *s, kept_results *kept)
{
    scored_rows all = {0};
    ww_status status = s->example_count == 0 ? ww_fail(WW_INVALID_ARGUMENT, "query: an example is needed") : WW_OK;
    const bool manhattan = s->target->manhattan;
    if (status == WW_OK && manhattan)
        status = manhattan_each(s->target, s->filter.filter, score_manhattan, &(manhattan_scoring){s, &all});
    for (size_t first = 0, count; status == WW_OK && !manhattan && first < s->example_count; first += count) {
        /* after the target of a discovery pairs begin at odd numbers */
        const size_t rest = s->example_count - first, most = s->kind == SEARCH_DISCOVER && first == 0 ? 1 : EXAMPLES_AT_ONCE;
        ww_results *results = NULL;
        count = rest < most ? rest : most;
        status = score_rows(s, first, count, &results);
        if (status == WW_OK && first == 0)
            status = scored_rows_make(&all, s, results);
        if (status == WW_OK)
            status = add_results(&all, s, results, first, count);
        ww_results_destroy(results);
    }
    if (status == WW_OK)
        status = take_best(s, &all, kept);
    scored_rows_free(&all);
    return status;
}
