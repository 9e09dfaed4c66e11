/* Settings of collections that Qdrant's clients send and read back: they are kept beside the collection and shown, and those
 * limits of strict_mode_config that mean something here are obeyed. */
#ifndef WW_SERVER_QDRANT_SETTINGS_H
#define WW_SERVER_QDRANT_SETTINGS_H

#include "server/state.h"

enum { SETTINGS_BYTES_MAX = 1 << 16, VECTOR_SETTINGS_BYTES_MAX = 1 << 12 }; /* of each */

/* Checks the settings in the body of PUT or PATCH. False: the request failed. */
bool settings_check(request *r, const char *body);

/* Keeps those of a body, merged with the collection's own; forgets them. `e` is the collection, NULL if it is not open. */
ww_status settings_keep(server *s, const char *collection, entry *e, const char *body);
ww_status settings_forget(server *s, const char *collection);

/* Reads the limits of a collection that is opened. */
ww_status settings_load(server *s, entry *e);

/* Check and keep the settings of one vector that is added, and with NULL forget those of one that is removed. */
bool settings_check_vector(request *r, const char *vector);
ww_status settings_keep_vector(server *s, entry *e, const char *name, const char *vector);

/* Writes the members of "config" in the description of a collection, from "params" on. */
void settings_put(server *s, out *o, const entry *e);

/* Writes those that are kept of one vector (JSON; NULL: none), with a comma before each. */
void settings_put_vector(out *o, const char *kept);

#endif
