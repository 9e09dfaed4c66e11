/* Reading searches. */
#include <string.h>

#include <warpwave/ranking.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/tables/hash.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/search.h"
#include "server/work/documents.h"

enum { PREFETCH_DEPTH_MAX = 8 };

void search_free(search *s)
{
    for (size_t i = 0; i < s->child_count; i++)
        search_free(&s->children[i]);
    for (size_t i = 0; i < s->example_count; i++) {
        memory_free(s->examples[i].vector);
        sparse_value_free(&s->examples[i].sparse);
    }
    memory_free(s->examples);
    memory_free(s->children);
    memory_free(s->words);
    memory_free(s->counts.found);
    sparse_value_free(&s->sparse);
    multi_value_free(&s->multi);
    memory_free(s->vector);
    values_key_free(&s->order.key);
    point_filter_free(&s->filter);
    memory_free(s->weights);
    memory_free(s->found);
    listing_free(&s->list);
    memory_free(s->failure);
    memory_free(s->explained);
    ww_formula_destroy(s->formula);
    parts_free(&s->with);
    *s = (search){0};
}

static bool read_weights(request *r, const char *list, search *s)
{
    size_t count = 0;
    if (json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "query.rrf.weights: a list of numbers is needed");
    s->weights = memory_alloc((s->child_count + 1) * sizeof *s->weights);
    if (!s->weights)
        return request_fail_status(r, memory_failed("weights", s->child_count * sizeof *s->weights));
    for (const char *at = json_first(list); at; at = json_next(at), count++) {
        if (count >= s->child_count || json_type_of(at) != JSON_NUMBER)
            break;
        const json_number number = json_number_of(at);
        s->weights[count] = number.is_integer ? (double)number.integer : number.real;
    }
    return count == s->child_count ? true : request_fail(r, 400, "query.rrf.weights: one number per prefetch is needed");
}

static bool read_rrf(request *r, const char *rrf, search *s)
{
    const char *weights = json_given(rrf, "weights");
    s->kind = SEARCH_RRF;
    if (!request_read_number(r, rrf, "k", &s->rank_constant))
        return false;
    if (s->rank_constant < 1)
        return request_fail(r, 400, "query.rrf.k: is %g; it must be 1 or more", s->rank_constant);
    return weights ? read_weights(r, weights, s) : true;
}

/* Reads a query that fuses prefetches. */
static bool read_fusion(request *r, const char *value, search *s)
{
    const char *fusion = json_given(value, "fusion"), *rrf = json_given(value, "rrf");
    if (s->child_count == 0)
        return request_fail(r, 400, "query: a fusion needs something to fuse: give prefetch");
    if (rrf)
        return read_rrf(r, rrf, s);
    if (json_type_of(fusion) == JSON_TEXT && json_text_is(fusion, "rrf", 3))
        return read_rrf(r, value, s);
    s->kind = SEARCH_DBSF;
    return json_type_of(fusion) == JSON_TEXT && json_text_is(fusion, "dbsf", 4)
               ? true
               : request_fail(r, 400, "query.fusion: rrf or dbsf is needed");
}

static bool read_sample(request *r, const char *value, search *s)
{
    s->kind = SEARCH_SAMPLE;
    s->offset = 0; /* an offset means nothing in a random order */
    return json_type_of(value) == JSON_TEXT && json_text_is(value, "random", 6)
               ? true
               : request_fail(r, 400, "query.sample: random is needed");
}

static bool read_order(request *r, const char *value, search *s)
{
    s->kind = SEARCH_LIST;
    return list_order_read(r, value, &s->order);
}

