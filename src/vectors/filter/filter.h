/* What a filter is: a tree of conditions, which is tested against each row. include/warpwave/filter.h says what they mean.
 *
 * Nodes are in one list, a group before its children. A store runs the same code through the SQL function ww_filter(payload,
 * filter, id), so collections in memory and in files admit the same rows.
 */
#ifndef WW_VECTORS_FILTER_H
#define WW_VECTORS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/filter.h>

#include "base/json/json_path.h"
#include "base/json/json_value.h"
#include "base/status.h"

/* What a node is: a group, a condition on a field (a ww_filter_test), or one of these. */
typedef enum filter_kind {
    FILTER_GROUP,   /* at least `at_least` of the children hold; FILTER_EVERY: all */
    FILTER_ELEMENT, /* the children hold together for one of the objects in the field's list */
    FILTER_IDS,     /* the row's id is one of the operands, which are sorted */
    FILTER_FIELD
} filter_kind;

enum { FILTER_EVERY = -1 };

typedef struct filter_operand {
    ww_filter_type type;
    ww_filter_test bound;
    json_number number; /* of a date: its microseconds */
    const char *text;   /* not terminated */
    size_t length;
} filter_operand;

typedef struct filter_node {
    filter_kind kind;
    ww_filter_test test; /* of FILTER_FIELD */
    bool negated;
    int32_t first, next; /* the first child, and the next child of the same parent; -1: none */
    int64_t at_least;    /* of FILTER_GROUP */
    int64_t part, operand;
    int64_t operand_count;
    int32_t part_count;
    bool sorted; /* the operands of EQUAL, SAME or OTHER are all texts or all integers, in order: one of them is found by
                    halving */
} filter_node;

typedef struct filter_open_group { /* a group to which conditions can still be added */
    int32_t node, last_child;
} filter_open_group;

typedef struct filter_texts filter_texts;

struct ww_filter {
    filter_node *nodes; /* nodes[0] is the root, of which all children hold */
    filter_operand *operands;
    json_part *parts;
    filter_texts *texts; /* what the operands and parts point to, in blocks that do not move */
    int64_t node_count, operand_count, part_count;
    int64_t node_capacity, operand_capacity, part_capacity;
    filter_open_group open[WW_FILTER_DEPTH_MAX + 1];
    int32_t depth; /* open groups besides the root */
};

/* A condition to add. Everything is copied. */
typedef struct filter_condition {
    filter_kind kind;
    ww_filter_test test;
    bool negated;
    int64_t at_least;
    const json_part *parts; /* the path to the field */
    int32_t part_count;
    const filter_operand *operands;
    int64_t operand_count;
} filter_condition;

/* The public calls without checks of NULL. Messages begin with "filter: ". */
ww_status filter_create(ww_filter **filter);
ww_status filter_read(const char *json, ww_filter **filter);
void filter_destroy(ww_filter *filter);
ww_status filter_add(ww_filter *filter, const filter_condition *condition); /* opens a group or an element */
ww_status filter_end(ww_filter *filter);
ww_status filter_add_filter(ww_filter *filter, const ww_filter *other);
ww_status filter_copy(const ww_filter *filter, ww_filter **copy);
bool filter_equal(const ww_filter *a, const ww_filter *b);
size_t filter_show(const ww_filter *filter, char *text, size_t capacity);

/* Refuses a filter with groups that are still open. NULL is accepted. */
ww_status filter_check_closed(const ww_filter *filter, const char *function);

/* A row that a filter is tested against. */
typedef struct filter_row {
    const char *id; /* not terminated; NULL: unknown, and equal to no id */
    size_t id_length;
    const char *payload; /* JSON text, or NULL for none */
} filter_row;

/* Finds out whether a row meets the filter. Fails only if there is no memory for texts with escapes. */
ww_status filter_matches(const ww_filter *filter, const filter_row *row, bool *matches);

#endif
