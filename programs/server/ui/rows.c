/* Rows for the page: in the order of their handles starting at a position, by handles, or by ids. Large payloads are truncated,
 * so that a table of rows stays small. Each named vector has its own rows, which the argument `using` chooses. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/qdrant/select.h"
#include "server/ui/map.h"
#include "server/ui/ui.h"
#include "server/work/changes.h"

enum { ROWS_MAX = 1000, PREVIEW_BYTES = 400 };

typedef struct rows_plan {
    point_filter filter;
    int64_t offset, limit;
    char **ids;       /* NULL: not by ids */
    int64_t *handles; /* NULL: not by handles */
    int64_t count;    /* of either */
    bool vector, payload;
    int64_t payload_bytes; /* larger payloads are truncated; 0: none */
    char *new_payload;
} rows_plan;

static void plan_free(void *plan)
{
    rows_plan *p = plan;
    for (int64_t i = 0; p->ids && i < p->count; i++)
        memory_free(p->ids[i]);
    memory_free(p->ids);
    memory_free(p->handles);
    point_filter_free(&p->filter);
    memory_free(p->new_payload);
    memory_free(p);
}

static rows_plan *plan_create(request *r)
{
    rows_plan *p = request_plan_create(r, sizeof *p, plan_free);
    if (!p)
        return NULL;
    p->limit = 50;
    p->payload = true;
    return p;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static bool list_count(request *r, const char *list, const char *what, int64_t *count)
{
    if (json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "%s: a list of texts is needed", what);
    *count = 0;
    for (const char *at = json_first(list); at; at = json_next(at))
        ++*count;
    return *count <= ROWS_MAX ? true : request_fail(r, 400, "%s: more than %d of them", what, ROWS_MAX);
}

static bool read_ids(request *r, const char *list, rows_plan *p)
{
    int64_t count = 0;
    if (!list_count(r, list, "ids", &count))
        return false;
    p->ids = memory_alloc_zeroed((size_t)count + 1, sizeof *p->ids);
    if (!p->ids)
        return request_fail_status(r, memory_failed("ids", (size_t)count * sizeof *p->ids));
    for (const char *at = json_first(list); at; at = json_next(at)) {
        p->ids[p->count] = request_copy_text(r, at, "ids");
        if (!p->ids[p->count])
            return false;
        p->count++;
    }
    return true;
}

/* Handles are 63-bit numbers in decimal, as texts. */
static bool read_handle(const char *value, int64_t *handle)
{
    char text[24];
    if (json_type_of(value) != JSON_TEXT || json_end(value) - value > 21)
        return false;
    text[json_text_read(value, text)] = '\0';
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    *handle = strtoll(text, NULL, 10);
    return true;
}

static bool read_handles(request *r, const char *list, rows_plan *p)
{
    int64_t count = 0;
    if (!list_count(r, list, "handles", &count))
        return false;
    p->handles = memory_alloc(((size_t)count + 1) * sizeof *p->handles);
    if (!p->handles)
        return request_fail_status(r, memory_failed("handles", (size_t)count * sizeof *p->handles));
    for (const char *at = json_first(list); at; at = json_next(at))
        if (!read_handle(at, &p->handles[p->count++]))
            return request_fail(r, 400, "handles: texts of decimal digits are needed");
    return true;
}

bool prepare_rows(request *r)
{
    const char *body = request_body(r);
    rows_plan *p = body ? plan_create(r) : NULL;
    if (!p)
        return false;
    const char *ids = json_given(body, "ids"), *handles = json_given(body, "handles");
    if (!request_read_integer(r, body, "offset", 0, &p->offset) || !request_read_integer(r, body, "limit", 1, &p->limit) ||
        !request_read_integer(r, body, "payload_bytes", 0, &p->payload_bytes) ||
        !request_read_bool(r, body, "with_vector", &p->vector) || !request_read_bool(r, body, "with_payload", &p->payload) ||
        !filter_of_request(r, body, "filter", &p->filter))
        return false;
    if (p->limit > ROWS_MAX)
        return request_fail(r, 400, "limit: is %lld; the maximum is %d", (long long)p->limit, ROWS_MAX);
    if ((ids && handles) || ((ids || handles) && p->filter.filter))
        return request_fail(r, 400, "ids, handles and filter cannot be given together");
    return (!ids || read_ids(r, ids, p)) && (!handles || read_handles(r, handles, p));
}

/* ---- answering ----------------------------------------------------------------------------------------------------------- */

/* The length of a preview of about PREVIEW_BYTES that ends with a whole character. The text has twice as many bytes. */
static size_t whole_characters(const char *text)
{
    size_t length = 0;
    while (length < PREVIEW_BYTES) {
        uint32_t character = 0;
        const size_t bytes = utf8_read(text + length, PREVIEW_BYTES, &character);
        length += bytes > 0 ? bytes : 1;
    }
    return length;
}

/* Is a text too long to be sent as a whole? */
static bool is_cut(const rows_plan *p, size_t bytes)
{
    return p->payload_bytes > 0 && bytes > (size_t)p->payload_bytes && bytes / 2 > PREVIEW_BYTES;
}

/* Writes the text that was embedded, if the store has it. */
static void put_text(out *o, const rows_plan *p, const char *text)
{
    const size_t bytes = text ? strlen(text) : 0;
    if (!text)
        return;
    out_text(o, ",\"text\":");
    out_quoted(o, text, is_cut(p, bytes) ? whole_characters(text) : bytes);
}

static void put_payload(out *o, const rows_plan *p, const char *payload)
{
    const size_t bytes = payload ? strlen(payload) : 0;
    out_format(o, ",\"payload_bytes\":%zu", bytes);
    if (is_cut(p, bytes)) {
        out_text(o, ",\"preview\":");
        out_quoted(o, payload, whole_characters(payload));
        return;
    }
    out_text(o, ",\"payload\":");
    out_text(o, payload ? payload : "null");
}

static void put_vector(out *o, const entry *e, const float *vector)
{
    out_floats(o, vector, e->dim);
}

static void put_vectors(out *o, const entry *e, const ww_results *found, int64_t i)
{
    static const selection all = {0};
    out_text(o, ",\"vector\":");
    if (e->split)
        put_named_vectors(o, &(point){.entry = e, .results = found, .hit = i, .with = &all}, put_vector);
    else
        put_vector(o, e, ww_results_vector(found, 0, i));
}

/* Writes the rows that still exist. Skips rows that another request removed in the meantime. */
static void put_rows(request *r, const entry *e, const ww_results *found)
{
    const rows_plan *p = r->plan;
    out *o = &r->answer;
    bool begun = false;
    out_text(o, "\"rows\":[");
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        const char *id = ww_results_id(found, 0, i);
        if (!id)
            continue;
        out_text(o, begun ? ",{\"id\":" : "{\"id\":");
        out_quoted(o, id, strlen(id));
        out_format(o, ",\"handle\":\"%lld\"", (long long)ww_results_handles(found, 0)[i]);
        if (p->payload)
            put_payload(o, p, ww_results_payload(found, 0, i));
        if (p->payload)
            put_text(o, p, ww_results_text(found, 0, i));
        if (p->vector)
            put_vectors(o, e, found, i);
        out_text(o, "}");
        begun = true;
    }
    out_text(o, "]");
}

