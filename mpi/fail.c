/* ww_fail() for this library: the message is the thread's in libwarpwave, where ww_error_message() finds it. */
#include <stdarg.h>
#include <stdio.h>

#include "base/float_guard.h"
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
