/* Searches by examples: recommend, discover and context, with the scores that Qdrant defines for them. Each combines the scores
 * of a row against every example. Larger scores must be better, so distances are squared and negated. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/openai/documents.h"
#include "server/qdrant/search.h"

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static bool reserve(request *r, search *s, size_t count)
{
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
    s->words = request_copy_text(r, json_given(value, "text"), "query.text");
    return s->words != NULL;
}

bool search_read_nearest(request *r, const char *value, search *s)
{
    if (is_words(value))
        return read_words(r, value, s);
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
    return true;
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

static ww_status get_vector(const entry *from, search_example *x, bool several)
{
    const char *id = x->id;
    ww_results *found = NULL;
    const size_t bytes = (size_t)from->dim * sizeof *x->vector;
    ww_status status = points_get(from, &id, 1, WW_FETCH_IDS | WW_FETCH_VECTORS, &found);
    if (status == WW_OK && !ww_results_id(found, 0, 0))
        status = ww_fail(WW_NOT_FOUND, "Not found: No point with id %s found", id);
    x->vector = status == WW_OK ? memory_alloc(bytes) : NULL;
    if (status == WW_OK && !x->vector)
        status = memory_failed("a query", bytes);
    if (status == WW_OK) {
        memcpy(x->vector, ww_results_vector(found, 0, 0), bytes);
        x->dim = from->dim;
        if (several && from->metric == WW_COSINE)
            normalize(x->vector, from->dim);
    }
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
                status = part ? get_vector(part, x, s->example_count > 1)
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

static float best_score(const search *s, const float *scores)
{
    float best[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < s->example_count; i++)
        best[s->examples[i].negative] = fmaxf(best[s->examples[i].negative], scores[i]);
    return best[0] > best[1] ? scaled_sigmoid(best[0]) : -scaled_sigmoid(best[1]);
}

static float sum_scores(const search *s, const float *scores)
{
    float sums[2] = {0, 0};
    for (size_t i = 0; i < s->example_count; i++)
        sums[s->examples[i].negative] += scores[i];
    return sums[0] - sums[1];
}

/* The number of pairs with the row on their positive side minus the others; then the target decides. */
static float discover_score(const search *s, const float *scores)
{
    int rank = 0;
    for (size_t i = 1; i + 1 < s->example_count; i += 2)
        rank += (scores[i] > scores[i + 1]) - (scores[i] < scores[i + 1]);
    return (float)rank + scaled_sigmoid(scores[0]);
}

static float context_score(const search *s, const float *scores)
{
    float sum = 0;
    for (size_t i = 0; i + 1 < s->example_count; i += 2)
        sum += sigmoid(fminf(scores[i] - scores[i + 1] - 1.1920929e-7F, 0));
    return sum;
}

static float combine(const search *s, const float *scores)
{
    return s->kind == SEARCH_BEST_SCORE   ? best_score(s, scores)
           : s->kind == SEARCH_SUM_SCORES ? sum_scores(s, scores)
           : s->kind == SEARCH_DISCOVER   ? discover_score(s, scores)
                                          : context_score(s, scores);
}

/* Scores every row that the filter admits against every example. */
static ww_status score_rows(const search *s, ww_results **results)
{
    const entry *e = s->target;
    const size_t dim = (size_t)e->dim;
    float *vectors = memory_alloc((s->example_count * dim + 1) * sizeof *vectors);
    if (!vectors)
        return memory_failed("queries", s->example_count * dim * sizeof *vectors);
    for (size_t i = 0; i < s->example_count; i++)
        memcpy(vectors + i * dim, s->examples[i].vector, dim * sizeof *vectors);
    ww_query query = ww_query_default();
    query.queries = vectors;
    query.query_count = (int64_t)s->example_count;
    query.dim = e->dim;
    query.filter = s->filter.filter;
    query.fetch = WW_FETCH_IDS;
    query.mode = WW_QUERY_RANGE;
    query.bound = e->metric == WW_L2 ? INFINITY : -INFINITY;
    query.limit = WW_ROWS_MAX;
    const ww_status status = ww_collection_query(e->collection, &query, results);
    memory_free(vectors);
    return status;
}

typedef struct scored_row {
    int64_t handle, hit;
    float score;
} scored_row;

static int compare_handles(const void *first, const void *second)
{
    const scored_row *a = first, *b = second;
    return (a->handle > b->handle) - (a->handle < b->handle);
}

/* Sorts the scores by the rows' handles, one per example for each row, and gives the hits of the first example in that
 * order. */
static void arrange(const search *s, const ww_results *results, scored_row *rows, float *scores, int64_t *hits)
{
    const int64_t count = ww_results_count(results, 0);
    for (size_t k = 0; k < s->example_count; k++) {
        for (int64_t i = 0; i < count; i++)
            rows[i] = (scored_row){ww_results_handles(results, (int64_t)k)[i], i, ww_results_scores(results, (int64_t)k)[i]};
        qsort(rows, (size_t)count, sizeof *rows, compare_handles);
        for (int64_t i = 0; i < count; i++) {
            const float score = rows[i].score;
            scores[(size_t)i * s->example_count + k] = s->target->metric == WW_L2 ? -(score * score) : score;
            hits[i] = k == 0 ? rows[i].hit : hits[i];
        }
    }
}

/* Takes the best of the rows, which are in the order of handles. */
static ww_status take_best(search *s, const ww_results *results, const float *scores, const int64_t *hits)
{
    const int64_t count = ww_results_count(results, 0);
    int64_t found = 0;
    s->found = memory_alloc((size_t)(count + 1) * sizeof *s->found);
    if (!s->found)
        return memory_failed("hits", (size_t)count * sizeof *s->found);
    for (int64_t i = 0; i < count; i++) {
        const char *id = ww_results_id(results, 0, hits[i]);
        const double score = (double)combine(s, scores + (size_t)i * s->example_count);
        if (id && !example_is(s, id) && score_is_within(s, score))
            s->found[found++] = (found_point){.id = id, .score = score, .hit = i};
    }
    if (found > 1)
        qsort(s->found, (size_t)found, sizeof *s->found, compare_found_scores);
    const int64_t rest = found > s->offset ? found - s->offset : 0;
    s->found_count = rest < s->limit ? rest : s->limit;
    memmove(s->found, s->found + (found - rest), (size_t)s->found_count * sizeof *s->found);
    return WW_OK;
}

ww_status examples_score(search *s, kept_results *kept)
{
    ww_results *results = NULL;
    if (s->example_count == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "query: an example is needed");
    ww_status status = score_rows(s, &results);
    if (status == WW_OK && !kept_add(kept, results))
        return memory_failed("results", sizeof results);
    if (status != WW_OK)
        return status;
    const size_t count = (size_t)ww_results_count(results, 0);
    scored_row *rows = memory_alloc((count + 1) * sizeof *rows);
    float *scores = memory_alloc((count * s->example_count + 1) * sizeof *scores);
    int64_t *hits = memory_alloc((count + 1) * sizeof *hits);
    if (rows && scores && hits) {
        if (count > 0)
            arrange(s, results, rows, scores, hits);
        status = take_best(s, results, scores, hits);
    } else {
        status = memory_failed("scores", count * s->example_count * sizeof *scores);
    }
    memory_free(rows);
    memory_free(scores);
    memory_free(hits);
    return status;
}
