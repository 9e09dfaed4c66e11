/* What Qdrant's API stores with collections and a store does not: aliases, and which payload fields are declared as indexed.
 * Notes are rows of a separate collection in the same file, so they are as durable as everything else. Only threads
 * that may wait call these functions. With --cluster they
 * are rows of a table of the database: within a change (changes.h) they are read and written there. */
#ifndef WW_SERVER_NOTES_H
#define WW_SERVER_NOTES_H

#include "server/request.h"
#include "snapshot/snapshot.h"

/* Writes a note; replaces one with the same name. The value is JSON. */
ww_status notes_put(server *s, const char *name, const char *value);

/* Removes a note; a missing one is not an error. */
ww_status notes_remove(server *s, const char *name);

/* Calls `tell` for each note whose name begins with `prefix`, with what follows. */
ww_status notes_each(server *s, const char *prefix, void (*tell)(void *user, const char *rest, const char *value), void *user);

/* Removes all notes whose names begin with `prefix`. */
ww_status notes_remove_all(server *s, const char *prefix);

/* The same for notes about the vectors of a collection, KIND/COLLECTION/VECTOR. A value of NULL removes the note; `rest` is the
 * name of the vector. */
ww_status vector_notes_put(server *s, const char *kind, const char *collection, const char *vector, const char *value);
ww_status vector_notes_each(server *s, const char *kind, const char *collection,
                            void (*tell)(void *user, const char *rest, const char *value), void *user);
ww_status vector_notes_remove(server *s, const char *kind, const char *collection);

#endif
