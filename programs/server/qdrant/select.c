/* Which parts of a point an answer has. */
#include "server/qdrant/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <warpwave/selection.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/vectors/multi.h"
#include "server/qdrant/vectors/sparse.h"

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static bool read_keys(request *r, const char *list, selection *with)
{
    size_t count = 0;
    if (json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "with_payload: a list of keys is needed");
    for (const char *at = json_first(list); at; at = json_next(at), count++)
        if (json_type_of(at) != JSON_TEXT)
            return request_fail(r, 400, "with_payload[%zu]: a text is needed", count);
    if (count > PAYLOAD_KEYS_MAX)
        return request_fail(r, 400, "with_payload: %zu keys; the maximum is %d", count, PAYLOAD_KEYS_MAX);
    with->keys = memory_alloc_zeroed(count + 1, sizeof *with->keys);
    if (!with->keys)
        return request_fail_status(r, memory_failed("keys of a payload", count * sizeof *with->keys));
    for (const char *at = json_first(list); at; at = json_next(at))
        if (!values_key_read(r, at, "with_payload", &with->keys[with->key_count++]))
            return false;
    return true;
}

bool parts_read(request *r, const char *object, selection *with)
{
    const char *payload = json_given(object, "with_payload"), *vector = json_given(object, "with_vector");
    vector = vector ? vector : json_given(object, "with_vectors");
    if (vector && json_type_of(vector) != JSON_TRUE && json_type_of(vector) != JSON_FALSE && json_type_of(vector) != JSON_LIST)
        return request_fail(r, 400, "with_vector: true, false or a list of names is needed");
    if (vector)
        with->vector = json_type_of(vector) == JSON_TRUE || (json_type_of(vector) == JSON_LIST && json_first(vector));
    with->vector_names = vector && json_type_of(vector) == JSON_LIST ? vector : NULL;
    if (!payload)
        return true;
    with->payload = json_type_of(payload) != JSON_FALSE;
    switch (json_type_of(payload)) {
    case JSON_TRUE:
    case JSON_FALSE:
        return true;
    case JSON_LIST:
        return read_keys(r, payload, with);
    case JSON_OBJECT: {
        const char *include = json_given(payload, "include"), *exclude = json_given(payload, "exclude");
        with->exclude = !include && exclude;
        if (include || exclude)
            return read_keys(r, include ? include : exclude, with);
        break;
    }
    default:
        break;
    }
    return request_fail(r, 400, "with_payload: true, false, a list of keys, or an object with include or exclude is needed");
}

void parts_free(selection *s)
{
    for (size_t i = 0; i < s->key_count; i++)
        values_key_free(&s->keys[i]);
    memory_free(s->keys);
    *s = (selection){0};
}

bool vector_name_read(const char *value, char name[128])
{
    name[0] = '\0';
    if (!value)
        return true;
    if (json_type_of(value) != JSON_TEXT || json_end(value) - value > 120)
        return false;
    name[json_text_read(value, name)] = '\0';
    return true;
}

uint32_t parts_fetch(const selection *s)
{
    return WW_FETCH_IDS | (s->payload ? (uint32_t)WW_FETCH_PAYLOADS : 0) | (s->vector ? (uint32_t)WW_FETCH_VECTORS : 0);
}

/* ---- parts of payloads --------------------------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 64 };

/* One step from a payload's root to a value: the key of a member, or the number of an element. */
typedef struct step {
    const char *key; /* as JSON; NULL: an element */
    int64_t number;
} step;

/* Where a value is. */
typedef struct step_list {
    step steps[DEPTH_MAX];
    size_t count;
} step_list;

typedef enum chosen { CHOSEN_NONE, CHOSEN_PARTS, CHOSEN_ALL } chosen;

static bool step_is(const step *s, const json_part *part)
{
    if (part->step == JSON_KEY)
        return s->key && json_text_is(s->key, part->text, part->length);
    return !s->key && (part->step == JSON_EACH || part->index == s->number);
}

/* Is the path one of the keys, is it above one of them, or neither? */
static chosen choose(const selection *s, const step_list *at)
{
    chosen found = CHOSEN_NONE;
    for (size_t i = 0; i < s->key_count; i++) {
        const values_path key = values_path_of(&s->keys[i]);
        size_t same = 0;
        while (same < at->count && same < (size_t)key.count && step_is(&at->steps[same], &key.parts[same]))
            same++;
        if (same == at->count && same == (size_t)key.count)
            return CHOSEN_ALL;
        if (same == at->count)
            found = CHOSEN_PARTS;
    }
    return found;
}

