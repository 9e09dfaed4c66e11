/* Makes a map, starting from the one that the collection has. */
#ifndef WW_MAP_MAKING_H
#define WW_MAP_MAKING_H

#include "map/map.h"

typedef struct making {
    map_job job;
    kept_map kept; /* the stored map, as it was read */
    int64_t epoch; /* of the collection at that time */
    bool again;    /* make a new map even if the stored one could be used */
    ww_map_origin origin;
    bool *changed; /* rows whose point differs from the stored one; NULL: all */
} making;

/* Reads the stored map and the current rows, and decides what to do. */
ww_status making_begin(making *m);
void making_end(making *m);

/* Makes a map from all rows. */
ww_status map_make(making *m);

/* Brings the stored map up to date. */
ww_status map_grow(making *m);

/* Stores the map in the collection. Sets `*kept` to false if the collection cannot store one. */
ww_status map_keep(const making *m, bool *kept);

#endif
