/* Tests a filter against a payload, which is read in place. */
#include "vectors/filter/filter_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/memory.h"

static ww_status node_matches(const ww_filter *f, int32_t index, const filter_row *row, bool *out);

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

enum { INSTANT_BYTES_MAX = 64 }; /* maximum length of a text, with its escapes, that can be a date */

static int compare_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int bytes = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return bytes != 0 ? bytes : (a_length > b_length) - (a_length < b_length);
}

/* Compares a text with an operand by bytes. */
static ww_status compare_texts(const char *value, const filter_operand *operand, int *order)
{
    const size_t room = (size_t)(json_end(value) - value);
    const bool plain = !memchr(value, '\\', room);
    char *read = plain ? NULL : memory_alloc(room);
    if (!plain && !read)
        return memory_failed("a text of a payload", room);
    const char *text = plain ? value + 1 : read;
    *order = compare_bytes(text, plain ? room - 2 : json_text_read(value, read), operand->text, operand->length);
    memory_free(read);
    return WW_OK;
}

/* Finds out whether the two can be compared, and the result. */
static ww_status compare(const char *value, const filter_operand *operand, bool *comparable, int *order)
{
    const json_type type = json_type_of(value);
    const bool number = operand->type == WW_FILTER_INTEGER || operand->type == WW_FILTER_REAL;
    *comparable = false;
    if (number && type == JSON_NUMBER) {
        const json_number given = json_number_of(value);
        *comparable = true;
        *order = json_number_compare(&given, &operand->number);
    } else if (operand->type == WW_FILTER_TEXT && type == JSON_TEXT) {
        *comparable = true;
        return compare_texts(value, operand, order);
    } else if (operand->type == WW_FILTER_DATE && type == JSON_TEXT && json_end(value) - value <= INSTANT_BYTES_MAX) {
        char text[INSTANT_BYTES_MAX];
        int64_t instant = 0;
        *comparable = instant_read(text, json_text_read(value, text), &instant);
        *order = (instant > operand->number.integer) - (instant < operand->number.integer);
    } else if ((operand->type == WW_FILTER_NULL && type == JSON_NULL) ||
               (operand->type == WW_FILTER_FALSE && type == JSON_FALSE) ||
               (operand->type == WW_FILTER_TRUE && type == JSON_TRUE)) {
        *comparable = true;
        *order = 0;
    }
    return WW_OK;
}

static bool order_is(ww_filter_test test, int order)
{
    switch (test) {
    case WW_FILTER_LESS:
        return order < 0;
    case WW_FILTER_LESS_EQUAL:
        return order <= 0;
    case WW_FILTER_GREATER:
        return order > 0;
    case WW_FILTER_GREATER_EQUAL:
        return order >= 0;
    default:
        return order == 0;
    }
}

static bool meets(filter_testing *t, const char *value, const filter_operand *operand, ww_filter_test test)
{
    bool comparable = false;
    int order = 0;
    if (t->status == WW_OK)
        t->status = compare(value, operand, &comparable, &order);
    return t->status == WW_OK && comparable && order_is(test, order);
}

/* ---- tests of one value -------------------------------------------------------------------------------------------------- */

static const filter_operand *operand_of(const filter_testing *t, int64_t number)
{
    return &t->filter->operands[t->node->operand + number];
}

typedef struct sought {
    const char *text;
    size_t length;
    json_number number;
} sought;

static int compare_sought_text(const void *key, const void *element)
{
    const sought *s = key;
    const filter_operand *operand = element;
    return compare_bytes(s->text, s->length, operand->text, operand->length);
}

static int compare_sought_number(const void *key, const void *element)
{
    return json_number_compare(&((const sought *)key)->number, &((const filter_operand *)element)->number);
}

static bool search_text(filter_testing *t, const char *value)
{
    const size_t room = (size_t)(json_end(value) - value);
    const bool plain = !memchr(value, '\\', room);
    char *read = plain ? NULL : memory_alloc(room);
    if (!plain && !read) {
        t->status = memory_failed("a text of a payload", room);
        return false;
    }
    const sought s = {plain ? value + 1 : read, plain ? room - 2 : json_text_read(value, read), {0}};
    const bool found =
        bsearch(&s, operand_of(t, 0), (size_t)t->node->operand_count, sizeof(filter_operand), compare_sought_text) != NULL;
    memory_free(read);
    return found;
}