static void put_parts(out *o, const selection *s, const char *value, step_list *path);

/* Writes the chosen part of a member of an object or an element of a list, `at`, to which the path leads. */
static void put_part(out *o, const selection *s, const char *at, step_list *path, bool *begun)
{
    const bool member = path->steps[path->count - 1].key != NULL;
    const char *value = member ? json_member(at) : at;
    const chosen c = choose(s, path);
    if (c == (s->exclude ? CHOSEN_ALL : CHOSEN_NONE))
        return;
    out_text(o, *begun ? "," : "");
    *begun = true;
    if (member) {
        out_bytes(o, at, (size_t)(json_end(at) - at));
        out_bytes(o, ":", 1);
    }
    if (c == CHOSEN_PARTS)
        put_parts(o, s, value, path);
    else
        out_bytes(o, value, (size_t)(json_end(value) - value));
}

/* Writes the parts of the value at a path that the keys choose. Keys have fewer parts than DEPTH_MAX, so no deeper value is
 * above one of them. */
static void put_parts(out *o, const selection *s, const char *value, step_list *path)
{
    const json_type type = json_type_of(value);
    bool begun = false;
    if ((type != JSON_OBJECT && type != JSON_LIST) || path->count == DEPTH_MAX) {
        out_bytes(o, value, (size_t)(json_end(value) - value));
        return;
    }
    int64_t number = 0;
    out_text(o, type == JSON_OBJECT ? "{" : "[");
    path->count++;
    for (const char *at = json_first(value); at; at = json_next(at), number++) {
        path->steps[path->count - 1] = (step){type == JSON_OBJECT ? at : NULL, number};
        put_part(o, s, at, path, &begun);
    }
    path->count--;
    out_text(o, type == JSON_OBJECT ? "}" : "]");
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

void put_point_id(out *o, const char *id)
{
    uint64_t number = 0;
    if (point_id_is_number(id, strlen(id), &number))
        out_text(o, id);
    else
        out_quoted(o, id, strlen(id));
}

/* A cosine collection stores vectors unchanged; Qdrant's clients expect length 1. */
static void put_vector(out *o, const entry *e, const float *vector)
{
    if (e->metric != WW_COSINE) {
        out_floats(o, vector, e->dim);
        return;
    }
    double sum = 0;
    for (int32_t i = 0; i < e->dim; i++)
        sum += (double)vector[i] * (double)vector[i];
    const double norm = sum > 0 ? sqrt(sum) : 1;
    out_bytes(o, "[", 1);
    for (int32_t i = 0; i < e->dim; i++) {
        if (i > 0)
            out_bytes(o, ",", 1);
        out_float(o, (float)((double)vector[i] / norm));
    }
    out_bytes(o, "]", 1);
}

/* Was this vector asked for? */
static bool wants_vector(const selection *with, const char *name)
{
    for (const char *at = with->vector_names ? json_first(with->vector_names) : NULL; at; at = json_next(at))
        if (json_type_of(at) == JSON_TEXT && json_text_is(at, name, strlen(name)))
            return true;
    return !with->vector_names;
}

void put_named_vectors(out *o, const point *p, vector_writer put)
{
    const char *id = ww_results_id(p->results, p->query, p->hit);
    const bool named = p->entry->part_count != 1 || p->entry->parts[0].name[0] != '\0';
    bool begun = false;
    out_text(o, named ? "{" : "");
    for (size_t i = 0; i < p->entry->part_count; i++) {
        const entry *part = &p->entry->parts[i];
        ww_results *found = NULL;
        if (!wants_vector(p->with, part->name))
            continue;
        const uint32_t fetch = part->sparse ? WW_FETCH_SPARSE : part->multi ? WW_FETCH_MULTI : WW_FETCH_VECTORS;
        const ww_status status = points_get(part, &id, 1, WW_FETCH_IDS | fetch, &found);
        o->failed = o->failed || status != WW_OK;
        if (status == WW_OK && ww_results_id(found, 0, 0)) {
            out_text(o, begun ? "," : "");
            if (named)
                out_quoted(o, part->name, strlen(part->name));
            out_text(o, named ? ":" : "");
            if (part->sparse)
                put_sparse(o, found, 0, 0);
            else if (part->multi)
                put_multi(o, part, found, put);
            else
                put(o, part, ww_results_vector(found, 0, 0));
            begun = true;
        }
        ww_results_destroy(found);
    }
    out_text(o, named ? "}" : begun ? "" : "{}");
}

/* Writes the selected parts, "payload" and "vector", with a comma before each. */
static void put_point_parts(out *o, const point *p)
{
    if (p->with->payload) {
        const char *payload = ww_results_payload(p->results, p->query, p->hit);
        out_text(o, ",\"payload\":");
        if (!payload)
            out_text(o, "{}");
        else if (p->with->keys)
            put_parts(o, p->with, json_root(payload), &(step_list){.count = 0});
        else
            out_text(o, payload);
    }
    if (p->with->vector && p->entry->split) {
        out_text(o, ",\"vector\":");
        put_named_vectors(o, p, put_vector);
        return;
    }
    const float *vector = p->with->vector ? ww_results_vector(p->results, p->query, p->hit) : NULL;
    if (vector) {
        out_text(o, ",\"vector\":");
        put_vector(o, p->entry, vector);
    }
}

void put_record_begin(out *o, const point *p)
{
    o->points++;
    out_text(o, "{\"id\":");
    put_point_id(o, ww_results_id(p->results, p->query, p->hit));
    put_point_parts(o, p);
}

void put_record(out *o, const point *p)
{
    put_record_begin(o, p);
    out_text(o, "}");
}

void put_scored_begin(out *o, const point *p, double score)
{
    o->points++;
    out_text(o, "{\"id\":");
    put_point_id(o, ww_results_id(p->results, p->query, p->hit));
    out_text(o, ",\"version\":0,\"score\":");
    if ((double)(float)score == score)
        out_float(o, (float)score);
    else
        out_double(o, score);
    put_point_parts(o, p);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

ww_status points_get(const entry *e, const char *const *ids, int64_t count, uint32_t fetch, ww_results **found)
{
    ww_get get = ww_get_default();
    get.count = count;
    get.ids = ids;
    get.fetch = fetch;
    get.cancel = job_cancel();
    return ww_collection_get(e->collection, &get, found);
}

ww_status point_get(const entry *e, const char *id, const ww_filter *seen, uint32_t fetch, ww_results **found)
{
    const ww_status status = points_get(e, &id, 1, fetch | WW_FETCH_IDS | (seen ? (uint32_t)WW_FETCH_PAYLOADS : 0), found);
    if (status != WW_OK)
        return status;
    return ww_results_id(*found, 0, 0) && filter_admits(seen, id, ww_results_payload(*found, 0, 0))
               ? WW_OK
               : ww_fail(WW_NOT_FOUND, "Not found: No point with id %s found", id);
}

/* A selection that ends when the job is over. */
static ww_selection selection_begin(void)
{
    ww_selection rows = ww_selection_default();
    rows.cancel = job_cancel();
    return rows;
}

ww_status rows_each(const entry *e, const point_filter *filter, uint32_t fetch,
                    ww_status (*tell)(void *user, const ww_results *rows), void *user)
{
    enum { ROWS_AT_ONCE = 16384 };
    ww_selection rows = selection_begin();
    ww_filter *resolved = NULL;
    ww_status status = filter_resolve(e, filter, &resolved);
    rows.filter = resolved ? resolved : filter->filter;
    rows.limit = ROWS_AT_ONCE;
    for (int64_t count = rows.limit; status == WW_OK && count == rows.limit;) {
        ww_results *found = NULL;
        status = ww_collection_select(e->collection, &rows, fetch, &found);
        count = ww_results_count(found, 0);
        if (status == WW_OK)
            status = tell(user, found);
        if (count > 0)
            rows.first_handle = ww_results_handles(found, 0)[count - 1] + 1;
        ww_results_destroy(found);
    }
    ww_filter_destroy(resolved);
    return status;
}

ww_status rows_matching(const entry *e, const point_filter *filter, uint32_t fetch, ww_results **results)
{
    ww_selection rows = selection_begin();
    ww_filter *resolved = NULL;
    ww_status status = filter_resolve(e, filter, &resolved);
    rows.filter = resolved ? resolved : filter->filter;
    if (status == WW_OK)
        status = ww_collection_select(e->collection, &rows, fetch, results);
    ww_filter_destroy(resolved);
    return status;
}

ww_status rows_count(const entry *e, const point_filter *filter, int64_t *count)
{
    ww_collection_info info = ww_collection_info_default();
    if (!filter->filter) {
        const ww_status described = ww_collection_describe(e->collection, &info);
        *count = info.rows_live;
        return described;
    }
    ww_selection rows = selection_begin();
    ww_filter *resolved = NULL;
    ww_status status = filter_resolve(e, filter, &resolved);
    rows.filter = resolved ? resolved : filter->filter;
    if (status == WW_OK)
        status = ww_collection_select_count(e->collection, &rows, count);
    ww_filter_destroy(resolved);
    return status;
}
