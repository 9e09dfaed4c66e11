/* Statuses and the calling thread's last error text.
 *
 * The text is in thread-local storage of fixed size: failing must not allocate, because running out of memory is one of the
 * failures. Messages quote unchecked names, ids and paths, and are printed on terminals and in logs. So control characters are
 * written as \\x1b (base/text.h) here, for all messages.
 */
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/hooks.h"
#include "base/structs.h"
#include "base/text.h"

#undef ww_fail
#undef ww_fail_errno

enum { MESSAGE_BYTES = 1024 };

/* Of each thread, as ww_error_message() promises. */
static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local ww_status last_status;
static _Thread_local vendor_failure noted;

static const char *const status_names[] = {
    [WW_OK] = "ok",
    [WW_INVALID_ARGUMENT] = "invalid argument",
    [WW_DIMENSION_MISMATCH] = "dimension mismatch",
    [WW_OUT_OF_MEMORY] = "out of memory",
    [WW_NO_DEVICE] = "no device",
    [WW_DRIVER_ERROR] = "driver error",
    [WW_NOT_FOUND] = "not found",
    [WW_DUPLICATE_ID] = "duplicate id",
    [WW_UNSUPPORTED] = "unsupported",
    [WW_CORRUPT_FILE] = "corrupt file",
    [WW_IO_ERROR] = "input/output error",
    [WW_CANCELLED] = "cancelled",
    [WW_OUT_OF_RANGE] = "out of range",
    [WW_INTERNAL] = "internal error",
    [WW_OTHER_PROCESS] = "opened in another process",
    [WW_BUSY] = "busy",
    [WW_DAMAGED] = "damaged memory",
    [WW_TIMEOUT] = "timeout",
};

const char *ww_status_name(ww_status status)
{
    const unsigned index = (unsigned)status;
    return index < sizeof status_names / sizeof *status_names ? status_names[index] : "unknown status";
}

const char *ww_error_message(void)
{
    return message;
}

const char *ww_version(void)
{
    return WW_VERSION_TEXT;
}

/* Returns true if the text mentions the vendor's failure. */
static bool quotes_failure(const char *text, const vendor_failure *failure)
{
    char said[sizeof failure->call + sizeof failure->name + 24];
    snprintf(said, sizeof said, "%s: %s (%d)", failure->call, failure->name, failure->code);
    return failure->call[0] != '\0' && strstr(text, said) != NULL;
}

void vendor_failure_note(const vendor_failure *failure)
{
    noted = *failure;
}

vendor_failure vendor_failure_noted(void)
{
    return noted;
}

STRUCT_INIT(ww_error_info, {0})

ww_status ww_error_detail(ww_error_info *info)
{
    FLOAT_GUARD();
    ww_error_info ours = {.struct_size = sizeof ours, .status = last_status, .code = noted.code};
    memcpy(ours.backend, noted.backend, sizeof ours.backend);
    memcpy(ours.library, noted.library, sizeof ours.library);
    memcpy(ours.call, noted.call, sizeof ours.call);
    memcpy(ours.name, noted.name, sizeof ours.name);
    return struct_write(info, &ours, sizeof ours, "ww_error_detail", "ww_error_info");
}

/* Messages name their collection. One without a name is left out at the beginning, and called "the collection" elsewhere,
 * except where a name that was asked for is said to be missing. */
static void unname(char *text)
{
    static const char nameless[] = "collection ''", instead[] = "the collection";
    char *at = strstr(text, nameless);
    if (at == text && strncmp(at + sizeof nameless - 1, ": ", 2) == 0)
        memmove(text, text + sizeof nameless + 1, strlen(text) - sizeof nameless);
    else if (at && strlen(text) + 2 < MESSAGE_BYTES && (at - text < 3 || memcmp(at - 3, "no ", 3) != 0)) {
        memmove(at + sizeof instead - 1, at + sizeof nameless - 1, strlen(at) - sizeof nameless + 2);
        memcpy(at, instead, sizeof instead - 1);
    }
}

ww_status ww_fail(ww_status status, const char *format, ...)
{
    FLOAT_GUARD();
    char text[MESSAGE_BYTES]; /* separate from `message`, so that a caller may quote the previous message in the new one */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    unname(text);
    text_plain_copy(message, sizeof message, text);
    last_status = status;
    if (!quotes_failure(text, &noted))
        noted = (vendor_failure){0};
    hooks_tell(status, message);
    return status;
}

ww_status ww_error_set(ww_status status, const char *text)
{
    FLOAT_GUARD();
    return ww_fail(status, "%s", text ? text : "");
}

ww_status ww_fail_errno(ww_status status, int code, const char *format, ...)
{
    FLOAT_GUARD();
    char text[MESSAGE_BYTES];
    char reason[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ww_fail(status, "%s: %s", text, strerror_r(code, reason, sizeof reason));
}
