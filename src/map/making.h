/* The making of a map beside the one that is kept. */
#ifndef WW_MAP_MAKING_H
#define WW_MAP_MAKING_H

#include "map/map.h"

typedef struct making {
    map_job job;
    kept_map kept; /* as it was read */
    int64_t epoch; /* of the collection then */
    bool again;    /* the map is made, whatever is kept */
    ww_map_origin origin;
    bool *changed; /* rows whose point is not as it is kept; NULL: all */
} making;

/* Reads what is kept and the rows that there are, and decides what to do. */
ww_status making_begin(making *m);
void making_end(making *m);

/* Makes a map from all rows. */
ww_status map_make(making *m);

/* Brings the kept one up to date. */
ww_status map_grow(making *m);

/* Has the collection keep it; `*kept` is false if it cannot. */
ww_status map_keep(const making *m, bool *kept);

#endif
