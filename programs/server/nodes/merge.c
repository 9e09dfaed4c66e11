/* Merging the answers of shards. */
#include "server/nodes/merge.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/search.h"
#include "server/route.h"

/* ---- hits ---------------------------------------------------------------------------------------------------------------- */

/* A point in the answer of a shard, as text. */
typedef struct part_hit {
    const char *text;
    char *id;
    double rank; /* smaller is earlier: a score with its sign, or the value by which the list is ordered */
} part_hit;

typedef struct hit_list {
    part_hit *hits;
    size_t count, capacity;
    ww_status status;
} hit_list;

static void hits_free(hit_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        memory_free(l->hits[i].id);
    memory_free(l->hits);
    *l = (hit_list){0};
}

/* Copies an id as the store has it. */
static char *copy_id(const char *value)
{
    const size_t room = (size_t)(json_end(value) - value) + 1;
    char *id = memory_alloc(room);
    size_t length = room - 1;
    if (id && json_type_of(value) == JSON_TEXT)
        length = json_text_read(value, id);
    else if (id)
        memcpy(id, value, length);
    if (id)
        id[length] = '\0';
    return id;
}

static ww_status odd_answer(void)
{
    return ww_fail(WW_INTERNAL, "a shard answered in another form than this node does; is its version the same?");
}

/* Appends the points of a list; `key` names the number that orders them, NULL: only the ids do. */
static void add_hits(hit_list *l, const char *list, const char *key, double sign)
{
    if (!list || json_type_of(list) != JSON_LIST)
        l->status = odd_answer();
    for (const char *at = l->status == WW_OK ? json_first(list) : NULL; at && l->status == WW_OK; at = json_next(at)) {
        const char *id = json_given(at, "id"), *number = key ? json_given(at, key) : NULL;
        if (!id || (key && (!number || json_type_of(number) != JSON_NUMBER))) {
            l->status = odd_answer();
            return;
        }
        if (l->count == l->capacity) {
            const size_t larger = l->capacity > 0 ? 2 * l->capacity : 64;
            part_hit *moved = memory_resize(l->hits, larger * sizeof *moved);
            if (!moved) {
                l->status = memory_failed("hits", larger * sizeof *moved);
                return;
            }
            l->hits = moved;
            l->capacity = larger;
        }
        const json_number rank = number ? json_number_of(number) : (json_number){.is_integer = true};
        char *copy = copy_id(id);
        if (!copy)
            l->status = memory_failed("an id", 1);
        else
            l->hits[l->count++] = (part_hit){at, copy, sign * (rank.is_integer ? (double)rank.integer : rank.real)};
    }
}

static int compare_hits(const void *first, const void *second)
{
    const part_hit *a = first, *b = second;
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank) : point_id_compare(a->id, b->id);
}

/* Sorts the hits and writes those from `offset` on, at most `limit`, as a list. Returns the number of the first one after
 * them. */
static size_t put_hits(out *o, hit_list *l, int64_t offset, int64_t limit)
{
    if (l->status == WW_OK)
        l->status = job_sort(l->hits, l->count, sizeof *l->hits, compare_hits);
    size_t at = (uint64_t)offset < l->count ? (size_t)offset : l->count;
    out_text(o, "[");
    for (int64_t i = 0; l->status == WW_OK && at < l->count && i < limit; i++, at++) {
        const char *text = l->hits[at].text;
        out_text(o, i > 0 ? "," : "");
        out_bytes(o, text, (size_t)(json_end(text) - text));
    }
    out_text(o, "]");
    return at;
}

typedef struct shard_answers {
    const shard_answer *list;
    size_t count;
    ww_metric metric;
} shard_answers;

const char *merge_result(const shard_answer *answer)
{
    return json_given(json_root(answer->json), "result");
}

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

static const char *search_refusal(const search *s)
{
    if (s->child_count > 0)
        return "prefetch and fusion";
    if (s->kind == SEARCH_WORDS)
        return "searches for words";
    if (s->kind == SEARCH_SAMPLE)
        return "random samples";
    if (s->diverse)
        return "mmr";
    if (s->lookup.collection[0] != '\0')
        return "lookup_from";
    for (size_t i = 0; i < s->example_count; i++)
        if (!s->examples[i].vector && s->examples[i].id[0] != '\0')
            return "searches by the id of a point";
    return NULL;
}

static const char *searches_refusal(const request *r)
{
    const search_plan *p = r->plan;
    const char *why = p->form == FORM_GROUPS ? "groups" : p->with_cost ? "with_cost" : p->explain ? "explain" : NULL;
    for (size_t i = 0; !why && i < p->count; i++)
        why = search_refusal(&p->searches[i]);
    return why;
}

