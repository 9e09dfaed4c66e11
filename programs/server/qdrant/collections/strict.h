/* Limits of a collection: strict_mode_config. */
#ifndef WW_SERVER_STRICT_H
#define WW_SERVER_STRICT_H

#include "server/state.h"

/* Checks the limits in a body (NULL: none); those that would not be obeyed are refused. False: the request failed. */
bool strict_check(request *r, const char *strict);

/* Reads the limits that are kept (NULL: none). */
void strict_load(entry *e, const char *strict);

/* Does the request obey the limits of its collection? False: the request failed. */
bool strict_obeyed(request *r);

/* Raises what the request asks for. */
void strict_ask(request *r, strict_limit what, int64_t count);

/* Would these points exceed the limits of the collection's size? Those that exist already do not count. */
ww_status strict_admits(const entry *e, const char *const *ids, int64_t count);

/* Is there room for one more index of payloads beside `count`? */
ww_status strict_admits_index(const entry *e, int64_t count);

#endif
