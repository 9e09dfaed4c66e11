/* What a call returns, and the text that explains it.
 *
 * Every function that can fail returns a ww_status. Nothing in the library ends the process or prints: what went wrong is
 * a status for the program and a message for the person, kept for each thread until its next failure.
 */
#ifndef WARPWAVE_STATUS_H
#define WARPWAVE_STATUS_H

#if defined(__GNUC__)
#define WW_API __attribute__((visibility("default")))
#else
#define WW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WW_VERSION_MAJOR 0
#define WW_VERSION_MINOR 1
#define WW_VERSION_PATCH 0
#define WW_VERSION_TEXT  "0.1.0"

typedef enum ww_status {
    WW_OK = 0,
    WW_INVALID_ARGUMENT = 1,   /* a null pointer, a value that is not finite, a text that is not JSON, ... */
    WW_DIMENSION_MISMATCH = 2, /* vectors of one length where another was promised */
    WW_OUT_OF_MEMORY = 3,      /* the message says how much was asked and how much was free */
    WW_NO_DEVICE = 4,          /* the message lists the devices that are there */
    WW_DRIVER_ERROR = 5,       /* a vendor call failed; the message has its name and code */
    WW_NOT_FOUND = 6,
    WW_DUPLICATE_ID = 7,
    WW_UNSUPPORTED = 8,
    WW_CORRUPT_FILE = 9, /* the message names the file, the offset and the reason */
    WW_IO_ERROR = 10,
    WW_CANCELLED = 11, /* a progress callback asked to stop */
    WW_OUT_OF_RANGE = 12,
    WW_INTERNAL = 13,     /* a defect of the library; please report it */
    WW_OTHER_PROCESS = 14 /* made before fork(), used in the child: open it again there */
} ww_status;

/* Takes any status. Returns its name in words, "out of memory"; never NULL. */
WW_API const char *ww_status_name(ww_status status);

/* Returns the calling thread's last error text, "" if it has had none; valid until that thread's next failing call. */
WW_API const char *ww_error_message(void);

/* Returns the version of the library that is running, "0.1.0"; compare with WW_VERSION_TEXT, the one compiled against. */
WW_API const char *ww_version(void);

/* Told how far a long call has come, in units of that call (rows, queries). Returning non-zero cancels it cleanly. */
typedef int (*ww_progress)(long long done, long long total, void *user);

#ifdef __cplusplus
}
#endif

#endif
