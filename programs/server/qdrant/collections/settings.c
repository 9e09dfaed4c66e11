/* Settings of collections. They are a note, "settings/NAME", with the members that were given; those of single vectors are in
 * its member "vectors", by name. */
#include "server/qdrant/collections/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/collections/vectors.h"
#include "server/qdrant/payload.h"
#include "server/qdrant/vectors/sparse.h"
#include "server/work/changes.h"

/* What is kept, and what is shown of it where nothing was given. */
typedef struct setting {
    const char *name;  /* in the bodies of PUT and PATCH */
    const char *shown; /* in the description; NULL: only if it was given */
    const char *usual; /* a JSON object, with which what was given is merged; NULL: none */
    bool number;       /* a member of params */
} setting;

static const setting settings[] = {
    {"shard_number", "shard_number", "1", true},
    {"replication_factor", "replication_factor", "1", true},
    {"write_consistency_factor", "write_consistency_factor", "1", true},
    {"on_disk_payload", "on_disk_payload", "true", true},
    {"hnsw_config", "hnsw_config",
     "{\"m\":0,\"ef_construct\":4,\"full_scan_threshold\":10000,\"max_indexing_threads\":0,\"on_disk\":false}", false},
    {"optimizers_config", "optimizer_config",
     "{\"deleted_threshold\":0.2,\"vacuum_min_vector_number\":1000,\"default_segment_number\":0,\"max_segment_size\":null,"
     "\"memmap_threshold\":null,\"indexing_threshold\":0,\"flush_interval_sec\":0,\"max_optimization_threads\":1}",
     false},
    {"wal_config", "wal_config", "{\"wal_capacity_mb\":32,\"wal_segments_ahead\":0}", false},
    {"quantization_config", "quantization_config", "null", false},
    {"strict_mode_config", NULL, NULL, false},
    {"metadata", NULL, NULL, false},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Of one vector. A datatype and a size cannot be changed, so the store keeps those. */
static const struct {
    const char *name;
    json_type type;
} vector_settings[] = {{"on_disk", JSON_TRUE}, {"hnsw_config", JSON_OBJECT}, {"quantization_config", JSON_OBJECT}};
enum { VECTOR_SETTINGS = sizeof vector_settings / sizeof *vector_settings };

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

bool settings_check_vector(request *r, const char *vector)
{
    for (size_t i = 0; i < VECTOR_SETTINGS; i++) {
        const char *value = json_given(vector, vector_settings[i].name);
        const bool boolean = vector_settings[i].type == JSON_TRUE;
        bool read = false;
        if (boolean && !request_read_bool(r, vector, vector_settings[i].name, &read))
            return false;
        if (value && !boolean && json_type_of(value) != JSON_OBJECT)
            return request_fail(r, 400, "vectors.%s: an object is needed", vector_settings[i].name);
        if (value && json_end(value) - value > VECTOR_SETTINGS_BYTES_MAX)
            return request_fail(r, 400, "vectors.%s: has more than %d bytes", vector_settings[i].name,
                                VECTOR_SETTINGS_BYTES_MAX);
    }
    return true;
}

/* Is this one vector, and not an object with several by name? */
static bool is_one_vector(const char *vectors)
{
    const char *size = json_given(vectors, "size");
    return size && json_type_of(size) == JSON_NUMBER;
}

static bool check_vectors(request *r, const char *vectors)
{
    if (vectors && json_type_of(vectors) != JSON_OBJECT)
        return request_fail(r, 400, "vectors: an object is needed");
    if (vectors && is_one_vector(vectors))
        return settings_check_vector(r, vectors);
    for (const char *key = vectors ? json_first(vectors) : NULL; key; key = json_next(key)) {
        if (json_type_of(json_member(key)) != JSON_OBJECT)
            return request_fail(r, 400, "vectors: an object with the settings of each vector is needed");
        if (!settings_check_vector(r, json_member(key)))
            return false;
    }
    return true;
}

bool settings_check(request *r, const char *body)
{
    const char *quantization = json_given(body, "quantization_config");
    const char *params = json_given(body, "params");
    if (params && json_type_of(params) != JSON_OBJECT)
        return request_fail(r, 400, "params: an object is needed");
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *value = json_given(body, settings[i].name);
        int64_t number = 0;
        if (!value)
            continue;
        if (settings[i].number && json_type_of(value) == JSON_NUMBER &&
            !request_read_integer(r, body, settings[i].name, 1, &number))
            return false;
        if (!settings[i].number && json_type_of(value) != JSON_OBJECT && value != quantization)
            return request_fail(r, 400, "%s: an object is needed", settings[i].name);
        if (json_end(value) - value > SETTINGS_BYTES_MAX)
            return request_fail(r, 400, "%s: has more than %d bytes", settings[i].name, SETTINGS_BYTES_MAX);
    }
    return check_vectors(r, json_given(body, "vectors")) && strict_check(r, json_given(body, "strict_mode_config"));
}

