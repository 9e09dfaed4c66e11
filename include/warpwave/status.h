/* What a call returns, and the text that explains it.
 *
 * Every function that can fail returns a ww_status. Nothing in the library ends the process or prints: what went wrong is
 * a status for the program and a message for the person, kept for each thread until its next failure.
 */
#ifndef WARPWAVE_STATUS_H
#define WARPWAVE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WW_API __attribute__((visibility("default")))
#else
#define WW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WW_VERSION_MAJOR 0
#define WW_VERSION_MINOR 2
#define WW_VERSION_PATCH 0
#define WW_VERSION_TEXT  "0.2.0"

typedef enum ww_status {
    WW_OK = 0,
    WW_INVALID_ARGUMENT = 1,   /* a null pointer, a value that is not finite, a text that is not JSON, ... */
    WW_DIMENSION_MISMATCH = 2, /* a vector's length differs from the collection's */
    WW_OUT_OF_MEMORY = 3,      /* the message has the bytes needed and the bytes free */
    WW_NO_DEVICE = 4,          /* the message lists the devices */
    WW_DRIVER_ERROR = 5,       /* a vendor call failed; the message has its name and code */
    WW_NOT_FOUND = 6,
    WW_DUPLICATE_ID = 7,
    WW_UNSUPPORTED = 8,
    WW_CORRUPT_FILE = 9, /* the message names the file, the offset and the reason */
    WW_IO_ERROR = 10,
    WW_CANCELLED = 11, /* a progress callback or a ww_cancel asked to stop */
    WW_OUT_OF_RANGE = 12,
    WW_INTERNAL = 13,      /* a defect of the library; please report it */
    WW_OTHER_PROCESS = 14, /* made before fork(), used in the child: open it again there */
    WW_BUSY = 15,          /* another process or connection held a lock for longer than the call waits; try again */
    WW_DAMAGED = 16,       /* memory is not what was written to it; the message says what and where */
    WW_TIMEOUT = 17        /* other ranks did not report in time; the message names them (cluster.h) */
} ww_status;

/* Takes any status. Returns its name in words, "out of memory"; never NULL. */
WW_API const char *ww_status_name(ww_status status);

/* Returns the calling thread's last error text, "" if it has had none; valid until that thread's next failing call. It is one
 * line of UTF-8 that is safe to print: control characters in a quoted path, name or id are written as \x1b. */
WW_API const char *ww_error_message(void);

/* Sets the calling thread's error text and last status, and returns `status`: for libraries and bindings on top of this one,
 * whose failures ww_error_message() should tell, too. Cuts the text off after 1023 bytes. */
WW_API ww_status ww_error_set(ww_status status, const char *message);

/* The calling thread's last failure as fields, for a program that acts on more than the status. If a vendor's
 * library failed, `library` is "CUDA", "cuBLAS", "HIP", "rocBLAS", "hipRTC",
 * "NVRTC" or "emulator". Otherwise backend, library, call and name are "", and code is 0. */
typedef struct ww_error_info {
    size_t struct_size; /* set by ww_error_info_default() */
    ww_status status;   /* what the failing call returned; WW_OK if the thread has had none */
    int32_t code;       /* the vendor's number: 2 */
    char backend[16];   /* "rocm" */
    char library[16];   /* "HIP" */
    char call[64];      /* "hipMalloc" */
    char name[64];      /* "hipErrorOutOfMemory" */
} ww_error_info;

/* As the other ..._init() of this library (device.h). */
WW_API ww_status ww_error_info_init(void *value, size_t struct_size);

static inline ww_error_info ww_error_info_default(void)
{
    ww_error_info value;
    ww_error_info_init(&value, sizeof value);
    return value;
}

/* Fills in `info`, which comes from ww_error_info_default(). The same lifetime as ww_error_message(). Refuses NULL, and that
 * becomes the last failure. Does not block. */
WW_API ww_status ww_error_detail(ww_error_info *info);

/* Returns the version of the library that is running, "0.2.0"; compare with WW_VERSION_TEXT, the one compiled against. */
WW_API const char *ww_version(void);

/* A token by which another thread stops a call: ww_query, ww_get and ww_selection take one. The call then returns WW_CANCELLED,
 * usually within 50 ms, and leaves everything as it was; a GPU finishes the kernels that it has begun. One token may be given
 * to any number of calls at once, and stops them all. */
typedef struct ww_cancel ww_cancel;

/* Makes a token that nothing has asked yet. Refuses NULL. Does not block. */
WW_API ww_status ww_cancel_create(ww_cancel **cancel);

/* Frees a token, which no call may be using. Accepts NULL. */
WW_API void ww_cancel_destroy(ww_cancel *cancel);

/* Stops the calls that have the token now, and those that will get it, until it is reset. May be called from any thread and
 * from a signal handler. Does not block. Accepts NULL. */
WW_API void ww_cancel_ask(ww_cancel *cancel);

/* Makes the token usable again. Accepts NULL. Does not block. */
WW_API void ww_cancel_reset(ww_cancel *cancel);

/* Receives the progress of a long call, in units of that call (rows, queries). Returning non-zero cancels the call cleanly;
 * ww_cancel does the same from another thread. It is called on the thread that made the call, which holds locks and whose stack
 * other threads may be using: a callback must return. It must not jump out (longjmp) or end its thread; a C++ exception that
 * leaves it ends the program (std::terminate), as in a noexcept function. It must not call functions of this library that take
 * the collection or device of the call. */
typedef int (*ww_progress)(int64_t done, int64_t total, void *user);

#ifdef __cplusplus
}
#endif

#endif
