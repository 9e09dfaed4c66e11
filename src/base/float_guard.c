/* Sets the control registers for floats, and restores the caller's. */
#include "base/float_guard.h"

#include "base/cancel.h"

#include <stddef.h>

#include "base/float_control.h"

/* The caller's registers, while a call on this thread has changed them. */
static _Thread_local struct {
    bool changed;
    uint64_t control;
} caller;

float_guard float_guard_change(void)
{
    const float_guard guard = {
        .changed = true, .callers = float_control(), .outer_changed = caller.changed, .outer_callers = caller.control};
    caller.changed = true;
    caller.control = guard.callers;
    float_control_set(FLOAT_CONTROL_DEFAULT);
    return guard;
}

void float_guard_restore(const float_guard *guard)
{
    caller.changed = guard->outer_changed;
    caller.control = guard->outer_callers;
    float_control_set(guard->callers);
}

bool progress_tell(ww_progress progress, void *user, int64_t done, int64_t total)
{
    if (cancel_asked())
        return true;
    if (progress == NULL)
        return false;
    if (caller.changed)
        float_control_set(caller.control);
    const bool stop = progress(done, total, user) != 0;
    if (!float_control_is_default())
        float_control_set(FLOAT_CONTROL_DEFAULT);
    return stop;
}

bool text_tell(int (*callback)(const char *text, size_t bytes, void *user), void *user, const char *text, size_t bytes)
{
    if (caller.changed)
        float_control_set(caller.control);
    const bool stop = callback(text, bytes, user) != 0;
    if (!float_control_is_default())
        float_control_set(FLOAT_CONTROL_DEFAULT);
    return stop;
}
