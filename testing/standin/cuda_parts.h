/* Shared by the files of the stand-in for libcuda: counters, injected faults, and the work of a stream. */
#ifndef TESTS_STANDIN_CUDA_PARTS_H
#define TESTS_STANDIN_CUDA_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/driver/cuda_api.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    INVALID_VALUE = 1,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    SHARED_BYTES = 227 << 10 /* a block */
};

/* Every function is declared as the library thinks of it, so that a difference does not compile. */
#define FUNCTION(name, symbol, parameters) EXPORT int symbol parameters;
CUDA_FUNCTIONS(FUNCTION)
CUDA_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION

/* ---- for tests ----------------------------------------------------------------------------------------------------------- */

/* Contexts, memory, streams, events, modules and graphs that were not freed. */
EXPORT long standin_alive(void);
/* From now on, the n-th call of `call`, or of any function if that is NULL, returns `number`; n = 0: none does. A call that
 * frees something frees it and then fails. A number that means a lost device stays until this is called again. */
EXPORT void standin_fail(const char *call, long n, int number);
/* The call that was made to fail since, or NULL. */
EXPORT const char *standin_victim(void);
/* Kernels that would have run: launches, those of graphs included. */
EXPORT long standin_launched(void);

/* ---- between the files --------------------------------------------------------------------------------------------------- */

/* Returns true if this thread has a current context. */
int standin_here(void);
/* Creates a handle of this many zeroed bytes, and destroys one. */
int standin_one_more(void **handle, size_t bytes);
int standin_one_less(void *handle);
/* The number that a call must answer with, or 0. */
int standin_judge(const char *call);
/* The result of a call that has freed something. */
int standin_give(const char *call, int number);

#define BEGIN(symbol)                                                                                                          \
    do {                                                                                                                       \
        const int judged_ = standin_judge(#symbol);                                                                            \
        if (judged_ != NV_SUCCESS)                                                                                             \
            return judged_;                                                                                                    \
    } while (0)

typedef enum work_kind { WORK_COPY, WORK_FILL, WORK_LAUNCH } work_kind;

typedef struct stream_work {
    work_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    unsigned int pattern;
} stream_work;

/* Returns the bytes of a stream, for code that allocates one. */
size_t standin_stream_bytes(void);
/* Does the work at once, or adds it to what the stream records; returns a CUDA status. */
int standin_work(void *on, const stream_work *work);
/* The number of a call that waits for a stream, or has others wait for it: refused while it records, and the recording is
 * spoiled. */
int standin_wait(void *on);

#endif
