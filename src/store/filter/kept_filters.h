/* The rows that the last filters of a connection admitted, while nothing has changed in the file. */
#ifndef WW_STORE_FILTER_KEPT_FILTERS_H
#define WW_STORE_FILTER_KEPT_FILTERS_H

#include "store/filter/filter.h"

enum { FILTERS_KEPT = 8 };

typedef struct kept_filter {
    filter_key *key; /* NULL: empty */
    filter_places places;
    int64_t number; /* of this list, for the view, which keeps a mask for it; 0: the list may not be used again */
    uint32_t data_version;
    int64_t changes;
    int64_t last_use;
} kept_filter;

/* Zeroed: none. */
typedef struct kept_filters {
    kept_filter list[FILTERS_KEPT];
    int64_t uses;
} kept_filters;

void kept_filters_clear(kept_filters *kept);

/* The list of rows that the filter admits: one that was kept, or a new one in the place of the list that was not used for the
 * longest time. It is valid until the next call. In the target's read transaction. */
ww_status kept_filters_find(kept_filters *kept, const filter_where *where, const filter_target *target,
                            const kept_filter **found);

#endif
