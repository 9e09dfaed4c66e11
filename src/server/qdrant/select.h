/* What of a point an answer has: with_payload and with_vector; and writing points. */
#ifndef WW_SERVER_QDRANT_SELECT_H
#define WW_SERVER_QDRANT_SELECT_H

#include "server/state.h"

typedef struct selection {
    bool payload, vector;
    const char *vector_names; /* a JSON list in the request's body; NULL: all */
    bool exclude;             /* `keys` are left out; else only they are in */
    const char **keys;        /* "a.b", "a[].b"; NULL: the whole payload */
    size_t key_count;
    char *text; /* what the keys point into */
} selection;

/* Reads with_payload and with_vector of an object; `with` holds the defaults. False: the request failed. */
bool parts_read(request *r, const char *object, selection *with);
void parts_free(selection *s);

/* Reads the name of a vector; NULL and "" are the one without a name. */
bool vector_name_read(const char *value, char name[128]);

/* WW_FETCH_... that it needs, ids included. Vectors with names are got when they are written. */
uint32_t parts_fetch(const selection *s);

/* An id: a number where it is one, else a text. */
void put_point_id(out *o, const char *id);

/* A point, of which results has everything at `hit`. */
typedef struct point {
    const entry *entry;
    const ww_results *results;
    int64_t query, hit;
    const selection *with;
} point;

/* Writes "payload" and "vector" with a comma before each, as they were selected. */
void put_point_parts(out *o, const point *p);

/* Writes {"id": ..., "payload": ...}; and the same with a score. */
void put_record(out *o, const point *p);
void put_scored(out *o, const point *p, double score);

/* Reads the filter of an object as a filter of the store, {"$qdrant": ...}, in `filter` (memory_free(); NULL: none). */
bool filter_of_request(request *r, const char *object, const char *key, char **filter);

/* All rows that a filter admits, or all if it is NULL. */
ww_status rows_matching(const entry *e, const char *filter, uint32_t fetch, ww_results **results);

#endif