/* Is the value one of the sorted operands? */
static bool search(filter_testing *t, const char *value)
{
    const json_type type = json_type_of(value), wanted = operand_of(t, 0)->type == WW_FILTER_TEXT ? JSON_TEXT : JSON_NUMBER;
    if (type != wanted || t->status != WW_OK)
        return false;
    if (type == JSON_TEXT)
        return search_text(t, value);
    const sought s = {.number = json_number_of(value)};
    return (s.number.is_integer || t->node->test == WW_FILTER_EQUAL) &&
           bsearch(&s, operand_of(t, 0), (size_t)t->node->operand_count, sizeof(filter_operand), compare_sought_number) != NULL;
}

/* EQUAL and the comparisons: one of the operands. */
void filter_test_equal(filter_testing *t, const char *value)
{
    if (t->node->sorted)
        t->found = t->found || search(t, value);
    for (int64_t i = 0; !t->node->sorted && !t->found && i < t->node->operand_count; i++)
        t->found = meets(t, value, operand_of(t, i), t->node->test);
}

/* A list has the operand, or a text contains it. */
static void test_contains(filter_testing *t, const char *value)
{
    if (json_type_of(value) == JSON_LIST)
        for (const char *at = json_first(value); !t->found && at; at = json_next(at))
            t->found = meets(t, at, operand_of(t, 0), WW_FILTER_EQUAL);
    else if (operand_of(t, 0)->type == WW_FILTER_TEXT)
        filter_test_text(t, value);
}

static void test_exists(filter_testing *t, const char *value)
{
    (void)value;
    t->found = true;
}

/* Integers and other numbers are different. */
static void test_same(filter_testing *t, const char *value)
{
    const json_type type = json_type_of(value);
    bool same = t->node->sorted && search(t, value);
    for (int64_t i = 0; !t->node->sorted && !same && i < t->node->operand_count; i++) {
        const filter_operand *operand = operand_of(t, i);
        same = meets(t, value, operand, WW_FILTER_EQUAL) &&
               (type != JSON_NUMBER || json_number_of(value).is_integer == operand->number.is_integer);
    }
    t->found = t->node->test == WW_FILTER_SAME ? same : t->status == WW_OK && !same && type != JSON_NULL;
}

static void test_within(filter_testing *t, const char *value)
{
    bool within = json_type_of(value) == JSON_NUMBER || json_type_of(value) == JSON_TEXT;
    for (int64_t i = 0; within && i < t->node->operand_count; i++)
        within = meets(t, value, operand_of(t, i), operand_of(t, i)->bound);
    t->found = within;
}

static bool count_within(const filter_testing *t, int64_t count)
{
    const json_number number = {.is_integer = true, .integer = count};
    for (int64_t i = 0; i < t->node->operand_count; i++)
        if (!order_is(operand_of(t, i)->bound, json_number_compare(&number, &operand_of(t, i)->number)))
            return false;
    return true;
}

static void test_count(filter_testing *t, const char *value)
{
    int64_t count = json_type_of(value) != JSON_NULL;
    if (json_type_of(value) == JSON_LIST) {
        count = 0;
        for (const char *at = json_first(value); at; at = json_next(at))
            count++;
    }
    t->found = count_within(t, count);
}

/* Finds a value that is not empty. */
static void test_filled(filter_testing *t, const char *value)
{
    const json_type type = json_type_of(value);
    t->found = type == JSON_LIST ? json_first(value) != NULL : type != JSON_NULL;
}

static void test_null(filter_testing *t, const char *value)
{
    t->found = json_type_of(value) == JSON_NULL;
    if (json_type_of(value) == JSON_LIST)
        for (const char *at = json_first(value); !t->found && at; at = json_next(at))
            t->found = json_type_of(at) == JSON_NULL;
}

static ww_status children_match(const ww_filter *f, const filter_node *node, const filter_row *row, bool *out);

static void test_element(filter_testing *t, const char *value)
{
    for (const char *at = json_type_of(value) == JSON_LIST ? json_first(value) : NULL; t->status == WW_OK && !t->found && at;
         at = json_next(at))
        if (json_type_of(at) == JSON_OBJECT)
            t->status = children_match(t->filter, t->node, &(filter_row){.payload = at}, &t->found);
}

/* ---- conditions ---------------------------------------------------------------------------------------------------------- */

typedef struct field_test {
    void (*test)(filter_testing *t, const char *value);
    bool flat; /* the elements of a list are tested instead of the list */
} field_test;

