/* Settings of collections. They are a note, "settings/NAME", with the members that were given. */
#include "server/qdrant/collections/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/qdrant/payload.h"

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

/* ---- strict mode --------------------------------------------------------------------------------------------------------- */

static const char *const limit_names[STRICT_LIMITS] = {
    [STRICT_QUERY_LIMIT] = "max_query_limit",
    [STRICT_SEARCHES] = "search_max_batchsize",
    [STRICT_POINTS] = "upsert_max_batchsize",
};

/* Refuses limits that would be accepted and not obeyed. */
static bool check_strict(request *r, const char *strict)
{
    for (const char *key = strict ? json_first(strict) : NULL; key; key = json_next(key)) {
        bool known = json_text_is(key, "enabled", 7) || json_type_of(json_member(key)) == JSON_NULL;
        for (size_t i = 0; i < STRICT_LIMITS; i++)
            known = known || json_text_is(key, limit_names[i], strlen(limit_names[i]));
        if (!known)
            return request_fail(r, 501, "strict_mode_config: %.*s is not supported", (int)(json_end(key) - key), key);
    }
    for (size_t i = 0; strict && i < STRICT_LIMITS; i++) {
        int64_t limit = 0;
        if (!request_read_integer(r, strict, limit_names[i], 1, &limit))
            return false;
    }
    return true;
}

static void read_limits(entry *e, const char *kept)
{
    const char *strict = kept ? json_given(json_root(kept), "strict_mode_config") : NULL;
    const char *enabled = strict ? json_given(strict, "enabled") : NULL;
    for (size_t i = 0; i < STRICT_LIMITS; i++) {
        const char *value = enabled && json_type_of(enabled) == JSON_TRUE ? json_given(strict, limit_names[i]) : NULL;
        atomic_store(&e->strict[i], value && json_type_of(value) == JSON_NUMBER ? json_number_of(value).integer : 0);
    }
}

bool settings_obeyed(request *r)
{
    for (size_t i = 0; i < STRICT_LIMITS; i++) {
        const long long limit = atomic_load(&r->entry->strict[i]);
        if (limit > 0 && r->asked[i] > limit)
            return request_fail(r, 400, "strict_mode_config.%s: is %lld, and the request has %lld", limit_names[i], limit,
                                (long long)r->asked[i]);
    }
    return true;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

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
    return check_strict(r, json_given(body, "strict_mode_config"));
}

/* ---- keeping ------------------------------------------------------------------------------------------------------------- */

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

ww_status settings_keep(server *s, entry *e, const char *body)
{
    char *kept = NULL, name[300];
    out new = {0};
    ww_status status = read_kept(s, e->name, &kept);
    const char *params = json_given(body, "params"), *old = kept ? json_root(kept) : NULL;
    out_text(&new, "{");
    for (size_t i = 0; status == WW_OK && !new.failed &&i < SETTINGS; i++) {
        const char *given = json_given(body, settings[i].name);
        if (!given && params)
            given = json_given(params, settings[i].name);
        put_member(&new, settings[i].name, given, old ? json_given(old, settings[i].name) : NULL);
    }
    out_text(&new, "}");
    snprintf(name, sizeof name, "settings/%s", e->name);
    if (status == WW_OK && new.failed)
        status = memory_failed("settings", new.length);
    if (status == WW_OK && (kept || new.length > 2))
        status = notes_put(s, name, new.bytes);
    if (status == WW_OK)
        read_limits(e, new.bytes);
    memory_free(kept);
    out_free(&new);
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

void settings_put(server *s, out *o, const entry *e, const char *vectors)
{
    char *kept = NULL;
    (void)read_kept(s, e->name, &kept); /* the description is correct without them */
    const char *root = kept ? json_root(kept) : NULL;
    out_text(o, "\"params\":{\"vectors\":");
    out_text(o, vectors);
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
