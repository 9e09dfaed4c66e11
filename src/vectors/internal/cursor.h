/* Cursors: the rows of a collection as they were at one moment, read in pages.
 *
 * A cursor over a collection in memory lists the rows' handles. It copies nothing as long as nobody writes. Before a write
 * changes anything, it has the open cursors copy the rows that they have not returned yet. A cursor over a store keeps a read
 * transaction (store/cursor.c).
 */
#ifndef WW_VECTORS_INTERNAL_CURSOR_H
#define WW_VECTORS_INTERNAL_CURSOR_H

#include <pthread.h>

#include <warpwave/selection.h>

#include "vectors/collection.h"
#include "vectors/query/results.h"

struct ww_cursor {
    ww_collection *collection;
    ww_cursor *next;      /* of the collection's list */
    pthread_mutex_t lock; /* one call at a time */
    uint32_t fetch;
    bool listed;      /* `handles` are its rows; otherwise all rows of the store's transaction */
    int64_t *handles; /* memory_free() */
    int64_t count;    /* of handles, or of hits in `rest` */
    int64_t at;       /* how many were returned */
    ww_results *rest; /* not NULL: the rows as they were, from number `rest_at` on */
    int64_t rest_at;
    ww_status kept; /* not WW_OK: the rows could not be copied before a write */
    char why[256];
    void *reader;  /* the store's connection with its transaction */
    int64_t after; /* the last place that was returned */
};

/* The operations of a collection in memory. */
ww_status memory_cursor_open(ww_cursor *cursor, const ww_selection *selection);
ww_status memory_cursor_read(ww_cursor *cursor, int64_t count, ww_results **results);
void memory_cursor_close(ww_cursor *cursor);

/* Makes a page of `count` rows of `rest`. */
ww_status cursor_page_of_rest(const ww_cursor *cursor, int64_t count, ww_results **results);

/* Called with the writer's lock before anything changes: the open cursors copy what they still need. Cannot fail: a cursor
 * without memory fails when it is read. */
void cursors_keep(ww_collection *c);

#endif
