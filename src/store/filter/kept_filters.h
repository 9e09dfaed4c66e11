/* Keeps the rows that a connection's last filters admitted, as long as the file does not change. */
#ifndef WW_STORE_FILTER_KEPT_FILTERS_H
#define WW_STORE_FILTER_KEPT_FILTERS_H

#include "store/filter/filter.h"

enum { FILTERS_KEPT = 8 };

typedef struct kept_filter {
    filter_key *key; /* NULL: empty */
    filter_places places;
    int64_t number; /* identifies the list for the view, which keeps a mask for it; 0: the list must not be reused */
    uint32_t data_version;
    int64_t changes;
    int64_t last_use;
} kept_filter;

/* Starts zeroed. */
typedef struct kept_filters {
    kept_filter list[FILTERS_KEPT];
    int64_t uses;
} kept_filters;

void kept_filters_clear(kept_filters *kept);

/* Finds the rows that the filter admits: a kept list, or a new one that replaces the least recently used. It is valid until the
 * next call. Call it in the target's read transaction. */
ww_status kept_filters_find(kept_filters *kept, const filter_where *where, const filter_target *target,
                            const kept_filter **found);

#endif
