/* Reads a filter in Qdrant's syntax, {"must": [{"key": "year", "range": {"gt": 2000}}], "must_not": ...}, into the same tree as
 * other filters. A null counts as not given. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "vectors/filter/filter_geo.h"
#include "vectors/filter/filter_reader.h"
#include "vectors/filter/point_id.h"

static ww_status read_filter(filter_reader *r, const char *value, bool negated);

/* Returns the value of a key, or NULL if it is missing or null. */
static const char *given(const char *object, const char *key)
{
    const char *value = json_find(object, key, strlen(key));
    return value && json_type_of(value) != JSON_NULL ? value : NULL;
}

/* ---- the name of a field: a.b, a[].b, a[0], "a.b".c ---------------------------------------------------------------------- */

static bool is_key_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '-' || (c & 0x80);
}

/* Reads "[]" or "[7]" at `at`. Returns the next byte, or NULL if it is neither. */
static const char *read_brackets(const char *at, const char *end, filter_part *part)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (!close || close - at > 18)
        return NULL;
    *part = (filter_part){.step = close == at + 1 ? FILTER_EACH : FILTER_INDEX};
    for (const char *digit = at + 1; digit < close; digit++) {
        if (*digit < '0' || *digit > '9')
            return NULL;
        part->index = 10 * part->index + (*digit - '0');
    }
    return close + 1;
}

/* Reads one key. Returns the next byte, or NULL if there is no key. */
static const char *read_key(const char *at, const char *end, filter_part *part)
{
    const char *start = at;
    *part = (filter_part){.step = FILTER_KEY};
    if (at < end && *at == '"') {
        const char *close = memchr(at + 1, '"', (size_t)(end - at - 1));
        part->text = at + 1;
        part->length = close ? (size_t)(close - at - 1) : 0;
        return close ? close + 1 : NULL;
    }
    while (at < end && is_key_byte(*at))
        at++;
    part->text = start;
    part->length = (size_t)(at - start);
    return at > start ? at : NULL;
}

static ww_status read_field(filter_reader *r, const char *key, filter_node *node)
{
    const char *text = NULL;
    size_t length = 0;
    if (!key || json_type_of(key) != JSON_TEXT)
        return FILTER_REFUSE(r, "the \"key\" of a field is needed");
    filter_read_text(r, key, &text, &length);
    const char *at = text, *const end = text + length;
    node->part = r->out->part_count;
    ww_status status = WW_OK;
    while (status == WW_OK) {
        filter_part part;
        at = read_key(at, end, &part);
        if (!at)
            return FILTER_REFUSE(r, "'%.*s' is not the name of a field; write a.b, a[].b or a[0]", (int)length, text);
        status = filter_add_part(r, part);
        while (status == WW_OK && at && at < end && *at == '[') {
            at = read_brackets(at, end, &part);
            if (at)
                status = filter_add_part(r, part);
        }
        if (!at || (at < end && *at != '.'))
            return FILTER_REFUSE(r, "'%.*s' is not the name of a field; write a.b, a[].b or a[0]", (int)length, text);
        if (at++ == end)
            break;
    }
    node->part_count = r->out->part_count - node->part;
    if (status == WW_OK && node->part_count > FILTER_FIELD_PARTS_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "a field's name of more than %d parts", FILTER_FIELD_PARTS_MAX);
    return status;
}

/* ---- conditions on a field ----------------------------------------------------------------------------------------------- */

static ww_status finish(filter_reader *r, filter_node node)
{
    node.first = -1;
    node.operand_count = r->out->operand_count - node.operand;
    return filter_add_node(r, node);
}

/* Adds a value that match can compare: a text, an integer or a boolean. */
static ww_status add_match(filter_reader *r, const char *value)
{
    const json_type type = json_type_of(value);
    if (type != JSON_TEXT && type != JSON_TRUE && type != JSON_FALSE &&
        (type != JSON_NUMBER || !json_number_of(value).is_integer))
        return FILTER_REFUSE(r, "a text, an integer or a boolean is needed");
    return filter_add_operand(r, value);
}

