/* Bodies of requests that are compressed: Content-Encoding. */
#ifndef WW_SERVER_ENCODING_H
#define WW_SERVER_ENCODING_H

#include "server/request.h"

/* Is the header's encoding one that can be read? NULL is. */
bool encoding_is_known(const char *name);

/* Replaces a compressed body by what it stands for. False: the request failed. */
bool encoding_read(request *r);

#endif
