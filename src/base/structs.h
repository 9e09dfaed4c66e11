/* Structs of the API contain their size, so that a program compiled with an older header still works.
 *
 * Reading: the caller's struct is copied to a zeroed one of our size, so fields that it lacks have their default. Writing and
 * initialising: no byte after the caller's struct_size is written. `type` and `function` are names for messages.
 */
#ifndef WW_BASE_STRUCTS_H
#define WW_BASE_STRUCTS_H

#include <stddef.h>

#include <warpwave/status.h>

/* Refuses NULL, and a struct_size that is too small to hold itself or is not plausible (64 KiB and more). */
ww_status struct_check(const void *callers, const char *function, const char *type);

/* Copy from and to the caller's struct, which struct_check() must accept. `ours_bytes` is sizeof *ours. */
ww_status struct_read(void *ours, size_t ours_bytes, const void *callers, const char *function, const char *type);
ww_status struct_write(void *callers, const void *ours, size_t ours_bytes, const char *function, const char *type);

/* Sets `struct_size` bytes at `value` to zero, copies as much of `defaults` as fits, and sets the first field to
 * struct_size. */
ww_status struct_init(void *value, size_t struct_size, const void *defaults, size_t ours_bytes, const char *type);

/* Defines the exported ww_X_init() of a struct of the API: STRUCT_INIT(ww_conv, {.groups = 1}) */
#define STRUCT_INIT(type, ...)                                                                                                 \
    ww_status type##_init(void *value, size_t struct_size)                                                                     \
    {                                                                                                                          \
        static const type defaults = __VA_ARGS__;                                                                              \
        return struct_init(value, struct_size, &defaults, sizeof defaults, #type);                                             \
    }

#endif
