/* Reading searches. */
#include <string.h>

#include "base/json_value.h"
#include "base/memory.h"
#include "server/openai/documents.h"
#include "server/qdrant/search.h"

enum { PREFETCH_DEPTH_MAX = 8 };

void search_free(search *s)
{
    for (size_t i = 0; i < s->child_count; i++)
        search_free(&s->children[i]);
    memory_free(s->children);
    memory_free(s->vector);
    memory_free(s->filter);
    memory_free(s->weights);
    memory_free(s->found);
    memory_free(s->failure);
    parts_free(&s->with);
    *s = (search){0};
}

static bool read_vector(request *r, const char *value, search *s)
{
    const int64_t dim = point_vector_read(value, NULL);
    const char *first = json_type_of(value) == JSON_LIST ? json_first(value) : NULL;
    if (first && json_type_of(first) == JSON_LIST)
        return request_fail(r, 501, "query: several vectors for a point are not supported");
    if (dim <= 0)
        return request_fail(r, 400, "query: a list of numbers is needed");
    s->vector = memory_alloc((size_t)dim * sizeof *s->vector);
    if (!s->vector)
        return request_fail_status(r, memory_failed("a query", (size_t)dim * sizeof *s->vector));
    s->dim = point_vector_read(value, s->vector);
    s->kind = SEARCH_NEAREST;
    return true;
}

/* A text that a model embeds. */
static bool read_document(request *r, const char *value, search *s)
{
    s->dim = document_add(r, value, &s->vector, 0);
    if (s->dim < 0)
        return false;
    s->kind = SEARCH_NEAREST;
    s->vector = memory_alloc_zeroed((size_t)s->dim, sizeof *s->vector);
    return s->vector ? true : request_fail_status(r, memory_failed("a query", (size_t)s->dim * sizeof *s->vector));
}

/* A vector, the id of a point, or a text. */
static bool read_nearest(request *r, const char *value, search *s)
{
    if (json_type_of(value) == JSON_LIST)
        return read_vector(r, value, s);
    if (is_document(value))
        return read_document(r, value, s);
    s->kind = SEARCH_BY_ID;
    if (point_id_read(value, s->id))
        return true;
    if (json_type_of(value) == JSON_OBJECT && json_given(value, "indices"))
        return request_fail(r, 501, "query: sparse vectors are not supported");
    return request_fail(r, 400, "query: a list of numbers, an unsigned number of 64 bits or a UUID is needed");
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
    return count == s->child_count ? true : request_fail(r, 400, "query.rrf.weights: as many numbers as prefetches are needed");
}

static bool read_rrf(request *r, const char *rrf, search *s)
{
    const char *weights = json_given(rrf, "weights");
    s->kind = SEARCH_RRF;
    if (!request_read_number(r, rrf, "k", &s->rank_constant))
        return false;
    return weights ? read_weights(r, weights, s) : true;
}

static bool read_query(request *r, const char *value, search *s)
{
    if (json_type_of(value) != JSON_OBJECT)
        return read_nearest(r, value, s);
    const char *nearest = json_given(value, "nearest"), *fusion = json_given(value, "fusion"), *rrf = json_given(value, "rrf");
    if (nearest && json_given(value, "mmr"))
        return request_fail(r, 501, "query.mmr: is not supported");
    if (nearest)
        return read_nearest(r, nearest, s);
    if ((fusion || rrf) && s->child_count == 0)
        return request_fail(r, 400, "query: a fusion needs something to fuse: give prefetch");
    if (rrf)
        return read_rrf(r, rrf, s);
    if (fusion && json_type_of(fusion) == JSON_TEXT && json_text_is(fusion, "rrf", 3))
        return read_rrf(r, value, s);
    if (fusion && json_type_of(fusion) == JSON_TEXT && json_text_is(fusion, "dbsf", 4)) {
        s->kind = SEARCH_DBSF;
        return true;
    }
    for (const char *const *name = (const char *const[]){"recommend", "discover", "context", "order_by", "formula", "sample",
                                                         "relevance_feedback", NULL};
         *name; name++)
        if (json_given(value, *name))
            return request_fail(r, 501, "query.%s: is not supported", *name);
    return read_nearest(r, value, s);
}

/* What a search above says of rows and what this one does must both hold. */
static bool join_filters(request *r, const char *above, char **own)
{
    out both = {0};
    if (!above)
        return true;
    if (*own)
        out_format(&both, "{\"$and\":[%s,%s]}", above, *own);
    else
        out_text(&both, above);
    memory_free(*own);
    *own = both.failed ? NULL : both.bytes;
    return both.failed ? request_fail_status(r, memory_failed("a filter", both.length)) : true;
}

/* Where in the tree a search is. */
typedef struct tree_place {
    const char *filter; /* of the search above; NULL: none */
    int depth;
} tree_place;

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
    s->children = memory_alloc_zeroed(count + 1, sizeof *s->children);
    if (!s->children)
        return request_fail_status(r, memory_failed("prefetches", count * sizeof *s->children));
    for (const char *one = list ? json_first(value) : value; one; one = list ? json_next(one) : NULL)
        if (!read_tree(r, one, &s->children[s->child_count++], (tree_place){s->filter, at.depth + 1}))
            return false;
    return true;
}

/* What searches of both APIs have. */
static bool read_common(request *r, const char *object, search *s, tree_place at)
{
    const char *using = json_given(object, "using"), *params = json_given(object, "params");
    *s = (search){.kind = SEARCH_LIST, .limit = 10, .rank_constant = 2};
    if (!vector_name_read(using, s->using))
        return request_fail(r, 400, "using: the name of a vector is needed");
    if (params && json_type_of(params) != JSON_OBJECT)
        return request_fail(r, 400, "params: an object is needed");
    if (json_given(object, "lookup_from"))
        return request_fail(r, 501, "lookup_from: is not supported");
    bool exact = false;
    if (params && (!request_read_integer(r, params, "nprobe", 0, &s->nprobe) ||
                   !request_read_number(r, params, "recall", &s->recall) || !request_read_bool(r, params, "exact", &exact)))
        return false;
    if (exact)
        s->nprobe = 0;
    if (exact)
        s->recall = 0;
    s->has_threshold = json_given(object, "score_threshold") != NULL;
    return request_read_integer(r, object, "limit", 1, &s->limit) && request_read_integer(r, object, "offset", 0, &s->offset) &&
           request_read_number(r, object, "score_threshold", &s->threshold) &&
           filter_of_request(r, object, "filter", &s->filter) && join_filters(r, at.filter, &s->filter) &&
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
        return request_fail(r, 400, "query: is needed where there is a prefetch");
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
    return vector ? read_vector(r, vector, s) : request_fail(r, 400, "vector: a list of numbers is needed");
}
