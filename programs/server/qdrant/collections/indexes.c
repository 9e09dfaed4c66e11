/* Payload keys that are declared as indexed, and how many points have them. */
#include "server/qdrant/collections/indexes.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/select.h"
#include "server/qdrant/values.h"

/* ---- what values an index has
 * ------------------------------------------------------------------------------------------------
 */

static bool is_text(const char *value)
{
    return json_type_of(value) == JSON_TEXT;
}

static bool is_uuid(const char *value)
{
    char id[POINT_ID_BYTES];
    return is_text(value) && point_id_read(value, id);
}

static bool is_integer(const char *value)
{
    return json_type_of(value) == JSON_NUMBER && json_number_of(value).is_integer;
}

static bool is_number(const char *value)
{
    return json_type_of(value) == JSON_NUMBER;
}

static bool is_boolean(const char *value)
{
    return json_type_of(value) == JSON_TRUE || json_type_of(value) == JSON_FALSE;
}

static bool is_date(const char *value)
{
    double order;
    return is_text(value) && value_order(value, &order);
}

static bool is_place(const char *value)
{
    const char *lon = json_given(value, "lon"), *lat = json_given(value, "lat");
    return lon && lat && is_number(lon) && is_number(lat);
}

static const struct kind {
    const char *name;
    bool (*has)(const char *value);
} KINDS[] = {{"keyword", is_text}, {"integer", is_integer}, {"float", is_number}, {"bool", is_boolean},
             {"geo", is_place},    {"datetime", is_date},   {"text", is_text},    {"uuid", is_uuid}};

/* The kind that a JSON text names; NULL: none. */
static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; name && is_text(name) && i < sizeof KINDS / sizeof *KINDS; i++)
        if (json_text_is(name, KINDS[i].name, strlen(KINDS[i].name)))
            return &KINDS[i];
    return NULL;
}

/* ---- declaring ----------------------------------------------------------------------------------------------------------- */

/* {"field_schema": "integer"}, or {"field_schema": {"type": "integer", ...}} */
static const char *schema_type(const char *body)
{
    const char *schema = json_given(body, "field_schema");
    return schema && json_type_of(schema) == JSON_OBJECT ? json_given(schema, "type") : schema;
}

bool prepare_index(request *r)
{
    const char *body = request_body(r), *type = body ? schema_type(body) : NULL;
    if (type && !kind_of(type))
        return request_fail(r, 400,
                            "field_schema: keyword, integer, float, bool, geo, datetime, text or uuid is needed as its type");
    char *field = body ? request_copy_text(r, json_given(body, "field_name"), "field_name") : NULL;
    if (!field)
        return false;
    r->plan = field;
    r->plan_free = memory_free;
    return true;
}

/* The answer after a change of the indexes. */
static void put_changed(request *r, ww_status status)
{
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"operation_id\":%lld,\"status\":\"completed\"}", atomic_fetch_add(&r->server->operations, 1));
    request_result_end(r);
}

/* Counts the indexes of a collection except that of this field. */
typedef struct index_tally {
    const char *field;
    int64_t count;
} index_tally;

static void tally_index(void *user, const char *rest, const char *value)
{
    index_tally *t = user;
    (void)value;
    t->count += strcmp(rest, t->field) != 0;
}

/* May the collection have an index of this field, too? */
static ww_status admit_index(request *r, const char *field)
{
    index_tally others = {field, 0};
    out prefix = {0};
    out_format(&prefix, "index/%s/", r->entry->name);
    ww_status status =
        prefix.failed ? memory_failed("an index", prefix.length) : notes_each(r->server, prefix.bytes, tally_index, &others);
    out_free(&prefix);
    return status == WW_OK ? strict_admits_index(r->entry, others.count) : status;
}

void run_index(request *r)
{
    if (!request_open_collection(r))
        return;
    const ww_status admitted = admit_index(r, r->plan);
    if (admitted != WW_OK) {
        request_fail_status(r, admitted);
        return;
    }
    out name = {0}, value = {0};
    const char *body = json_root(r->body), *schema = json_given(body, "field_schema"), *type = schema_type(body);
    out_format(&name, "index/%s/%s", r->entry->name, (const char *)r->plan);
    out_text(&value, "{\"data_type\":");
    if (type)
        out_bytes(&value, type, (size_t)(json_end(type) - type));
    else
        out_text(&value, "\"keyword\"");
    if (schema && json_type_of(schema) == JSON_OBJECT) {
        out_text(&value, ",\"params\":");
        out_bytes(&value, schema, (size_t)(json_end(schema) - schema));
    }
    out_text(&value, "}");
    put_changed(r, name.failed || value.failed ? memory_failed("an index", name.length)
                                               : notes_put(r->server, name.bytes, value.bytes));
    out_free(&name);
    out_free(&value);
}

void run_unindex(request *r)
{
    out note = {0};
    if (!request_open_collection(r))
        return;
    out_format(&note, "index/%s/%s", r->entry->name, r->names[1]);
    put_changed(r, note.failed ? memory_failed("an index", note.length) : notes_remove(r->server, note.bytes));
    out_free(&note);
}

/* ---- counting ------------------------------------------------------------------------------------------------------------ */

/* An index, and the points that have it. */
typedef struct declared {
    char *field, *value; /* the note */
    json_path path;      /* into `field` */
    const struct kind *kind;
    int64_t points;
    bool found; /* in the payload that is looked at */
} declared;

