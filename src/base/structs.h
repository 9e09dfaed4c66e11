/* Structs that cross the API carry their size, so that a program compiled against an older header still works.
 *
 * Reading: the caller's struct is copied into a zeroed one of our size, so fields it does not know are at their default.
 * Writing: no more is written than the caller's struct holds.
 */
#ifndef WW_BASE_STRUCTS_H
#define WW_BASE_STRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/integers.h"

/* False if the caller's struct does not even hold its own size. `ours_bytes` is sizeof *ours. */
static inline bool struct_read(void *ours, size_t ours_bytes, const void *callers)
{
    size_t bytes;
    memcpy(&bytes, callers, sizeof bytes);
    if (bytes < sizeof bytes)
        return false;
    memset(ours, 0, ours_bytes);
    memcpy(ours, callers, min_size(bytes, ours_bytes));
    return true;
}

static inline bool struct_write(void *callers, const void *ours, size_t ours_bytes)
{
    size_t bytes;
    memcpy(&bytes, callers, sizeof bytes);
    if (bytes < sizeof bytes)
        return false;
    memcpy((char *)callers + sizeof bytes, (const char *)ours + sizeof bytes, min_size(bytes, ours_bytes) - sizeof bytes);
    return true;
}

#endif
