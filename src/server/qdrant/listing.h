/* Listing points: page by page, counted, and by the values of a key. */
#ifndef WW_SERVER_QDRANT_LISTING_H
#define WW_SERVER_QDRANT_LISTING_H

#include "server/qdrant/values.h"
#include "server/state.h"

/* The order of a list: by the values of a key, or by ids where no key was read. */
typedef struct list_order {
    values_key key;
    bool descending, has_start;
    double start; /* the first value */
} list_order;

/* Reads order_by. The caller frees the key in either case. */
bool list_order_read(request *r, const char *value, list_order *order);

typedef struct listed {
    const char *id;
    double value; /* of the key that orders */
} listed;

/* A point with several values is in the list once for each of them. */
typedef struct listing {
    ww_results *all; /* what the ids point into */
    listed *rows;
    int64_t count, capacity;
} listing;

/* Lists the points that a filter admits (NULL: all), in an order (NULL: by ids). The caller frees the list in either case. */
ww_status listing_make(listing *l, const entry *e, const char *filter, const list_order *order);
void listing_free(listing *l);
void listing_shuffle(listing *l); /* into a random order */

/* Writes ,"order_value": 7 */
void put_order_value(out *o, double value);

bool prepare_scroll(request *r);
void run_scroll(request *r);
bool prepare_count(request *r);
void run_count(request *r);
bool prepare_facet(request *r);
void run_facet(request *r);

#endif
