/* Making a map, given the one that the collection keeps. */
#ifndef WW_MAP_MAKING_H
#define WW_MAP_MAKING_H

#include "map/map.h"

typedef struct making {
    map_job job;
    kept_map kept; /* as it was read */
    int64_t epoch; /* of the collection then */
    bool again;    /* make a new map, whatever is kept */
    ww_map_origin origin;
    bool *changed; /* rows whose point is not as it is kept; NULL: all */
} making;

/* Reads the kept map and the current rows, and decides what to do. */
ww_status making_begin(making *m);
void making_end(making *m);

/* Makes a map from all rows. */
ww_status map_make(making *m);

/* Brings the kept map up to date. */
ww_status map_grow(making *m);

/* Stores the map in the collection; `*kept` is false if it cannot keep one. */
ww_status map_keep(const making *m, bool *kept);

#endif
