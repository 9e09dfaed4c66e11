/* Merging the answers of shards. */
#include "server/nodes/merge.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/nodes/hits.h"
#include "server/nodes/rounds.h"
#include "server/qdrant/point_id.h"
#include "server/route.h"

const char *merge_result(const shard_answer *answer)
{
    return json_given(json_root(answer->json), "result");
}

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

/* Merges search number `i`; `results` has the part of each shard's answer that it is in. */
static ww_status merge_search(request *r, const shard_answers *from, size_t i, const char **results)
{
    const search_plan *p = r->plan;
    const search *s = &p->searches[i];
    const bool batch = p->form == FORM_BATCH_POINTS || p->form == FORM_BATCH_LIST;
    const bool object = p->form == FORM_POINTS || p->form == FORM_BATCH_POINTS;
    const hit_order order = hits_order(r, s, from->metric);
    hit_list hits = {0};
    for (size_t k = 0; k < from->count && hits.status == WW_OK; k++) {
        const char *one = results[k];
        if (!one)
            hits.status = odd_answer();
        else
            hits_add(&hits, object ? json_given(one, "points") : one, order);
        if (batch && one)
            results[k] = json_next(one);
    }
    hits_sort(&hits);
    out_text(&r->answer, object ? "{\"points\":" : "");
    hits_put(&r->answer, &hits, s->offset, s->offset + s->limit);
    out_text(&r->answer, object ? "}" : "");
    const ww_status status = hits.status;
    hits_free(&hits);
    return status;
}

static ww_status merge_searches(request *r, const shard_answers *from)
{
    const search_plan *p = r->plan;
    const bool batch = p->form == FORM_BATCH_POINTS || p->form == FORM_BATCH_LIST;
    const char **results = memory_alloc((from->count + 1) * sizeof *results);
    ww_status status = results ? WW_OK : memory_failed("answers of shards", from->count * sizeof *results);
    for (size_t k = 0; status == WW_OK && k < from->count; k++) {
        results[k] = merge_result(&from->list[k]);
        if (results[k] && batch)
            results[k] = json_type_of(results[k]) == JSON_LIST ? json_first(results[k]) : NULL;
    }
    request_result_begin(r);
    out_text(&r->answer, batch ? "[" : "");
    for (size_t i = 0; status == WW_OK && i < p->count; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        status = merge_search(r, from, i, results);
    }
    out_text(&r->answer, batch ? "]" : "");
    memory_free(results);
    return status;
}

/* ---- lists and counts ---------------------------------------------------------------------------------------------------- */

static ww_status merge_count(request *r, const shard_answers *from)
{
    int64_t sum = 0;
    for (size_t k = 0; k < from->count; k++) {
        const char *result = merge_result(&from->list[k]), *number = result ? json_given(result, "count") : NULL;
        if (!number || json_type_of(number) != JSON_NUMBER)
            return odd_answer();
        sum += json_number_of(number).integer;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"count\":%lld}", (long long)sum);
    return WW_OK;
}

/* Sums the counts of the values that all shards have. */
static ww_status merge_facet(request *r, const shard_answers *from)
{
    const char *limit = json_given(json_root(r->body), "limit");
    const int64_t count = limit ? json_number_of(limit).integer : 10;
    value_counts counts = {0};
    ww_status status = WW_OK;
    for (size_t k = 0; status == WW_OK && k < from->count; k++) {
        const char *result = merge_result(&from->list[k]), *hits = result ? json_given(result, "hits") : NULL;
        status = hits && json_type_of(hits) == JSON_LIST ? WW_OK : odd_answer();
        for (const char *at = status == WW_OK ? json_first(hits) : NULL; at && status == WW_OK; at = json_next(at)) {
            const char *value = json_given(at, "value"), *number = json_given(at, "count");
            status = value && number && json_type_of(number) == JSON_NUMBER
                         ? values_add(&counts, value, json_number_of(number).integer)
                         : odd_answer();
        }
    }
    if (status == WW_OK)
        status = values_sort(&counts);
    request_result_begin(r);
    put_facets(&r->answer, &counts, count, true);
    value_counts_free(&counts);
    return status;
}