/* {"nearest": ..., "mmr": {"diversity": 0.5, "candidates_limit": 100}} */
static bool read_diverse(request *r, const char *value, search *s)
{
    const char *mmr = json_given(value, "mmr"), *nearest = json_given(value, "nearest");
    s->diverse = true;
    s->diversity = 0.5;
    s->candidates = s->limit + s->offset;
    if (json_type_of(mmr) != JSON_OBJECT || !nearest || is_words(nearest))
        return request_fail(r, 400, "query.mmr: an object is needed, and a vector, an id or a text as query.nearest");
    if (!request_read_number(r, mmr, "diversity", &s->diversity) ||
        !request_read_integer(r, mmr, "candidates_limit", 1, &s->candidates) || !search_read_nearest(r, nearest, s))
        return false;
    if (s->diversity < 0 || s->diversity > 1)
        return request_fail(r, 400, "query.mmr.diversity: is %g; it must be 0 to 1", s->diversity);
    if (s->candidates > WW_DIVERSITY_MAX || s->limit + s->offset > WW_DIVERSITY_MAX)
        return request_fail(r, 400, "query.mmr: candidates_limit, and limit with offset, are at most %d", WW_DIVERSITY_MAX);
    return true;
}

/* What the conditions of a formula are read with. */
typedef struct condition_reading {
    const entry *entry; /* NULL: conditions on named vectors are only checked */
    filter_facts facts;
} condition_reading;

static ww_status read_condition(void *user, const char *json, ww_filter *filter)
{
    condition_reading *c = user;
    filter_facts facts = {0};
    out text = {0};
    out_text(&text, "{\"must\":[");
    out_bytes(&text, json, (size_t)(json_end(json) - json));
    out_bytes(&text, "]}", 3);
    const ww_status status =
        text.failed ? memory_failed("a condition", text.length) : filter_read_qdrant(filter, text.bytes, c->entry, &facts);
    out_free(&text);
    c->facts.by_vector = c->facts.by_vector || facts.by_vector;
    c->facts.conditions += facts.conditions;
    c->facts.values_max = facts.values_max > c->facts.values_max ? facts.values_max : c->facts.values_max;
    return status;
}

static ww_status formula_make(const char *query, condition_reading *c, ww_formula **formula)
{
    const char *json = json_given(query, "formula"), *defaults = json_given(query, "defaults");
    char *text = memory_copy_text(json, (size_t)(json_end(json) - json));
    char *values = defaults ? memory_copy_text(defaults, (size_t)(json_end(defaults) - defaults)) : NULL;
    const ww_status status = text && (values || !defaults) ? ww_formula_read(text, values, read_condition, c, formula)
                                                           : memory_failed("a formula", (size_t)(json_end(json) - json));
    memory_free(text);
    memory_free(values);
    return status;
}

static bool read_formula(request *r, const char *value, search *s)
{
    condition_reading c = {0};
    char message[512];
    s->kind = SEARCH_FORMULA;
    if (s->child_count == 0)
        return request_fail(r, 400, "query: a formula needs something to score: give prefetch");
    const ww_status status = formula_make(value, &c, &s->formula);
    strict_ask(r, STRICT_CONDITIONS, c.facts.conditions);
    strict_ask(r, STRICT_CONDITION, c.facts.values_max);
    s->formula_json = c.facts.by_vector ? value : NULL;
    if (status == WW_OK || status == WW_OUT_OF_MEMORY)
        return status == WW_OK ? true : request_fail_status(r, status);
    text_without_calls(message, sizeof message, ww_error_message());
    return request_fail(r, 400, "query.%s", message);
}

ww_status formula_resolve(const entry *e, search *s)
{
    condition_reading c = {.entry = e};
    ww_formula *resolved = NULL;
    if (!s->formula_json || !e->split)
        return WW_OK;
    const ww_status status = formula_make(s->formula_json, &c, &resolved);
    if (status != WW_OK)
        return status;
    ww_formula_destroy(s->formula);
    s->formula = resolved;
    return WW_OK;
}

