/* Reads filters in Qdrant's syntax. A null counts as not given. The library checks the values; messages name the place in the
 * filter: "filter: must.0.match: ...". */
#include "server/qdrant/filter.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <warpwave/selection.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/message.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/filter_places.h"
#include "server/qdrant/point_id.h"
#include "server/qdrant/select.h"

static ww_status read_clauses(filter_reader *r, const char *filter);

/* ---- the place in the filter, for messages ------------------------------------------------------------------------------- */

/* Goes one level down. Returns the length to which leave() cuts the place again. */
static size_t enter(filter_reader *r, const char *name, size_t length)
{
    const size_t before = strlen(r->place);
    snprintf(r->place + before, sizeof r->place - before, "%s%.*s", before > 0 ? "." : "", (int)length, name);
    return before;
}

static void leave(filter_reader *r, size_t before)
{
    r->place[before] = '\0';
}

ww_status filter_refuse(const filter_reader *r, ww_status status, const char *format, ...)
{
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return ww_fail(status, "filter: %s%s%s", r->place, r->place[0] != '\0' ? ": " : "", why);
}

/* The library's failure, with the place. */
static ww_status placed(const filter_reader *r, ww_status status)
{
    char message[256];
    if (status == WW_OK || status == WW_OUT_OF_MEMORY)
        return status;
    text_without_calls(message, sizeof message, ww_error_message());
    return filter_refuse(r, status, "%s", strncmp(message, "filter: ", 8) == 0 ? message + 8 : message);
}

const char *filter_given(const char *object, const char *key)
{
    const char *value = json_find(object, key, strlen(key));
    return value && json_type_of(value) != JSON_NULL ? value : NULL;
}

static const char *given(const char *object, const char *key)
{
    return filter_given(object, key);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

typedef struct values {
    ww_filter_value *list;
    int64_t count;
    char *texts;
} values;

static void values_free(values *v)
{
    memory_free(v->list);
    memory_free(v->texts);
}

static void read_value(const char *value, char **texts, ww_filter_value *to)
{
    const json_type type = json_type_of(value);
    *to = (ww_filter_value){.type = type == JSON_FALSE ? WW_FILTER_FALSE : type == JSON_TRUE ? WW_FILTER_TRUE : WW_FILTER_NULL};
    if (type == JSON_NUMBER) {
        const json_number number = json_number_of(value);
        to->type = number.is_integer ? WW_FILTER_INTEGER : WW_FILTER_REAL;
        to->integer = number.integer;
        to->real = number.real;
    } else if (type == JSON_TEXT) {
        to->type = WW_FILTER_TEXT;
        to->text = *texts;
        to->text_bytes = json_text_read(value, *texts);
        *texts += to->text_bytes;
        *(*texts)++ = '\0';
    }
}

/* Makes room for `count` values from this JSON text. */
static ww_status values_create(values *v, const char *json, int64_t count)
{
    const size_t bytes = (size_t)(json_end(json) - json) + (size_t)count;
    v->list = memory_alloc_zeroed((size_t)count + 1, sizeof *v->list);
    v->texts = memory_alloc(bytes);
    return v->list && v->texts ? WW_OK : memory_failed("a filter", bytes);
}

static int64_t count_elements(const char *list)
{
    int64_t count = 0;
    for (const char *at = json_first(list); at; at = json_next(at))
        count++;
    return count;
}

/* Notes the number of values of a condition. */
static void count_values(filter_reader *r, int64_t count)
{
    r->facts.values_max = count > r->facts.values_max ? count : r->facts.values_max;
}

/* Adds a condition on the field of a condition's "key". */
static ww_status add(filter_reader *r, ww_filter_test test, const values *v)
{
    return placed(r, ww_filter_add(r->out, r->field, test, v ? v->list : NULL, v ? v->count : 0));
}

/* ---- conditions on a field ----------------------------------------------------------------------------------------------- */

typedef struct match_kind {
    const char *name;
    ww_filter_test test;
    bool list, text;
} match_kind;

static ww_status add_match(filter_reader *r, const match_kind *kind, const char *value)
{
    values v = {0};
    if (kind->text && json_end(value) - value > MATCH_TEXT_BYTES_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "the text has more than %d bytes", MATCH_TEXT_BYTES_MAX);
    const int64_t count = kind->list ? count_elements(value) : 1;
    ww_status status = values_create(&v, value, count);
    count_values(r, count);
    char *texts = v.texts;
    for (const char *at = kind->list ? json_first(value) : value; status == WW_OK && at;
         at = kind->list ? json_next(at) : NULL) {
        ww_filter_value *one = &v.list[v.count++];
        read_value(at, &texts, one);
        const bool other = json_type_of(at) == JSON_LIST || json_type_of(at) == JSON_OBJECT;
        if (other || one->type == WW_FILTER_REAL || one->type == WW_FILTER_NULL)
            status = filter_refuse(r, WW_INVALID_ARGUMENT, "a text, an integer or a boolean is needed");
    }
    if (status == WW_OK)
        status = add(r, kind->test, &v);
    values_free(&v);
    return status;
}

static ww_status read_match(filter_reader *r, const char *match, ww_filter_test test)
{
    static const match_kind KINDS[] = {
        {"value", WW_FILTER_SAME, false, false},       {"any", WW_FILTER_SAME, true, false},
        {"except", WW_FILTER_OTHER, true, false},      {"text", WW_FILTER_ALL_WORDS, false, true},
        {"text_any", WW_FILTER_ANY_WORD, false, true}, {"phrase", WW_FILTER_PHRASE, false, true},
        {"prefix", WW_FILTER_PREFIX, false, true},     {"substring", WW_FILTER_SUBSTRING, false, true}};
    (void)test;
    if (json_type_of(match) != JSON_OBJECT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "an object is needed, as in {\"value\": 7}");
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = given(match, KINDS[i].name);
        if (!value)
            continue;
        if (KINDS[i].list != (json_type_of(value) == JSON_LIST) || (KINDS[i].text && json_type_of(value) != JSON_TEXT))
            return filter_refuse(r, WW_INVALID_ARGUMENT, "%s: %s is needed", KINDS[i].name,
                                 KINDS[i].list ? "a list" : "a text or another value");
        return add_match(r, &KINDS[i], value);
    }
    return filter_refuse(r, WW_INVALID_ARGUMENT,
                         "unknown match; there are value, any, except, text, text_any, phrase, prefix and substring");
}

