/* Failing with a message: the only way in which functions of the library report errors. */
#ifndef WW_BASE_STATUS_H
#define WW_BASE_STATUS_H

#include <warpwave/status.h>

/* Stores the formatted text for ww_error_message() on this thread and returns `status`, for `return ww_fail(...)`. */
__attribute__((format(printf, 2, 3))) ww_status ww_fail(ww_status status, const char *format, ...);

/* Like ww_fail, with ": " and the text of errno `code` appended to the message. */
__attribute__((format(printf, 3, 4))) ww_status ww_fail_errno(ww_status status, int code, const char *format, ...);

/* A vendor's failure, for ww_error_detail(). */
typedef struct vendor_failure {
    char backend[16];
    char library[16];
    char call[64];
    char name[64];
    int code;
} vendor_failure;

/* Records a vendor's failure. ww_error_detail() returns it as long as the thread's message mentions it, that is, contains
 * "CALL: NAME (CODE)". So a message may quote another one and keep its details. */
void vendor_failure_note(const vendor_failure *failure);
/* Returns the recorded failure, for callers that fail at something else in between and record it again. */
vendor_failure vendor_failure_noted(void);

/* The static analyzer does not know that the returned status is the given one, and would follow impossible paths. */
#ifdef __clang_analyzer__
#define ww_fail(status, ...)             ((void)(ww_fail)(status, __VA_ARGS__), (status))
#define ww_fail_errno(status, code, ...) ((void)(ww_fail_errno)(status, code, __VA_ARGS__), (status))
#endif

#endif