/* Merges search number `i`; `results` has the part of each shard's answer that it is in. */
static ww_status merge_search(request *r, const shard_answers *from, size_t i, const char **results)
{
    const search_plan *p = r->plan;
    const search *s = &p->searches[i];
    const bool batch = p->form == FORM_BATCH_POINTS || p->form == FORM_BATCH_LIST;
    const bool object = p->form == FORM_POINTS || p->form == FORM_BATCH_POINTS, by_list = s->kind == SEARCH_LIST;
    const bool up = by_list ? s->order.key.read && !s->order.descending : s->kind == SEARCH_NEAREST && from->metric == WW_L2;
    hit_list hits = {0};
    for (size_t k = 0; k < from->count && hits.status == WW_OK; k++) {
        const char *one = results[k];
        if (!one)
            hits.status = odd_answer();
        else
            add_hits(&hits, object ? json_given(one, "points") : one,
                     !by_list            ? "score"
                     : s->order.key.read ? "order_value"
                                         : NULL,
                     up ? 1 : -1);
        if (batch && one)
            results[k] = json_next(one);
    }
    out_text(&r->answer, object ? "{\"points\":" : "");
    (void)put_hits(&r->answer, &hits, s->offset, s->limit);
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

/* The id with which the next page begins: the first one that is not on this page, of all shards. */
static void put_next(out *o, const hit_list *hits, size_t next, const shard_answers *from)
{
    char *first = next < hits->count ? memory_copy_text(hits->hits[next].id, strlen(hits->hits[next].id)) : NULL;
    for (size_t k = 0; k < from->count; k++) {
        const char *offset = json_given(merge_result(&from->list[k]), "next_page_offset");
        char *id = offset ? copy_id(offset) : NULL;
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
    const double sign = direction && json_text_is(direction, "desc", 4) ? -1 : 1;
    hit_list hits = {0};
    for (size_t k = 0; k < from->count && hits.status == WW_OK; k++) {
        const char *result = merge_result(&from->list[k]);
        add_hits(&hits, result ? json_given(result, "points") : NULL, order ? "order_value" : NULL, sign);
    }
    request_result_begin(r);
    out_text(&r->answer, "{\"points\":");
    const size_t next = put_hits(&r->answer, &hits, 0, limit ? json_number_of(limit).integer : 10);
    if (hits.status == WW_OK && !order)
        put_next(&r->answer, &hits, next, from);
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
        add_hits(&hits, merge_result(&from->list[k]), NULL, 1);
    if (hits.status == WW_OK)
        hits.status = job_sort(hits.hits, hits.count, sizeof *hits.hits, compare_hits);
    request_result_begin(r);
    out_text(&r->answer, "[");
    for (const char *at = json_first(json_given(json_root(r->body), "ids")); at && hits.status == WW_OK; at = json_next(at)) {
        point_id id;
        size_t low = 0, high = hits.count;
        if (!point_id_read(at, id))
            continue;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (point_id_compare(hits.hits[middle].id, id) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == hits.count || strcmp(hits.hits[low].id, id) != 0)
            continue;
        out_text(&r->answer, begun ? "," : "");
        out_bytes(&r->answer, hits.hits[low].text, (size_t)(json_end(hits.hits[low].text) - hits.hits[low].text));
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
    {"POST", POINTS "/search", merge_searches},
    {"POST", POINTS "/search/batch", merge_searches},
    {"POST", POINTS "/recommend", merge_searches},
    {"POST", POINTS "/recommend/batch", merge_searches},
    {"POST", POINTS "/discover", merge_searches},
    {"POST", POINTS "/discover/batch", merge_searches},
    {"POST", POINTS "/scroll", merge_scroll},
    {"POST", POINTS "/count", merge_count},
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

const char *merge_refusal(const request *r)
{
    const int at = route_of(r);
    if (at < 0)
        return r->route->path;
    return ROUTES[at].merge == merge_searches ? searches_refusal(r) : NULL;
}

bool merge_is_exact(const request *r)
{
    const int at = route_of(r);
    const search_plan *p = r->plan;
    if (at < 0 || ROUTES[at].merge != merge_searches || r->documents || searches_refusal(r))
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

void merge_answers(request *r, ww_metric metric, const shard_answer *answers, size_t count)
{
    const int at = route_of(r);
    const ww_status status =
        at < 0 || count == 0 ? odd_answer() : ROUTES[at].merge(r, &(shard_answers){answers, count, metric});
    if (status != WW_OK)
        request_fail_status(r, status);
    else
        request_result_end(r);
}
