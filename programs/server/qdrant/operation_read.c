/* Reading operations on points. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"
#include "server/work/documents.h"

void operation_free(operation *o)
{
    for (int64_t i = 0; o->payloads && i < o->count; i++)
        memory_free(o->payloads[i]);
    for (int64_t i = 0; i < o->named_count; i++) {
        memory_free(o->named[i].values);
        sparse_value_free(&o->named[i].sparse);
        multi_value_free(&o->named[i].multi);
    }
    memory_free(o->named);
    memory_free(o->text_vectors);
    memory_free(o->payloads);
    memory_free(o->ids);
    memory_free(o->texts);
    memory_free(o->vectors);
    point_filter_free(&o->filter);
    memory_free(o->payload);
    point_filter_free(&o->update_filter);
    for (size_t i = 0; i < o->key_count; i++)
        values_key_free(&o->keys[i]);
    memory_free(o->keys);
    *o = (operation){0};
}

/* ---- one point ----------------------------------------------------------------------------------------------------------- */

/* Makes room for one more point with a vector of `dim` numbers; 0: points without vectors. */
static bool reserve(request *r, operation *o, int64_t dim)
{
    if (o->payloads && o->count < o->capacity)
        return true;
    const int64_t larger = o->capacity > 0 ? 2 * o->capacity : 16;
    point_id *ids = memory_resize(o->ids, (size_t)larger * sizeof *ids);
    if (ids)
        o->ids = ids;
    char **payloads = memory_resize(o->payloads, (size_t)larger * sizeof *payloads);
    if (payloads)
        o->payloads = payloads;
    int64_t *texts = memory_resize(o->texts, (size_t)larger * sizeof *texts);
    if (texts)
        o->texts = texts;
    float *vectors = dim > 0 ? memory_resize(o->vectors, (size_t)larger * (size_t)dim * sizeof *vectors) : NULL;
    if (vectors)
        o->vectors = vectors;
    if (!ids || !payloads || !texts || (dim > 0 && !vectors))
        return request_fail_status(r, memory_failed("points", (size_t)larger * ((size_t)dim * sizeof(float) + sizeof *ids)));
    o->capacity = larger;
    return true;
}

static bool read_id(request *r, const char *value, int64_t number, point_id id)
{
    if (value && point_id_read(value, id))
        return true;
    return request_fail(r, 400, "points[%lld].id: an unsigned number of 64 bits or a UUID is needed", (long long)number);
}

/* Says what the vector is instead of a list of numbers. */
static bool refuse_vector(request *r, const char *value, const char *what)
{
    if (is_multi(value))
        return request_fail(r, 501, "%s: a multivector is not supported here", what);
    if (is_sparse(value))
        return request_fail(r, 400, "%s: a sparse vector has a name", what);
    return request_fail(r, 400, "%s: a list of numbers is needed", what);
}

/* The length of a vector; -1 if it is no list of numbers, which is known for certain when they are read. */
static int64_t count_numbers(const char *value)
{
    return value && json_type_of(value) == JSON_LIST ? json_numbers_count(value) : -1;
}

bool point_vector_read(request *r, const char *value, const char *what, float **vector, int64_t *dim)
{
    *dim = count_numbers(value);
    if (*dim <= 0)
        return refuse_vector(r, value, what);
    *vector = memory_alloc((size_t)*dim * sizeof **vector);
    if (!*vector)
        return request_fail_status(r, memory_failed("a vector", (size_t)*dim * sizeof **vector));
    return json_numbers_read(value, *vector) ? true : refuse_vector(r, value, what);
}

bool point_ids_read(request *r, const char *list, const char *what, point_id **ids, int64_t *count)
{
    size_t room = 1;
    if (!list || json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "%s: a list of ids is needed", what);
    for (const char *at = json_first(list); at; at = json_next(at))
        room++;
    *ids = memory_alloc_zeroed(room, sizeof **ids);
    if (!*ids)
        return request_fail_status(r, memory_failed("ids", room * sizeof **ids));
    for (const char *at = json_first(list); at; at = json_next(at))
        if (!point_id_read(at, (*ids)[(*count)++]))
            return request_fail(r, 400, "%s[%lld]: an unsigned number of 64 bits or a UUID is needed", what,
                                (long long)*count - 1);
    return true;
}

