/* Converts JSON schema to GBNF. Each schema becomes a rule r0, r1, ...; further rules of a schema have its name as prefix.
 * Schemas wait in a list, so deep nesting causes no recursion.
 */
#include "model/grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { NAME_BYTES_MAX = 64 };

/* The parts of JSON that the rules of schemas use. */
static const char COMMON[] = "s ::= (\" \" | \"\\n\" [ \\t]{0,20})?\n"
                             "plain ::= [^\\\"\\\\\\x00-\\x1F]\n"
                             "char ::= plain | \"\\\\\" ([\\\"\\\\/bfnrt] | \"u00\" (\"0\" [1-9a-fA-F] | \"1\" [0-9a-fA-F]))\n"
                             "string ::= \"\\\"\" char* \"\\\"\"\n"
                             "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,17})\n"
                             "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n"
                             "boolean ::= \"true\" | \"false\"\n"
                             "null ::= \"null\"\n"
                             "array ::= \"[\" s (value s (\",\" s value s)*)? \"]\"\n"
                             "member ::= string s \":\" s value s\n"
                             "object ::= \"{\" s (member (\",\" s member)*)? \"}\"\n"
                             "value ::= object | array | string | number | boolean | null\n";

void schema_put(schema_writer *w, bool refuse, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (w->status == WW_OK)
        w->status = refuse ? ww_fail(WW_UNSUPPORTED, "JSON schema: %s", text) : text_buffer_add_text(w->out, text);
}

static void lack_memory(schema_writer *w, size_t bytes)
{
    if (w->status == WW_OK)
        w->status = memory_failed("JSON schema", bytes);
}

/* Writes a JSON value as a literal. */
static void write_literal(schema_writer *w, const json_t *value)
{
    const size_t bytes = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    char *text = bytes ? memory_alloc(bytes + 1) : NULL;
    if (!text) {
        lack_memory(w, bytes);
        return;
    }
    text[json_dumpb(value, text, bytes, JSON_COMPACT | JSON_ENCODE_ANY)] = '\0';
    gbnf_write(w, "\"");
    for (const char *from = text; *from && w->status == WW_OK;) {
        const size_t plain = strcspn(from, "\"\\");
        w->status = text_buffer_add(w->out, from, plain);
        from += plain;
        if (*from)
            gbnf_write(w, "\\%c", *from++);
    }
    gbnf_write(w, "\" ");
    memory_free(text);
}

/* The number of a schema's rule; a new schema is added to the list, to be written later. */
static int rule_of(schema_writer *w, const json_t *schema)
{
    for (int i = 0; i < w->count; i++)
        if (w->schemas[i] == schema)
            return i;
    if (w->count == SCHEMAS_MAX) {
        schema_refuse(w, "there are more than %d schemas in it", (int)SCHEMAS_MAX);
        return 0;
    }
    w->schemas[w->count] = schema;
    return w->count++;
}

/* ---- keywords ------------------------------------------------------------------------------------------------------------ */

enum { ANNOTATION = 0, FORM = 256, TYPE = 512 }; /* otherwise the kind that the keyword is about */

static const struct keyword {
    const char *name;
    int role;
} KEYWORDS[] = {
    {"$schema", ANNOTATION},
    {"$id", ANNOTATION},
    {"$comment", ANNOTATION},
    {"$defs", ANNOTATION},
    {"definitions", ANNOTATION},
    {"title", ANNOTATION},
    {"description", ANNOTATION},
    {"default", ANNOTATION},
    {"examples", ANNOTATION},
    {"deprecated", ANNOTATION},
    {"readOnly", ANNOTATION},
    {"writeOnly", ANNOTATION},
    {"contentEncoding", ANNOTATION},
    {"contentMediaType", ANNOTATION},
    {"discriminator", ANNOTATION}, /* OpenAPI's */
    {"format", ANNOTATION},        /* of strings: some are followed */
    {"type", TYPE},
    {"$ref", FORM},
    {"enum", FORM},
    {"const", FORM},
    {"anyOf", FORM},
    {"oneOf", FORM},
    {"allOf", FORM},
    {"properties", OBJECTS},
    {"required", OBJECTS},
    {"items", ARRAYS},
    {"prefixItems", ARRAYS},
    {"additionalProperties", OBJECTS},
    {"minItems", ARRAYS},
    {"maxItems", ARRAYS},
    {"minLength", STRINGS},
    {"maxLength", STRINGS},
    {"pattern", STRINGS},
    {"minimum", NUMBERS},
    {"maximum", NUMBERS},
    {"exclusiveMinimum", NUMBERS},
    {"exclusiveMaximum", NUMBERS},
};

