/* Examples of searches: vectors, sparse vectors, texts, and points that stand for theirs. Without a strategy that scores each
 * row against every example, their mean is searched for. */
#include <math.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
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
    if (is_sparse(value))
        return sparse_value_read(r, value, "query", &x->sparse);
    if (value && json_type_of(value) == JSON_LIST)
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

static ww_status get_sparse(const entry *from, search_example *x, const search *s)
{
    ww_results *found = NULL;
    ww_sparse_vector v = {0};
    ww_status status = point_get(from, x->id, s->excludes_examples ? s->filter.always : NULL, WW_FETCH_SPARSE, &found);
    if (status == WW_OK) {
        (void)ww_results_sparse(found, 0, 0, &v);
        status = sparse_value_copy(&v, &x->sparse);
    }
    ww_results_destroy(found);
    return status;
}

/* What a number of the mean is: the sums over positive and negative examples lead to the mean of the positive ones, moved away
 * from that of the negative ones by their difference. */
typedef struct example_counts {
    size_t positive, negative;
} example_counts;

static float mean_of(const double sums[2], example_counts n)
{
    const double mean = sums[0] / (double)n.positive;
    return (float)(n.negative > 0 ? mean + mean - sums[1] / (double)n.negative : mean);
}

static example_counts count_examples(const search *s)
{
    example_counts n = {0, 0};
    for (size_t k = 0; k < s->example_count; k++)
        *(s->examples[k].negative ? &n.negative : &n.positive) += 1;
    return n;
}

static ww_status average(search *s)
{
    const size_t dim = (size_t)s->target->dim;
    const example_counts n = count_examples(s);
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
        s->vector[i] = mean_of(sums, n);
    }
    return WW_OK;
}

/* An index of an example. */
typedef struct example_entry {
    uint32_t index;
    float value;
    size_t example;
} example_entry;

static int compare_entries(const void *first, const void *second)
{
    const example_entry *a = first, *b = second;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return (a->example > b->example) - (a->example < b->example);
}

/* Makes the mean of all entries, which are in the order of their indices. */
static ww_status take_means(search *s, const example_entry *entries, size_t count)
{
    const example_counts n = count_examples(s);
    uint32_t *indices = memory_alloc((count + 1) * sizeof *indices);
    float *values = memory_alloc((count + 1) * sizeof *values);
    int64_t made = 0;
    s->sparse = (ww_sparse_vector){0, indices, values};
    if (!indices || !values)
        return memory_failed("a query", count * sizeof *indices);
    for (size_t i = 0, end; i < count; i = end) {
        double sums[2] = {0, 0};
        for (end = i; end < count && entries[end].index == entries[i].index; end++)
            sums[s->examples[entries[end].example].negative] += (double)entries[end].value;
        indices[made] = entries[i].index;
        values[made++] = mean_of(sums, n);
    }
    s->sparse.count = made;
    return made <= WW_SPARSE_MAX
               ? WW_OK
               : ww_fail(WW_OUT_OF_RANGE, "query: the examples have %lld different indices; the maximum is %d", (long long)made,
                         WW_SPARSE_MAX);
}

static ww_status average_sparse(search *s)
{
    size_t count = 0, at = 0;
    s->kind = SEARCH_SPARSE;
    for (size_t k = 0; k < s->example_count; k++)
        count += (size_t)s->examples[k].sparse.count;
    example_entry *entries = memory_alloc((count + 1) * sizeof *entries);
    if (!entries)
        return memory_failed("a query", count * sizeof *entries);
    for (size_t k = 0; k < s->example_count; k++)
        for (int64_t i = 0; i < s->examples[k].sparse.count; i++)
            entries[at++] = (example_entry){s->examples[k].sparse.indices[i], s->examples[k].sparse.values[i], k};
    ww_status status = job_sort(entries, count, sizeof *entries, compare_entries);
    if (status == WW_OK)
        status = take_means(s, entries, count);
    memory_free(entries);
    return status;
}

/* Gets the vector of an example that is a point of `part` (NULL: there is no such vector), and checks that it suits the search.
 */
static ww_status resolve_one(const entry *part, search *s, search_example *x)
{
    ww_status status = WW_OK;
    if (x->id[0] != '\0' && (!part || part->sparse != s->target->sparse))
        return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s",
                       s->lookup.has_vector ? s->lookup.vector : s->using);
    if (x->id[0] != '\0')
        status = s->target->sparse ? get_sparse(part, x, s) : get_vector(part, x, s);
    else if (s->target->sparse != (x->vector == NULL))
        return s->target->sparse
                   ? ww_fail(WW_INVALID_ARGUMENT, "Wrong input: the vector '%s' is sparse, and the query is not", s->using)
                   : ww_fail(WW_INVALID_ARGUMENT, "Wrong input: the vector '%s' is not sparse, and the query is", s->using);
    if (status == WW_OK && !s->target->sparse && x->dim != s->target->dim)
        status = ww_fail(WW_DIMENSION_MISMATCH, "Wrong input: Vector dimension error: expected dim: %d, got %lld",
                         (int)s->target->dim, (long long)x->dim);
    return status;
}

ww_status examples_resolve(const entry *e, search *s)
{
    server *owner = e->queue.server;
    entry *other = s->lookup.collection[0] != '\0' ? entry_open(owner, s->lookup.collection) : NULL;
    const entry *from = s->lookup.collection[0] != '\0' ? other : e;
    const entry *part = from ? entry_part(from, s->lookup.has_vector ? s->lookup.vector : s->using) : NULL;
    ww_status status = WW_OK;
    s->excludes_examples = from == e;
    for (size_t i = 0; status == WW_OK && i < s->example_count; i++)
        status = from || s->examples[i].id[0] == '\0'
                     ? resolve_one(part, s, &s->examples[i])
                     : ww_fail(WW_NOT_FOUND, "Not found: Collection `%s` doesn't exist!", s->lookup.collection);
    if (other)
        entry_release(owner, other);
    if (status != WW_OK || s->kind != SEARCH_NEAREST)
        return status;
    return s->target->sparse ? average_sparse(s) : average(s);
}
