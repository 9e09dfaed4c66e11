/* Unpacking what `xz --check=crc32` packed.
 *
 * The library carries its kernels packed, a fifth of their size. An unpacker of its own costs some pages of code and keeps the
 * library without one more library beneath it; it believes nothing that it reads, so that a damaged library is a status and
 * not a crash.
 */
#ifndef WW_BASE_UNPACK_H
#define WW_BASE_UNPACK_H

#include <stddef.h>

#include "base/status.h"

/* Takes a whole .xz file of one block with a CRC-32, and what it is, for messages. Gives the content, `bytes` long and with a
 * NUL behind it, in memory that memory_give() takes back. Refuses with WW_CORRUPT_FILE what is cut short, not such a file, or
 * not what was packed (by its CRC), and then gives nothing. */
ww_status unpack_xz(const char *what, const void *packed, size_t packed_bytes, char **content, size_t *bytes);

#endif