static ww_status read_match(filter_reader *r, const char *match, filter_node node)
{
    static const struct {
        const char *name;
        filter_operation operation;
        bool list, text;
    } KINDS[] = {{"value", FILTER_SAME, false, false},       {"any", FILTER_SAME, true, false},
                 {"except", FILTER_OTHER, true, false},      {"text", FILTER_ALL_WORDS, false, true},
                 {"text_any", FILTER_ANY_WORD, false, true}, {"phrase", FILTER_PHRASE, false, true},
                 {"prefix", FILTER_PREFIX, false, true},     {"substring", FILTER_SUBSTRING, false, true}};
    if (json_type_of(match) != JSON_OBJECT)
        return FILTER_REFUSE(r, "an object is needed, as in {\"value\": 7}");
    node.operand = r->out->operand_count;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = given(match, KINDS[i].name);
        ww_status status = WW_OK;
        if (!value)
            continue;
        if (KINDS[i].list != (json_type_of(value) == JSON_LIST) || (KINDS[i].text && json_type_of(value) != JSON_TEXT))
            return FILTER_REFUSE(r, "%s: %s is needed", KINDS[i].name, KINDS[i].list ? "a list" : "a text or another value");
        node.operation = KINDS[i].operation;
        if (!KINDS[i].list)
            status = add_match(r, value);
        for (const char *at = KINDS[i].list ? json_first(value) : NULL; status == WW_OK && at; at = json_next(at))
            status = add_match(r, at);
        return status == WW_OK ? finish(r, node) : status;
    }
    return FILTER_REFUSE(r, "unknown match; there are value, any, except, text, text_any, phrase, prefix and substring");
}

/* Adds a bound: a number, or for ranges a date. */
static ww_status add_bound(filter_reader *r, const char *value, filter_node node)
{
    const bool date = node.operation == FILTER_WITHIN && json_type_of(value) == JSON_TEXT;
    if (!date && json_type_of(value) != JSON_NUMBER)
        return FILTER_REFUSE(r, "a number is needed%s", node.operation == FILTER_WITHIN ? ", or a date" : "");
    ww_status status = filter_add_operand(r, value);
    if (status != WW_OK || !date)
        return status;
    filter_operand *operand = &r->out->operands[r->out->operand_count - 1];
    if (!instant_read(operand->text, operand->length, &operand->number.integer))
        return FILTER_REFUSE(r, "'%.*s' is not a date; write 2024-01-31T12:00:00Z", (int)operand->length, operand->text);
    operand->type = FILTER_INSTANT;
    operand->number.is_integer = true;
    return WW_OK;
}

static ww_status read_bounds(filter_reader *r, const char *bounds, filter_node node)
{
    static const struct {
        const char *name;
        filter_operation bound;
    } KINDS[] = {{"lt", FILTER_LESS}, {"lte", FILTER_LESS_EQUAL}, {"gt", FILTER_GREATER}, {"gte", FILTER_GREATER_EQUAL}};
    ww_status status = WW_OK;
    if (json_type_of(bounds) != JSON_OBJECT)
        return FILTER_REFUSE(r, "an object is needed, as in {\"gt\": 7}");
    node.operand = r->out->operand_count;
    for (size_t i = 0; status == WW_OK && i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = given(bounds, KINDS[i].name);
        if (value)
            status = add_bound(r, value, node);
        if (value && status == WW_OK)
            r->out->operands[r->out->operand_count - 1].bound = KINDS[i].bound;
    }
    return status == WW_OK ? finish(r, node) : status;
}

/* Reads {"is_empty": true} or {"is_null": false} for a field. */
static ww_status read_flag(filter_reader *r, const char *value, filter_node node)
{
    if (json_type_of(value) != JSON_TRUE && json_type_of(value) != JSON_FALSE)
        return FILTER_REFUSE(r, "true or false is needed");
    node.negated = node.negated != (json_type_of(value) == JSON_FALSE);
    return finish(r, node);
}

static ww_status read_geo(filter_reader *r, const char *value, filter_node node)
{
    node.operand = r->out->operand_count;
    const ww_status status = filter_read_geo(r, value, node.operation);
    return status == WW_OK ? finish(r, node) : status;
}

static ww_status read_field_condition(filter_reader *r, const char *condition, bool negated)
{
    static const struct {
        const char *name;
        filter_operation operation;
        ww_status (*read)(filter_reader *r, const char *value, filter_node node);
    } KINDS[] = {{"match", FILTER_SAME, read_match},
                 {"range", FILTER_WITHIN, read_bounds},
                 {"values_count", FILTER_COUNT, read_bounds},
                 {"is_empty", FILTER_EMPTY, read_flag},
                 {"is_null", FILTER_NULLS, read_flag},
                 {"geo_radius", FILTER_GEO_RADIUS, read_geo},
                 {"geo_bounding_box", FILTER_GEO_BOX, read_geo},
                 {"geo_polygon", FILTER_GEO_POLYGON, read_geo}};
    filter_node node = {.negated = negated, .operand = r->out->operand_count};
    ww_status status = read_field(r, given(condition, "key"), &node);
    for (size_t i = 0; status == WW_OK && i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = given(condition, KINDS[i].name);
        if (!value)
            continue;
        node.operation = KINDS[i].operation;
        const size_t before = filter_enter(r, KINDS[i].name, strlen(KINDS[i].name));
        status = KINDS[i].read(r, value, node);
        filter_leave(r, before);
        return status;
    }
    return status != WW_OK ? status
                           : FILTER_REFUSE(r, "no condition; there are match, range, values_count, is_empty, is_null, "
                                              "geo_radius, geo_bounding_box and geo_polygon");
}

