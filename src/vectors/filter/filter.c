/* Building filters: a list of nodes that grows, and copies of all texts. */
#include "vectors/filter/filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

enum { TEXTS_BYTES = 1000 }; /* of a block, unless a text is longer */

struct filter_texts {
    filter_texts *before;
    size_t used, room;
    char bytes[];
};

/* Makes room for `more` elements in a list; may change `*list` and `*capacity`. */
static ww_status make_room(void **list, int64_t needed, int64_t *capacity, size_t element_bytes)
{
    if (needed <= *capacity)
        return WW_OK;
    const int64_t larger = needed > 2 * *capacity ? needed + 15 : 2 * *capacity;
    size_t bytes = SIZE_MAX;
    void *moved = size_multiply((size_t)larger, element_bytes, &bytes) ? memory_resize(*list, bytes) : NULL;
    if (!moved)
        return memory_failed("a filter", bytes);
    *list = moved;
    *capacity = larger;
    return WW_OK;
}

/* Copies a text to memory of the filter. */
static ww_status keep_text(ww_filter *f, const char **text, size_t length)
{
    if (!f->texts || f->texts->room - f->texts->used < length) {
        const size_t room = length > TEXTS_BYTES ? length : TEXTS_BYTES;
        filter_texts *made = memory_alloc(sizeof *made + room);
        if (!made)
            return memory_failed("a filter", sizeof *made + room);
        *made = (filter_texts){.before = f->texts, .room = room};
        f->texts = made;
    }
    char *kept = f->texts->bytes + f->texts->used;
    if (length > 0)
        memcpy(kept, *text, length);
    f->texts->used += length;
    *text = kept;
    return WW_OK;
}

ww_status filter_create(ww_filter **filter)
{
    ww_filter *f = memory_alloc_zeroed(1, sizeof *f);
    ww_status status = f ? make_room((void **)&f->nodes, 1, &f->node_capacity, sizeof *f->nodes) : WW_OK;
    if (!f)
        return memory_failed("a filter", sizeof *f);
    if (status != WW_OK) {
        filter_destroy(f);
        return status;
    }
    f->nodes[f->node_count++] = (filter_node){.kind = FILTER_GROUP, .at_least = FILTER_EVERY, .first = -1, .next = -1};
    f->open[0] = (filter_open_group){0, -1};
    *filter = f;
    return WW_OK;
}

void filter_destroy(ww_filter *f)
{
    if (!f)
        return;
    for (filter_texts *texts = f->texts, *before; texts; texts = before) {
        before = texts->before;
        memory_free(texts);
    }
    memory_free(f->nodes);
    memory_free(f->operands);
    memory_free(f->parts);
    memory_free(f);
}

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *first, const void *second)
{
    return json_number_compare(&((const filter_operand *)first)->number, &((const filter_operand *)second)->number);
}

static int compare_operands(const void *first, const void *second)
{
    const filter_operand *a = first, *b = second;
    const int bytes = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return bytes != 0 ? bytes : (a->length > b->length) - (a->length < b->length);
}

/* Is the condition that a value is one of a list, whose order means nothing, and has the list one type that can be sorted? */
static bool can_sort(const filter_condition *c)
{
    const bool listed = c->test == WW_FILTER_EQUAL || c->test == WW_FILTER_SAME || c->test == WW_FILTER_OTHER;
    const ww_filter_type type = c->operand_count > 1 ? c->operands[0].type : WW_FILTER_NULL;
    bool sortable = c->kind == FILTER_FIELD && listed && (type == WW_FILTER_TEXT || type == WW_FILTER_INTEGER);
    for (int64_t i = 1; sortable && i < c->operand_count; i++)
        sortable = c->operands[i].type == type;
    return sortable;
}

static ww_status reserve(ww_filter *f, const filter_condition *c)
{
    if (f->node_count == INT32_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "filter: more than %d conditions", INT32_MAX);
    ww_status status = make_room((void **)&f->nodes, f->node_count + 1, &f->node_capacity, sizeof *f->nodes);
    if (status == WW_OK)
        status = make_room((void **)&f->parts, f->part_count + c->part_count, &f->part_capacity, sizeof *f->parts);
    if (status == WW_OK)
        status =
            make_room((void **)&f->operands, f->operand_count + c->operand_count, &f->operand_capacity, sizeof *f->operands);
    return status;
}

/* Copies the parts and operands behind those of the filter, without counting them yet. */
static ww_status keep_condition(ww_filter *f, const filter_condition *c)
{
    ww_status status = reserve(f, c);
    for (int32_t i = 0; status == WW_OK && i < c->part_count; i++) {
        json_part *part = &f->parts[f->part_count + i];
        *part = c->parts[i];
        if (part->step == JSON_KEY)
            status = keep_text(f, &part->text, part->length);
    }
    for (int64_t i = 0; status == WW_OK && i < c->operand_count; i++) {
        filter_operand *operand = &f->operands[f->operand_count + i];
        *operand = c->operands[i];
        if (operand->text)
            status = keep_text(f, &operand->text, operand->length);
    }
    const bool sorted = can_sort(c) || (c->kind == FILTER_IDS && c->operand_count > 1);
    if (status == WW_OK && sorted)
        qsort(&f->operands[f->operand_count], (size_t)c->operand_count, sizeof *f->operands,
              c->operands[0].type == WW_FILTER_INTEGER ? compare_numbers : compare_operands);
    return status;
}