/* Finds the keyword that gives a schema its form, or NULL, and the kinds that its other keywords are about. */
static const char *form_of(schema_writer *w, json_t *schema, int *roles)
{
    const char *key, *form = NULL;
    json_t *value;
    *roles = 0;
    json_object_foreach(schema, key, value)
    {
        size_t i = 0;
        while (i < sizeof KEYWORDS / sizeof KEYWORDS[0] && strcmp(KEYWORDS[i].name, key) != 0)
            i++;
        if (i == sizeof KEYWORDS / sizeof KEYWORDS[0]) {
            schema_refuse(w, "the keyword '%.100s' is not supported", key);
            return NULL;
        }
        if (KEYWORDS[i].role == FORM && form)
            schema_refuse(w, "'%s' beside '%s' is not supported", form, KEYWORDS[i].name);
        if (KEYWORDS[i].role == FORM)
            form = KEYWORDS[i].name;
        *roles |= KEYWORDS[i].role;
    }
    const bool values = form && (strcmp(form, "enum") == 0 || strcmp(form, "const") == 0);
    if (form && *roles & ~(FORM | (values ? TYPE : 0)))
        schema_refuse(w, "other keywords beside '%s' are not supported", form);
    return form;
}

/* A count such as minItems. */
static int count_of(schema_writer *w, const json_t *schema, const char *name, int otherwise)
{
    const json_t *value = json_object_get(schema, name);
    if (value && (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 100000))
        schema_refuse(w, "%s must be an integer from 0 to 100000", name);
    return value ? (int)json_integer_value(value) : otherwise;
}

/* Writes {m,n} with both bounds reduced by `less`; `max` -1: no upper bound. */
static void write_counts(schema_writer *w, int min, int max, int less)
{
    min = min > less ? min - less : 0;
    if (max < 0)
        gbnf_write(w, "{%d,} ", min);
    else
        gbnf_write(w, "{%d,%d} ", min, max - less);
}

/* ---- choices ------------------------------------------------------------------------------------------------------------- */

static void write_choices(schema_writer *w, const char *form, const json_t *list)
{
    const size_t count = json_array_size(list);
    if (count == 0 || (strcmp(form, "allOf") == 0 && count > 1))
        schema_refuse(w, "%s must be a list of %s", form, count ? "one schema; more are not supported" : "schemas");
    for (size_t i = 0; strcmp(form, "oneOf") == 0 && i < count && w->status == WW_OK; i++)
        for (size_t k = 0; k < i; k++)
            if (!schemas_disjoint(w, json_array_get(list, k), json_array_get(list, i), 0))
                schema_refuse(w, "a value may fit schemas %zu and %zu of oneOf; use anyOf, or a required const that differs",
                              k + 1, i + 1);
    for (size_t i = 0; i < count && w->status == WW_OK; i++)
        gbnf_write(w, "%sr%d ", i ? "| " : "", rule_of(w, json_array_get(list, i)));
}

static void write_values(schema_writer *w, const json_t *schema)
{
    const int kinds = schema_kinds(w, schema);
    bool any = false;
    for (size_t i = 0; schema_value(schema, i) && w->status == WW_OK; i++) {
        if (kinds && !(kinds & json_kind_of(schema_value(schema, i))))
            continue;
        gbnf_write(w, any ? "| " : "");
        write_literal(w, schema_value(schema, i));
        any = true;
    }
    if (!any)
        schema_refuse(w, "enum or const has no value of the type");
}

/* ---- objects ------------------------------------------------------------------------------------------------------------- */

/* Can the name be written as a key without escapes? */
static bool is_plain(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == '"' || *name == '\\')
            return false;
    return true;
}

/* Writes the rest of a key after `prefix` that is not one of the names with that prefix. */
static void write_other_key(schema_writer *w, json_t *names, const char *prefix)
{
    const size_t bytes = strlen(prefix);
    const char *name;
    json_t *value, *next = json_object();
    bool taken = false;
    if (!next)
        lack_memory(w, 0);
    json_object_foreach(names, name, value)
    {
        uint32_t c;
        char longer[NAME_BYTES_MAX + 1];
        if (strncmp(name, prefix, bytes) != 0 || !is_plain(name))
            continue;
        taken |= name[bytes] == '\0';
        if (strlen(name) > NAME_BYTES_MAX)
            schema_refuse(w, "names of more than %d bytes beside additionalProperties are not supported", (int)NAME_BYTES_MAX);
        else if (name[bytes]) {
            (void)snprintf(longer, sizeof longer, "%.*s", (int)(bytes + utf8_read(name + bytes, strlen(name + bytes), &c)),
                           name);
            if (next && json_object_set_new(next, longer, json_integer((json_int_t)c)) != 0)
                lack_memory(w, 0);
        }
    }
    gbnf_write(w, "([^\\\"\\\\\\x00-\\x1F");
    json_object_foreach(next, name, value) gbnf_write(w, "\\U%08X", (unsigned)json_integer_value(value));
    gbnf_write(w, "] plain* ");
    json_object_foreach(next, name, value)
    {
        if (w->status != WW_OK)
            break;
        gbnf_write(w, "| \"\\U%08X\" ", (unsigned)json_integer_value(value));
        write_other_key(w, names, name);
    }
    gbnf_write(w, taken ? ") " : ")? ");
    json_decref(next);
}

