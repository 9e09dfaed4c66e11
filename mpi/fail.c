/* What the helpers of base need in this library. Messages are the thread's in libwarpwave, where ww_error_message() finds them.
 * Hooks for memory and tokens that cancel belong to libwarpwave alone: this library's own lists come from malloc(), and its
 * calls take no token. */
#include <stdarg.h>
#include <stdio.h>

#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/hooks.h"
#include "base/status.h"

#undef ww_fail

ww_status ww_fail(ww_status status, const char *format, ...)
{
    FLOAT_GUARD();
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ww_error_set(status, text);
}

const ww_hooks *hooks_memory(void)
{
    return NULL;
}

bool cancel_asked(void)
{
    return false;
}
