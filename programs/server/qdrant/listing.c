/* Listing points. */
#include "server/qdrant/listing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"
#include "server/qdrant/values.h"

/* ---- orders -------------------------------------------------------------------------------------------------------------- */

/* "year", or {"key": "year", "direction": "desc", "start_from": 2000} */
bool list_order_read(request *r, const char *value, list_order *order)
{
    const bool object = json_type_of(value) == JSON_OBJECT;
    const char *direction = object ? json_given(value, "direction") : NULL;
    const char *start = object ? json_given(value, "start_from") : NULL;
    order->descending = direction && json_type_of(direction) == JSON_TEXT && json_text_is(direction, "desc", 4);
    if (direction && !order->descending && (json_type_of(direction) != JSON_TEXT || !json_text_is(direction, "asc", 3)))
        return request_fail(r, 400, "order_by.direction: asc or desc is needed");
    order->has_start = start && value_order(start, &order->start);
    if (start && !order->has_start)
        return request_fail(r, 400, "order_by.start_from: a number or a date is needed");
    return values_key_read(r, object ? json_given(value, "key") : value, "order_by", &order->key);
}

static int compare_ids(const void *first, const void *second)
{
    return point_id_compare(((const listed *)first)->id, ((const listed *)second)->id);
}

static int compare_ascending(const void *first, const void *second)
{
    const listed *a = first, *b = second;
    return a->value != b->value ? (a->value > b->value) - (a->value < b->value) : point_id_compare(a->id, b->id);
}

static int compare_descending(const void *first, const void *second)
{
    const listed *a = first, *b = second;
    return a->value != b->value ? (a->value < b->value) - (a->value > b->value) : point_id_compare(a->id, b->id);
}

/* Appends a copy of the id. */
static ww_status append(listing *l, const char *id, double value)
{
    if (l->count == l->capacity) {
        const int64_t larger = l->capacity > 0 ? 2 * l->capacity : 64;
        listed *moved = memory_resize(l->rows, (size_t)larger * sizeof *moved);
        if (!moved)
            return memory_failed("a list of points", (size_t)larger * sizeof *moved);
        l->rows = moved;
        l->capacity = larger;
    }
    char *copy = memory_copy_text(id, strlen(id));
    if (!copy)
        return memory_failed("a list of points", strlen(id) + 1);
    l->rows[l->count++] = (listed){copy, value};
    return WW_OK;
}

/* ---- lists by ids ----------------------------------------------------------------------------------------------------------
 * A full list is a heap with the largest id first; a row with a smaller id replaces that one. */

static void sift(listing *l, int64_t at)
{
    for (int64_t child; (child = 2 * at + 1) < l->count; at = child) {
        if (child + 1 < l->count && compare_ids(&l->rows[child + 1], &l->rows[child]) > 0)
            child++;
        if (compare_ids(&l->rows[child], &l->rows[at]) <= 0)
            return;
        const listed moved = l->rows[at];
        l->rows[at] = l->rows[child];
        l->rows[child] = moved;
    }
}

static ww_status add_id(listing *l, const list_part *part, const char *id)
{
    if (part->first_id && point_id_compare(id, part->first_id) < 0)
        return WW_OK;
    if (part->count == 0 || l->count < part->count) {
        const ww_status status = append(l, id, 0);
        for (int64_t i = l->count == part->count ? l->count / 2 : 0; status == WW_OK && i > 0; i--)
            sift(l, i - 1);
        return status;
    }
    if (point_id_compare(id, l->rows[0].id) >= 0)
        return WW_OK;
    char *copy = memory_copy_text(id, strlen(id));
    if (!copy)
        return memory_failed("a list of points", strlen(id) + 1);
    memory_free(l->rows[0].id);
    l->rows[0].id = copy;
    sift(l, 0);
    return WW_OK;
}

/* ---- lists by values ----------------------------------------------------------------------------------------------------- */

/* The values of one point by which it is ordered. */
typedef struct order_values {
    listing *to;
    const list_order *order;
    const char *id;
    ww_status status;
} order_values;

static bool tell_order_value(void *user, const char *value)
{
    order_values *v = user;
    double found = 0;
    if (!value_order(value, &found))
        return true;
    if (v->order->has_start && (v->order->descending ? found > v->order->start : found < v->order->start))
        return true;
    v->status = append(v->to, v->id, found);
    return v->status == WW_OK;
}

