/* Reads a filter from JSON into a tree of conditions. $not negates everything below it: AND becomes OR there. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json/json.h"
#include "base/memory.h"
#include "vectors/filter/filter_reader.h"

static const char operators[] = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $contains, $exists and $not";

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

/* Makes room for one more element in a list; may change `*list` and `*capacity`. */
static ww_status make_room(void **list, int32_t count, int32_t *capacity, size_t element_bytes)
{
    if (count < *capacity)
        return WW_OK;
    const int32_t larger = *capacity > 0 ? 2 * *capacity : 16;
    void *moved = memory_resize(*list, (size_t)larger * element_bytes);
    if (!moved)
        return memory_failed("a filter", (size_t)larger * element_bytes);
    *list = moved;
    *capacity = larger;
    return WW_OK;
}

ww_status filter_add_node(filter_reader *r, filter_node node)
{
    filter *f = r->out;
    const ww_status status = make_room((void **)&f->nodes, f->node_count, &f->node_capacity, sizeof *f->nodes);
    if (status != WW_OK)
        return status;
    node.next = -1;
    r->made = f->node_count;
    f->nodes[f->node_count++] = node;
    return WW_OK;
}

void filter_free(filter *f)
{
    memory_free(f->nodes);
    memory_free(f->operands);
    memory_free(f->parts);
    memory_free(f->text);
    *f = (filter){0};
}

/* ---- the place in the filter, for messages ------------------------------------------------------------------------------- */

/* Goes one level down. Returns the length to which filter_leave() cuts the place again. */
size_t filter_enter(filter_reader *r, const char *name, size_t length)
{
    const size_t before = strlen(r->place);
    snprintf(r->place + before, sizeof r->place - before, "%s%.*s", before > 0 ? "." : "", (int)length, name);
    return before;
}

void filter_leave(filter_reader *r, size_t before)
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

/* ---- operands ------------------------------------------------------------------------------------------------------------ */

void filter_read_text(filter_reader *r, const char *value, const char **text, size_t *length)
{
    *text = r->free_text;
    *length = json_text_read(value, r->free_text);
    r->free_text += *length;
}

/* {"$date": "2024-01-31"} */
static ww_status read_instant(filter_reader *r, const char *object, filter_operand *operand)
{
    const char *date = json_find(object, "$date", 5);
    if (!date || json_next(json_first(object)) || json_type_of(date) != JSON_TEXT)
        return FILTER_REFUSE(r, "an object is not a value; a date is {\"$date\": \"2024-01-31T12:00:00Z\"}");
    filter_read_text(r, date, &operand->text, &operand->length);
    if (!instant_read(operand->text, operand->length, &operand->number.integer))
        return FILTER_REFUSE(r, "'%.*s' is not a date; write 2024-01-31 or 2024-01-31T12:00:00Z", (int)operand->length,
                             operand->text);
    operand->type = FILTER_INSTANT;
    operand->number.is_integer = true;
    return WW_OK;
}

ww_status filter_add_operand(filter_reader *r, const char *value)
{
    filter *f = r->out;
    filter_operand operand = {0};
    ww_status status = make_room((void **)&f->operands, f->operand_count, &f->operand_capacity, sizeof *f->operands);
    if (status != WW_OK)
        return status;
    switch (json_type_of(value)) {
    case JSON_NULL:
        operand.type = FILTER_NULL;
        break;
    case JSON_FALSE:
        operand.type = FILTER_FALSE;
        break;
    case JSON_TRUE:
        operand.type = FILTER_TRUE;
        break;
    case JSON_NUMBER:
        operand.type = FILTER_NUMBER;
        operand.number = json_number_of(value);
        break;
    case JSON_TEXT:
        operand.type = FILTER_TEXT;
        filter_read_text(r, value, &operand.text, &operand.length);
        break;
    case JSON_LIST:
        return FILTER_REFUSE(r, "a list is not a value; {\"$in\": [...]} is true for each of its elements");
    case JSON_OBJECT:
        status = read_instant(r, value, &operand);
        break;
    }
    if (status == WW_OK)
        f->operands[f->operand_count++] = operand;
    return status;
}

static ww_status add_operands(filter_reader *r, const char *list)
{
    if (json_type_of(list) != JSON_LIST)
        return FILTER_REFUSE(r, "a list of values is needed");
    ww_status status = WW_OK;
    for (const char *at = json_first(list); status == WW_OK && at; at = json_next(at))
        status = filter_add_operand(r, at);
    return status;
}

/* ---- conditions ---------------------------------------------------------------------------------------------------------- */

typedef struct field { /* the field whose conditions are being read */
    int32_t part, part_count;
} field;

