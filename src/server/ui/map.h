/* The map of a collection, or of a vector with a name, made by a thread of its own. */
#ifndef WW_SERVER_UI_MAP_H
#define WW_SERVER_UI_MAP_H

#include <stdatomic.h>

#include <warpwave/map.h>

#include "server/request.h"

enum { MAP_MESSAGE_BYTES = 512 };

typedef struct map_job {
    entry *owner;              /* the collection that was asked for; retained while a thread runs */
    ww_collection *collection; /* whose rows are on the map: the owner's, or that of a vector with a name */
    atomic_llong done, total;  /* of the thread that runs, or of the last one */
    ww_map *map;               /* NULL: none yet. The queue's worker has it */
    uint32_t generation;       /* of that map */

    /* Guarded by the server's lock. */
    bool running, remake;
    ww_map *made;                    /* by the thread, not yet taken; NULL: nothing */
    char failure[MAP_MESSAGE_BYTES]; /* why the last thread failed; empty: it did not */
} map_job;

/* What the argument `using` names: the entry of a vector with a name, else that of the collection. NULL: there is none, and the
 * request failed. For the queue's worker. */
entry *entry_of_vector(request *r);

/* The map of that entry that was taken last; NULL: there is none, and the request failed. For the queue's worker. */
map_job *map_of_request(request *r);

void map_job_free(map_job *job); /* accepts NULL */

/* Waits until no map is made any more; they stop when the server does. */
void maps_wait(server *s);

#endif
