/* Filters of requests: Qdrant's syntax, {"must": [{"key": "year", "range": {"gt": 2000}}], "must_not": ...}. */
#ifndef WW_SERVER_QDRANT_FILTER_H
#define WW_SERVER_QDRANT_FILTER_H

#include <warpwave/filter.h>

#include "server/state.h"

/* A filter of a request. Starts zeroed: every point is admitted. */
typedef struct point_filter point_filter;
struct point_filter {
    ww_filter *filter;         /* with that of the searches above; NULL: every point */
    const char *json;          /* its own, in the request's body; NULL: none */
    const point_filter *above; /* of the search above in a tree, which points must meet too; NULL: none */
    const ww_filter *always;   /* what the request's key sees; NULL: every point */
    bool by_vector;            /* it depends on named vectors, so it must be resolved */
};

/* Reads the value of a key of an object into `f`, and adds what f->above asks. The request fails, and this returns false, if it
 * is not a filter. */
bool filter_of_request(request *r, const char *object, const char *key, point_filter *f);

/* Named vectors of points are in other collections. `resolved` (ww_filter_destroy()) gets the filter with the conditions on
 * them replaced by the ids of the points that have them; NULL: there are none, and f->filter can be used. */
ww_status filter_resolve(const entry *e, const point_filter *f, ww_filter **resolved);

void point_filter_free(point_filter *f);

/* Does the filter admit a point? NULL admits all. */
bool filter_admits(const ww_filter *filter, const char *id, const char *payload);

enum {
    FILTER_CONDITIONS_MAX = 16384,  /* of a filter */
    MATCH_TEXT_BYTES_MAX = 1 << 14, /* of a text whose words are looked for */
    PLACES_MAX = 16384              /* of a polygon */
};

/* What a filter contains. */
typedef struct filter_facts {
    bool by_vector;                 /* conditions on named vectors */
    int64_t conditions, values_max; /* values of the condition that has most */
} filter_facts;

/* Reads a filter; NULL for `e` only checks conditions on named vectors. */
ww_status filter_read_qdrant(ww_filter *filter, const char *json, const entry *e, filter_facts *facts);

#endif
