/* Multivectors of Qdrant's API. */
#include "server/qdrant/vectors/multi.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/message.h"
#include "server/qdrant/search.h"

bool multi_check_config(request *r, const char *config, ww_metric metric)
{
    const char *comparator = json_type_of(config) == JSON_OBJECT ? json_given(config, "comparator") : NULL;
    if (!comparator || json_type_of(comparator) != JSON_TEXT || !json_text_is(comparator, "max_sim", 7))
        return request_fail(r, 400, "vectors.multivector_config.comparator: max_sim is needed");
    return metric != WW_L2
               ? true
               : request_fail(r, 501,
                              "vectors.multivector_config: the distance must be Cosine or Dot; others are not supported");
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

bool is_multi(const char *value)
{
    const char *first = value && json_type_of(value) == JSON_LIST ? json_first(value) : NULL;
    return first && json_type_of(first) == JSON_LIST;
}

/* Copies the numbers; false if there is a vector of another length, or one that is no list of numbers. */
static bool read_numbers(const char *value, int64_t dim, float *to)
{
    for (const char *at = json_first(value); at; at = json_next(at), to += dim)
        if (json_type_of(at) != JSON_LIST || !json_first(at) || json_numbers_count(at) != dim || !json_numbers_read(at, to))
            return false;
    return true;
}

bool multi_value_read(request *r, const char *value, const char *what, ww_multivector *vector)
{
    char message[512];
    float score = 0.0f;
    const char *first = json_first(value);
    const int64_t dim = json_first(first) ? json_numbers_count(first) : 0;
    int64_t count = 0;
    for (const char *at = first; at && count <= WW_MULTI_MAX; at = json_next(at))
        count++;
    *vector = (ww_multivector){0};
    if (count > WW_MULTI_MAX)
        return request_fail(r, 400, "%s: more than %d vectors", what, WW_MULTI_MAX);
    if (dim < 1 || dim > WW_DIM_MAX)
        return request_fail(r, 400, "%s: the vectors must have 1 to %d numbers", what, WW_DIM_MAX);
    float *numbers = memory_alloc((size_t)count * (size_t)dim * sizeof *numbers);
    if (!numbers)
        return request_fail_status(r, memory_failed("a multivector", (size_t)count * (size_t)dim * sizeof *numbers));
    *vector = (ww_multivector){(int32_t)count, (int32_t)dim, numbers};
    if (!read_numbers(value, dim, numbers))
        return request_fail(r, 400, "%s: lists of %lld numbers are needed", what, (long long)dim);
    const ww_multivector one = {1, (int32_t)dim, numbers}; /* the library says what is wrong, before anything is queued */
    if (ww_multi_score(WW_DOT, &one, vector, &score) == WW_OK)
        return true;
    text_without_calls(message, sizeof message, ww_error_message());
    return request_fail(r, 400, "%s: %s", what, message);
}

void multi_value_free(ww_multivector *vector)
{
    memory_free((void *)(uintptr_t)vector->vectors);
    *vector = (ww_multivector){0};
}

void put_multi(out *o, const entry *part, const ww_results *of_one, multi_writer put)
{
    ww_multivector v;
    (void)ww_results_multi(of_one, 0, 0, &v);
    out_text(o, "[");
    for (int32_t i = 0; i < v.count; i++) {
        out_text(o, i > 0 ? "," : "");
        put(o, part, v.vectors + (size_t)i * (size_t)v.dim);
    }
    out_text(o, "]");
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

static ww_status copy_vectors(search *s, const ww_multivector *from)
{
    const size_t bytes = (size_t)from->count * (size_t)from->dim * sizeof *from->vectors;
    float *numbers = memory_alloc(bytes + 1);
    if (!numbers)
        return memory_failed("a multivector", bytes);
    if (bytes > 0)
        memcpy(numbers, from->vectors, bytes);
    s->multi = (ww_multivector){from->count, from->dim, numbers};
    return WW_OK;
}

/* Takes the multivector of the point that a search names. */
static ww_status take_point(search *s)
{
    ww_results *found = NULL;
    ww_multivector v;
    ww_status status = point_get(s->target, s->examples[0].id, s->filter.always, WW_FETCH_MULTI, &found);
    if (status == WW_OK) {
        (void)ww_results_multi(found, 0, 0, &v);
        status = copy_vectors(s, &v);
    }
    s->excludes_examples = true;
    ww_results_destroy(found);
    return status;
}

ww_status multi_ready(search *s)
{
    ww_status status = WW_OK;
    if (!s->target->multi)
        return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: the vector '%s' is not a multivector, and the query is", s->using);
    if (s->kind != SEARCH_MULTI) {
        if (s->kind != SEARCH_NEAREST || s->example_count > 1 || s->lookup.collection[0] != '\0')
            return ww_fail(WW_UNSUPPORTED, "query: a multivector is searched by one multivector, vector or point of its "
                                           "collection");
        const search_example *x = &s->examples[0];
        status = x->id[0] != '\0' ? take_point(s) : copy_vectors(s, &(ww_multivector){1, (int32_t)x->dim, x->vector});
        s->kind = SEARCH_MULTI;
    }
    if (status == WW_OK && s->multi.count > 0 && s->multi.dim != s->target->dim)
        status = ww_fail(WW_DIMENSION_MISMATCH, "Wrong input: Vector dimension error: expected dim: %d, got %d",
                         (int)s->target->dim, (int)s->multi.dim);
    return status;
}
