/* Failing with a text: the one way a function of the library says what went wrong. */
#ifndef WW_BASE_STATUS_H
#define WW_BASE_STATUS_H

#include <warpwave/status.h>

/* Keeps the formatted text for ww_error_message() on this thread and returns `status`, so that `return ww_fail(...)` reads
 * well. Exported, with the next one, for the store: it is a library of its own, and there is one message a thread. */
WW_API __attribute__((format(printf, 2, 3))) ww_status ww_fail(ww_status status, const char *format, ...);

/* As ww_fail, with ": " and the text of errno `code` behind the message. */
WW_API __attribute__((format(printf, 3, 4))) ww_status ww_fail_errno(ww_status status, int code, const char *format, ...);

/* A vendor's failure, for ww_error_detail(). */
typedef struct vendor_failure {
    char backend[16];
    char library[16];
    char call[64];
    char name[64];
    int code;
} vendor_failure;

/* Notes a vendor's failure: ww_error_detail() gives it as long as the thread's message tells of it, that is, has
 * "CALL: NAME (CODE)" in it. So a message may quote another and keep its fields. */
void vendor_failure_note(const vendor_failure *failure);
/* What was noted, for who needs to fail at something else in between and notes it again. */
vendor_failure vendor_failure_noted(void);

/* The static analyzer cannot see that the status given is the status returned, and would follow paths that do not exist. */
#ifdef __clang_analyzer__
#define ww_fail(status, ...)             ((void)(ww_fail)(status, __VA_ARGS__), (status))
#define ww_fail_errno(status, code, ...) ((void)(ww_fail_errno)(status, code, __VA_ARGS__), (status))
#endif

#endif
