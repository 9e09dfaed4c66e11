/* Filters as text for people: year > 2000 and (draft = false or owner.name = "ann"). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vectors/filter/filter.h"

enum { VALUES_SHOWN = 8 };

typedef struct writer {
    const ww_filter *filter;
    char *text; /* may be NULL if there is no room */
    size_t capacity, length;
} writer;

static void put(writer *w, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++, w->length++)
        if (w->length + 1 < w->capacity)
            w->text[w->length] = bytes[i];
}

__attribute__((format(printf, 2, 3))) static void put_format(writer *w, const char *format, ...)
{
    char piece[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    put(w, piece, strlen(piece));
}

static void put_quoted(writer *w, const char *text, size_t length)
{
    put(w, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            put(w, "\\", 1);
        if ((unsigned char)text[i] < 0x20)
            put_format(w, "\\u%04x", text[i]);
        else
            put(w, text + i, 1);
    }
    put(w, "\"", 1);
}

static void put_field(writer *w, const filter_node *node)
{
    for (int32_t i = 0; i < node->part_count; i++) {
        const json_part *part = &w->filter->parts[node->part + i];
        json_path plain;
        if (part->step == JSON_EACH) {
            put(w, "[]", 2);
        } else if (part->step == JSON_INDEX) {
            put_format(w, "[%lld]", (long long)part->index);
        } else {
            put(w, ".", i > 0);
            if (!json_path_read(part->text, part->length, &plain) && plain.count == 1 && plain.parts[0].length == part->length)
                put(w, part->text, part->length);
            else
                put_quoted(w, part->text, part->length);
        }
    }
    put(w, " ", node->part_count > 0);
}

static void put_value(writer *w, const filter_operand *operand)
{
    static const char *const NAMES[] = {[WW_FILTER_NULL] = "null", [WW_FILTER_FALSE] = "false", [WW_FILTER_TRUE] = "true"};
    if (operand->type == WW_FILTER_TEXT)
        put_quoted(w, operand->text, operand->length);
    else if (operand->type == WW_FILTER_DATE)
        put(w, operand->text, operand->length);
    else if (operand->type == WW_FILTER_INTEGER)
        put_format(w, "%lld", (long long)operand->number.integer);
    else if (operand->type == WW_FILTER_REAL)
        put_format(w, "%.17g", operand->number.real);
    else
        put(w, NAMES[operand->type], strlen(NAMES[operand->type]));
}

static const char *const TESTS[] = {
    [WW_FILTER_EXISTS] = "exists",
    [WW_FILTER_EQUAL] = "=",
    [WW_FILTER_CONTAINS] = "contains",
    [WW_FILTER_LESS] = "<",
    [WW_FILTER_LESS_EQUAL] = "<=",
    [WW_FILTER_GREATER] = ">",
    [WW_FILTER_GREATER_EQUAL] = ">=",
    [WW_FILTER_SAME] = "is",
    [WW_FILTER_OTHER] = "is other than",
    [WW_FILTER_ALL_WORDS] = "has all words of",
    [WW_FILTER_ANY_WORD] = "has a word of",
    [WW_FILTER_PHRASE] = "has the phrase",
    [WW_FILTER_PREFIX] = "starts with",
    [WW_FILTER_SUBSTRING] = "has the text",
    [WW_FILTER_WITHIN] = "is",
    [WW_FILTER_COUNT] = "has a count",
    [WW_FILTER_EMPTY] = "is empty",
    [WW_FILTER_HAS_NULL] = "has null",
    [WW_FILTER_CIRCLE] = "is in the circle",
    [WW_FILTER_BOX] = "is in the box",
    [WW_FILTER_POLYGON] = "is in the polygon",
};

static void put_condition(writer *w, const filter_node *node)
{
    const bool bounds = node->kind == FILTER_FIELD && (node->test == WW_FILTER_WITHIN || node->test == WW_FILTER_COUNT);
    const bool none = node->kind == FILTER_FIELD &&
                      (node->test == WW_FILTER_EXISTS || node->test == WW_FILTER_EMPTY || node->test == WW_FILTER_HAS_NULL);
    const bool list = !none && !bounds && node->operand_count != 1;
    const char *test = node->kind == FILTER_IDS ? "id in" : node->test == WW_FILTER_EQUAL && list ? "in" : TESTS[node->test];
    put_field(w, node);
    put(w, test, strlen(test));
    put(w, " [", list ? 2 : !none);
    for (int64_t i = 0; i < node->operand_count; i++) {
        const filter_operand *operand = &w->filter->operands[node->operand + i];
        if (i == VALUES_SHOWN) {
            put_format(w, ", ... %lld in all", (long long)node->operand_count);
            break;
        }
        put(w, ", ", i > 0 ? 2 : 0);
        if (bounds)
            put_format(w, "%s ", TESTS[operand->bound]);
        put_value(w, operand);
    }
    put(w, "]", list);
}

static void put_node(writer *w, int32_t index, bool inside);

static void put_children(writer *w, const filter_node *node)
{
    const char *between = node->kind == FILTER_GROUP && node->at_least == 1 ? " or " : node->at_least > 1 ? ", " : " and ";
    for (int32_t child = node->first; child >= 0; child = w->filter->nodes[child].next) {
        put(w, between, child == node->first ? 0 : strlen(between));
        put_node(w, child, true);
    }
    if (node->first < 0)
        put_format(w, "%s", node->at_least > 0 ? "no row" : "every row");
}

/* `inside`: in a group with other conditions. */
static void put_node(writer *w, int32_t index, bool inside)
{
    const filter_node *node = &w->filter->nodes[index];
    put(w, "not ", node->negated ? 4 : 0);
    if (node->kind == FILTER_FIELD || node->kind == FILTER_IDS) {
        put_condition(w, node);
        return;
    }
    put_field(w, node);
    if (node->kind == FILTER_ELEMENT)
        put(w, "has an element with ", 20);
    else if (node->at_least > 1)
        put_format(w, "at least %lld of ", (long long)node->at_least);
    const bool brackets = inside || node->negated || node->kind == FILTER_ELEMENT || node->at_least > 1;
    put(w, "(", brackets);
    put_children(w, node);
    put(w, ")", brackets);
}

size_t filter_show(const ww_filter *filter, char *text, size_t capacity)
{
    writer w = {.filter = filter, .text = text, .capacity = capacity};
    put_node(&w, 0, false);
    if (capacity > 0)
        text[w.length < capacity ? w.length : capacity - 1] = '\0';
    return w.length;
}
