/* Filters as JSON dictionaries over the fields of payloads: which rows a search may find.
 *
 *     {"year": {"$gt": 2000}, "lang": {"$in": ["en", "de"]}, "$or": [{"draft": false}, {"owner.name": "ann"}]}
 *
 * The text is parsed once into a tree of conditions, which is tested against each payload. A store does the same through the
 * SQL function ww_filter(payload, filter), so collections in memory and in files admit the same rows:
 * - Conditions are true or false, never unknown: {"$not": C} is true for exactly the rows for which C is false, including rows
 *   without the field or without a payload. $ne and $nin are the opposites of $eq and $in.
 * - A field with a list meets a condition if one of its elements does.
 * - Numbers compare with numbers, exactly (2 is 2.0, true is not 1), texts with texts by their bytes, {"$date": "2024-01-31"}
 *   with texts that are dates or times. null is equal to null and to a missing field.
 * - {"$qdrant": {...}} is a filter in Qdrant's syntax, with "must", "should" and so on, and with its meaning.
 */
#ifndef WW_VECTORS_FILTER_H
#define WW_VECTORS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json_value.h"
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
    /* Those of Qdrant's filters (filter_qdrant.c), whose fields may lead through lists: "a[].b", "a[0]". */
    FILTER_MIN_SHOULD, /* at least `count` of the children hold */
    FILTER_NESTED,     /* the child holds for one of the objects in the field's list */
    FILTER_IDS,        /* the row's id is one of the operands, which are sorted */
    FILTER_SAME,       /* like FILTER_IN, but 2 does not equal 2.0 */
    FILTER_OTHER,      /* has a value that is none of the operands */
    FILTER_ALL_WORDS,  /* a text with each word of the operand, in any order and case */
    FILTER_ANY_WORD,   /* with one of them */
    FILTER_PHRASE,     /* a text with all words of the operand, adjacent and in order */
    FILTER_PREFIX,     /* a text that starts with the operand */
    FILTER_SUBSTRING,
    FILTER_WITHIN,      /* is within all bounds */
    FILTER_COUNT,       /* the number of values is within all bounds */
    FILTER_EMPTY,       /* missing, null or an empty list */
    FILTER_NULLS,       /* null, or a list with null in it */
    FILTER_GEO_RADIUS,  /* a place within a circle: lat, lon, metres */
    FILTER_GEO_BOX,     /* within a box: top, left, bottom, right */
    FILTER_GEO_POLYGON, /* inside a ring and outside its holes: the number of places of each ring, and the places */
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
    json_number number; /* for an instant: its microseconds */
    const char *text;   /* without escapes and without a NUL */
    size_t length;
    filter_operation bound; /* of FILTER_WITHIN and FILTER_COUNT: how a value must compare */
} filter_operand;

typedef enum filter_step { FILTER_KEY, FILTER_EACH, FILTER_INDEX } filter_step; /* "a", "[]" and "[7]" */

typedef struct filter_part { /* of a field's name: "a" and "b" of "a.b" */
    const char *text;
    size_t length;
    filter_step step;
    int64_t index;
} filter_part;

typedef struct filter_node {
    filter_operation operation;
    bool negated;
    int32_t first, next; /* the first child, and the next child of the same parent; -1: none */
    int32_t part, part_count;
    int32_t operand, operand_count;
    int64_t count; /* of FILTER_MIN_SHOULD */
} filter_node;

/* A parsed filter. nodes[0] is its root. */
typedef struct filter {
    filter_node *nodes;
    filter_operand *operands;
    filter_part *parts;
    char *text; /* the texts that the others point to */
    int32_t node_count, operand_count, part_count;
    int32_t node_capacity, operand_capacity, part_capacity;
} filter;

/* Reads a filter. Refuses anything that is not a JSON object, unknown operators, values of the wrong kind, and more than the
 * limits above, with a message that names the place: "filter: year.$gtt: ...". Leaves nothing to free if it fails. */
ww_status filter_read(const char *json, filter *out);
void filter_free(filter *f);

/* A row that a filter is tested against. */
typedef struct filter_row {
    const char *id; /* not terminated; NULL: unknown, and equal to no id */
    size_t id_length;
    const char *payload; /* JSON text, or NULL for none */
} filter_row;

/* Finds out whether a row meets the filter. Fails only if there is no memory for texts with escapes. */
ww_status filter_matches(const filter *f, const filter_row *row, bool *matches);

/* Calls `tell` for each value of the first condition's field, and for the elements of a list instead of the list, until it
 * returns false. For filters of Qdrant's form. */
void filter_field_visit(const filter *f, const char *payload, bool (*tell)(void *user, const char *value), void *user);

#endif
