/* Failing with a text: the one way a function of the library says what went wrong. */
#ifndef WW_BASE_STATUS_H
#define WW_BASE_STATUS_H

#include <warpwave/status.h>

/* Keeps the formatted text for ww_error_message() on this thread and returns `status`, so that `return ww_fail(...)` reads
 * well. */
__attribute__((format(printf, 2, 3))) ww_status ww_fail(ww_status status, const char *format, ...);

/* As ww_fail, with ": " and the text of errno `code` behind the message. */
__attribute__((format(printf, 3, 4))) ww_status ww_fail_errno(ww_status status, int code, const char *format, ...);

#endif
