/* Tests a filter against a payload, which is read in place. */
#include <string.h>

#include "base/instant.h"
#include "base/memory.h"
#include "vectors/filter/filter_match.h"

enum { INSTANT_BYTES_MAX = 64 }; /* maximum length of a text, with its escapes, that can be a date */

/* Compares a text with an operand by bytes. */
static ww_status compare_texts(const char *value, const filter_operand *operand, int *order)
{
    const size_t room = (size_t)(json_end(value) - value);
    const bool plain = !memchr(value, '\\', room);
    char *read = plain ? NULL : memory_alloc(room);
    if (!plain && !read)
        return memory_failed("a text of a payload", room);
    const char *text = plain ? value + 1 : read;
    const size_t length = plain ? room - 2 : json_text_read(value, read);
    const size_t shared = length < operand->length ? length : operand->length;
    const int bytes = memcmp(text, operand->text, shared);
    *order = bytes != 0 ? bytes : (length > operand->length) - (length < operand->length);
    memory_free(read);
    return WW_OK;
}

ww_status filter_contains(const char *value, const filter_operand *operand, bool *out)
{
    const size_t room = (size_t)(json_end(value) - value);
    char *read = memory_alloc(room);
    if (!read)
        return memory_failed("a text of a payload", room);
    const size_t length = json_text_read(value, read);
    *out = operand->length == 0 || memmem(read, length, operand->text, operand->length) != NULL;
    memory_free(read);
    return WW_OK;
}

ww_status filter_compare(const char *value, const filter_operand *operand, bool *comparable, int *order)
{
    const json_type type = json_type_of(value);
    *comparable = false;
    if (operand->type == FILTER_NUMBER && type == JSON_NUMBER) {
        const json_number number = json_number_of(value);
        *comparable = true;
        *order = json_number_compare(&number, &operand->number);
    } else if (operand->type == FILTER_TEXT && type == JSON_TEXT) {
        *comparable = true;
        return compare_texts(value, operand, order);
    } else if (operand->type == FILTER_INSTANT && type == JSON_TEXT && json_end(value) - value <= INSTANT_BYTES_MAX) {
        char text[INSTANT_BYTES_MAX];
        int64_t instant = 0;
        *comparable = instant_read(text, json_text_read(value, text), &instant);
        *order = (instant > operand->number.integer) - (instant < operand->number.integer);
    } else if ((operand->type == FILTER_NULL && type == JSON_NULL) || (operand->type == FILTER_FALSE && type == JSON_FALSE) ||
               (operand->type == FILTER_TRUE && type == JSON_TRUE)) {
        *comparable = true;
        *order = 0;
    }
    return WW_OK;
}

bool filter_order_is(filter_operation operation, int order)
{
    switch (operation) {
    case FILTER_LESS:
        return order < 0;
    case FILTER_LESS_EQUAL:
        return order <= 0;
    case FILTER_GREATER:
        return order > 0;
    case FILTER_GREATER_EQUAL:
        return order >= 0;
    default:
        return order == 0;
    }
}

/* Tests a value that is not a list against each operand. `whole`: it is the field's own value, not an element of its list. */
static ww_status value_matches(const filter *f, const filter_node *node, const char *value, bool whole, bool *out)
{
    *out = false;
    for (int32_t i = 0; !*out && i < node->operand_count; i++) {
        const filter_operand *operand = &f->operands[node->operand + i];
        bool comparable = false;
        int order = 0;
        ww_status status = WW_OK;
        if (node->operation == FILTER_CONTAINS && whole) {
            if (operand->type == FILTER_TEXT && json_type_of(value) == JSON_TEXT)
                status = filter_contains(value, operand, out);
        } else {
            status = filter_compare(value, operand, &comparable, &order);
            *out = comparable && filter_order_is(node->operation, order);
        }
        if (status != WW_OK)
            return status;
    }
    return WW_OK;
}

static bool has_null(const filter *f, const filter_node *node)
{
    for (int32_t i = 0; i < node->operand_count; i++)
        if (f->operands[node->operand + i].type == FILTER_NULL)
            return true;
    return false;
}

/* The value of the condition's field, or NULL. */
static const char *find_field(const filter *f, const filter_node *node, const char *payload)
{
    const char *value = payload ? json_root(payload) : NULL;
    for (int32_t i = 0; value && i < node->part_count; i++) {
        const filter_part *part = &f->parts[node->part + i];
        value = json_type_of(value) == JSON_OBJECT ? json_find(value, part->text, part->length) : NULL;
    }
    return value;
}

static ww_status condition_matches(const filter *f, const filter_node *node, const char *payload, bool *out)
{
    const char *value = find_field(f, node, payload);
    ww_status status = WW_OK;
    *out = false;
    if (node->operation == FILTER_EXISTS)
        *out = value != NULL;
    else if (!value)
        *out = node->operation == FILTER_IN && has_null(f, node);
    else if (json_type_of(value) == JSON_LIST)
        for (const char *at = json_first(value); status == WW_OK && !*out && at; at = json_next(at))
            status = value_matches(f, node, at, false, out);
    else
        status = value_matches(f, node, value, true, out);
    return status;
}

/* The first `decisive` child decides. */
static ww_status group_matches(const filter *f, const filter_node *node, const filter_row *row, bool *out)
{
    const bool decisive = node->operation == FILTER_OR;
    ww_status status = WW_OK;
    *out = !decisive;
    for (int32_t child = node->first; status == WW_OK && child >= 0 && *out != decisive; child = f->nodes[child].next)
        status = filter_node_matches(f, child, row, out);
    return status;
}

ww_status filter_node_matches(const filter *f, int32_t index, const filter_row *row, bool *out)
{
    const filter_node *node = &f->nodes[index];
    ww_status status = WW_OK;
    if (node->operation == FILTER_AND || node->operation == FILTER_OR)
        status = group_matches(f, node, row, out);
    else if (node->operation >= FILTER_MIN_SHOULD && node->operation <= FILTER_GEO_POLYGON)
        status = filter_qdrant_matches(f, node, row, out);
    else
        status = condition_matches(f, node, row->payload, out);
    *out = *out != node->negated;
    return status;
}

ww_status filter_matches(const filter *f, const filter_row *row, bool *matches)
{
    return filter_node_matches(f, 0, row, matches);
}
