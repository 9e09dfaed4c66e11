/* Arrays that grow (array.h). */
#include "base/array.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

enum { ROOM_FIRST = 16 };

ww_status array_grow(void *array, int64_t *room, int64_t count, size_t element_bytes, const char *what)
{
    const int64_t wanted = max_i64(max_i64(2 * *room, count), ROOM_FIRST);
    void *old;
    size_t bytes;
    if (!size_multiply((size_t)wanted, element_bytes, &bytes))
        return memory_failed(what, SIZE_MAX / 2);
    memcpy(&old, array, sizeof old); /* pointers of all types have one representation here */
    void *larger = memory_resize(old, bytes);
    if (!larger)
        return memory_failed(what, bytes);
    memcpy(array, &larger, sizeof larger);
    *room = wanted;
    return WW_OK;
}
