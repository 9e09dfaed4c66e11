/* Opens a vendor's BLAS and creates handles, in the same way for both vendors. */
#ifndef WW_GPU_BLAS_LOAD_H
#define WW_GPU_BLAS_LOAD_H

#include <pthread.h>
#include <stddef.h>

typedef struct blas_symbol {
    const char *name;
    void **function;
} blas_symbol;

typedef struct blas_loading {
    pthread_once_t once;
    int number; /* 0, or -1 with the reason */
    char why[512];
} blas_loading;

/* Opens the file that the environment variable `variable` names, or the first of `files` (ends with NULL) that exists, with
 * `open` (which returns NULL with dlerror() on failure), and finds all `symbols` (ends with a NULL name). Sets number and
 * why. */
void blas_open(blas_loading *loading, const char *variable, const char *const *files, void *(*open)(const char *name),
               const blas_symbol *symbols);

/* Calls `load_once` once per process; returns its number, and in `why` the reason if it is not 0. */
int blas_loaded(blas_loading *loading, void (*load_once)(void), char *why, size_t why_capacity);

/* Records for the thread which call returned a number other than 0, and returns the number. */
int blas_answer(const char *call, int number);
const char *blas_failed_call(void); /* of the thread; "" if none */

/* How a vendor creates a handle: each function with its name for messages. */
typedef struct blas_handle_calls {
    struct {
        const char *name;
        int (*call)(void **handle);
    } create;
    int (*destroy)(void *handle);
    struct {
        const char *name;
        int (*call)(void *handle, void *stream);
    } set_stream;
    struct {
        const char *name;
        int (*call)(void *handle, int mode);
    } set_mode;
} blas_handle_calls;

/* Creates a handle for `stream` in `mode`. Leaves none if a call fails. */
int blas_handle_create(const blas_handle_calls *calls, void *stream, int mode, void **handle);

#endif