/* The id with which the next page begins: the first one that is not on this page, of all shards. */
static void put_next(out *o, const hit_list *hits, int64_t next, const shard_answers *from)
{
    char *first = next < hits->count ? memory_copy_text(hits->hits[next].id, strlen(hits->hits[next].id)) : NULL;
    for (size_t k = 0; k < from->count; k++) {
        const char *offset = json_given(merge_result(&from->list[k]), "next_page_offset");
        char *id = offset ? hits_copy_id(offset) : NULL;
        if (id && (!first || point_id_compare(id, first) < 0)) {
            memory_free(first);
            first = id;
        } else {
            memory_free(id);
        }
    }
    out_text(o, ",\"next_page_offset\":");
    if (first)
        put_point_id(o, first);
    else
        out_text(o, "null");
    memory_free(first);
}

static ww_status merge_scroll(request *r, const shard_answers *from)
{
    const char *body = json_root(r->body), *order = json_given(body, "order_by"), *limit = json_given(body, "limit");
    const char *direction = order && json_type_of(order) == JSON_OBJECT ? json_given(order, "direction") : NULL;
    const hit_order by = {order ? "order_value" : NULL, direction && json_text_is(direction, "desc", 4) ? -1 : 1};
    const int64_t count = limit ? json_number_of(limit).integer : 10;
    hit_list hits = {0};
    for (size_t k = 0; k < from->count && hits.status == WW_OK; k++) {
        const char *result = merge_result(&from->list[k]);
        hits_add(&hits, result ? json_given(result, "points") : NULL, by);
    }
    hits_sort(&hits);
    request_result_begin(r);
    out_text(&r->answer, "{\"points\":");
    hits_put(&r->answer, &hits, 0, count);
    if (hits.status == WW_OK && !order)
        put_next(&r->answer, &hits, count, from);
    else
        out_text(&r->answer, ",\"next_page_offset\":null");
    out_text(&r->answer, "}");
    const ww_status status = hits.status;
    hits_free(&hits);
    return status;
}

/* ---- points by id -------------------------------------------------------------------------------------------------------- */

static ww_status merge_points(request *r, const shard_answers *from)
{
    hit_list hits = {0};
    bool begun = false;
    for (size_t k = 0; k < from->count && hits.status == WW_OK; k++)
        hits_add(&hits, merge_result(&from->list[k]), (hit_order){0});
    hits_sort(&hits);
    request_result_begin(r);
    out_text(&r->answer, "[");
    for (const char *at = json_first(json_given(json_root(r->body), "ids")); at && hits.status == WW_OK; at = json_next(at)) {
        point_id id;
        const part_hit *hit = point_id_read(at, id) ? hits_find(&hits, id) : NULL;
        if (!hit)
            continue;
        out_text(&r->answer, begun ? "," : "");
        out_bytes(&r->answer, hit->text, (size_t)(json_end(hit->text) - hit->text));
        begun = true;
    }
    out_text(&r->answer, "]");
    const ww_status status = hits.status;
    hits_free(&hits);
    return status;
}

static ww_status merge_point(request *r, const shard_answers *from)
{
    for (size_t k = 0; k < from->count; k++) {
        const char *result = from->list[k].status == 200 ? merge_result(&from->list[k]) : NULL;
        if (!result)
            continue;
        request_result_begin(r);
        out_bytes(&r->answer, result, (size_t)(json_end(result) - result));
        return WW_OK;
    }
    return ww_fail(WW_NOT_FOUND, "Not found: Point with id %s does not exists!", r->names[1]);
}

/* ---- the collection ------------------------------------------------------------------------------------------------------ */

