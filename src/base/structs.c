/* Reads, writes and initialises structs that contain their size. */
#include "base/structs.h"

#include <stdbool.h>
#include <string.h>

#include "base/integers.h"
#include "base/status.h"

/* All structs of the API are much smaller; a larger size is a negative number, or the struct was never initialised. */
enum { STRUCT_BYTES_END = 1 << 16 };

static bool is_size(size_t bytes)
{
    return bytes >= sizeof bytes && bytes < STRUCT_BYTES_END;
}

static size_t size_of(const void *callers)
{
    size_t bytes;
    memcpy(&bytes, callers, sizeof bytes);
    return bytes;
}

ww_status struct_check(const void *callers, const char *function, const char *type)
{
    if (!callers)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the %s is NULL; start from %s_default()", function, type, type);
    if (!is_size(size_of(callers)))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: struct_size of the %s is %zu; start from %s_default() or %s_init()", function,
                       type, size_of(callers), type, type);
    return WW_OK;
}

ww_status struct_read(void *ours, size_t ours_bytes, const void *callers, const char *function, const char *type)
{
    const ww_status status = struct_check(callers, function, type);
    if (status != WW_OK)
        return status;
    memset(ours, 0, ours_bytes);
    memcpy(ours, callers, min_size(size_of(callers), ours_bytes));
    return WW_OK;
}

ww_status struct_write(void *callers, const void *ours, size_t ours_bytes, const char *function, const char *type)
{
    const ww_status status = struct_check(callers, function, type);
    if (status != WW_OK)
        return status;
    const size_t own = sizeof(size_t); /* the caller's struct_size does not change */
    memcpy((char *)callers + own, (const char *)ours + own, min_size(size_of(callers), ours_bytes) - own);
    return WW_OK;
}

ww_status struct_init(void *value, size_t struct_size, const void *defaults, size_t ours_bytes, const char *type)
{
    if (!value)
        return ww_fail(WW_INVALID_ARGUMENT, "%s_init: value is NULL", type);
    if (!is_size(struct_size))
        return ww_fail(WW_INVALID_ARGUMENT, "%s_init: struct_size is %zu; pass the size of your %s, %zu bytes in this library",
                       type, struct_size, type, ours_bytes);
    memset(value, 0, struct_size);
    memcpy(value, defaults, min_size(struct_size, ours_bytes));
    memcpy(value, &struct_size, sizeof struct_size);
    return WW_OK;
}