/* ---- other conditions ---------------------------------------------------------------------------------------------------- */

static int compare_operands(const void *first, const void *second)
{
    const filter_operand *a = first, *b = second;
    const int bytes = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return bytes != 0 ? bytes : (a->length > b->length) - (a->length < b->length);
}

static ww_status read_ids(filter_reader *r, const char *list, bool negated)
{
    filter_node node = {.operation = FILTER_IDS, .negated = negated, .operand = r->out->operand_count};
    if (json_type_of(list) != JSON_LIST)
        return FILTER_REFUSE(r, "a list of ids is needed");
    for (const char *at = json_first(list); at; at = json_next(at)) {
        char id[POINT_ID_BYTES];
        const ww_status status = filter_add_operand(r, at);
        if (status != WW_OK)
            return status;
        filter_operand *operand = &r->out->operands[r->out->operand_count - 1];
        if (!point_id_read(at, id)) {
            if (operand->type != FILTER_TEXT)
                return FILTER_REFUSE(r, "an id is an unsigned number of 64 bits or a UUID");
            continue; /* an id of a store that another program filled */
        }
        operand->length = strlen(id);
        operand->text = operand->type == FILTER_NUMBER ? at : memcpy(r->free_text, id, operand->length);
        r->free_text += operand->type == FILTER_NUMBER ? 0 : operand->length;
        operand->type = FILTER_TEXT;
    }
    const int32_t count = r->out->operand_count - node.operand;
    if (count > 1)
        qsort(r->out->operands + node.operand, (size_t)count, sizeof *r->out->operands, compare_operands);
    return finish(r, node);
}

static ww_status read_nested(filter_reader *r, const char *nested, bool negated)
{
    const char *inner = json_type_of(nested) == JSON_OBJECT ? given(nested, "filter") : NULL;
    if (!inner)
        return FILTER_REFUSE(r, "\"key\" and \"filter\" are needed");
    filter_node node = {.operation = FILTER_NESTED, .negated = negated, .operand = r->out->operand_count};
    ww_status status = read_field(r, given(nested, "key"), &node);
    if (status == WW_OK && node.part_count > 1 && r->out->parts[node.part + node.part_count - 1].step == FILTER_EACH)
        node.part_count--; /* data[] means data: its elements are tested anyway */
    if (status == WW_OK)
        status = finish(r, node);
    const int32_t made = r->made;
    if (status == WW_OK)
        status = read_filter(r, inner, false);
    if (status == WW_OK)
        r->out->nodes[made].first = r->made;
    r->made = made;
    return status;
}

static ww_status read_payload_state(filter_reader *r, const char *object, filter_node node)
{
    if (json_type_of(object) != JSON_OBJECT)
        return FILTER_REFUSE(r, "{\"key\": ...} is needed");
    const ww_status status = read_field(r, given(object, "key"), &node);
    return status == WW_OK ? finish(r, node) : status;
}

/* A row has one vector, which has no name: "" is true, and every other name false. */
static ww_status read_has_vector(filter_reader *r, const char *name, bool negated)
{
    if (json_type_of(name) != JSON_TEXT)
        return FILTER_REFUSE(r, "has_vector: the name of a vector is needed");
    const bool has = json_text_is(name, "", 0);
    return finish(r, (filter_node){.operation = FILTER_AND, .negated = negated == has, .operand = r->out->operand_count});
}

