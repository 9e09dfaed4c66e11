/* gzip (RFC 1952), by zlib. */
#ifndef WW_SERVER_GZIP_H
#define WW_SERVER_GZIP_H

#include <stddef.h>

#include "server/out.h"

/* Appends what the bytes stand for. Returns 200, 400 if they are malformed or their checksum is another, 413 if it is more than
 * `bytes_max` bytes, or 507. */
int gunzip(const void *bytes, size_t length, size_t bytes_max, out *to);

/* Appends the bytes compressed. Asks between pieces whether to go on. False: out of memory, or not to go on. */
bool gzip(const void *bytes, size_t length, bool (*goes_on)(const void *user), const void *user, out *to);

#endif
