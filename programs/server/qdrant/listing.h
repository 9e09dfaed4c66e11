/* Listing points: page by page, counted, and by the values of a key. */
#ifndef WW_SERVER_QDRANT_LISTING_H
#define WW_SERVER_QDRANT_LISTING_H

#include "server/qdrant/filter.h"
#include "server/qdrant/values.h"
#include "server/state.h"

/* The order of a list: by the values of a key, or by ids if there is no key. */
typedef struct list_order {
    values_key key;
    bool descending, has_start;
    double start; /* the first value */
} list_order;

/* Reads order_by. The caller frees the key, even after a failure. */
bool list_order_read(request *r, const char *value, list_order *order);

typedef struct listed {
    char *id;
    double value; /* of the order's key */
} listed;

/* A point with several values is in the list once for each of them. */
typedef struct listing {
    listed *rows;
    int64_t count, capacity;
} listing;

/* Which part of a list by ids is wanted. A list by values is made as a whole. */
typedef struct list_part {
    const char *first_id; /* the list begins at this id or the next larger one; NULL: at the first */
    int64_t count;        /* at most; 0: all */
} list_part;

/* Lists the points that a filter admits (NULL: all), in an order (NULL: by ids). Needs memory only for what it lists. The
 * caller frees the list, even after a failure. */
ww_status listing_make(listing *l, const entry *e, const point_filter *filter, const list_order *order, list_part part);
void listing_free(listing *l);
void listing_shuffle(listing *l); /* into a random order */

/* Writes ,"order_value": 7 */
void put_order_value(out *o, double value);

bool prepare_scroll(request *r);
void run_scroll(request *r);
bool prepare_count(request *r);
void run_count(request *r);

/* Writes the first values; with a UUID in its `usual` form, whatever form it has in the payload. */
void put_facets(out *o, const value_counts *counts, int64_t limit, bool usual);
bool prepare_facet(request *r);
void run_facet(request *r);

#endif