static const struct {
    const char *name;
    filter_operation operation;
    bool opposite, list;
} conditions[] = {
    {"$eq", FILTER_IN, false, false},   {"$ne", FILTER_IN, true, false},           {"$in", FILTER_IN, false, true},
    {"$nin", FILTER_IN, true, true},    {"$gt", FILTER_GREATER, false, false},     {"$gte", FILTER_GREATER_EQUAL, false, false},
    {"$lt", FILTER_LESS, false, false}, {"$lte", FILTER_LESS_EQUAL, false, false}, {"$contains", FILTER_CONTAINS, false, false},
};

static ww_status read_condition(filter_reader *r, field of, filter_node node, const char *value, bool list)
{
    node.part = of.part;
    node.part_count = of.part_count;
    node.first = -1;
    node.operand = r->out->operand_count;
    const ww_status status = list ? add_operands(r, value) : filter_add_operand(r, value);
    if (status != WW_OK)
        return status;
    node.operand_count = r->out->operand_count - node.operand;
    const filter_operand *operand = &r->out->operands[node.operand];
    if (node.operation >= FILTER_LESS && operand->type != FILTER_NUMBER && operand->type != FILTER_TEXT &&
        operand->type != FILTER_INSTANT)
        return FILTER_REFUSE(r, "a number, a text or a date is needed");
    if (node.operation == FILTER_CONTAINS && (operand->type == FILTER_NULL || operand->type == FILTER_INSTANT))
        return FILTER_REFUSE(r, "a text, a number or a boolean is needed");
    return filter_add_node(r, node);
}

static ww_status read_operators(filter_reader *r, field of, const char *object, bool negated);

static ww_status read_operator(filter_reader *r, field of, const char *key, bool negated)
{
    const char *value = json_member(key);
    if (json_text_is(key, "$not", 4)) {
        if (json_type_of(value) != JSON_OBJECT)
            return FILTER_REFUSE(r, "an object of operators is needed");
        return read_operators(r, of, value, !negated);
    }
    if (json_text_is(key, "$exists", 7)) {
        if (json_type_of(value) != JSON_TRUE && json_type_of(value) != JSON_FALSE)
            return FILTER_REFUSE(r, "true or false is needed");
        const filter_node node = {.operation = FILTER_EXISTS,
                                  .negated = negated != (json_type_of(value) == JSON_FALSE),
                                  .first = -1,
                                  .part = of.part,
                                  .part_count = of.part_count};
        return filter_add_node(r, node);
    }
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (json_text_is(key, conditions[i].name, strlen(conditions[i].name))) {
            const filter_node node = {.operation = conditions[i].operation, .negated = negated != conditions[i].opposite};
            return read_condition(r, of, node, value, conditions[i].list);
        }
    return FILTER_REFUSE(r, "unknown operator; there are %s", operators);
}

/* Reads one entry of an AND or an OR into the node r->made. */
typedef ww_status (*entry_reader)(filter_reader *r, field of, const char *entry, bool negated);