/* The numbers of a description are summed; the rest is the same on all shards. */
static bool is_summed(const char *key)
{
    static const char *const KEYS[] = {"points_count", "indexed_vectors_count", "segments_count", "vectors_count"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (json_text_is(key, KEYS[i], strlen(KEYS[i])))
            return true;
    return false;
}

static ww_status merge_describe(request *r, const shard_answers *from)
{
    const char *first = merge_result(&from->list[0]);
    bool begun = false;
    if (!first || json_type_of(first) != JSON_OBJECT)
        return odd_answer();
    request_result_begin(r);
    out_text(&r->answer, "{");
    for (const char *at = json_first(first); at; at = json_next(at)) {
        const char *value = json_member(at);
        int64_t sum = 0;
        out_text(&r->answer, begun ? "," : "");
        begun = true;
        out_bytes(&r->answer, at, (size_t)(json_end(at) - at));
        out_text(&r->answer, ":");
        if (!is_summed(at) || json_type_of(value) != JSON_NUMBER) {
            out_bytes(&r->answer, value, (size_t)(json_end(value) - value));
            continue;
        }
        for (size_t k = 0; k < from->count; k++) {
            const char *result = merge_result(&from->list[k]);
            for (const char *key = result ? json_first(result) : NULL; key; key = json_next(key))
                if (json_end(key) - key == json_end(at) - at && memcmp(key, at, (size_t)(json_end(at) - at)) == 0)
                    sum += json_number_of(json_member(key)).integer;
        }
        out_format(&r->answer, "%lld", (long long)sum);
    }
    out_text(&r->answer, "}");
    return WW_OK;
}

/* ---- routes -------------------------------------------------------------------------------------------------------------- */

#define POINTS "/collections/{collection_name}/points"

static const struct {
    const char *method, *path;
    ww_status (*merge)(request *r, const shard_answers *from);
} ROUTES[] = {
    {"POST", POINTS "/query", merge_searches},
    {"POST", POINTS "/query/batch", merge_searches},
    {"POST", POINTS "/query/groups", merge_searches},
    {"POST", POINTS "/search", merge_searches},
    {"POST", POINTS "/search/batch", merge_searches},
    {"POST", POINTS "/search/groups", merge_searches},
    {"POST", POINTS "/recommend", merge_searches},
    {"POST", POINTS "/recommend/batch", merge_searches},
    {"POST", POINTS "/recommend/groups", merge_searches},
    {"POST", POINTS "/discover", merge_searches},
    {"POST", POINTS "/discover/batch", merge_searches},
    {"POST", POINTS "/scroll", merge_scroll},
    {"POST", POINTS "/count", merge_count},
    {"POST", "/collections/{collection_name}/facet", merge_facet},
    {"POST", POINTS, merge_points},
    {"GET", POINTS "/{id}", merge_point},
    {"GET", "/collections/{collection_name}", merge_describe},
};

static int route_of(const request *r)
{
    for (size_t i = 0; i < sizeof ROUTES / sizeof *ROUTES; i++)
        if (strcmp(ROUTES[i].method, r->route->method) == 0 && strcmp(ROUTES[i].path, r->route->path) == 0)
            return (int)i;
    return -1;
}

bool merge_can(const request *r)
{
    return route_of(r) >= 0;
}

bool merge_searches_rows(const request *r)
{
    const int at = route_of(r);
    return at >= 0 && ROUTES[at].merge == merge_searches;
}

bool merge_is_exact(const request *r)
{
    const search_plan *p = r->plan;
    if (!merge_searches_rows(r) || r->documents || rounds_needed(r))
        return false;
    for (size_t i = 0; i < p->count; i++)
        if (p->searches[i].nprobe > 0 || p->searches[i].recall > 0)
            return false;
    return true;
}

bool merge_takes_missing(const request *r)
{
    const int at = route_of(r);
    return at >= 0 && ROUTES[at].merge == merge_point;
}

void merge_answers(request *r, const shard_answers *from)
{
    const int at = route_of(r);
    const ww_status status = at < 0 || from->count == 0 ? odd_answer() : ROUTES[at].merge(r, from);
    if (status != WW_OK)
        request_fail_status(r, status);
    else
        request_result_end(r);
}