/* The place of the next point's vector in the body, for messages. */
typedef char point_place[40];

static const char *vector_place(const operation *o, point_place place)
{
    snprintf(place, sizeof(point_place), "points[%lld].vector", (long long)o->count);
    return place;
}

/* Makes room for one more named vector. */
static bool reserve_named(request *r, operation *o)
{
    if (o->named && o->named_count < o->named_capacity)
        return true;
    const int64_t larger = o->named_capacity > 0 ? 2 * o->named_capacity : 16;
    named_vector *moved = memory_resize(o->named, (size_t)larger * sizeof *moved);
    if (!moved)
        return request_fail_status(r, memory_failed("vectors", (size_t)larger * sizeof *moved));
    o->named = moved;
    o->named_capacity = larger;
    return true;
}

/* Makes room for the vectors of texts, which the model fills in later. */
static bool reserve_texts(request *r, operation *o, int64_t dim)
{
    if (o->text_floats + dim <= o->text_capacity)
        return true;
    const int64_t larger = 2 * o->text_capacity + dim;
    float *moved = memory_resize(o->text_vectors, (size_t)larger * sizeof *moved);
    if (!moved)
        return request_fail_status(r, memory_failed("vectors", (size_t)larger * sizeof *moved));
    o->text_vectors = moved;
    o->text_capacity = larger;
    return true;
}

/* Adds the text that the next vector is made of. Returns the vector's dimension, at most 0: the request failed. */
static int64_t add_text(request *r, const char *value, operation *o, float **base, int64_t offset)
{
    const int64_t dim = document_add(r, value, base, offset);
    o->documents = r->documents;
    return dim;
}

/* The number of the text that was added last. */
static int64_t last_text(const operation *o)
{
    return (int64_t)o->documents->inputs.count - 1;
}

static bool read_named_vector(request *r, const char *value, operation *o, named_vector *v)
{
    point_place place;
    v->text = -1;
    if (is_words(value)) {
        v->is_sparse = true;
        return sparse_document_read(r, value, vector_place(o, place), &v->sparse);
    }
    if (is_document(value)) {
        v->dim = add_text(r, value, o, &o->text_vectors, o->text_floats);
        if (v->dim <= 0 || !reserve_texts(r, o, v->dim))
            return false;
        v->text = last_text(o);
        v->text_offset = o->text_floats;
        o->text_floats += v->dim;
        return true;
    }
    if (is_sparse(value)) {
        v->is_sparse = true;
        return sparse_value_read(r, value, vector_place(o, place), &v->sparse);
    }
    if (is_multi(value)) {
        const bool read = multi_value_read(r, value, vector_place(o, place), &v->multi);
        v->dim = v->multi.dim;
        return read;
    }
    return point_vector_read(r, value, vector_place(o, place), &v->values, &v->dim);
}

/* From now on vectors have names: those that were read have "". */
static bool name_vectors(request *r, operation *o)
{
    const bool unnamed = !o->named;
    for (int64_t i = 0; unnamed && i < o->count; i++) {
        if (!reserve_named(r, o))
            return false;
        o->named[o->named_count++] = (named_vector){.point = i, .dim = o->dim, .text = o->texts[i], .row = i};
    }
    return reserve(r, o, 0) && reserve_named(r, o);
}

/* Reads a vector of the next point; `key` is its name as JSON, NULL for "". */
static bool add_named(request *r, const char *key, const char *value, operation *o)
{
    if (!reserve_named(r, o))
        return false;
    named_vector *v = &o->named[o->named_count++];
    *v = (named_vector){.point = o->count, .row = -1};
    if (!vector_name_read(key, v->name))
        return request_fail(r, 400, "points[%lld].vector: the name of a vector is too long", (long long)o->count);
    return read_named_vector(r, value, o, v);
}

