/* Filters as dictionaries: which rows a search may find, said of the fields of their payloads in JSON.
 *
 *     {"year": {"$gt": 2000}, "lang": {"$in": ["en", "de"]}, "$or": [{"draft": false}, {"owner.name": "ann"}]}
 *
 * The text is read once into a tree of conditions, which is held against each payload. A store does the same through the SQL
 * function ww_filter(payload, filter), so collections in memory and in files admit the same rows:
 * - Conditions are true or false, never unknown: {"$not": C} is true for exactly the rows for which C is not, rows without the
 *   field or without a payload included. $ne and $nin are the opposites of $eq and $in.
 * - A field with a list meets a condition if one of its elements does.
 * - Numbers compare with numbers, exactly (2 is 2.0, true is not 1), texts with texts by their bytes, {"$date": "2024-01-31"}
 *   with texts that are dates or times. null is equal to null and to a missing field.
 */
#ifndef WW_VECTORS_FILTER_H
#define WW_VECTORS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_value.h"
#include "base/status.h"

enum {
    FILTER_BYTES_MAX = 1 << 20, /* of the text */
    FILTER_DEPTH_MAX = 32,      /* of $and, $or and $not in each other */
    FILTER_FIELD_PARTS_MAX = 16 /* of "a.b.c" */
};

typedef enum filter_operation {
    FILTER_AND,
    FILTER_OR,
    FILTER_EXISTS,
    FILTER_IN, /* equal to one of the operands */
    FILTER_CONTAINS,
    FILTER_LESS,
    FILTER_LESS_EQUAL,
    FILTER_GREATER,
    FILTER_GREATER_EQUAL
} filter_operation;

typedef enum filter_operand_type {
    FILTER_NULL,
    FILTER_FALSE,
    FILTER_TRUE,
    FILTER_NUMBER,
    FILTER_TEXT,
    FILTER_INSTANT
} filter_operand_type;

typedef struct filter_operand {
    filter_operand_type type;
    json_number number; /* of an instant its microseconds */
    const char *text;   /* without escapes and without a NUL */
    size_t length;
} filter_operand;

typedef struct filter_part { /* of a field's name: "a" and "b" of "a.b" */
    const char *text;
    size_t length;
} filter_part;

/* $not is carried down to the conditions, so that no AND and no OR is negated. */
typedef struct filter_node {
    filter_operation operation;
    bool negated;        /* of a condition */
    int32_t first, next; /* the first child of AND and OR, and the next child of the same parent; -1: none */
    int32_t part, part_count;
    int32_t operand, operand_count;
} filter_node;

/* A filter that was read. nodes[0] is the whole. */
typedef struct filter {
    filter_node *nodes;
    filter_operand *operands;
    filter_part *parts;
    char *text; /* what the others point into */
    int32_t node_count, operand_count, part_count;
    int32_t node_capacity, operand_capacity, part_capacity;
} filter;

/* Reads a filter. Refuses what is no JSON object, unknown operators, values of the wrong kind, and more than the limits above,
 * with a message that names the place: "filter: year.$gtt: ...". Leaves nothing to free where it fails. */
ww_status filter_read(const char *json, filter *out);
void filter_free(filter *f);

/* Whether a payload (JSON text, or NULL for none) meets the filter. Fails only for want of memory, for texts with escapes. */
ww_status filter_matches(const filter *f, const char *payload, bool *matches);

#endif
