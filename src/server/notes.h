/* What Qdrant's API keeps with collections and a store does not: aliases, and which payload fields are said to be indexed. They
 * are rows of a collection of its own in the same file, so they are as durable as everything else. Workers' threads only. */
#ifndef WW_SERVER_NOTES_H
#define WW_SERVER_NOTES_H

#include "server/request.h"

#define NOTES_COLLECTION "warpwave.notes"

/* Writes a note; replaces one with the same name. The value is JSON. */
ww_status notes_put(server *s, const char *name, const char *value);

/* Removes it. One that is not there is no error. */
ww_status notes_remove(server *s, const char *name);

/* Calls `tell` for each note whose name begins with `prefix`, with what follows. */
ww_status notes_each(server *s, const char *prefix, void (*tell)(void *user, const char *rest, const char *value), void *user);

/* Removes all whose names begin with `prefix`. */
ww_status notes_remove_all(server *s, const char *prefix);

#endif