/* {"image": [...], "text": [...]}: the vectors of the next point, which may have none. */
static bool read_named_vectors(request *r, const char *object, operation *o)
{
    if (!name_vectors(r, o))
        return false;
    o->bare = o->bare || (o->kind == OPERATION_UPSERT && !json_first(object));
    for (const char *key = json_first(object); key; key = json_next(key))
        if (!add_named(r, key, json_member(key), o))
            return false;
    return true;
}

static bool read_vector(request *r, const char *value, operation *o)
{
    const char *unnamed = value && json_type_of(value) == JSON_OBJECT ? json_find(value, "", 0) : NULL;
    if (unnamed && !json_next(json_first(value)))
        value = unnamed; /* {"": [...]} is the vector without a name */
    const bool text = is_document(value);
    if (value && json_type_of(value) == JSON_OBJECT && !text && !json_given(value, "indices"))
        return read_named_vectors(r, value, o);
    if (o->named || is_multi(value))
        return name_vectors(r, o) && add_named(r, NULL, value, o);
    const int64_t dim = text ? add_text(r, value, o, &o->vectors, o->count * o->dim) : count_numbers(value);
    point_place place;
    if (dim <= 0)
        return text ? false : refuse_vector(r, value, vector_place(o, place));
    if (o->count == 0)
        o->dim = dim;
    if (dim != o->dim)
        return request_fail(r, 400, "points[%lld].vector: has %lld numbers, and the one before %lld", (long long)o->count,
                            (long long)dim, (long long)o->dim);
    if (!reserve(r, o, dim))
        return false;
    o->texts[o->count] = text ? last_text(o) : -1;
    if (text || json_numbers_read(value, o->vectors + o->count * dim))
        return true;
    return refuse_vector(r, value, vector_place(o, place));
}

/* Copies a payload; if it is missing or null, there is none. */
static bool read_payload(request *r, const char *value, operation *o)
{
    char *copy = NULL;
    if (!o->payloads) /* reserve() has allocated it */
        return request_fail(r, 500, "no room for a payload");
    if (value && json_type_of(value) != JSON_NULL) {
        if (json_type_of(value) != JSON_OBJECT)
            return request_fail(r, 400, "points[%lld].payload: an object is needed", (long long)o->count);
        copy = memory_copy_text(value, (size_t)(json_end(value) - value));
        if (!copy)
            return request_fail_status(r, memory_failed("a payload", (size_t)(json_end(value) - value)));
    }
    o->payloads[o->count] = copy;
    return true;
}

/* The parts of one point of an upsert. */
typedef struct point_parts {
    const char *id, *vector, *payload;
} point_parts;