/* ---- keeping ------------------------------------------------------------------------------------------------------------- */

static void read_limits(entry *e, const char *kept)
{
    strict_load(e, kept ? json_given(json_root(kept), "strict_mode_config") : NULL);
}

typedef struct kept_text {
    char *value;
    bool failed;
} kept_text;

static void tell_kept(void *user, const char *rest, const char *value)
{
    kept_text *k = user;
    if (rest[0] != '\0')
        return; /* of a collection with a longer name */
    k->value = memory_copy_text(value, strlen(value));
    k->failed = !k->value;
}

/* The settings of a collection as JSON (memory_free()); NULL: there are none. */
static ww_status read_kept(server *s, const char *collection, char **kept)
{
    char name[300];
    kept_text found = {NULL, false};
    snprintf(name, sizeof name, "settings/%s", collection);
    const ww_status status = notes_each(s, name, tell_kept, &found);
    *kept = found.value;
    return status == WW_OK && found.failed ? memory_failed("settings", 1) : status;
}

/* Writes the member of the new settings: what was given, merged with the old if both are objects. */
static void put_member(out *o, const char *name, const char *given, const char *old)
{
    const char *value = given ? given : old;
    if (!value)
        return;
    out_format(o, "%s\"%s\":", o->bytes[o->length - 1] == '{' ? "" : ",", name);
    if (given && old && json_type_of(given) == JSON_OBJECT && json_type_of(old) == JSON_OBJECT)
        payload_put_merged(o, old, given);
    else
        out_bytes(o, value, (size_t)(json_end(value) - value));
}

/* Writes what is kept of one vector: what was given, and the old for what was not. */
static void put_vector(out *o, const char *given, const char *old)
{
    bool begun = false;
    out_text(o, "{");
    for (size_t i = 0; i < VECTOR_SETTINGS; i++) {
        const char *value = given ? json_given(given, vector_settings[i].name) : NULL;
        value = value || !old ? value : json_given(old, vector_settings[i].name);
        if (!value)
            continue;
        out_format(o, "%s\"%s\":", begun ? "," : "", vector_settings[i].name);
        out_bytes(o, value, (size_t)(json_end(value) - value));
        begun = true;
    }
    out_text(o, "}");
}

/* The member of the objects with the same key; NULL: there is none. */
static const char *same_member(const char *object, const char *key)
{
    for (const char *at = object ? json_first(object) : NULL; at; at = json_next(at))
        if (json_end(at) - at == json_end(key) - key && memcmp(at, key, (size_t)(json_end(key) - key)) == 0)
            return json_member(at);
    return NULL;
}

/* Writes ,"vectors":{"image":{...}}: the old ones, changed by the new ones. One without a name is given as itself. */
static void put_vectors(out *o, const char *given, const char *old)
{
    const bool one = given && is_one_vector(given);
    const char *by_name = one ? NULL : given;
    bool begun = false;
    if (!given && !old)
        return;
    out_format(o, "%s\"vectors\":{", o->bytes[o->length - 1] == '{' ? "" : ",");
    if (one) {
        out_text(o, "\"\":");
        put_vector(o, given, old ? json_find(old, "", 0) : NULL);
        begun = true;
    }
    for (const char *key = by_name ? json_first(by_name) : NULL; key; key = json_next(key)) {
        out_text(o, begun ? "," : "");
        out_bytes(o, key, (size_t)(json_end(key) - key));
        out_text(o, ":");
        put_vector(o, json_member(key), same_member(old, key));
        begun = true;
    }
    for (const char *key = old ? json_first(old) : NULL; key; key = json_next(key)) {
        if (same_member(by_name, key) || (one && json_text_is(key, "", 0)))
            continue;
        out_text(o, begun ? "," : "");
        out_bytes(o, key, (size_t)(json_end(json_member(key)) - key));
        begun = true;
    }
    out_text(o, "}");
}