static ww_status read_condition(filter_reader *r, const char *condition, bool negated)
{
    if (json_type_of(condition) != JSON_OBJECT)
        return FILTER_REFUSE(r, "a condition is an object");
    filter_node node = {.negated = negated, .operand = r->out->operand_count};
    const char *value;
    if (given(condition, "key"))
        return read_field_condition(r, condition, negated);
    if ((value = given(condition, "has_id")))
        return read_ids(r, value, negated);
    if ((value = given(condition, "nested")))
        return read_nested(r, value, negated);
    if ((value = given(condition, "is_empty"))) {
        node.operation = FILTER_EMPTY;
        return read_payload_state(r, value, node);
    }
    if ((value = given(condition, "is_null"))) {
        node.operation = FILTER_NULLS;
        return read_payload_state(r, value, node);
    }
    if ((value = given(condition, "has_vector")))
        return read_has_vector(r, value, negated);
    if (given(condition, "slice"))
        return filter_refuse(r, WW_UNSUPPORTED, "the condition slice is not supported");
    return read_filter(r, condition, negated);
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

/* The children of a node, in order. */
typedef struct children {
    int32_t parent, last;
} children;

static void adopt(filter_reader *r, children *of)
{
    *(of->last < 0 ? &r->out->nodes[of->parent].first : &r->out->nodes[of->last].next) = r->made;
    of->last = r->made;
}

/* Reads a list of conditions, or a single one, as children. */
static ww_status read_conditions(filter_reader *r, const char *value, children *of, bool negated)
{
    const bool list = json_type_of(value) == JSON_LIST;
    ww_status status = WW_OK;
    int64_t number = 0;
    for (const char *at = list ? json_first(value) : value; status == WW_OK && at; at = list ? json_next(at) : NULL) {
        char digits[24];
        const size_t before = filter_enter(r, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number++));
        status = read_condition(r, at, negated);
        filter_leave(r, before);
        if (status == WW_OK)
            adopt(r, of);
    }
    return status;
}

/* Reads {"should": [...]} or {"min_should": {"conditions": [...], "min_count": 2}} as a new node below the filter's. */
static ww_status read_group(filter_reader *r, const char *conditions, filter_node node, children *of)
{
    node.first = -1;
    ww_status status = filter_add_node(r, node);
    const int32_t made = r->made;
    children inner = {made, -1};
    if (status == WW_OK)
        status = read_conditions(r, conditions, &inner, false);
    r->made = made;
    if (status == WW_OK)
        adopt(r, of);
    return status;
}

static ww_status read_min_should(filter_reader *r, const char *value, children *of)
{
    const char *conditions = json_type_of(value) == JSON_OBJECT ? given(value, "conditions") : NULL;
    const char *count = conditions ? given(value, "min_count") : NULL;
    const json_number number = count && json_type_of(count) == JSON_NUMBER ? json_number_of(count) : (json_number){0};
    if (!conditions || !number.is_integer || number.integer < 1)
        return FILTER_REFUSE(r, "\"conditions\" and a \"min_count\" of at least 1 are needed");
    return read_group(r, conditions, (filter_node){.operation = FILTER_MIN_SHOULD, .count = number.integer}, of);
}

static ww_status read_clause(filter_reader *r, const char *key, children *of)
{
    const char *value = json_member(key);
    if (json_type_of(value) == JSON_NULL)
        return WW_OK;
    if (json_text_is(key, "must", 4))
        return read_conditions(r, value, of, false);
    if (json_text_is(key, "must_not", 8))
        return read_conditions(r, value, of, true);
    if (json_text_is(key, "min_should", 10))
        return read_min_should(r, value, of);
    if (!json_text_is(key, "should", 6))
        return FILTER_REFUSE(r, "unknown; a filter has must, should, must_not and min_should");
    if (json_type_of(value) == JSON_LIST && !json_first(value))
        return WW_OK; /* an empty list has no condition */
    return read_group(r, value, (filter_node){.operation = FILTER_OR}, of);
}

static ww_status read_filter(filter_reader *r, const char *value, bool negated)
{
    if (json_type_of(value) != JSON_OBJECT)
        return FILTER_REFUSE(r, "an object is needed, with must, should, must_not or min_should");
    if (r->depth == FILTER_DEPTH_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "more than %d filters in each other", FILTER_DEPTH_MAX);
    r->depth++;
    ww_status status = filter_add_node(r, (filter_node){.operation = FILTER_AND, .negated = negated, .first = -1});
    const int32_t made = r->made;
    children of = {made, -1};
    for (const char *key = json_first(value); status == WW_OK && key; key = json_next(key)) {
        const size_t before = filter_enter(r, key + 1, (size_t)(json_end(key) - key) - 2);
        status = read_clause(r, key, &of);
        filter_leave(r, before);
    }
    r->depth--;
    r->made = made;
    return status;
}

ww_status filter_read_qdrant(filter_reader *r, const char *value, bool negated)
{
    return read_filter(r, value, negated);
}
