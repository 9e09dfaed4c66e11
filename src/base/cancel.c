/* Tokens that stop a call from another thread. */
#include "base/cancel.h"

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"

ww_status ww_cancel_create(ww_cancel **cancel)
{
    FLOAT_GUARD();
    if (!cancel)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_cancel_create: cancel is NULL");
    ww_cancel *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a token", sizeof *made);
    atomic_init(&made->asked, false);
    *cancel = made;
    return WW_OK;
}

void ww_cancel_destroy(ww_cancel *cancel)
{
    memory_free(cancel);
}

void ww_cancel_ask(ww_cancel *cancel)
{
    if (cancel)
        atomic_store_explicit(&cancel->asked, true, memory_order_relaxed);
}

void ww_cancel_reset(ww_cancel *cancel)
{
    if (cancel)
        atomic_store_explicit(&cancel->asked, false, memory_order_relaxed);
}

/* ---- the token of the call ------------------------------------------------------------------------------------------------
 */

/* Of the call that runs on this thread; NULL: none. */
static _Thread_local const ww_cancel *current;

const ww_cancel *cancel_begin(const ww_cancel *token)
{
    const ww_cancel *outer = current;
    current = token;
    return outer;
}

void cancel_end(const ww_cancel *const *outer)
{
    current = *outer;
}

bool cancel_given(void)
{
    return current != NULL;
}

bool cancel_asked(void)
{
    return current && atomic_load_explicit(&current->asked, memory_order_relaxed);
}

bool cancel_watch(void *context, int64_t done)
{
    (void)context;
    (void)done;
    return cancel_asked();
}
