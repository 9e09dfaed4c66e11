/* Opening a vendor's BLAS and making a handle of it: the same for both vendors. */
#include "gpu/blas/load.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

void blas_open(blas_loading *loading, const char *variable, const char *const *files, void *(*open)(const char *name),
               const blas_symbol *symbols)
{
    const char *path = getenv(variable);
    const char *named[] = {path, NULL};
    void *library = NULL;
    loading->number = -1;
    text_copy(loading->why, sizeof loading->why, "not installed");
    for (const char *const *file = path != NULL && path[0] != '\0' ? named : files; *file != NULL && library == NULL; file++) {
        library = open(*file);
        if (library == NULL) {
            const char *reason = dlerror();
            text_append(loading->why, sizeof loading->why, "; ");
            text_append(loading->why, sizeof loading->why, reason != NULL ? reason : *file);
        }
    }
    if (library == NULL)
        return;
    for (const blas_symbol *symbol = symbols; symbol->name != NULL; symbol++) {
        *symbol->function = dlsym(library, symbol->name);
        if (*symbol->function == NULL) {
            snprintf(loading->why, sizeof loading->why, "the library has no %s: it is too old, or something else",
                     symbol->name);
            dlclose(library);
            return;
        }
    }
    loading->number = 0;
    loading->why[0] = '\0';
}

int blas_loaded(blas_loading *loading, void (*load_once)(void), char *why, size_t why_capacity)
{
    pthread_once(&loading->once, load_once);
    text_copy(why, why_capacity, loading->why);
    return loading->number;
}

static _Thread_local const char *failed_call = "";

int blas_answer(const char *call, int number)
{
    if (number != 0)
        failed_call = call;
    return number;
}

const char *blas_failed_call(void)
{
    return failed_call;
}

int blas_handle_create(const blas_handle_calls *calls, void *stream, int mode, void **handle)
{
    void *created = NULL;
    int number = blas_answer(calls->create.name, calls->create.call(&created));
    if (number != 0)
        return number;
    number = blas_answer(calls->set_stream.name, calls->set_stream.call(created, stream));
    if (number == 0)
        number = blas_answer(calls->set_mode.name, calls->set_mode.call(created, mode));
    if (number == 0)
        *handle = created;
    else
        (void)calls->destroy(created);
    return number;
}
