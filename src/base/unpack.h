/* Unpacks the output of `zstd --check`.
 *
 * The library contains its kernels packed, at a fifth of their size. If the library's file is damaged, this returns a status: a
 * checksum guarantees that the unpacked data is what was packed.
 */
#ifndef WW_BASE_UNPACK_H
#define WW_BASE_UNPACK_H

#include <stddef.h>

#include "base/status.h"

/* Unpacks one whole frame that contains the length of its content; `what` names it in messages. Sets `content` to memory for
 * memory_free(), `bytes` long and followed by a NUL. Refuses data that is cut short, is not such a frame, or is not what was
 * packed, with WW_CORRUPT_FILE, and then returns nothing. */
ww_status unpack(const char *what, const void *packed, size_t packed_bytes, char **content, size_t *bytes);

/* A frame that has only the differences from another content. */
typedef struct packed_difference {
    const void *packed;
    size_t packed_bytes;
    const void *base; /* the other content, unpacked */
    size_t base_bytes;
} packed_difference;

/* The same for such a frame. If the base is not the one it was packed against, it is refused as damaged. */
ww_status unpack_difference(const char *what, const packed_difference *difference, char **content, size_t *bytes);

#endif