/* Collects names with their schemas: properties, and further required names. Returns a new object, or NULL. */
static json_t *collect_members(schema_writer *w, const json_t *schema, json_t *others)
{
    json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
    json_t *all = properties ? json_copy(properties) : json_object();
    if ((properties && !json_is_object(properties)) || (required && !json_is_array(required)))
        schema_refuse(w, "properties must be an object, and required a list");
    else if (!all)
        lack_memory(w, 0);
    for (size_t i = 0; w->status == WW_OK && i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!name)
            schema_refuse(w, "required must be a list of names");
        else if (!json_object_get(all, name) && json_is_false(others))
            schema_refuse(w, "'%.100s' is required, but is not one of the properties", name);
        else if (!json_object_get(all, name) && json_object_set_new(all, name, others ? json_incref(others) : json_true()) != 0)
            lack_memory(w, 0);
    }
    return all;
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++)
        if (strcmp(json_string_value(json_array_get(required, i)), name) == 0)
            return true;
    return false;
}

/* Rules f0, f1, ... read members starting at number 0, 1, ... if none came before; a0, a1, ... if one did. */
static void write_members(schema_writer *w, const json_t *schema, json_t *members, const json_t *others)
{
    const int at = w->at;
    const char *name;
    json_t *value;
    int n = 0;
    json_object_foreach(members, name, value)
    {
        json_t *key = json_string(name);
        const bool must = is_required(schema, name);
        gbnf_write(w, "r%d-k%d ::= ", at, n);
        write_literal(w, key);
        json_decref(key);
        gbnf_write(w, "s \":\" s r%d s\n", rule_of(w, value));
        gbnf_write(w, "r%d-f%d ::= r%d-k%d r%d-a%d\n", at, n, at, n, at, n + 1);
        if (!must)
            gbnf_write(w, " | r%d-f%d\n", at, n + 1);
        gbnf_write(w, "r%d-a%d ::= (\",\" s r%d-k%d)%s r%d-a%d\n", at, n, at, n, must ? "" : "?", at, n + 1);
        n++;
    }
    if (!others || json_is_false(others)) {
        gbnf_write(w, "r%d-f%d ::= \"\"\nr%d-a%d ::= \"\"\n", at, n, at, n);
        return;
    }
    gbnf_write(w, "r%d-x ::= \"\\\"\" ", at);
    write_other_key(w, members, "");
    gbnf_write(w, "\"\\\"\" s \":\" s r%d s\n", rule_of(w, others));
    gbnf_write(w, "r%d-f%d ::= (r%d-x r%d-a%d)?\nr%d-a%d ::= (\",\" s r%d-x)*\n", at, n, at, at, n, at, n, at);
}

static void write_object(schema_writer *w, const json_t *schema)
{
    json_t *others = json_object_get(schema, "additionalProperties");
    if (!json_object_get(schema, "properties") && !json_object_get(schema, "required") && !others) {
        gbnf_write(w, "object\n");
        return;
    }
    json_t *members = collect_members(w, schema, others);
    gbnf_write(w, "\"{\" s r%d-f0 \"}\"\n", w->at);
    if (w->status == WW_OK)
        write_members(w, schema, members, others);
    json_decref(members);
}

/* ---- the other kinds ----------------------------------------------------------------------------------------------------- */

/* A list of schemas is about the first items; all of these come, and further ones only if `items` is about them. */
static void write_array(schema_writer *w, const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items"), *first = json_object_get(schema, "prefixItems");
    int min = count_of(w, schema, "minItems", 0), max = count_of(w, schema, "maxItems", -1);
    char item[32] = "value";
    if (json_is_array(items)) { /* as in older schemas */
        first = items;
        items = NULL;
    }
    if (first && !json_is_array(first))
        schema_refuse(w, "prefixItems must be a list of schemas");
    int fixed = (int)json_array_size(first);
    if ((first && !items) || json_is_false(items))
        max = max < 0 || max > fixed ? fixed : max;
    fixed = max >= 0 && max < fixed ? max : fixed;
    min = min > fixed ? min : fixed;
    if (max >= 0 && max < min)
        schema_refuse(w, "maxItems, or the number of prefixItems, is below minItems");
    gbnf_write(w, "\"[\" s ");
    for (int i = 0; i < fixed && w->status == WW_OK; i++)
        gbnf_write(w, "%sr%d s ", i ? "\",\" s " : "", rule_of(w, json_array_get(first, (size_t)i)));
    if (max != fixed && items)
        (void)snprintf(item, sizeof item, "r%d", rule_of(w, items));
    if (max != fixed && fixed > 0) {
        gbnf_write(w, "(\",\" s %s s)", item);
        write_counts(w, min, max, fixed);
    } else if (max != fixed) {
        gbnf_write(w, "(%s s (\",\" s %s s)", item, item);
        write_counts(w, min, max, 1);
        gbnf_write(w, min ? ") " : ")? ");
    }
    gbnf_write(w, "\"]\"\n");
}