static int compare_handles(const void *first, const void *second)
{
    const int64_t a = *(const int64_t *)first, b = *(const int64_t *)second;
    return (a > b) - (a < b);
}

/* Finds the handles of the requested page, and the total number of rows. */
static ww_status find_page(const entry *e, rows_plan *p, int64_t *total)
{
    ww_results *all = NULL;
    ww_status status = rows_matching(e, &p->filter, 0, &all);
    const int64_t count = ww_results_count(all, 0);
    int64_t *handles = status == WW_OK ? memory_alloc(((size_t)count + 1) * sizeof *handles) : NULL;
    if (status == WW_OK && !handles)
        status = memory_failed("handles", (size_t)count * sizeof *handles);
    if (status == WW_OK) {
        if (count > 0)
            memcpy(handles, ww_results_handles(all, 0), (size_t)count * sizeof *handles);
        qsort(handles, (size_t)count, sizeof *handles, compare_handles);
        const int64_t rest = count > p->offset ? count - p->offset : 0;
        p->count = rest < p->limit ? rest : p->limit;
        memmove(handles, handles + (count - rest), (size_t)p->count * sizeof *handles);
        p->handles = handles;
        *total = count;
    }
    ww_results_destroy(all);
    return status;
}

void run_rows(request *r)
{
    rows_plan *p = r->plan;
    const entry *e = request_argument(r, "using") ? entry_of_vector(r) : r->entry;
    if (!e)
        return;
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    int64_t total = p->count;
    ww_status status = p->ids || p->handles ? WW_OK : find_page(e, p, &total);
    get.cancel = job_cancel();
    get.count = p->count;
    get.ids = (const char *const *)p->ids;
    get.handles = p->handles;
    get.fetch = WW_FETCH_IDS | (p->payload ? (uint32_t)WW_FETCH_PAYLOADS | (uint32_t)WW_FETCH_TEXTS : 0) |
                (p->vector ? (uint32_t)WW_FETCH_VECTORS : 0);
    if (status == WW_OK)
        status = ww_collection_get(e->collection, &get, &found);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"total\":%lld,", (long long)total);
    put_rows(r, e, found);
    out_text(&r->answer, "}");
    request_result_end(r);
    ww_results_destroy(found);
}