/* Bounds are numbers or, for ranges, dates. */
static ww_status read_bounds(filter_reader *r, const char *bounds, ww_filter_test test)
{
    static const struct {
        const char *name;
        ww_filter_test bound;
    } KINDS[] = {
        {"lt", WW_FILTER_LESS}, {"lte", WW_FILTER_LESS_EQUAL}, {"gt", WW_FILTER_GREATER}, {"gte", WW_FILTER_GREATER_EQUAL}};
    values v = {0};
    if (json_type_of(bounds) != JSON_OBJECT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "an object is needed, as in {\"gt\": 7}");
    ww_status status = values_create(&v, bounds, 4);
    char *texts = v.texts;
    for (size_t i = 0; status == WW_OK && i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = given(bounds, KINDS[i].name);
        if (!value)
            continue;
        ww_filter_value *one = &v.list[v.count++];
        read_value(value, &texts, one);
        one->bound = KINDS[i].bound;
        if (one->type == WW_FILTER_TEXT && test == WW_FILTER_WITHIN)
            one->type = WW_FILTER_DATE;
        else if (one->type != WW_FILTER_INTEGER && one->type != WW_FILTER_REAL)
            status =
                filter_refuse(r, WW_INVALID_ARGUMENT, "a number is needed%s", test == WW_FILTER_WITHIN ? ", or a date" : "");
    }
    if (status == WW_OK)
        status = add(r, test, &v);
    values_free(&v);
    return status;
}

/* Reads {"is_empty": true} or {"is_null": false} for a field. */
static ww_status read_flag(filter_reader *r, const char *value, ww_filter_test test)
{
    const bool opposite = json_type_of(value) == JSON_FALSE;
    if (!opposite && json_type_of(value) != JSON_TRUE)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "true or false is needed");
    ww_status status = opposite ? placed(r, ww_filter_begin(r->out, WW_FILTER_NONE, 0)) : WW_OK;
    if (status == WW_OK)
        status = add(r, test, NULL);
    return status == WW_OK && opposite ? ww_filter_end(r->out) : status;
}

static ww_status read_place(filter_reader *r, const char *value, ww_filter_test test)
{
    values v = {0};
    ww_status status = filter_read_places(r, value, test, &v.list, &v.count);
    if (status == WW_OK)
        status = add(r, test, &v);
    values_free(&v);
    return status;
}

