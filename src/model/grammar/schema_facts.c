/* What can be read from a schema without writing anything. */
#include "model/grammar/schema.h"

#include <string.h>

enum { REF_BYTES_MAX = 1024, REFS_MAX = 32, DISJOINT_DEPTH_MAX = 4 };

const char *const JSON_KINDS[JSON_KIND_COUNT] = {"null", "boolean", "integer", "number", "string", "array", "object"};

/* ---- $ref ---------------------------------------------------------------------------------------------------------------- */

static const json_t *child_of(const json_t *parent, const char *name)
{
    if (!json_is_array(parent))
        return json_object_get(parent, name);
    size_t index = 0;
    for (; *name >= '0' && *name <= '9' && index < SCHEMAS_MAX; name++)
        index = 10 * index + (size_t)(*name - '0');
    return *name ? NULL : json_array_get(parent, index);
}

const json_t *schema_follow(schema_writer *w, const json_t *ref)
{
    const char *text = json_string_value(ref);
    const json_t *found = text && text[0] == '#' && strlen(text) < REF_BYTES_MAX ? w->root : NULL;
    for (const char *at = found ? text + 1 : ""; found && *at;) {
        char name[REF_BYTES_MAX];
        size_t bytes = 0;
        if (*at++ != '/')
            found = NULL;
        for (; *at && *at != '/'; at++) {
            const bool escaped = *at == '~' && (at[1] == '0' || at[1] == '1');
            name[bytes++] = !escaped ? *at : at[1] == '0' ? '~' : '/';
            at += escaped;
        }
        name[bytes] = '\0';
        found = found ? child_of(found, name) : NULL;
    }
    if (!found)
        schema_refuse(w, "$ref '%.100s' is not a schema of this text; it must be like #/$defs/NAME", text ? text : "(no text)");
    return found;
}

static const json_t *follow_all(schema_writer *w, const json_t *schema)
{
    for (int i = 0; schema && i < REFS_MAX && json_object_get(schema, "$ref"); i++)
        schema = schema_follow(w, json_object_get(schema, "$ref"));
    return schema;
}

/* ---- kinds --------------------------------------------------------------------------------------------------------------- */

int json_kind_of(const json_t *value)
{
    const json_type type = json_typeof(value);
    return type == JSON_NULL      ? NULLS
           : type == JSON_INTEGER ? INTEGERS | NUMBERS
           : type == JSON_REAL    ? NUMBERS
           : type == JSON_STRING  ? STRINGS
           : type == JSON_ARRAY   ? ARRAYS
           : type == JSON_OBJECT  ? OBJECTS
                                  : BOOLEANS;
}

static int kind_named(schema_writer *w, const json_t *name)
{
    for (int i = 0; json_is_string(name) && i < JSON_KIND_COUNT; i++)
        if (strcmp(JSON_KINDS[i], json_string_value(name)) == 0)
            return 1 << i;
    schema_refuse(w, "type '%.100s' is not one of JSON's types", json_is_string(name) ? json_string_value(name) : "(no text)");
    return 0;
}

int schema_kinds(schema_writer *w, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    int kinds = 0;
    if (!json_is_array(type))
        return type ? kind_named(w, type) : 0;
    for (size_t i = 0; i < json_array_size(type); i++)
        kinds |= kind_named(w, json_array_get(type, i));
    if (kinds == 0)
        schema_refuse(w, "type is an empty list");
    return kinds;
}
/* ---- oneOf --------------------------------------------------------------------------------------------------------------- */

static bool same_value(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b) : json_equal(a, b);
}

const json_t *schema_value(const json_t *schema, size_t i)
{
    const json_t *constant = json_object_get(schema, "const");
    return constant ? (i == 0 ? constant : NULL) : json_array_get(json_object_get(schema, "enum"), i);
}

static int kinds_of(schema_writer *w, const json_t *schema)
{
    int kinds = schema_kinds(w, schema);
    for (size_t i = 0; schema_value(schema, i); i++)
        kinds |= json_kind_of(schema_value(schema, i));
    kinds |= kinds & NUMBERS ? INTEGERS : 0;
    return kinds ? kinds : -1;
}

bool schemas_disjoint(schema_writer *w, const json_t *a, const json_t *b, int depth)
{
    a = follow_all(w, a);
    b = follow_all(w, b);
    if (!json_is_object(a) || !json_is_object(b) || depth > DISJOINT_DEPTH_MAX)
        return false;
    const json_t *names = json_object_get(a, "required"), *others = json_object_get(b, "required");
    bool apart = schema_value(a, 0) && schema_value(b, 0);
    for (size_t i = 0; apart && schema_value(a, i); i++)
        for (size_t k = 0; apart && schema_value(b, k); k++)
            apart = !same_value(schema_value(a, i), schema_value(b, k));
    if (apart || !(kinds_of(w, a) & kinds_of(w, b)))
        return true;
    if (kinds_of(w, a) != OBJECTS || kinds_of(w, b) != OBJECTS)
        return false;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        bool both = false;
        for (size_t k = 0; name && k < json_array_size(others); k++)
            both |= json_equal(json_array_get(names, i), json_array_get(others, k));
        const json_t *left = both ? json_object_get(json_object_get(a, "properties"), name) : NULL;
        const json_t *right = both ? json_object_get(json_object_get(b, "properties"), name) : NULL;
        if (left && right && schemas_disjoint(w, left, right, depth + 1))
            return true;
    }
    return false;
}
