/* Tests the conditions of Qdrant's filters against a row. A field's name may lead to several values, "a[].b". A list stands for
 * its elements, except in conditions about the list itself. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "vectors/filter/filter_geo.h"
#include "vectors/filter/filter_match.h"

typedef struct walk walk;

/* Visits the values that a field leads to, until one decides. */
struct walk {
    const filter *f;
    const filter_node *node;
    ww_status (*visit)(walk *w, const char *value);
    bool flat; /* visit the elements of a list instead of the list */
    bool found;
    bool any; /* there was at least one value */
    bool (*tell)(void *user, const char *value);
    void *user;
};

static ww_status visit_value(walk *w, const char *value)
{
    w->any = true;
    if (!w->flat || json_type_of(value) != JSON_LIST)
        return w->visit(w, value);
    ww_status status = WW_OK;
    for (const char *at = json_first(value); status == WW_OK && !w->found && at; at = json_next(at))
        status = w->visit(w, at);
    return status;
}

/* Walks from `value` along the parts from number `part` on; at most FILTER_FIELD_PARTS_MAX deep. */
static ww_status walk_from(walk *w, const char *value, int32_t part)
{
    if (part == w->node->part_count)
        return visit_value(w, value);
    const filter_part *p = &w->f->parts[w->node->part + part];
    ww_status status = WW_OK;
    if (p->step == FILTER_KEY) {
        const char *member = json_type_of(value) == JSON_OBJECT ? json_find(value, p->text, p->length) : NULL;
        return member ? walk_from(w, member, part + 1) : WW_OK;
    }
    if (json_type_of(value) != JSON_LIST)
        return WW_OK;
    int64_t number = 0;
    for (const char *at = json_first(value); status == WW_OK && !w->found && at; at = json_next(at), number++)
        if (p->step == FILTER_EACH || number == p->index)
            status = walk_from(w, at, part + 1);
    return status;
}

/* ---- words of texts ------------------------------------------------------------------------------------------------------ */

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80);
}

static bool same_word(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char x = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] + 32) : a[i];
        const char y = b[i] >= 'A' && b[i] <= 'Z' ? (char)(b[i] + 32) : b[i];
        if (x != y)
            return false;
    }
    return true;
}

/* Returns the start of the next word from *at on, or NULL. Moves *at to its end. */
static const char *next_word(const char **at, const char *end)
{
    while (*at < end && !is_word_byte(**at))
        (*at)++;
    const char *first = *at;
    while (*at < end && is_word_byte(**at))
        (*at)++;
    return *at > first ? first : NULL;
}

static bool has_word(const char *text, const char *end, const char *word, size_t length)
{
    for (const char *first; (first = next_word(&text, end));)
        if ((size_t)(text - first) == length && same_word(first, word, length))
            return true;
    return false;
}

/* Returns true if `text` starts with the words of the operand, in order. */
static bool begins_with_words(const char *text, const char *end, const filter_operand *operand)
{
    const char *wanted = operand->text, *const wanted_end = wanted + operand->length;
    for (const char *word; (word = next_word(&wanted, wanted_end));) {
        const char *first = next_word(&text, end);
        if (!first || text - first != wanted - word || !same_word(first, word, (size_t)(wanted - word)))
            return false;
    }
    return true;
}

static bool words_match(filter_operation operation, const char *text, const char *end, const filter_operand *operand)
{
    const char *wanted = operand->text, *const wanted_end = wanted + operand->length;
    const char *word = next_word(&wanted, wanted_end);
    if (!word)
        return false;
    if (operation == FILTER_PHRASE) {
        for (const char *at = text, *first; (first = next_word(&at, end));)
            if (begins_with_words(first, end, operand))
                return true;
        return false;
    }
    for (; word; word = next_word(&wanted, wanted_end))
        if (has_word(text, end, word, (size_t)(wanted - word)) != (operation == FILTER_ALL_WORDS))
            return operation == FILTER_ANY_WORD;
    return operation == FILTER_ALL_WORDS;
}

