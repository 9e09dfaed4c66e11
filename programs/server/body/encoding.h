/* Bodies of requests and of answers that are compressed: Content-Encoding and Accept-Encoding. */
#ifndef WW_SERVER_ENCODING_H
#define WW_SERVER_ENCODING_H

#include "server/request.h"

/* Is the header's encoding one that can be read? NULL is. */
bool encoding_is_known(const char *name);

/* Replaces a compressed body by what it stands for. False: the request failed. */
bool encoding_read(request *r);

/* Which encoding an answer gets for this Accept-Encoding: "zstd" or "gzip", the one with the larger weight, or NULL. */
const char *encoding_accepted(const char *header);

/* Compresses the request's answer if its client accepts that and it becomes smaller. Stops if the client leaves. */
void encoding_write(request *r);

#endif
