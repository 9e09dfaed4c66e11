/* Listing points. */
#include "server/qdrant/listing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json_value.h"
#include "base/memory.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"
#include "server/qdrant/values.h"

/* ---- pages -----------------------------------------------------------------------------------------------------------------
 */

typedef struct list_plan {
    char *filter;
    selection with;
    int64_t limit;
    point_id offset;
    bool has_offset;
    values_key key; /* of order_by and facets */
    bool ordered, descending;
    bool has_start;
    double start; /* the first value of the order */
} list_plan;

static void list_free(void *plan)
{
    list_plan *p = plan;
    parts_free(&p->with);
    values_key_free(&p->key);
    memory_free(p->filter);
    memory_free(p);
}

static list_plan *list_create(request *r)
{
    list_plan *p = memory_alloc_zeroed(1, sizeof *p);
    if (!p) {
        request_fail_status(r, memory_failed("a request", sizeof *p));
        return NULL;
    }
    p->limit = 10;
    r->plan = p;
    r->plan_free = list_free;
    return p;
}

/* "year", or {"key": "year", "direction": "desc", "start_from": 2000} */
static bool read_order(request *r, const char *value, list_plan *p)
{
    const bool object = json_type_of(value) == JSON_OBJECT;
    const char *direction = object ? json_given(value, "direction") : NULL;
    const char *start = object ? json_given(value, "start_from") : NULL;
    p->ordered = true;
    p->descending = direction && json_text_is(direction, "desc", 4);
    if (direction && !p->descending && !json_text_is(direction, "asc", 3))
        return request_fail(r, 400, "order_by.direction: asc or desc is needed");
    p->has_start = start && value_order(start, &p->start);
    if (start && !p->has_start)
        return request_fail(r, 400, "order_by.start_from: a number or a date is needed");
    return values_key_read(r, object ? json_given(value, "key") : value, "order_by", &p->key);
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
    return order ? read_order(r, order, p) : true;
}

/* A row of a listing. */
typedef struct listed {
    const char *id;
    double value; /* of the key that orders */
} listed;

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

/* The rows of the listing, of which `rows` has room for all: by ids from the offset on, or by the values of the key. */
static int64_t collect(const list_plan *p, const ww_results *all, listed *rows)
{
    int64_t count = 0;
    for (int64_t i = 0; i < ww_results_count(all, 0); i++) {
        listed row = {ww_results_id(all, 0, i), 0};
        const char *payload = p->ordered ? ww_results_payload(all, 0, i) : NULL;
        if (p->ordered && (!payload || !values_order(&p->key, payload, &row.value)))
            continue;
        if (p->ordered && p->has_start && (p->descending ? row.value > p->start : row.value < p->start))
            continue;
        if (p->has_offset && point_id_compare(row.id, p->offset) < 0)
            continue;
        rows[count++] = row;
    }
    if (count > 1)
        qsort(rows, (size_t)count, sizeof *rows,
              !p->ordered     ? compare_ids
              : p->descending ? compare_descending
                              : compare_ascending);
    return count;
}

static void put_order_value(out *o, double value)
{
    out_text(o, ",\"order_value\":");
    if (value == floor(value) && fabs(value) < 9e15)
        out_format(o, "%lld", (long long)value);
    else
        out_double(o, value);
}

/* The page, with everything that was selected. */
static ww_status put_page(request *r, const list_plan *p, const listed *rows, int64_t count)
{
    const int64_t page = count < p->limit ? count : p->limit;
    const char **ids = memory_alloc((size_t)(page + 1) * sizeof *ids);
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    for (int64_t i = 0; ids && i < page; i++)
        ids[i] = rows[i].id;
    get.count = page;
    get.ids = ids;
    get.fetch = parts_fetch(&p->with);
    const ww_status status =
        ids ? ww_collection_get(r->entry->collection, &get, &found) : memory_failed("ids", 8 * (size_t)page);
    request_result_begin(r);
    out_text(&r->answer, "{\"points\":[");
    for (int64_t i = 0; status == WW_OK && i < page; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        put_record(&r->answer, &(point){r->entry, found, 0, i, &p->with});
        if (p->ordered && r->answer.length > 0) {
            r->answer.length--; /* the brace */
            put_order_value(&r->answer, rows[i].value);
            out_text(&r->answer, "}");
        }
    }
    out_text(&r->answer, "],\"next_page_offset\":");
    if (count > page && !p->ordered)
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
    ww_results *all = NULL;
    listed *rows = NULL;
    ww_status status = rows_matching(r->entry, p->filter, WW_FETCH_IDS | (p->ordered ? (uint32_t)WW_FETCH_PAYLOADS : 0), &all);
    if (status == WW_OK) {
        const size_t bytes = ((size_t)ww_results_count(all, 0) + 1) * sizeof *rows;
        rows = memory_alloc(bytes);
        status = rows ? put_page(r, p, rows, collect(p, all, rows)) : memory_failed("a list of points", bytes);
    }
    if (status != WW_OK)
        request_fail_status(r, status);
    memory_free(rows);
    ww_results_destroy(all);
}

/* ---- counting --------------------------------------------------------------------------------------------------------------
 */

bool prepare_count(request *r)
{
    list_plan *p = list_create(r);
    if (!p)
        return false;
    if (r->body_length == 0)
        return true;
    const char *body = request_body(r);
    return body && filter_of_request(r, body, "filter", &p->filter);
}

/* Not ww_collection_count(), which cannot say that the store could not be read. */
static ww_status count_rows(const entry *e, const char *where, int64_t *count)
{
    ww_collection_info info = ww_collection_info_default();
    ww_results *all = NULL;
    const ww_status status = where ? rows_matching(e, where, 0, &all) : ww_collection_describe(e->collection, &info);
    *count = where ? ww_results_total(all, 0) : info.rows_live;
    ww_results_destroy(all);
    return status;
}

void run_count(request *r)
{
    const list_plan *p = r->plan;
    int64_t count = 0;
    const ww_status status = count_rows(r->entry, p->filter, &count);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"count\":%lld}", (long long)count);
    request_result_end(r);
}

/* ---- facets ----------------------------------------------------------------------------------------------------------------
 */

bool prepare_facet(request *r)
{
    const char *body = request_body(r);
    list_plan *p = body ? list_create(r) : NULL;
    return p && request_read_integer(r, body, "limit", 1, &p->limit) && filter_of_request(r, body, "filter", &p->filter) &&
           values_key_read(r, json_given(body, "key"), "key", &p->key);
}

void run_facet(request *r)
{
    const list_plan *p = r->plan;
    ww_results *all = NULL;
    value_counts counts = {0};
    ww_status status = rows_matching(r->entry, p->filter, WW_FETCH_PAYLOADS, &all);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(all, 0); i++)
        if (ww_results_payload(all, 0, i))
            status = values_count(&counts, &p->key, ww_results_payload(all, 0, i));
    if (status == WW_OK)
        status = values_sort(&counts);
    if (status != WW_OK) {
        request_fail_status(r, status);
    } else {
        request_result_begin(r);
        out_text(&r->answer, "{\"hits\":[");
        for (int64_t i = 0; i < counts.count && i < p->limit; i++) {
            out_text(&r->answer, i > 0 ? ",{\"value\":" : "{\"value\":");
            out_bytes(&r->answer, counts.values[i].json, counts.values[i].bytes);
            out_format(&r->answer, ",\"count\":%lld}", (long long)counts.values[i].count);
        }
        out_text(&r->answer, "]}");
        request_result_end(r);
    }
    values_free(&counts);
    ww_results_destroy(all);
}