ww_status filter_add(ww_filter *f, const filter_condition *c)
{
    const bool group = c->kind == FILTER_GROUP || c->kind == FILTER_ELEMENT;
    if (group && f->depth == WW_FILTER_DEPTH_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "filter: groups are nested more than %d deep", WW_FILTER_DEPTH_MAX);
    const ww_status status = keep_condition(f, c);
    if (status != WW_OK)
        return status;
    const int32_t made = (int32_t)f->node_count++;
    filter_open_group *parent = &f->open[f->depth];
    *(parent->last_child < 0 ? &f->nodes[parent->node].first : &f->nodes[parent->last_child].next) = made;
    parent->last_child = made;
    f->nodes[made] = (filter_node){.kind = c->kind,
                                   .test = c->test,
                                   .negated = c->negated,
                                   .at_least = c->at_least,
                                   .first = -1,
                                   .next = -1,
                                   .part = f->part_count,
                                   .part_count = c->part_count,
                                   .operand = f->operand_count,
                                   .operand_count = c->operand_count,
                                   .sorted = can_sort(c)};
    f->part_count += c->part_count;
    f->operand_count += c->operand_count;
    if (group)
        f->open[++f->depth] = (filter_open_group){made, -1};
    return WW_OK;
}

ww_status filter_end(ww_filter *f)
{
    if (f->depth == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "filter: no group is open");
    f->depth--;
    return WW_OK;
}

ww_status filter_check_closed(const ww_filter *f, const char *function)
{
    return !f || f->depth == 0 ? WW_OK
                               : ww_fail(WW_INVALID_ARGUMENT, "%s: the filter has %d open group%s, which must be closed first",
                                         function, (int)f->depth, f->depth == 1 ? "" : "s");
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

/* Adds a node of another filter with all nodes below it. */
static ww_status add_node(ww_filter *f, const ww_filter *other, int32_t index)
{
    const filter_node *node = &other->nodes[index];
    ww_status status =
        filter_add(f, &(filter_condition){.kind = node->kind,
                                          .test = node->test,
                                          .negated = node->negated,
                                          .at_least = node->at_least,
                                          .parts = node->part_count > 0 ? other->parts + node->part : NULL,
                                          .part_count = node->part_count,
                                          .operands = node->operand_count > 0 ? other->operands + node->operand : NULL,
                                          .operand_count = node->operand_count});
    if (node->kind != FILTER_GROUP && node->kind != FILTER_ELEMENT)
        return status;
    for (int32_t child = node->first; status == WW_OK && child >= 0; child = other->nodes[child].next)
        status = add_node(f, other, child);
    return status == WW_OK ? filter_end(f) : status;
}

/* The state to which a failed call returns. */
typedef struct filter_mark {
    int64_t node_count, part_count, operand_count;
    int32_t depth, last_child;
} filter_mark;

static filter_mark mark(const ww_filter *f)
{
    return (filter_mark){f->node_count, f->part_count, f->operand_count, f->depth, f->open[f->depth].last_child};
}

static void undo(ww_filter *f, filter_mark m)
{
    f->node_count = m.node_count;
    f->part_count = m.part_count;
    f->operand_count = m.operand_count;
    f->depth = m.depth;
    f->open[m.depth].last_child = m.last_child;
    *(m.last_child < 0 ? &f->nodes[f->open[m.depth].node].first : &f->nodes[m.last_child].next) = -1;
}

ww_status filter_add_filter(ww_filter *f, const ww_filter *other)
{
    const filter_mark before = mark(f);
    ww_status status = WW_OK;
    /* A root with one condition is no more than that condition. */
    if (other->nodes[0].first >= 0 && other->nodes[other->nodes[0].first].next < 0)
        status = add_node(f, other, other->nodes[0].first);
    else if (other->nodes[0].first >= 0)
        status = add_node(f, other, 0);
    if (status != WW_OK)
        undo(f, before);
    return status;
}

ww_status filter_copy(const ww_filter *filter, ww_filter **copy)
{
    ww_filter *made = NULL;
    ww_status status = filter_create(&made);
    for (int32_t child = filter->nodes[0].first; status == WW_OK && child >= 0; child = filter->nodes[child].next)
        status = add_node(made, filter, child);
    if (status == WW_OK)
        *copy = made;
    else
        filter_destroy(made);
    return status;
}

static bool same_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    return a_length == b_length && (a_length == 0 || memcmp(a, b, a_length) == 0);
}

static bool same_operand(const filter_operand *a, const filter_operand *b)
{
    return a->type == b->type && a->bound == b->bound && a->number.is_integer == b->number.is_integer &&
           json_number_compare(&a->number, &b->number) == 0 && same_bytes(a->text, a->length, b->text, b->length);
}

static bool same_node(const filter_node *a, const filter_node *b)
{
    return a->kind == b->kind && a->test == b->test && a->negated == b->negated && a->first == b->first && a->next == b->next &&
           a->at_least == b->at_least && a->part_count == b->part_count && a->operand_count == b->operand_count;
}

bool filter_equal(const ww_filter *a, const ww_filter *b)
{
    bool same = a->node_count == b->node_count && a->part_count == b->part_count && a->operand_count == b->operand_count;
    for (int64_t i = 0; same && i < a->node_count; i++)
        same = same_node(&a->nodes[i], &b->nodes[i]);
    for (int64_t i = 0; same && i < a->part_count; i++)
        same = a->parts[i].step == b->parts[i].step && a->parts[i].index == b->parts[i].index &&
               same_bytes(a->parts[i].text, a->parts[i].length, b->parts[i].text, b->parts[i].length);
    for (int64_t i = 0; same && i < a->operand_count; i++)
        same = same_operand(&a->operands[i], &b->operands[i]);
    return same;
}
