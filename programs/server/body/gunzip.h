/* Reading bodies that a client compressed with gzip (RFC 1952). */
#ifndef WW_SERVER_GUNZIP_H
#define WW_SERVER_GUNZIP_H

#include <stddef.h>

#include "server/out.h"

/* Appends what the bytes stand for. Returns 200, 400 if they are malformed or their checksum is another, 413 if it is more than
 * `bytes_max` bytes, or 507. */
int gunzip(const void *bytes, size_t length, size_t bytes_max, out *to);

#endif
