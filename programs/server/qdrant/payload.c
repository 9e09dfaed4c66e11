/* Changing payloads. */
#include "server/qdrant/payload.h"

#include <string.h>

#include "base/json/json_value.h"

static values_path behind(values_path p)
{
    return (values_path){p.parts + 1, p.count - 1};
}

static void put_value(out *o, const char *value)
{
    out_bytes(o, value, (size_t)(json_end(value) - value));
}

/* Writes the comma before a member or an element, if needed. */
static void put_comma(out *o, bool *begun)
{
    out_text(o, *begun ? "," : "");
    *begun = true;
}

static void put_member(out *o, const char *key, const char *value, bool *begun)
{
    put_comma(o, begun);
    put_value(o, key);
    out_text(o, ":");
    put_value(o, value);
}

/* Does the object have the key, a JSON string? */
static bool has_key(const char *object, const char *key)
{
    char name[256];
    const size_t bytes = (size_t)(json_end(key) - key);
    if (bytes <= sizeof name)
        return json_find(object, name, json_text_read(key, name)) != NULL;
    for (const char *at = json_first(object); at; at = json_next(at))
        if ((size_t)(json_end(at) - at) == bytes && memcmp(at, key, bytes) == 0)
            return true;
    return false; /* a longer key is compared as written, with its escapes */
}

static bool is_object(const char *value)
{
    return value && json_type_of(value) == JSON_OBJECT;
}

void payload_put_merged(out *o, const char *old, const char *set)
{
    bool begun = false;
    out_text(o, "{");
    for (const char *key = is_object(old) ? json_first(old) : NULL; key; key = json_next(key))
        if (!has_key(set, key))
            put_member(o, key, json_member(key), &begun);
    for (const char *key = json_first(set); key; key = json_next(key))
        if (json_type_of(json_member(key)) != JSON_NULL)
            put_member(o, key, json_member(key), &begun);
    out_text(o, "}");
}

/* Writes `old` (NULL: none) with `set` merged at the path. A path has at most JSON_PATH_PARTS_MAX parts. */
static void put_set(out *o, const char *old, values_path p, const char *set)
{
    bool begun = false;
    if (p.count == 0) {
        payload_put_merged(o, old, set);
        return;
    }
    if (p.parts->step == JSON_KEY) {
        const char *below = is_object(old) ? json_find(old, p.parts->text, p.parts->length) : NULL;
        out_text(o, "{");
        for (const char *key = is_object(old) ? json_first(old) : NULL; key; key = json_next(key))
            if (!json_text_is(key, p.parts->text, p.parts->length))
                put_member(o, key, json_member(key), &begun);
        put_comma(o, &begun);
        out_quoted(o, p.parts->text, p.parts->length);
        out_text(o, ":");
        put_set(o, below, behind(p), set);
        out_text(o, "}");
        return;
    }
    int64_t number = 0;
    out_text(o, "[");
    for (const char *at = old && json_type_of(old) == JSON_LIST ? json_first(old) : NULL; at; at = json_next(at), number++) {
        put_comma(o, &begun);
        if (p.parts->step == JSON_EACH || number == p.parts->index)
            put_set(o, at, behind(p), set);
        else
            put_value(o, at);
    }
    out_text(o, "]");
}

static void put_without(out *o, const char *old, values_path p)
{
    const json_type type = json_type_of(old);
    bool begun = false;
    if (p.count == 0 || type != (p.parts->step == JSON_KEY ? JSON_OBJECT : JSON_LIST) ||
        (p.count == 1 && p.parts->step == JSON_INDEX)) {
        put_value(o, old);
        return;
    }
    int64_t number = 0;
    out_text(o, type == JSON_OBJECT ? "{" : "[");
    for (const char *at = json_first(old); at; at = json_next(at), number++) {
        const char *value = type == JSON_OBJECT ? json_member(at) : at;
        const bool meant = p.parts->step == JSON_KEY ? json_text_is(at, p.parts->text, p.parts->length)
                                                     : p.parts->step == JSON_EACH || number == p.parts->index;
        if (meant && p.count == 1)
            continue;
        put_comma(o, &begun);
        if (type == JSON_OBJECT) {
            put_value(o, at);
            out_text(o, ":");
        }
        if (meant)
            put_without(o, value, behind(p));
        else
            put_value(o, value);
    }
    out_text(o, type == JSON_OBJECT ? "}" : "]");
}

void payload_put_set(out *o, const char *old, const values_key *key, const char *set)
{
    put_set(o, old ? json_root(old) : NULL, values_path_of(key), set);
}

void payload_put_without(out *o, const char *old, const values_key *key)
{
    put_without(o, json_root(old), values_path_of(key));
}
