/* Which parts of a point an answer has (with_payload and with_vector), and writing points. */
#ifndef WW_SERVER_QDRANT_SELECT_H
#define WW_SERVER_QDRANT_SELECT_H

#include "server/qdrant/filter.h"
#include "server/qdrant/values.h"
#include "server/state.h"

enum { PAYLOAD_KEYS_MAX = 128 }; /* of with_payload: each is compared with each field of a payload */

typedef struct selection {
    bool payload, vector;
    const char *vector_names; /* a JSON list in the request's body; NULL: all */
    bool exclude;             /* `keys` are left out; false: only they are included */
    values_key *keys;         /* NULL: the whole payload */
    size_t key_count;
} selection;

/* Reads with_payload and with_vector of an object; `with` holds the defaults. False: the request failed. */
bool parts_read(request *r, const char *object, selection *with);
void parts_free(selection *s);

/* Reads the name of a vector; NULL and "" mean the unnamed one. */
bool vector_name_read(const char *value, char name[128]);

/* The WW_FETCH_... flags that the selection needs, including ids. Named vectors are fetched when they are written. */
uint32_t parts_fetch(const selection *s);

/* Writes an id: a number if it is one, otherwise a text. */
void put_point_id(out *o, const char *id);

/* A point: hit `hit` of the results. */
typedef struct point {
    const entry *entry;
    const ww_results *results;
    int64_t query, hit;
    const selection *with;
} point;

/* Writes the vector of a row of an entry. */
typedef void (*vector_writer)(out *o, const entry *e, const float *vector);
/* Writes {"image": [...], "text": [...]}: the point's named vectors that `with` selects. */
void put_named_vectors(out *o, const point *p, vector_writer put);

/* Write {"id": ..., "payload": ...} without the closing brace, and the same with a score. */
void put_record(out *o, const point *p);
void put_record_begin(out *o, const point *p);
void put_scored_begin(out *o, const point *p, double score);

/* Fetches points by id, in the order of the ids; a missing point has no id in the results. */
ww_status points_get(const entry *e, const char *const *ids, int64_t count, uint32_t fetch, ww_results **found);

/* Fetches one point. Fails if it is missing, or if `seen`, which may be NULL, does not admit it. */
ww_status point_get(const entry *e, const char *id, const ww_filter *seen, uint32_t fetch, ww_results **found);

/* Calls `tell` for the rows that a filter admits, some thousands at a time, in the order in which they were added.
 * Stops at the first status that is not WW_OK. */
ww_status rows_each(const entry *e, const point_filter *filter, uint32_t fetch,
                    ww_status (*tell)(void *user, const ww_results *rows), void *user);

/* The same rows as one set of results; and their number. */
ww_status rows_matching(const entry *e, const point_filter *filter, uint32_t fetch, ww_results **results);
ww_status rows_count(const entry *e, const point_filter *filter, int64_t *count);

#endif
