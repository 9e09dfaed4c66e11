/* Unpacking what `zstd --check` packed.
 *
 * The library carries its kernels packed, a fifth of their size. A damaged library is a status and not a crash: what is
 * unpacked is what was packed, by its checksum.
 */
#ifndef WW_BASE_UNPACK_H
#define WW_BASE_UNPACK_H

#include <stddef.h>

#include "base/status.h"

/* Takes one whole frame that says how long its content is, and what it is, for messages. Gives the content, `bytes` long and
 * with a NUL behind it, in memory that memory_free() takes back. Refuses with WW_CORRUPT_FILE what is cut short, not such a
 * frame, or not what was packed, and then gives nothing. */
ww_status unpack(const char *what, const void *packed, size_t packed_bytes, char **content, size_t *bytes);

/* A frame that was packed against another content, of which only the differences are in it. */
typedef struct packed_difference {
    const void *packed;
    size_t packed_bytes;
    const void *base; /* the other content, unpacked */
    size_t base_bytes;
} packed_difference;

/* The same for such a frame. With another base than the one that it was packed against it is refused as damaged. */
ww_status unpack_difference(const char *what, const packed_difference *difference, char **content, size_t *bytes);

#endif
