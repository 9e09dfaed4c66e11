/* Shared by the files of the stand-in for libamdhip64: live objects, injected failures, and the thread's current device. */
#ifndef TESTS_STANDIN_HIP_PARTS_H
#define TESTS_STANDIN_HIP_PARTS_H

#include "emulated/parts.h"
#include "gpu/driver/hip_api.h"
#include "standin/standin.h"

/* ---- ledger.c ------------------------------------------------------------------------------------------------------------ */

typedef enum handle_kind {
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_GRAPH,
    HANDLE_GRAPH_MADE,
    HANDLE_KINDS
} handle_kind;

/* Remembers a failure as HIP does, for hipGetLastError; returns it. */
int standin_result(int number);
/* Ends a function that frees something: returns its own number, or the one it must fail with. */
int standin_give(const char *call, int number);
int standin_last_error(void); /* also resets it */
bool standin_is_lost(void);   /* then no device can be made current any more, but handles are freed anyway */

void standin_add_handle(handle_kind kind, int device, const void *value);
/* Returns the device of a live handle, or -1. A handle that is not alive is a misuse by `call`, unless that is NULL. */
int standin_find_handle(const char *call, handle_kind kind, const void *value);
int standin_remove_handle(const char *call, handle_kind kind, const void *value);

/* Makes the emulated context of a device current on this thread. A HIP number. */
int standin_enter(int device);
bool standin_is_device(int device);

extern _Thread_local int standin_current; /* HIP's rule: device 0 until something else is said */

/* Before anything else in a function that takes something or asks. */
#define BEGIN(symbol)                                                                                                          \
    do {                                                                                                                       \
        const int judged_ = standin_judge(symbol);                                                                             \
        if (judged_ != 0)                                                                                                      \
            return judged_;                                                                                                    \
    } while (0)

#define ALIVE(symbol, kind, value)                                                                                             \
    do {                                                                                                                       \
        if (standin_find_handle(symbol, kind, value) < 0)                                                                      \
            return standin_result(AMD_ERROR_INVALID_HANDLE);                                                                   \
    } while (0)

#define ENTER(device)                                                                                                          \
    do {                                                                                                                       \
        const int entered_ = standin_enter(device);                                                                            \
        if (entered_ != AMD_SUCCESS)                                                                                           \
            return entered_;                                                                                                   \
    } while (0)

/* Runs work on a stream of the current device, as HIP requires. */
#define ON_STREAM(symbol, stream)                                                                                              \
    do {                                                                                                                       \
        const int device_ = standin_find_handle(symbol, HANDLE_STREAM, stream);                                                \
        if (device_ < 0)                                                                                                       \
            return standin_result(AMD_ERROR_INVALID_HANDLE);                                                                   \
        if (device_ != standin_current && !standin_is_lost())                                                                  \
            standin_misused(symbol " was called with another device current than the stream's");                               \
        ENTER(device_);                                                                                                        \
    } while (0)

#endif