static ww_status add_values(listing *l, const list_order *order, const char *id, const char *payload)
{
    order_values values = {l, order, id, WW_OK};
    if (payload)
        values_each(&order->key, payload, tell_order_value, &values);
    return values.status;
}

/* A point that has a value twice is listed once for it. */
static void remove_twins(listing *l)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < l->count; i++)
        if (kept == 0 || l->rows[kept - 1].value != l->rows[i].value || strcmp(l->rows[kept - 1].id, l->rows[i].id) != 0)
            l->rows[kept++] = l->rows[i];
        else
            memory_free(l->rows[i].id);
    l->count = kept;
}

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

/* State of listing_make() while it goes through the rows. */
typedef struct listing_rows {
    listing *list;
    const list_order *order; /* NULL: by ids */
    const list_part *part;
} listing_rows;

static ww_status list_rows(void *user, const ww_results *rows)
{
    const listing_rows *to = user;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(rows, 0); i++) {
        const char *id = ww_results_id(rows, 0, i);
        status =
            to->order ? add_values(to->list, to->order, id, ww_results_payload(rows, 0, i)) : add_id(to->list, to->part, id);
    }
    return status;
}

ww_status listing_make(listing *l, const entry *e, const point_filter *filter, const list_order *order, list_part part)
{
    const bool ordered = order && order->key.read;
    *l = (listing){0};
    listing_rows rows = {l, ordered ? order : NULL, &part};
    ww_status status = rows_each(e, filter, WW_FETCH_IDS | (ordered ? (uint32_t)WW_FETCH_PAYLOADS : 0), list_rows, &rows);
    if (status == WW_OK)
        status = job_sort(l->rows, (size_t)l->count, sizeof *l->rows,
                          !ordered            ? compare_ids
                          : order->descending ? compare_descending
                                              : compare_ascending);
    if (ordered)
        remove_twins(l);
    return status;
}

void listing_free(listing *l)
{
    for (int64_t i = 0; i < l->count; i++)
        memory_free(l->rows[i].id);
    memory_free(l->rows);
    *l = (listing){0};
}

void listing_shuffle(listing *l)
{
    for (int64_t i = l->count - 1; i > 0; i--) {
        uint64_t random = 0;
        (void)!getrandom(&random, sizeof random, 0); /* any order will do */
        const int64_t other = (int64_t)(random % (uint64_t)(i + 1));
        const listed moved = l->rows[i];
        l->rows[i] = l->rows[other];
        l->rows[other] = moved;
    }
}

void put_order_value(out *o, double value)
{
    out_text(o, ",\"order_value\":");
    if (value == floor(value) && fabs(value) < 9e15)
        out_format(o, "%lld", (long long)value);
    else
        out_double(o, value);
}

/* ---- pages --------------------------------------------------------------------------------------------------------------- */

typedef struct list_plan {
    point_filter filter;
    selection with;
    int64_t limit;
    point_id offset;
    bool has_offset;
    list_order order;
    values_key key; /* for facets */
} list_plan;

static void list_free(void *plan)
{
    list_plan *p = plan;
    parts_free(&p->with);
    values_key_free(&p->order.key);
    values_key_free(&p->key);
    point_filter_free(&p->filter);
    memory_free(p);
}

static list_plan *list_create(request *r)
{
    list_plan *p = request_plan_create(r, sizeof *p, list_free);
    if (p)
        p->limit = 10;
    return p;
}

bool prepare_scroll(request *r)
{
    const char *body = request_body(r);
    list_plan *p = body ? list_create(r) : NULL;
    if (!p)
        return false;
    const char *offset = json_given(body, "offset"), *order = json_given(body, "order_by");
    p->with.payload = true;
    if (!request_read_integer(r, body, "limit", 1, &p->limit) || !parts_read(r, body, &p->with) ||
        !filter_of_request(r, body, "filter", &p->filter))
        return false;
    if (offset && !point_id_read(offset, p->offset))
        return request_fail(r, 400, "offset: an unsigned number of 64 bits or a UUID is needed");
    if (offset && order)
        return request_fail(r, 400, "offset: cannot be used with order_by; give start_from");
    p->has_offset = offset != NULL;
    return order ? list_order_read(r, order, &p->order) : true;
}