/* Reads the "key" of a condition into r->field (memory_free()). */
static ww_status read_key(filter_reader *r, const char *key)
{
    if (!key || json_type_of(key) != JSON_TEXT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "the \"key\" of a field is needed");
    const size_t bytes = (size_t)(json_end(key) - key);
    r->field = memory_alloc(bytes);
    if (!r->field)
        return memory_failed("a filter", bytes);
    const size_t length = json_text_read(key, r->field);
    r->field[length] = '\0';
    return strlen(r->field) == length ? WW_OK : filter_refuse(r, WW_INVALID_ARGUMENT, "there is a NUL in the \"key\"");
}

static void forget_key(filter_reader *r)
{
    memory_free(r->field);
    r->field = NULL;
}

typedef struct field_kind {
    const char *name;
    ww_filter_test test;
    ww_status (*read)(filter_reader *r, const char *value, ww_filter_test test);
} field_kind;

static ww_status read_kind(filter_reader *r, const char *condition)
{
    static const field_kind KINDS[] = {
        {"match", WW_FILTER_SAME, read_match},           {"range", WW_FILTER_WITHIN, read_bounds},
        {"values_count", WW_FILTER_COUNT, read_bounds},  {"is_empty", WW_FILTER_EMPTY, read_flag},
        {"is_null", WW_FILTER_HAS_NULL, read_flag},      {"geo_radius", WW_FILTER_CIRCLE, read_place},
        {"geo_bounding_box", WW_FILTER_BOX, read_place}, {"geo_polygon", WW_FILTER_POLYGON, read_place}};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = given(condition, KINDS[i].name);
        if (!value)
            continue;
        const size_t before = enter(r, KINDS[i].name, strlen(KINDS[i].name));
        const ww_status status = KINDS[i].read(r, value, KINDS[i].test);
        leave(r, before);
        return status;
    }
    return filter_refuse(r, WW_INVALID_ARGUMENT,
                         "no condition; there are match, range, values_count, is_empty, is_null, geo_radius, geo_bounding_box "
                         "and geo_polygon");
}

static ww_status read_field(filter_reader *r, const char *condition)
{
    ww_status status = read_key(r, given(condition, "key"));
    if (status == WW_OK)
        status = read_kind(r, condition);
    forget_key(r);
    return status;
}

/* {"is_empty": {"key": ...}} and {"is_null": {"key": ...}} */
static ww_status read_state(filter_reader *r, const char *object, ww_filter_test test)
{
    if (json_type_of(object) != JSON_OBJECT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "{\"key\": ...} is needed");
    ww_status status = read_key(r, given(object, "key"));
    if (status == WW_OK)
        status = add(r, test, NULL);
    forget_key(r);
    return status;
}

/* ---- other conditions ---------------------------------------------------------------------------------------------------- */

static ww_status read_ids(filter_reader *r, const char *list)
{
    if (json_type_of(list) != JSON_LIST)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "a list of ids is needed");
    const int64_t count = count_elements(list);
    const size_t bytes = (size_t)(json_end(list) - list) + (size_t)count * POINT_ID_BYTES;
    count_values(r, count);
    const char **ids = memory_alloc(((size_t)count + 1) * sizeof *ids);
    char *texts = memory_alloc(bytes), *next = texts;
    ww_status status = ids && texts ? WW_OK : memory_failed("ids", bytes);
    int64_t i = 0;
    for (const char *at = json_first(list); status == WW_OK && at; at = json_next(at)) {
        ids[i++] = next;
        if (point_id_read(at, next))
            next += strlen(next) + 1;
        else if (json_type_of(at) == JSON_TEXT) { /* an id of a store that another program filled */
            next += json_text_read(at, next);
            *next++ = '\0';
        } else
            status = filter_refuse(r, WW_INVALID_ARGUMENT, "an id is an unsigned number of 64 bits or a UUID");
    }
    if (status == WW_OK)
        status = placed(r, ww_filter_add_ids(r->out, ids, count));
    memory_free(ids);
    memory_free(texts);
    return status;
}