typedef struct declared_list {
    declared *all;
    size_t count;
    bool failed; /* out of memory */
} declared_list;

static void add_declared(void *user, const char *rest, const char *value)
{
    declared_list *list = user;
    declared *larger = list->failed ? NULL : memory_resize(list->all, (list->count + 1) * sizeof *larger);
    list->failed = !larger;
    if (!larger)
        return;
    list->all = larger;
    declared *d = &larger[list->count++];
    *d = (declared){memory_copy_text(rest, strlen(rest)), memory_copy_text(value, strlen(value)), {{{0}}, 0}, NULL, 0, false};
    list->failed = !d->field || !d->value;
    if (list->failed || json_path_read(d->field, strlen(d->field), &d->path))
        return; /* a key that is no path has no points */
    d->kind = kind_of(json_given(json_root(d->value), "data_type"));
}

static void declared_free(declared_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        memory_free(list->all[i].field);
        memory_free(list->all[i].value);
    }
    memory_free(list->all);
}

static bool look_at_value(void *user, const char *value)
{
    declared *d = user;
    d->found = d->kind->has(value);
    return !d->found;
}

static ww_status count_rows(void *user, const ww_results *rows)
{
    declared_list *list = user;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(rows, 0); i++) {
        const char *payload = ww_results_payload(rows, 0, i);
        status = job_look(i);
        for (size_t k = 0; payload && k < list->count; k++) {
            declared *d = &list->all[k];
            d->found = false;
            if (d->kind)
                (void)json_path_visit(d->path.parts, d->path.count, json_root(payload), &(json_visit){look_at_value, d, true});
            d->points += d->found;
        }
    }
    return status;
}

/* Writes the list with the numbers, or without: then it is what the numbers depend on, besides the points. */
static void put_declared(out *o, const declared_list *list, bool counted)
{
    out_text(o, "{");
    for (size_t i = 0; i < list->count; i++) {
        const declared *d = &list->all[i];
        const char *points = json_given(json_root(d->value), "points"); /* earlier versions kept a 0 at the end */
        const size_t length = strlen(d->value) - (points ? strlen(",\"points\":0}") : 1);
        out_text(o, i > 0 ? "," : "");
        out_quoted(o, d->field, strlen(d->field));
        out_text(o, ":");
        out_bytes(o, d->value, length);
        if (counted)
            out_format(o, ",\"points\":%lld", (long long)d->points);
        out_text(o, "}");
    }
    out_text(o, "}");
}

/* Writes what was found before, if it is for the same points and indexes. */
static bool put_known(out *o, entry *e, uint64_t digest, const char *indexes)
{
    server *s = e->queue.server;
    pthread_mutex_lock(&s->lock);
    const bool known = e->counted.text && e->counted.digest == digest && strcmp(e->counted.indexes, indexes) == 0;
    if (known)
        out_text(o, e->counted.text);
    pthread_mutex_unlock(&s->lock);
    return known;
}

static void keep_known(entry *e, uint64_t digest, const char *indexes, const char *text)
{
    server *s = e->queue.server;
    const index_counts made = {memory_copy_text(indexes, strlen(indexes)), memory_copy_text(text, strlen(text)), digest};
    pthread_mutex_lock(&s->lock);
    const index_counts old = e->counted;
    e->counted = made.indexes && made.text ? made : (index_counts){0};
    pthread_mutex_unlock(&s->lock);
    memory_free(old.indexes);
    memory_free(old.text);
    if (!made.indexes || !made.text) {
        memory_free(made.indexes);
        memory_free(made.text);
    }
}

void indexes_forget(entry *e)
{
    memory_free(e->counted.indexes);
    memory_free(e->counted.text);
    e->counted = (index_counts){0};
}

ww_status indexes_put(out *o, entry *e)
{
    declared_list list = {0};
    out prefix = {0}, indexes = {0}, text = {0};
    uint64_t before = 0, after = 0;
    out_format(&prefix, "index/%s/", e->name);
    ww_status status = prefix.failed ? memory_failed("indexes", strlen(e->name)) : WW_OK;
    if (status == WW_OK)
        status = notes_each(e->queue.server, prefix.bytes, add_declared, &list);
    /* A store of an earlier version has no digest until somebody writes to it: then its points are counted each time. */
    const bool dated = status == WW_OK && list.count > 0 && ww_collection_digest(e->collection, &before) == WW_OK;
    put_declared(&indexes, &list, false);
    if (status == WW_OK && (list.failed || indexes.failed))
        status = memory_failed("indexes", indexes.length);
    if (status == WW_OK && !(dated && put_known(o, e, before, indexes.bytes))) {
        status = list.count > 0 ? rows_each(e, &(const point_filter){0}, WW_FETCH_PAYLOADS, count_rows, &list) : WW_OK;
        put_declared(&text, &list, true);
        if (status == WW_OK && text.failed)
            status = memory_failed("indexes", text.length);
        if (status == WW_OK && dated && ww_collection_digest(e->collection, &after) == WW_OK && after == before)
            keep_known(e, before, indexes.bytes, text.bytes);
        out_text(o, status == WW_OK ? text.bytes : "{}");
    }
    out_free(&prefix);
    out_free(&indexes);
    out_free(&text);
    declared_free(&list);
    return status;
}
