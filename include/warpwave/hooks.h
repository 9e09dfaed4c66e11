/* What a program puts in place of the library's own: where host memory comes from, and who hears of failures.
 *
 * Hooks are for the whole process, so a program sets them and a library that uses this one does not. Any thread may call them,
 * and they must not call the library. Memory of a GPU, of memory-mapped files and of other libraries (SQLite, drivers) does not
 * come from them.
 */
#ifndef WARPWAVE_HOOKS_H
#define WARPWAVE_HOOKS_H

#include <stddef.h>

#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ww_hooks {
    size_t struct_size;
    void *user; /* passed to each */
    /* Memory: all three or none. `allocate` returns a block at a multiple of `alignment`, a power of 2, or NULL, which the call
     * that needs it reports as WW_OUT_OF_MEMORY. `resize` gets a block that may be NULL, and keeps its bytes. */
    void *(*allocate)(size_t bytes, size_t alignment, void *user);
    void *(*resize)(void *block, size_t bytes, void *user);
    void (*release)(void *block, void *user); /* the block is never NULL */
    /* A log of failures: called with each message when it is made, also for those that the library handles itself. May be NULL.
     */
    void (*failed)(ww_status status, const char *message, void *user);
} ww_hooks;

/* No hooks; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_hooks_init(void *value, size_t struct_size);
static inline ww_hooks ww_hooks_default(void)
{
    ww_hooks value;
    ww_hooks_init(&value, sizeof value);
    return value;
}

/* Sets the hooks of the process, or removes them if `hooks` is NULL; the struct must stay valid until then. Refuses a change of
 * memory hooks while the library holds memory (WW_BUSY): set them before the first call, and remove them after the last object
 * is gone. Does not block. */
WW_API ww_status ww_set_hooks(const ww_hooks *hooks);

#ifdef __cplusplus
}
#endif

#endif