static ww_status visit_text(walk *w, const char *value)
{
    const filter_operand *operand = &w->f->operands[w->node->operand];
    if (json_type_of(value) != JSON_TEXT)
        return WW_OK;
    const size_t room = (size_t)(json_end(value) - value);
    char *text = memory_alloc(room);
    if (!text)
        return memory_failed("a text of a payload", room);
    const size_t length = json_text_read(value, text);
    if (w->node->operation == FILTER_PREFIX)
        w->found = length >= operand->length && memcmp(text, operand->text, operand->length) == 0;
    else
        w->found = words_match(w->node->operation, text, text + length, operand);
    memory_free(text);
    return WW_OK;
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

/* Returns true if both numbers are integers or neither is: Qdrant distinguishes the two. */
static bool same_kind(const char *value, const filter_operand *operand)
{
    return operand->type != FILTER_NUMBER || json_number_of(value).is_integer == operand->number.is_integer;
}

static ww_status visit_equal(walk *w, const char *value)
{
    bool equal = false;
    for (int32_t i = 0; !equal && i < w->node->operand_count; i++) {
        const filter_operand *operand = &w->f->operands[w->node->operand + i];
        bool comparable = false;
        int order = 0;
        const ww_status status = filter_compare(value, operand, &comparable, &order);
        if (status != WW_OK)
            return status;
        equal = comparable && order == 0 && same_kind(value, operand);
    }
    w->found = w->node->operation == FILTER_SAME ? equal : !equal && json_type_of(value) != JSON_NULL;
    return WW_OK;
}

static ww_status visit_substring(walk *w, const char *value)
{
    return json_type_of(value) == JSON_TEXT ? filter_contains(value, &w->f->operands[w->node->operand], &w->found) : WW_OK;
}

static ww_status visit_within(walk *w, const char *value)
{
    bool within = json_type_of(value) == JSON_NUMBER || json_type_of(value) == JSON_TEXT;
    for (int32_t i = 0; within && i < w->node->operand_count; i++) {
        const filter_operand *operand = &w->f->operands[w->node->operand + i];
        bool comparable = false;
        int order = 0;
        const ww_status status = filter_compare(value, operand, &comparable, &order);
        if (status != WW_OK)
            return status;
        within = comparable && filter_order_is(operand->bound, order);
    }
    w->found = within;
    return WW_OK;
}

static bool count_within(const walk *w, int64_t count)
{
    const json_number number = {.is_integer = true, .integer = count};
    for (int32_t i = 0; i < w->node->operand_count; i++) {
        const filter_operand *operand = &w->f->operands[w->node->operand + i];
        if (!filter_order_is(operand->bound, json_number_compare(&number, &operand->number)))
            return false;
    }
    return true;
}

static ww_status visit_count(walk *w, const char *value)
{
    int64_t count = json_type_of(value) != JSON_NULL;
    if (json_type_of(value) == JSON_LIST) {
        count = 0;
        for (const char *at = json_first(value); at; at = json_next(at))
            count++;
    }
    w->found = count_within(w, count);
    return WW_OK;
}

static ww_status visit_place(walk *w, const char *value)
{
    w->found = filter_geo_matches(w->f, w->node, value);
    return WW_OK;
}

/* Finds a value that is not empty. */
static ww_status visit_filled(walk *w, const char *value)
{
    const json_type type = json_type_of(value);
    w->found = type == JSON_LIST ? json_first(value) != NULL : type != JSON_NULL;
    return WW_OK;
}

static ww_status visit_null(walk *w, const char *value)
{
    w->found = json_type_of(value) == JSON_NULL;
    if (json_type_of(value) == JSON_LIST)
        for (const char *at = json_first(value); !w->found && at; at = json_next(at))
            w->found = json_type_of(at) == JSON_NULL;
    return WW_OK;
}

static ww_status visit_nested(walk *w, const char *value)
{
    ww_status status = WW_OK;
    if (json_type_of(value) != JSON_LIST)
        return WW_OK;
    for (const char *at = json_first(value); status == WW_OK && !w->found && at; at = json_next(at))
        if (json_type_of(at) == JSON_OBJECT)
            status = filter_node_matches(w->f, w->node->first, &(filter_row){.payload = at}, &w->found);
    return status;
}

/* ---- conditions without a field ------------------------------------------------------------------------------------------ */

static int compare_id(const void *key, const void *element)
{
    const filter_row *row = key;
    const filter_operand *operand = element;
    const int bytes = memcmp(row->id, operand->text, row->id_length < operand->length ? row->id_length : operand->length);
    return bytes != 0 ? bytes : (row->id_length > operand->length) - (row->id_length < operand->length);
}

static bool id_matches(const filter *f, const filter_node *node, const filter_row *row)
{
    return row->id && node->operand_count > 0 &&
           bsearch(row, f->operands + node->operand, (size_t)node->operand_count, sizeof *f->operands, compare_id) != NULL;
}

static ww_status at_least(const filter *f, const filter_node *node, const filter_row *row, bool *out)
{
    int64_t count = 0;
    ww_status status = WW_OK;
    for (int32_t child = node->first; status == WW_OK && child >= 0; child = f->nodes[child].next) {
        bool holds = false;
        status = filter_node_matches(f, child, row, &holds);
        count += holds;
    }
    *out = count >= node->count;
    return status;
}

ww_status filter_qdrant_matches(const filter *f, const filter_node *node, const filter_row *row, bool *out)
{
    static const struct {
        ww_status (*visit)(walk *w, const char *value);
        bool flat;
    } VISITS[] = {[FILTER_NESTED] = {visit_nested, false},   [FILTER_SAME] = {visit_equal, true},
                  [FILTER_OTHER] = {visit_equal, true},      [FILTER_ALL_WORDS] = {visit_text, true},
                  [FILTER_ANY_WORD] = {visit_text, true},    [FILTER_PHRASE] = {visit_text, true},
                  [FILTER_PREFIX] = {visit_text, true},      [FILTER_SUBSTRING] = {visit_substring, true},
                  [FILTER_WITHIN] = {visit_within, true},    [FILTER_COUNT] = {visit_count, false},
                  [FILTER_EMPTY] = {visit_filled, false},    [FILTER_NULLS] = {visit_null, false},
                  [FILTER_GEO_RADIUS] = {visit_place, true}, [FILTER_GEO_BOX] = {visit_place, true},
                  [FILTER_GEO_POLYGON] = {visit_place, true}};
    if (node->operation == FILTER_MIN_SHOULD)
        return at_least(f, node, row, out);
    *out = node->operation == FILTER_IDS && id_matches(f, node, row);
    if (node->operation == FILTER_IDS)
        return WW_OK;
    walk w = {.f = f, .node = node, .visit = VISITS[node->operation].visit, .flat = VISITS[node->operation].flat};
    const ww_status status = row->payload ? walk_from(&w, json_root(row->payload), 0) : WW_OK;
    *out = w.found;
    if (node->operation == FILTER_EMPTY)
        *out = !w.found;
    else if (node->operation == FILTER_COUNT && !w.any)
        *out = count_within(&w, 0);
    return status;
}

static ww_status visit_told(walk *w, const char *value)
{
    w->found = !w->tell(w->user, value);
    return WW_OK;
}

void filter_field_visit(const filter *f, const char *payload, bool (*tell)(void *user, const char *value), void *user)
{
    for (int32_t i = 0; i < f->node_count; i++) {
        if (f->nodes[i].part_count == 0)
            continue;
        walk w = {.f = f, .node = &f->nodes[i], .visit = visit_told, .flat = true, .tell = tell, .user = user};
        (void)walk_from(&w, json_root(payload), 0); /* nothing in it can fail */
        return;
    }
}