ww_status settings_keep(server *s, const char *collection, entry *e, const char *body)
{
    char *kept = NULL, name[300];
    out new = {0};
    ww_status status = read_kept(s, collection, &kept);
    const char *params = json_given(body, "params"), *old = kept ? json_root(kept) : NULL;
    out_text(&new, "{");
    for (size_t i = 0; status == WW_OK && !new.failed &&i < SETTINGS; i++) {
        const char *given = json_given(body, settings[i].name);
        if (!given && params)
            given = json_given(params, settings[i].name);
        put_member(&new, settings[i].name, given, old ? json_given(old, settings[i].name) : NULL);
    }
    if (status == WW_OK && !new.failed)
        put_vectors(&new, json_given(body, "vectors"), old ? json_given(old, "vectors") : NULL);
    out_text(&new, "}");
    snprintf(name, sizeof name, "settings/%s", collection);
    if (status == WW_OK && new.failed)
        status = memory_failed("settings", new.length);
    if (status == WW_OK && (kept || new.length > 2))
        status = notes_put(s, name, new.bytes);
    if (status == WW_OK && e && !changes_are_shared())
        read_limits(e, new.bytes);
    memory_free(kept);
    out_free(&new);
    return status;
}

ww_status settings_keep_vector(server *s, entry *e, const char *name, const char *vector)
{
    out body = {0};
    out_text(&body, "{\"vectors\":{");
    out_quoted(&body, name, strlen(name));
    out_text(&body, ":");
    if (vector)
        put_vector(&body, vector, NULL);
    else /* nothing of it shall be shown if a vector gets the name again */
        out_text(&body, "{\"on_disk\":false,\"hnsw_config\":{},\"quantization_config\":{}}");
    out_text(&body, "}}");
    const ww_status status =
        body.failed ? memory_failed("settings", body.length) : settings_keep(s, e->name, e, json_root(body.bytes));
    out_free(&body);
    return status;
}

ww_status settings_forget(server *s, const char *collection)
{
    char name[300];
    snprintf(name, sizeof name, "settings/%s", collection);
    return notes_remove(s, name);
}

ww_status settings_load(server *s, entry *e)
{
    char *kept = NULL;
    const ww_status status = read_kept(s, e->name, &kept);
    if (status == WW_OK)
        read_limits(e, kept);
    memory_free(kept);
    return status;
}

/* ---- showing ------------------------------------------------------------------------------------------------------------- */

static void put_setting(out *o, const setting *one, const char *given)
{
    const char *usual = one->usual ? json_root(one->usual) : NULL;
    out_format(o, "\"%s\":", one->shown ? one->shown : one->name);
    if (given && usual && json_type_of(usual) == JSON_OBJECT)
        payload_put_merged(o, usual, given);
    else if (given)
        out_bytes(o, given, (size_t)(json_end(given) - given));
    else
        out_text(o, one->usual);
}

void settings_put_vector(out *o, const char *kept)
{
    for (size_t i = 0; kept && i < VECTOR_SETTINGS; i++) {
        const char *value = json_given(kept, vector_settings[i].name);
        if (!value)
            continue;
        out_format(o, ",\"%s\":", vector_settings[i].name);
        out_bytes(o, value, (size_t)(json_end(value) - value));
    }
}

void settings_put(server *s, out *o, const entry *e)
{
    char *kept = NULL;
    (void)read_kept(s, e->name, &kept); /* the description is correct without them */
    const char *root = kept ? json_root(kept) : NULL;
    out_text(o, "\"params\":{\"vectors\":");
    vectors_describe(o, e, root ? json_given(root, "vectors") : NULL);
    sparse_describe(s, o, e);
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].number) {
            out_text(o, ",");
            put_setting(o, &settings[i], root ? json_given(root, settings[i].name) : NULL);
        }
    out_text(o, "}");
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *given = root ? json_given(root, settings[i].name) : NULL;
        if (settings[i].number || (!settings[i].shown && !given))
            continue;
        out_text(o, ",");
        put_setting(o, &settings[i], given);
    }
    memory_free(kept);
}
