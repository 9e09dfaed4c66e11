/* A snapshot that a client sends as a form: written to an unfinished file while it arrives, never held in memory. */
#ifndef WW_SERVER_SNAPSHOTS_UPLOAD_H
#define WW_SERVER_SNAPSHOTS_UPLOAD_H

#include "server/request.h"

/* Begins with the request, after its key was checked. False: the request failed. */
bool upload_begin(request *r);

/* Takes the next bytes of the body. upload_path() says what went wrong. */
void upload_add(request *r, const char *bytes, size_t count);

/* The body is complete: the path of the file, or NULL and the request failed. */
const char *upload_path(request *r);

/* Removes the file. Accepts NULL. */
void upload_free(struct upload *u);

#endif