static ww_status read_nested(filter_reader *r, const char *nested)
{
    const char *inner = json_type_of(nested) == JSON_OBJECT ? given(nested, "filter") : NULL;
    if (!inner)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "\"key\" and \"filter\" are needed");
    ww_status status = read_key(r, given(nested, "key"));
    if (status == WW_OK)
        status = placed(r, ww_filter_begin_element(r->out, r->field));
    forget_key(r);
    if (status == WW_OK)
        status = read_clauses(r, inner);
    return status == WW_OK ? ww_filter_end(r->out) : status;
}

/* A group without conditions: ALL admits every point, ANY admits none. */
static ww_status add_constant(filter_reader *r, bool value)
{
    const ww_status status = ww_filter_begin(r->out, value ? WW_FILTER_ALL : WW_FILTER_ANY, 0);
    return placed(r, status == WW_OK ? ww_filter_end(r->out) : status);
}

/* Adds the ids of the points that have the vector of this part. */
static ww_status add_ids_of(filter_reader *r, const entry *part)
{
    ww_results *there = NULL;
    const ww_selection all = ww_selection_default();
    ww_status status = ww_collection_select(part->collection, &all, WW_FETCH_IDS, &there);
    const int64_t count = ww_results_count(there, 0);
    const char **ids = status == WW_OK ? memory_alloc(((size_t)count + 1) * sizeof *ids) : NULL;
    if (status == WW_OK && !ids)
        status = memory_failed("ids", (size_t)count * sizeof *ids);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        ids[i] = ww_results_id(there, 0, i);
    if (status == WW_OK)
        status = placed(r, ww_filter_add_ids(r->out, ids, count));
    memory_free(ids);
    ww_results_destroy(there);
    return status;
}

/* A collection whose vectors have no names has only "". */
static ww_status read_has_vector(filter_reader *r, const char *value)
{
    char name[128];
    if (json_type_of(value) != JSON_TEXT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "has_vector: the name of a vector is needed");
    r->facts.by_vector = true;
    if (!r->entry || !r->entry->split)
        return add_constant(r, json_text_is(value, "", 0));
    const entry *part = vector_name_read(value, name) ? entry_part(r->entry, name) : NULL;
    if (!part)
        return add_constant(r, false);
    return ww_collection_count(part->collection) == ww_collection_count(r->entry->collection) ? add_constant(r, true)
                                                                                              : add_ids_of(r, part);
}

static ww_status read_condition(filter_reader *r, const char *condition)
{
    const char *value;
    if (++r->facts.conditions > FILTER_CONDITIONS_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "more than %d conditions", FILTER_CONDITIONS_MAX);
    if (json_type_of(condition) != JSON_OBJECT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "a condition is an object");
    if (given(condition, "key"))
        return read_field(r, condition);
    if ((value = given(condition, "has_id")))
        return read_ids(r, value);
    if ((value = given(condition, "nested")))
        return read_nested(r, value);
    if ((value = given(condition, "is_empty")))
        return read_state(r, value, WW_FILTER_EMPTY);
    if ((value = given(condition, "is_null")))
        return read_state(r, value, WW_FILTER_HAS_NULL);
    if ((value = given(condition, "has_vector")))
        return read_has_vector(r, value);
    if (given(condition, "slice"))
        return filter_refuse(r, WW_UNSUPPORTED, "the condition slice is not supported");
    ww_status status = placed(r, ww_filter_begin(r->out, WW_FILTER_ALL, 0));
    if (status == WW_OK)
        status = read_clauses(r, condition);
    return status == WW_OK ? ww_filter_end(r->out) : status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

/* Reads a list of conditions, or a single one. */
static ww_status read_conditions(filter_reader *r, const char *value)
{
    const bool list = json_type_of(value) == JSON_LIST;
    ww_status status = WW_OK;
    int64_t number = 0;
    for (const char *at = list ? json_first(value) : value; status == WW_OK && at; at = list ? json_next(at) : NULL) {
        char digits[24];
        const size_t before = enter(r, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number++));
        status = read_condition(r, at);
        leave(r, before);
    }
    return status;
}

static ww_status read_group(filter_reader *r, const char *conditions, ww_filter_group group, int64_t at_least)
{
    ww_status status = placed(r, ww_filter_begin(r->out, group, at_least));
    if (status == WW_OK)
        status = read_conditions(r, conditions);
    return status == WW_OK ? ww_filter_end(r->out) : status;
}