/* Appends the name of an entry for messages: its number in a list, its key in an object. */
static size_t enter_entry(filter_reader *r, const char *entries, const char *entry, int64_t number)
{
    char digits[24];
    if (json_type_of(entries) == JSON_OBJECT)
        return filter_enter(r, entry + 1, (size_t)(json_end(entry) - entry) - 2);
    return filter_enter(r, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

/* Reads all entries of a list or an object as the children of one node. */
static ww_status read_entries(filter_reader *r, field of, const char *entries, filter_node node, entry_reader read)
{
    const bool negated = node.negated;
    node.negated = false;
    node.first = -1;
    ww_status status = filter_add_node(r, node);
    const int32_t group = r->made;
    int32_t last = -1;
    int64_t number = 0;
    for (const char *at = json_first(entries); status == WW_OK && at; at = json_next(at)) {
        const size_t before = enter_entry(r, entries, at, number++);
        status = read(r, of, at, negated);
        filter_leave(r, before);
        if (status != WW_OK)
            break;
        *(last < 0 ? &r->out->nodes[group].first : &r->out->nodes[last].next) = r->made;
        last = r->made;
    }
    r->made = group;
    return status;
}

static ww_status read_group(filter_reader *r, field of, const char *entries, filter_node node, entry_reader read)
{
    if (r->depth == FILTER_DEPTH_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "more than %d levels of $and, $or and $not", FILTER_DEPTH_MAX);
    r->depth++;
    const ww_status status = read_entries(r, of, entries, node, read);
    r->depth--;
    return status;
}

/* AND, or the opposite below a $not: one of the entries does not hold. */
static filter_node all_of(bool negated)
{
    return (filter_node){.operation = negated ? FILTER_OR : FILTER_AND, .negated = negated};
}

static ww_status read_operators(filter_reader *r, field of, const char *object, bool negated)
{
    return read_group(r, of, object, all_of(negated), read_operator);
}

/* ---- fields -------------------------------------------------------------------------------------------------------------- */

ww_status filter_add_part(filter_reader *r, filter_part part)
{
    filter *f = r->out;
    if (part.step == FILTER_KEY && (memchr(part.text, '"', part.length) || memchr(part.text, '\0', part.length)))
        return FILTER_REFUSE(r, "a field's name with a quote or a NUL in it cannot be filtered by");
    const ww_status status = make_room((void **)&f->parts, f->part_count, &f->part_capacity, sizeof *f->parts);
    if (status == WW_OK)
        f->parts[f->part_count++] = part;
    return status;
}

/* "a.b" is the field b of the object a; a name in quotes is one field, with dots in it. */
static ww_status read_name(filter_reader *r, const char *key, field *out)
{
    const char *text = NULL;
    size_t length = 0;
    filter_read_text(r, key, &text, &length);
    out->part = r->out->part_count;
    ww_status status = WW_OK;
    if (length > 2 && text[0] == '"' && text[length - 1] == '"') {
        status = filter_add_part(r, (filter_part){.text = text + 1, .length = length - 2});
    } else {
        for (const char *end = text + length; status == WW_OK && text <= end;) {
            const char *dot = memchr(text, '.', (size_t)(end - text));
            const size_t part = (size_t)((dot ? dot : end) - text);
            status = part > 0 ? filter_add_part(r, (filter_part){.text = text, .length = part})
                              : FILTER_REFUSE(r, "a part of the field's name is empty");
            text += part + 1;
        }
    }
    out->part_count = r->out->part_count - out->part;
    if (status == WW_OK && out->part_count > FILTER_FIELD_PARTS_MAX)
        return filter_refuse(r, WW_OUT_OF_RANGE, "a field's name of more than %d parts", FILTER_FIELD_PARTS_MAX);
    return status;
}

static bool is_operator(const char *key)
{
    return key && key[1] == '$';
}

static ww_status read_field(filter_reader *r, const char *key, bool negated)
{
    const char *value = json_member(key);
    field of;
    const ww_status status = read_name(r, key, &of);
    if (status != WW_OK)
        return status;
    const bool object = json_type_of(value) == JSON_OBJECT;
    if (object && !json_find(value, "$date", 5)) {
        if (!is_operator(json_first(value)))
            return FILTER_REFUSE(r, "an object of operators is needed (%s); a field of an object is named \"a.b\"", operators);
        return read_operators(r, of, value, negated);
    }
    return read_condition(r, of, (filter_node){.operation = FILTER_IN, .negated = negated}, value, false);
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

static ww_status read_entry(filter_reader *r, field none, const char *key, bool negated);

static ww_status read_object(filter_reader *r, field none, const char *object, bool negated)
{
    if (json_type_of(object) != JSON_OBJECT)
        return FILTER_REFUSE(r, "an object is needed, as in {\"year\": {\"$gt\": 2000}}");
    return read_group(r, none, object, all_of(negated), read_entry);
}

static ww_status read_entry(filter_reader *r, field none, const char *key, bool negated)
{
    const char *value = json_member(key);
    const bool either = json_text_is(key, "$or", 3);
    if (either || json_text_is(key, "$and", 4)) {
        if (json_type_of(value) != JSON_LIST || !json_first(value))
            return FILTER_REFUSE(r, "a list of filters is needed");
        return read_group(r, none, value,
                          (filter_node){.operation = either != negated ? FILTER_OR : FILTER_AND, .negated = negated},
                          read_object);
    }
    if (json_text_is(key, "$not", 4))
        return read_object(r, none, value, !negated);
    if (json_text_is(key, "$qdrant", 7))
        return filter_read_qdrant(r, value, negated);
    if (is_operator(key))
        return FILTER_REFUSE(r, "unknown operator; beside fields there are $and, $or, $not and $qdrant");
    return read_field(r, key, negated);
}

ww_status filter_read(const char *json, filter *out)
{
    *out = (filter){0};
    filter_reader r = {.out = out};
    json_fault fault;
    const size_t length = strlen(json);
    if (length > FILTER_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "filter: %zu bytes; the maximum is %d", length, (int)FILTER_BYTES_MAX);
    if (!json_check(json, length, &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "filter: not JSON: %s in line %zu, column %zu", fault.what, fault.line,
                       fault.column);
    /* Room for a copy of the text; the strings without their escapes, which are never longer; and ids in their usual form,
     * which are at most twice as long. */
    out->text = memory_alloc(4 * length + 1);
    if (!out->text)
        return memory_failed("a filter", 4 * length + 1);
    memcpy(out->text, json, length + 1);
    r.free_text = out->text + length + 1;
    const ww_status status = read_object(&r, (field){0}, json_root(out->text), false);
    if (status != WW_OK)
        filter_free(out);
    return status;
}