/* Writes the first page of the list, with everything that was selected. */
static ww_status put_page(request *r, const list_plan *p, const listing *l)
{
    const listed *rows = l->rows;
    const int64_t page = l->count < p->limit ? l->count : p->limit;
    const char **ids = memory_alloc((size_t)(page + 1) * sizeof *ids);
    ww_results *found = NULL;
    for (int64_t i = 0; ids && i < page; i++)
        ids[i] = rows[i].id;
    ww_status status =
        ids ? points_get(r->entry, ids, page, parts_fetch(&p->with), &found) : memory_failed("ids", (size_t)page * sizeof *ids);
    request_result_begin(r);
    out_text(&r->answer, "{\"points\":[");
    for (int64_t i = 0; status == WW_OK && i < page; i++) {
        status = job_look(i);
        out_text(&r->answer, i > 0 ? "," : "");
        put_record_begin(&r->answer, &(point){r->entry, found, 0, i, &p->with});
        if (p->order.key.read)
            put_order_value(&r->answer, rows[i].value);
        out_text(&r->answer, "}");
    }
    out_text(&r->answer, "],\"next_page_offset\":");
    if (l->count > page && !p->order.key.read)
        put_point_id(&r->answer, rows[page].id);
    else
        out_text(&r->answer, "null");
    out_text(&r->answer, "}");
    request_result_end(r);
    ww_results_destroy(found);
    memory_free(ids);
    return status;
}

void run_scroll(request *r)
{
    const list_plan *p = r->plan;
    listing l;
    const list_part part = {p->has_offset ? p->offset : NULL,
                            p->limit < WW_ROWS_MAX ? p->limit + 1 : 0}; /* one more, which begins the next page */
    ww_status status = listing_make(&l, r->entry, &p->filter, &p->order, part);
    if (status == WW_OK)
        status = put_page(r, p, &l);
    if (status == WW_OK)
        status = job_check();
    if (status != WW_OK)
        request_fail_status(r, status);
    listing_free(&l);
}

/* ---- counting ------------------------------------------------------------------------------------------------------------ */

bool prepare_count(request *r)
{
    list_plan *p = list_create(r);
    if (!p)
        return false;
    const char *body = r->body_length > 0 ? request_body(r) : json_root("{}");
    return body && filter_of_request(r, body, "filter", &p->filter);
}

void run_count(request *r)
{
    const list_plan *p = r->plan;
    int64_t count = 0;
    const ww_status status = rows_count(r->entry, &p->filter, &count);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"count\":%lld}", (long long)count);
    request_result_end(r);
}

/* ---- facets -------------------------------------------------------------------------------------------------------------- */

bool prepare_facet(request *r)
{
    const char *body = request_body(r);
    list_plan *p = body ? list_create(r) : NULL;
    return p && request_read_integer(r, body, "limit", 1, &p->limit) && filter_of_request(r, body, "filter", &p->filter) &&
           values_key_read(r, json_given(body, "key"), "key", &p->key);
}

void put_facets(out *o, const value_counts *counts, int64_t limit, bool usual)
{
    out_text(o, "{\"hits\":[");
    for (int64_t i = 0; i < counts->count && i < limit; i++) {
        const value_counted *value = &counts->values[i];
        point_id id;
        out_text(o, i > 0 ? ",{\"value\":" : "{\"value\":");
        if (usual && json_type_of(value->json) == JSON_TEXT && point_id_read(value->json, id))
            out_quoted(o, id, strlen(id));
        else
            out_bytes(o, value->json, value->bytes);
        out_format(o, ",\"count\":%lld}", (long long)value->count);
    }
    out_text(o, "]}");
}

void run_facet(request *r)
{
    const list_plan *p = r->plan;
    ww_results *all = NULL;
    value_counts counts = {0};
    ww_status status = rows_matching(r->entry, &p->filter, WW_FETCH_PAYLOADS, &all);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(all, 0); i++) {
        status = job_look(i);
        if (status == WW_OK && ww_results_payload(all, 0, i))
            status = values_count(&counts, &p->key, ww_results_payload(all, 0, i));
    }
    if (status == WW_OK)
        status = values_sort(&counts);
    if (status != WW_OK) {
        request_fail_status(r, status);
    } else {
        request_result_begin(r);
        put_facets(&r->answer, &counts, r->part ? counts.count : p->limit, !r->part); /* counts of shards are summed */
        request_result_end(r);
    }
    value_counts_free(&counts);
    ww_results_destroy(all);
}