static ww_status read_min_should(filter_reader *r, const char *value)
{
    const char *conditions = json_type_of(value) == JSON_OBJECT ? given(value, "conditions") : NULL;
    const char *count = conditions ? given(value, "min_count") : NULL;
    const json_number number = count && json_type_of(count) == JSON_NUMBER ? json_number_of(count) : (json_number){0};
    if (!conditions || !number.is_integer || number.integer < 1)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "\"conditions\" and a \"min_count\" of at least 1 are needed");
    return read_group(r, conditions, WW_FILTER_SOME, number.integer);
}

static ww_status read_clause(filter_reader *r, const char *key)
{
    const char *value = json_member(key);
    if (json_type_of(value) == JSON_NULL)
        return WW_OK;
    if (json_text_is(key, "must", 4))
        return read_conditions(r, value);
    if (json_text_is(key, "must_not", 8))
        return read_group(r, value, WW_FILTER_NONE, 0);
    if (json_text_is(key, "min_should", 10))
        return read_min_should(r, value);
    if (!json_text_is(key, "should", 6))
        return filter_refuse(r, WW_INVALID_ARGUMENT, "unknown; a filter has must, should, must_not and min_should");
    const bool empty = json_type_of(value) == JSON_LIST && !json_first(value); /* without a condition it admits every point */
    return empty ? WW_OK : read_group(r, value, WW_FILTER_ANY, 0);
}

static ww_status read_clauses(filter_reader *r, const char *filter)
{
    if (json_type_of(filter) != JSON_OBJECT)
        return filter_refuse(r, WW_INVALID_ARGUMENT, "an object is needed, with must, should, must_not or min_should");
    ww_status status = WW_OK;
    for (const char *key = json_first(filter); status == WW_OK && key; key = json_next(key)) {
        const size_t before = enter(r, key + 1, (size_t)(json_end(key) - key) - 2);
        status = read_clause(r, key);
        leave(r, before);
    }
    return status;
}

ww_status filter_read_qdrant(ww_filter *filter, const char *json, const entry *e, filter_facts *facts)
{
    filter_reader r = {.out = filter, .entry = e};
    const ww_status status = read_clauses(&r, json);
    *facts = r.facts;
    return status;
}

/* ---- filters of requests ------------------------------------------------------------------------------------------------- */

/* Adds the filter and those above it, read with the entry's named vectors. */
static ww_status read_resolved(ww_filter *made, const entry *e, const point_filter *f)
{
    filter_facts facts = {0};
    ww_status status = WW_OK;
    if (f->always)
        status = ww_filter_add_filter(made, f->always);
    for (; status == WW_OK && f; f = f->above)
        if (f->json)
            status = filter_read_qdrant(made, f->json, e, &facts);
    return status;
}

ww_status filter_resolve(const entry *e, const point_filter *f, ww_filter **resolved)
{
    *resolved = NULL;
    if (!f->by_vector || !e->split)
        return WW_OK;
    ww_status status = ww_filter_create(resolved);
    if (status == WW_OK)
        status = read_resolved(*resolved, e, f);
    if (status != WW_OK) {
        ww_filter_destroy(*resolved);
        *resolved = NULL;
    }
    return status;
}

bool filter_of_request(request *r, const char *object, const char *key, point_filter *f)
{
    const ww_filter *above = f->above ? f->above->filter : NULL;
    f->json = json_given(object, key);
    f->always = r->grant ? r->grant->seen : NULL;
    if (!f->json && !above && !f->always)
        return true;
    filter_facts facts = {0};
    ww_status status = ww_filter_create(&f->filter);
    if (status == WW_OK && f->json)
        status = filter_read_qdrant(f->filter, f->json, NULL, &facts);
    strict_ask(r, STRICT_CONDITIONS, facts.conditions);
    strict_ask(r, STRICT_CONDITION, facts.values_max);
    if (status == WW_OK)
        status = ww_filter_add_filter(f->filter, above);
    if (status == WW_OK && f->always)
        status = ww_filter_add_filter(f->filter, f->always);
    f->by_vector = facts.by_vector || (above && f->above->by_vector);
    return status == WW_OK ? true : request_fail_status(r, status);
}

bool filter_admits(const ww_filter *filter, const char *id, const char *payload)
{
    int32_t admits = 0;
    return !filter || (ww_filter_matches(filter, id, payload, &admits) == WW_OK && admits);
}

void point_filter_free(point_filter *f)
{
    ww_filter_destroy(f->filter);
    *f = (point_filter){0};
}