static bool read_query(request *r, const char *value, search *s)
{
    static const struct {
        const char *name;
        bool (*read)(request *r, const char *value, search *s);
    } KINDS[] = {{"nearest", search_read_nearest},   {"recommend", search_read_recommend},
                 {"discover", search_read_discover}, {"context", search_read_context},
                 {"order_by", read_order},           {"sample", read_sample}};
    if (json_type_of(value) != JSON_OBJECT)
        return search_read_nearest(r, value, s);
    if (json_given(value, "relevance_feedback"))
        return request_fail(r, 501, "query.relevance_feedback: is not supported");
    if (json_given(value, "formula"))
        return read_formula(r, value, s);
    if (json_given(value, "mmr"))
        return read_diverse(r, value, s);
    if (json_given(value, "fusion") || json_given(value, "rrf"))
        return read_fusion(r, value, s);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (json_given(value, KINDS[i].name))
            return KINDS[i].read(r, json_given(value, KINDS[i].name), s);
    return search_read_nearest(r, value, s);
}

/* Where in the tree a search is. */
typedef struct tree_place {
    const search *above; /* NULL: none */
    int depth;
} tree_place;

/* Reads the filter of a search, which also has what the search above asks: that is copied, so all copies together have a limit.
 */
static bool read_filter(request *r, const char *object, const search *above, search *s)
{
    search_plan *p = r->plan;
    const char *own = json_given(object, "filter");
    const size_t bytes = own ? (size_t)(json_end(own) - own) : 0;
    s->filter_bytes = bytes + (above ? above->filter_bytes : 0);
    s->filter_hash = above ? above->filter_hash : 0;
    if (own)
        s->filter_hash = s->filter_hash * 31 + fnv_bytes(FNV_BEGIN, own, bytes);
    p->filter_bytes += above ? above->filter_bytes : 0;
    if (p->filter_bytes > JOINED_FILTERS_BYTES)
        return request_fail(r, 400, "prefetch: the filters of the searches above would be copied to more than %d bytes",
                            JOINED_FILTERS_BYTES);
    return filter_of_request(r, object, "filter", &s->filter);
}

/* Counts one more search of the request. */
static bool count_search(request *r)
{
    search_plan *p = r->plan;
    return ++p->nodes <= SEARCHES_MAX ? true : request_fail(r, 400, "more than %d searches and prefetches", SEARCHES_MAX);
}

static bool read_tree(request *r, const char *object, search *s, tree_place at);

static bool read_prefetch(request *r, const char *value, search *s, tree_place at)
{
    const bool list = json_type_of(value) == JSON_LIST;
    size_t count = 0;
    if (at.depth == PREFETCH_DEPTH_MAX)
        return request_fail(r, 400, "prefetch: more than %d levels", PREFETCH_DEPTH_MAX);
    for (const char *one = list ? json_first(value) : value; one; one = list ? json_next(one) : NULL, count++)
        if (json_type_of(one) != JSON_OBJECT)
            return request_fail(r, 400, "prefetch[%zu]: an object is needed", count);
    if (count > SEARCHES_MAX)
        return request_fail(r, 400, "prefetch: %zu of them; the maximum is %d", count, SEARCHES_MAX);
    s->children = memory_alloc_zeroed(count + 1, sizeof *s->children);
    if (!s->children)
        return request_fail_status(r, memory_failed("prefetches", count * sizeof *s->children));
    for (const char *one = list ? json_first(value) : value; one; one = list ? json_next(one) : NULL)
        if (!read_tree(r, one, &s->children[s->child_count++], (tree_place){s, at.depth + 1}))
            return false;
    return true;
}

