/* The hooks are one pointer, so that another thread sees all of them or none. */
#include "base/hooks.h"

#include <stdatomic.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"

/* Of the process, as hooks.h promises: host memory of any thread comes from one place. */
static const ww_hooks *_Atomic in_use;

STRUCT_INIT(ww_hooks, {0})

const ww_hooks *hooks_memory(void)
{
    const ww_hooks *hooks = atomic_load_explicit(&in_use, memory_order_acquire);
    return hooks && hooks->allocate ? hooks : NULL;
}

void hooks_tell(ww_status status, const char *message)
{
    const ww_hooks *hooks = atomic_load_explicit(&in_use, memory_order_acquire);
    if (hooks && hooks->failed)
        hooks->failed(status, message, hooks->user);
}

ww_status ww_set_hooks(const ww_hooks *hooks)
{
    FLOAT_GUARD();
    ww_hooks read;
    const ww_status status = hooks ? struct_read(&read, sizeof read, hooks, "ww_set_hooks", "ww_hooks") : WW_OK;
    if (status != WW_OK)
        return status;
    if (hooks && hooks->struct_size < sizeof *hooks)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_set_hooks: struct_size is %zu; it must be %zu", hooks->struct_size,
                       sizeof *hooks);
    if (hooks &&
        ((hooks->allocate != NULL) != (hooks->resize != NULL) || (hooks->allocate != NULL) != (hooks->release != NULL)))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_set_hooks: allocate, resize and release must all be given, or none of them");
    const ww_hooks *before = hooks_memory();
    const bool same = before && hooks ? before->allocate == hooks->allocate && before->release == hooks->release
                                      : !before && !(hooks && hooks->allocate);
    if (!same && memory_blocks_held() > 0)
        return ww_fail(WW_BUSY, "ww_set_hooks: the library holds %lld blocks of memory; destroy its objects first",
                       (long long)memory_blocks_held());
    atomic_store_explicit(&in_use, hooks, memory_order_release);
    return WW_OK;
}
