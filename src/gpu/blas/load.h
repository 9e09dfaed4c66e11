/* Opening a vendor's BLAS and making a handle of it: the same for both vendors. */
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

/* Opens, by `open` (NULL with dlerror() where it fails), the file that the environment variable `variable` names, or the first
 * of `files` (ends with NULL) that is there, and finds all `symbols` (ends with a NULL name). Fills in number and why. */
void blas_open(blas_loading *loading, const char *variable, const char *const *files, void *(*open)(const char *name),
               const blas_symbol *symbols);

/* Calls `load_once` once per process; returns its number, and in `why` the reason if it is not 0. */
int blas_loaded(blas_loading *loading, void (*load_once)(void), char *why, size_t why_capacity);

/* Records for the thread which call returned a number other than 0, and returns the number. */
int blas_answer(const char *call, int number);
const char *blas_failed_call(void); /* of the thread; "" if none */

/* How a vendor makes a handle: each function with the name that messages give it. */
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

/* A handle bound to `stream`, in `mode`; none is left if any of the calls fails. */
int blas_handle_create(const blas_handle_calls *calls, void *stream, int mode, void **handle);

#endif