static bool add_point(request *r, operation *o, point_parts p)
{
    if (!read_vector(r, p.vector, o) || !read_id(r, p.id, o->count, o->ids[o->count]) || !read_payload(r, p.payload, o))
        return false;
    o->count++;
    strict_ask(r, STRICT_POINTS, o->count);
    return true;
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

static bool read_points(request *r, const char *list, operation *o)
{
    if (json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "points: a list is needed");
    for (const char *at = json_first(list); at; at = json_next(at)) {
        if (json_type_of(at) != JSON_OBJECT)
            return request_fail(r, 400, "points[%lld]: an object is needed", (long long)o->count);
        if (!add_point(r, o, (point_parts){json_given(at, "id"), json_given(at, "vector"), json_given(at, "payload")}))
            return false;
    }
    return true;
}

/* One name of {"image": [[...], ...], "text": [...]}, and its next point's vector. */
typedef struct named_column {
    const char *key, *at;
} named_column;

enum { COLUMNS_MAX = 64 };

/* Reads the vectors of the next point, one from each column. */
static bool read_named_columns(request *r, named_column *columns, size_t count, operation *o)
{
    out object = {0};
    for (size_t i = 0; i < count; i++) {
        const char *key = columns[i].key, *at = columns[i].at;
        if (!at) {
            out_free(&object);
            return request_fail(r, 400, "batch: ids and vectors have different lengths");
        }
        out_text(&object, i > 0 ? "," : "{");
        out_bytes(&object, key, (size_t)(json_end(key) - key));
        out_text(&object, ":");
        out_bytes(&object, at, (size_t)(json_end(at) - at));
        columns[i].at = json_next(at);
    }
    out_text(&object, count > 0 ? "}" : "{}");
    const bool read = object.failed ? request_fail_status(r, memory_failed("vectors", object.length))
                                    : read_named_vectors(r, object.bytes, o);
    out_free(&object);
    return read;
}

/* Reads a batch with named vectors. */
static bool read_named_batch(request *r, const char *ids, const char *vectors, const char *payloads, operation *o)
{
    named_column columns[COLUMNS_MAX];
    size_t count = 0;
    for (const char *key = json_first(vectors); key; key = json_next(key)) {
        const char *list = json_member(key);
        if (count == COLUMNS_MAX)
            return request_fail(r, 400, "batch: more than %d names of vectors", COLUMNS_MAX);
        columns[count++] = (named_column){key, json_type_of(list) == JSON_LIST ? json_first(list) : NULL};
    }
    const char *payload = payloads ? json_first(payloads) : NULL;
    for (const char *id = json_first(ids); id; id = json_next(id)) {
        if (payloads && !payload)
            return request_fail(r, 400, "batch: ids and payloads have different lengths");
        if (!read_named_columns(r, columns, count, o) || !read_id(r, id, o->count, o->ids[o->count]) ||
            !read_payload(r, payload, o))
            return false;
        o->count++;
        strict_ask(r, STRICT_POINTS, o->count);
        payload = payload ? json_next(payload) : NULL;
    }
    return true;
}

/* {"ids": [...], "vectors": [...], "payloads": [...]} */
static bool read_columns(request *r, const char *batch, operation *o)
{
    const char *ids = json_given(batch, "ids"), *vectors = json_given(batch, "vectors");
    const char *payloads = json_given(batch, "payloads");
    const bool lists = ids && json_type_of(ids) == JSON_LIST && (!payloads || json_type_of(payloads) == JSON_LIST);
    if (lists && vectors && json_type_of(vectors) == JSON_OBJECT)
        return read_named_batch(r, ids, vectors, payloads, o);
    if (!ids || json_type_of(ids) != JSON_LIST || !vectors || json_type_of(vectors) != JSON_LIST ||
        (payloads && json_type_of(payloads) != JSON_LIST))
        return request_fail(r, 400, "batch: the lists ids and vectors are needed, and payloads if there are any");
    const char *vector = json_first(vectors), *payload = payloads ? json_first(payloads) : NULL;
    for (const char *id = json_first(ids); id; id = json_next(id)) {
        if (!vector || (payloads && !payload))
            return request_fail(r, 400, "batch: ids, vectors and payloads have different lengths");
        if (!add_point(r, o, (point_parts){id, vector, payload}))
            return false;
        vector = json_next(vector);
        payload = payload ? json_next(payload) : NULL;
    }
    return vector || payload ? request_fail(r, 400, "batch: ids, vectors and payloads have different lengths") : true;
}

/* Reads the ids of points, or a filter that finds them. */
static bool read_selector(request *r, const char *object, operation *o)
{
    const char *list = json_given(object, "points");
    if (!list && json_given(object, "filter"))
        return filter_of_request(r, object, "filter", &o->filter);
    if (!list)
        return request_fail(r, 400, "points: a list of ids is needed, or a filter");
    return point_ids_read(r, list, "points", &o->ids, &o->count);
}

/* Reads payload keys: a list of texts, or one text. */
static bool read_keys(request *r, const char *value, operation *o)
{
    const bool list = value && json_type_of(value) == JSON_LIST;
    size_t count = 0;
    if (!value)
        return request_fail(r, 400, "keys: a list of texts is needed");
    for (const char *at = list ? json_first(value) : value; at; at = list ? json_next(at) : NULL)
        count++;
    if (count > PAYLOAD_KEYS_MAX)
        return request_fail(r, 400, "keys: %zu of them; the maximum is %d", count, PAYLOAD_KEYS_MAX);
    o->keys = memory_alloc_zeroed(count + 1, sizeof *o->keys);
    if (!o->keys)
        return request_fail_status(r, memory_failed("keys", count * sizeof *o->keys));
    for (const char *at = list ? json_first(value) : value; at; at = list ? json_next(at) : NULL)
        if (!values_key_read(r, at, list ? "keys" : "key", &o->keys[o->key_count++]))
            return false;
    return true;
}

static bool read_set(request *r, const char *object, operation *o)
{
    const char *payload = json_given(object, "payload"), *key = json_given(object, "key");
    if (!payload || json_type_of(payload) != JSON_OBJECT)
        return request_fail(r, 400, "payload: an object is needed");
    if (key && json_type_of(key) != JSON_TEXT)
        return request_fail(r, 400, "key: a text is needed");
    if (key && !read_keys(r, key, o))
        return false;
    o->payload = memory_copy_text(payload, (size_t)(json_end(payload) - payload));
    return o->payload ? true : request_fail_status(r, memory_failed("a payload", (size_t)(json_end(payload) - payload)));
}

/* update_mode and update_filter */
static bool read_update(request *r, const char *object, operation *o)
{
    static const char *const MODES[] = {
        [UPDATE_OR_INSERT] = "upsert", [INSERT_ONLY] = "insert_only", [UPDATE_ONLY] = "update_only"};
    const char *mode = json_given(object, "update_mode");
    bool known = !mode;
    for (size_t i = 0; mode && json_type_of(mode) == JSON_TEXT && i < sizeof MODES / sizeof *MODES; i++)
        if (json_text_is(mode, MODES[i], strlen(MODES[i]))) {
            o->mode = (update_mode)i;
            known = true;
        }
    if (!known)
        return request_fail(r, 400, "update_mode: upsert, insert_only or update_only is needed");
    return filter_of_request(r, object, "update_filter", &o->update_filter);
}

bool operation_read(request *r, const char *object, operation_kind kind, operation *o)
{
    *o = (operation){.kind = kind, .grant = r->grant && r->grant->seen ? r->grant : NULL};
    if (!request_without_shard(r, object))
        return false;
    if ((kind == OPERATION_UPSERT || kind == OPERATION_UPDATE_VECTORS) && !read_update(r, object, o))
        return false;
    const char *points = json_given(object, "points"), *batch = json_given(object, "batch");
    switch (kind) {
    case OPERATION_UPSERT:
        if (batch && json_type_of(batch) == JSON_OBJECT)
            return read_columns(r, batch, o);
        return points ? read_points(r, points, o) : request_fail(r, 400, "points: a list is needed, or a batch");
    case OPERATION_UPDATE_VECTORS:
        return points ? read_points(r, points, o) : request_fail(r, 400, "points: a list is needed");
    case OPERATION_SET_PAYLOAD:
    case OPERATION_OVERWRITE_PAYLOAD:
        return read_set(r, object, o) && read_selector(r, object, o);
    case OPERATION_DELETE_PAYLOAD:
        return read_keys(r, json_given(object, "keys"), o) && read_selector(r, object, o);
    case OPERATION_DELETE_VECTORS:
        o->vector_names = json_given(object, "vector");
        if (!o->vector_names || json_type_of(o->vector_names) != JSON_LIST)
            return request_fail(r, 400, "vector: a list of names is needed");
        for (const char *at = json_first(o->vector_names); at; at = json_next(at))
            o->bare = o->bare || (json_type_of(at) == JSON_TEXT && json_text_is(at, "", 0));
        return read_selector(r, object, o);
    default:
        return read_selector(r, object, o);
    }
}