static const field_test TESTS[] = {
    [WW_FILTER_EXISTS] = {test_exists, false},
    [WW_FILTER_EQUAL] = {filter_test_equal, true},
    [WW_FILTER_CONTAINS] = {test_contains, false},
    [WW_FILTER_LESS] = {filter_test_equal, true},
    [WW_FILTER_LESS_EQUAL] = {filter_test_equal, true},
    [WW_FILTER_GREATER] = {filter_test_equal, true},
    [WW_FILTER_GREATER_EQUAL] = {filter_test_equal, true},
    [WW_FILTER_SAME] = {test_same, true},
    [WW_FILTER_OTHER] = {test_same, true},
    [WW_FILTER_ALL_WORDS] = {filter_test_text, true},
    [WW_FILTER_ANY_WORD] = {filter_test_text, true},
    [WW_FILTER_PHRASE] = {filter_test_text, true},
    [WW_FILTER_PREFIX] = {filter_test_text, true},
    [WW_FILTER_SUBSTRING] = {filter_test_text, true},
    [WW_FILTER_WITHIN] = {test_within, true},
    [WW_FILTER_COUNT] = {test_count, false},
    [WW_FILTER_EMPTY] = {test_filled, false},
    [WW_FILTER_HAS_NULL] = {test_null, false},
    [WW_FILTER_CIRCLE] = {filter_test_place, true},
    [WW_FILTER_BOX] = {filter_test_place, true},
    [WW_FILTER_POLYGON] = {filter_test_place, true},
};

typedef struct visiting {
    filter_testing *testing;
    void (*test)(filter_testing *t, const char *value);
} visiting;

/* Tests values until one meets the condition. */
static bool visit(void *user, const char *value)
{
    const visiting *v = user;
    v->testing->any = true;
    v->test(v->testing, value);
    return !v->testing->found && v->testing->status == WW_OK;
}

static bool has_null(const filter_testing *t)
{
    for (int64_t i = 0; i < t->node->operand_count; i++)
        if (operand_of(t, i)->type == WW_FILTER_NULL)
            return true;
    return false;
}

static ww_status field_matches(const ww_filter *f, const filter_node *node, const char *payload, bool *out)
{
    const field_test test = node->kind == FILTER_ELEMENT ? (field_test){test_element, false} : TESTS[node->test];
    const json_part *parts = f->parts + node->part;
    filter_testing t = {.filter = f, .node = node};
    visiting values = {&t, test.test};
    if (payload)
        json_path_visit(parts, node->part_count, json_root(payload), &(json_visit){visit, &values, test.flat});
    *out = t.found;
    if (node->kind == FILTER_FIELD && node->test == WW_FILTER_EMPTY)
        *out = !t.found;
    else if (node->kind == FILTER_FIELD && node->test == WW_FILTER_COUNT && !t.any)
        *out = count_within(&t, 0);
    else if (node->kind == FILTER_FIELD && node->test == WW_FILTER_EQUAL && !t.any && has_null(&t)) {
        bool listed = false; /* an empty list is not missing */
        visiting lists = {&t, test_exists};
        if (payload)
            listed = !json_path_visit(parts, node->part_count, json_root(payload), &(json_visit){visit, &lists, false});
        *out = !listed;
    }
    return t.status;
}

static int compare_id(const void *key, const void *element)
{
    const filter_row *row = key;
    const filter_operand *operand = element;
    return compare_bytes(row->id, row->id_length, operand->text, operand->length);
}

static bool id_matches(const ww_filter *f, const filter_node *node, const filter_row *row)
{
    return row->id && node->operand_count > 0 &&
           bsearch(row, f->operands + node->operand, (size_t)node->operand_count, sizeof *f->operands, compare_id) != NULL;
}

/* Tests children until it is certain whether enough of them hold. */
static ww_status children_match(const ww_filter *f, const filter_node *node, const filter_row *row, bool *out)
{
    int64_t held = 0;
    ww_status status = WW_OK;
    *out = node->at_least <= 0;
    for (int32_t child = node->first; status == WW_OK && child >= 0; child = f->nodes[child].next) {
        bool holds = false;
        status = node_matches(f, child, row, &holds);
        held += holds;
        if (node->at_least == FILTER_EVERY && !holds)
            *out = false;
        else if (node->at_least > 0)
            *out = held >= node->at_least;
        if (*out != (node->at_least == FILTER_EVERY))
            break;
    }
    return status;
}

static ww_status node_matches(const ww_filter *f, int32_t index, const filter_row *row, bool *out)
{
    const filter_node *node = &f->nodes[index];
    ww_status status = WW_OK;
    if (node->kind == FILTER_GROUP)
        status = children_match(f, node, row, out);
    else if (node->kind == FILTER_IDS)
        *out = id_matches(f, node, row);
    else
        status = field_matches(f, node, row->payload, out);
    *out = *out != node->negated;
    return status;
}

ww_status filter_matches(const ww_filter *f, const filter_row *row, bool *matches)
{
    return node_matches(f, 0, row, matches);
}
