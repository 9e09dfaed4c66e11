/* Opening a vendor's BLAS: the same for both of them. */
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

/* Has `load_once` done once for the process, and gives the answer. */
int blas_loaded(blas_loading *loading, void (*load_once)(void), char *why, size_t why_capacity);

#endif