static void write_string(schema_writer *w, const json_t *schema)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    const int min = count_of(w, schema, "minLength", 0), max = count_of(w, schema, "maxLength", -1);
    if ((max >= 0 && max < min) || (pattern && (min > 0 || max >= 0)))
        schema_refuse(w, "%s",
                      pattern ? "pattern beside minLength or maxLength is not supported" : "maxLength is below minLength");
    if (pattern && !json_is_string(pattern))
        schema_refuse(w, "pattern must be a text");
    gbnf_write(w, "\"\\\"\" ");
    if (pattern && w->status == WW_OK) {
        pattern_write(w, json_string_value(pattern));
    } else if (min > 0 || max >= 0 || !format_write(w, json_object_get(schema, "format"))) {
        gbnf_write(w, "char");
        write_counts(w, min, max, 0);
    }
    gbnf_write(w, "\"\\\"\"\n");
}

static void write_kinds(schema_writer *w, const json_t *schema, int kinds)
{
    const char *bar = "";
    for (int i = 0; i < JSON_KIND_COUNT; i++)
        if (kinds & 1 << i) {
            gbnf_write(w, "%sr%d-%s ", bar, w->at, JSON_KINDS[i]);
            bar = "| ";
        }
    gbnf_write(w, kinds ? "\n" : "value\n");
    for (int i = 0; i < JSON_KIND_COUNT; i++) {
        if (!(kinds & 1 << i))
            continue;
        gbnf_write(w, "r%d-%s ::= ", w->at, JSON_KINDS[i]);
        if (1 << i == OBJECTS)
            write_object(w, schema);
        else if (1 << i == ARRAYS)
            write_array(w, schema);
        else if (1 << i == STRINGS)
            write_string(w, schema);
        else if (1 << i & (INTEGERS | NUMBERS) && schema_has_range(schema))
            range_write(w, schema, 1 << i == INTEGERS);
        else
            gbnf_write(w, "%s\n", JSON_KINDS[i]);
    }
}

static void write_schema(schema_writer *w, json_t *schema)
{
    int roles = 0;
    gbnf_write(w, "r%d ::= ", w->at);
    if (!json_is_object(schema) && !json_is_true(schema)) {
        schema_refuse(w, "%s",
                      json_is_false(schema) ? "nothing fits the schema 'false'" : "a schema must be an object, true or false");
        return;
    }
    const char *form = form_of(w, schema, &roles);
    if (!form) {
        const int kinds = schema_kinds(w, schema);
        write_kinds(w, schema, kinds ? kinds : roles & (OBJECTS | ARRAYS | STRINGS | NUMBERS));
        return;
    }
    if (strcmp(form, "$ref") == 0) {
        const json_t *found = schema_follow(w, json_object_get(schema, form));
        gbnf_write(w, "r%d", found ? rule_of(w, found) : 0);
    } else if (strcmp(form, "enum") == 0 || strcmp(form, "const") == 0) {
        write_values(w, schema);
    } else {
        write_choices(w, form, json_object_get(schema, form));
    }
    gbnf_write(w, "\n");
}

ww_status schema_to_gbnf(const char *text, size_t bytes, text_buffer *out)
{
    json_error_t error;
    schema_writer *w = memory_alloc_zeroed(1, sizeof *w);
    if (!w)
        return memory_failed("JSON schema", sizeof *w);
    json_t *root = json_loadb(text, bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    w->root = root;
    w->out = out;
    if (!root)
        w->status = ww_fail(WW_INVALID_ARGUMENT, "JSON schema, line %d: %s", error.line, error.text);
    gbnf_write(w, "root ::= r%d\n", rule_of(w, root));
    if (w->status == WW_OK)
        w->status = text_buffer_add_text(out, COMMON);
    for (; w->status == WW_OK && w->at < w->count; w->at++)
        write_schema(w, (json_t *)w->schemas[w->at]);
    const ww_status status = w->status;
    json_decref(root);
    memory_free(w);
    return status;
}
