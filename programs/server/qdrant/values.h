/* Values of a payload key: their order, and how often each occurs. */
#ifndef WW_SERVER_QDRANT_VALUES_H
#define WW_SERVER_QDRANT_VALUES_H

#include "base/json/json_path.h"
#include "server/request.h"

/* A key, written as in filters: "a.b", "a[].b". */
typedef struct values_key {
    json_path path;
    char *text; /* the path points into it */
    bool read;
} values_key;

/* Its parts, or the rest of them. */
typedef struct values_path {
    const json_part *parts;
    int32_t count;
} values_path;

values_path values_path_of(const values_key *key); /* NULL: no parts */

bool values_key_read(request *r, const char *value, const char *what, values_key *key);
void values_key_free(values_key *key);

/* Calls `tell` for each value that a payload has for the key, and for the elements of a list instead of the list, until it
 * returns false. */
void values_each(const values_key *key, const char *payload, json_teller tell, void *user);

/* The number by which a value is ordered: itself, or the microseconds of a date. False: it cannot be ordered. */
bool value_order(const char *value, double *order);

typedef struct value_counted {
    const char *json; /* the value as written in the payload */
    size_t bytes;
    int64_t count;
} value_counted;

typedef struct value_counts {
    value_counted *values;
    int64_t count, capacity;
    bool failed;
} value_counts;

/* Adds the values of a payload: texts, integers and booleans, each once. Payloads must stay valid until the counts are
 * freed. */
ww_status values_count(value_counts *counts, const values_key *key, const char *payload);

/* Adds a value as often as it was counted elsewhere. */
ww_status values_add(value_counts *counts, const char *value, int64_t count);

/* Merges equal values and sorts them, the most frequent first, on ties booleans, then numbers, then texts. */
ww_status values_sort(value_counts *counts);
void value_counts_free(value_counts *counts);

#endif