/* ---- changing ------------------------------------------------------------------------------------------------------------ */

bool prepare_row_payload(request *r)
{
    const char *body = request_body(r);
    rows_plan *p = body ? plan_create(r) : NULL;
    if (!p)
        return false;
    const char *payload = json_given(body, "payload");
    if (!payload || json_type_of(payload) != JSON_OBJECT)
        return request_fail(r, 400, "payload: an object is needed");
    p->ids = memory_alloc_zeroed(1, sizeof *p->ids);
    p->new_payload = memory_copy_text(payload, (size_t)(json_end(payload) - payload));
    if (!p->ids || !p->new_payload)
        return request_fail_status(r, memory_failed("a payload", (size_t)(json_end(payload) - payload)));
    p->ids[0] = request_copy_text(r, json_given(body, "id"), "id");
    p->count = p->ids[0] != NULL;
    return p->count == 1;
}

/* Each named vector has a copy of the payload; a row may not have all vectors. */
void run_row_payload(request *r)
{
    const rows_plan *p = r->plan;
    const char *const *ids = (const char *const *)p->ids, *payload = p->new_payload;
    const ww_status begun = changes_begin(r->server);
    ww_status status = begun == WW_OK ? entry_load(r->entry, ids, 1) : begun;
    if (status == WW_OK)
        status = entry_set_payloads(r->entry, ids, &payload, 1);
    for (size_t i = 0; status == WW_OK && i < r->entry->part_count; i++) {
        status = entry_set_payloads(&r->entry->parts[i], ids, &payload, 1);
        if (status == WW_NOT_FOUND)
            status = WW_OK;
    }
    if (status == WW_OK)
        status = changes_commit(r->server);
    else if (begun == WW_OK)
        changes_rollback(r->server);
    if (status == WW_OK)
        request_result_true(r);
    else
        request_fail_status(r, status);
}

bool prepare_rows_delete(request *r)
{
    const char *body = request_body(r);
    rows_plan *p = body ? plan_create(r) : NULL;
    if (!p)
        return false;
    const char *ids = json_given(body, "ids");
    return ids ? read_ids(r, ids, p) : request_fail(r, 400, "ids: a list of texts is needed");
}

void run_rows_delete(request *r)
{
    const rows_plan *p = r->plan;
    const char *const *ids = (const char *const *)p->ids;
    int64_t missing = 0;
    const ww_status begun = changes_begin(r->server);
    ww_status status = begun == WW_OK ? entry_load(r->entry, ids, p->count) : begun;
    for (size_t i = 0; status == WW_OK && i < r->entry->part_count; i++)
        status = entry_discard(&r->entry->parts[i], ids, p->count, NULL);
    if (status == WW_OK)
        status = entry_discard(r->entry, ids, p->count, &missing);
    if (status == WW_OK)
        status = changes_commit(r->server);
    else if (begun == WW_OK)
        changes_rollback(r->server);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"deleted\":%lld}", (long long)(p->count - missing));
    request_result_end(r);
}
