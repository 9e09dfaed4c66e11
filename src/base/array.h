/* Arrays that grow. */
#ifndef WW_BASE_ARRAY_H
#define WW_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

/* Only for array_reserve(). */
ww_status array_grow(void *array, int64_t *room, int64_t count, size_t element_bytes, const char *what);

/* Makes room for `count` elements of `element_bytes` each in an array that has room for `*room`: at least doubles it if it must
 * grow. `array` is the address of its pointer, whatever its type; memory_free() in the end. If it fails, nothing changes, and
 * the message has `what`. */
static inline ww_status array_reserve(void *array, int64_t *room, int64_t count, size_t element_bytes, const char *what)
{
    return count <= *room ? WW_OK : array_grow(array, room, count, element_bytes, what);
}

#endif
