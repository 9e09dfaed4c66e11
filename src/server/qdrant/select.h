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

/* Writes the vector of a row of an entry. */
typedef void (*vector_writer)(out *o, const entry *e, const float *vector);
/* Writes {"image": [...], "text": [...]}: those of the vectors with names, selected by `with`, that the point has. */
void put_named_vectors(out *o, const point *p, vector_writer put);

/* Writes {"id": ..., "payload": ...}; without the brace at the end; and so with a score. */
void put_record(out *o, const point *p);
void put_record_begin(out *o, const point *p);
void put_scored_begin(out *o, const point *p, double score);

/* Reads the filter of an object as a filter of the store, {"$qdrant": ...}, in `filter` (memory_free(); NULL: none). */
bool filter_of_request(request *r, const char *object, const char *key, char **filter);

/* Points have vectors with names in other collections. Gives in `resolved` (memory_free()) the filter with the ids of those
 * that have a vector in place of each has_vector; NULL: there is none, and the filter can be used as it is. */
ww_status filter_resolve(const entry *e, const char *filter, char **resolved);

/* Gets points by id, in the order of the ids; one that is not there has no id in the results. */
ww_status points_get(const entry *e, const char *const *ids, int64_t count, uint32_t fetch, ww_results **found);

/* Tells the rows that a filter admits, or all if it is NULL, some thousands at a time, in the order in which they were added.
 * Ends with the first status that is not WW_OK. */
ww_status rows_each(const entry *e, const char *filter, uint32_t fetch, ww_status (*tell)(void *user, const ww_results *rows),
                    void *user);

/* The same rows as results that stay; and their number. */
ww_status rows_matching(const entry *e, const char *filter, uint32_t fetch, ww_results **results);
ww_status rows_count(const entry *e, const char *filter, int64_t *count);

#endif