/* hnsw_ef and oversampling change nothing here, but a collection may limit them. */
static bool read_params(request *r, const char *params, search *s)
{
    const char *quantization = json_given(params, "quantization");
    int64_t ef = 0;
    double oversampling = 0;
    bool exact = false;
    if (!request_read_integer(r, params, "nprobe", 0, &s->nprobe) || !request_read_number(r, params, "recall", &s->recall) ||
        !request_read_bool(r, params, "exact", &exact) || !request_read_integer(r, params, "hnsw_ef", 0, &ef) ||
        (quantization && !request_read_number(r, quantization, "oversampling", &oversampling)))
        return false;
    if (exact) {
        s->nprobe = 0;
        s->recall = 0;
    }
    strict_ask(r, STRICT_EXACT, exact);
    strict_ask(r, STRICT_HNSW_EF, ef);
    strict_ask(r, STRICT_OVERSAMPLING, oversampling > 0 && oversampling < 1e12 ? (int64_t)(oversampling * 1e6) : 0);
    return true;
}

/* Reads what searches of both APIs have in common. */
static bool read_common(request *r, const char *object, search *s, tree_place at)
{
    const char *using = json_given(object, "using"), *params = json_given(object, "params");
    const char *lookup = json_given(object, "lookup_from");
    *s = (search){.kind = SEARCH_LIST, .limit = 10, .rank_constant = 2};
    s->filter.above = at.above ? &at.above->filter : NULL;
    if (!count_search(r) || !request_without_shard(r, object))
        return false;
    if (!vector_name_read(using, s->using))
        return request_fail(r, 400, "using: the name of a vector is needed");
    if (params && json_type_of(params) != JSON_OBJECT)
        return request_fail(r, 400, "params: an object is needed");
    if (lookup && !search_read_lookup(r, lookup, s))
        return false;
    if (params && !read_params(r, params, s))
        return false;
    s->has_threshold = json_given(object, "score_threshold") != NULL;
    if (!request_read_integer(r, object, "limit", 1, &s->limit) || !request_read_integer(r, object, "offset", 0, &s->offset))
        return false;
    strict_ask(r, STRICT_QUERY_LIMIT, s->limit);
    s->limit = s->limit < WW_ROWS_MAX ? s->limit : WW_ROWS_MAX; /* no collection has more, and sums stay small */
    s->offset = s->offset < WW_ROWS_MAX ? s->offset : WW_ROWS_MAX;
    return request_read_number(r, object, "score_threshold", &s->threshold) && read_filter(r, object, at.above, s) &&
           (at.depth > 0 || parts_read(r, object, &s->with));
}

static bool read_tree(request *r, const char *object, search *s, tree_place at)
{
    if (!read_common(r, object, s, at))
        return false;
    const char *prefetch = json_given(object, "prefetch"), *query = json_given(object, "query");
    if (prefetch && !read_prefetch(r, prefetch, s, at))
        return false;
    if (!query && s->child_count > 0)
        return request_fail(r, 400, "query: is needed if there is a prefetch");
    return query ? read_query(r, query, s) : true;
}

bool search_read_query(request *r, const char *object, search *s)
{
    return read_tree(r, object, s, (tree_place){0});
}

bool search_read_search(request *r, const char *object, search *s)
{
    if (!read_common(r, object, s, (tree_place){0}))
        return false;
    const char *vector = json_given(object, "vector");
    if (vector && json_type_of(vector) == JSON_OBJECT) {
        if (!vector_name_read(json_given(vector, "name"), s->using))
            return request_fail(r, 400, "vector.name: the name of a vector is needed");
        vector = json_given(vector, "vector");
    }
    return vector && (json_type_of(vector) == JSON_LIST || is_sparse(vector))
               ? search_read_nearest(r, vector, s)
               : request_fail(r, 400, "vector: a list of numbers is needed");
}

bool search_read_recommended(request *r, const char *object, search *s)
{
    return read_common(r, object, s, (tree_place){0}) && search_read_recommend(r, object, s);
}

bool search_read_discovered(request *r, const char *object, search *s)
{
    if (!read_common(r, object, s, (tree_place){0}))
        return false;
    return json_given(object, "target") ? search_read_discover(r, object, s)
                                        : search_read_context(r, json_given(object, "context"), s);
}
