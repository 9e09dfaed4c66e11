/* The map of a collection, or of a named vector, made by a separate thread. */
#ifndef WW_SERVER_UI_MAP_H
#define WW_SERVER_UI_MAP_H

#include <stdatomic.h>

#include <warpwave/map.h>

#include "server/request.h"

enum { MAP_MESSAGE_BYTES = 512 };

typedef struct map_job {
    entry *owner;              /* the requested collection; retained while a thread runs */
    ww_collection *collection; /* the rows on the map: the owner's collection, or that of a named vector */
    atomic_llong done, total;  /* progress of the current or last thread */
    ww_map *map;               /* NULL: none yet. Only the queue's worker uses it */
    uint32_t generation;       /* of that map */

    /* Guarded by the server's lock. */
    bool running, remake;
    ww_map *made;                    /* by the thread, not yet taken; NULL: nothing */
    char failure[MAP_MESSAGE_BYTES]; /* why the last thread failed; empty: it did not */
} map_job;

/* The entry that the argument `using` names, a named vector's, or the collection's without it. NULL: there is none, and the
 * request failed. Only the queue's worker may call it. */
entry *entry_of_vector(request *r);

/* The latest map of that entry. NULL: there is none, and the request failed. Only the queue's worker may call it. */
map_job *map_of_request(request *r);

void map_job_free(map_job *job); /* accepts NULL */

/* Waits until no map is being made. A stopping server makes them stop. */
void maps_wait(server *s);

#endif
