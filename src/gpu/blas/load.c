/* Opens a vendor's BLAS and creates handles, in the same way for both vendors. */
#include "gpu/blas/load.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/system/environment.h"
#include "base/text.h"

/* Returns false and the reason if a symbol is missing. */
static bool find_symbols(void *library, const blas_symbol *symbols, char *why, size_t why_capacity)
{
    for (const blas_symbol *symbol = symbols; symbol->name != NULL; symbol++) {
        *symbol->function = dlsym(library, symbol->name);
        if (*symbol->function == NULL) {
            snprintf(why, why_capacity, "the library has no function %s: it is too old, or another library", symbol->name);
            return false;
        }
    }
    return true;
}

/* Opens one file. If a library lacks symbols the search goes on, because an older one may have them. */
static bool open_file(blas_loading *loading, const char *file, void *(*open)(const char *name), const blas_symbol *symbols)
{
    char reason[256];
    void *library = open(file);
    if (library != NULL && find_symbols(library, symbols, reason, sizeof reason))
        return true;
    if (library == NULL) {
        const char *said = dlerror();
        text_copy(reason, sizeof reason, said != NULL ? said : file);
    } else {
        dlclose(library);
    }
    text_append(loading->why, sizeof loading->why, "; ");
    text_append(loading->why, sizeof loading->why, reason);
    return false;
}

void blas_open(blas_loading *loading, const char *variable, const char *const *files, void *(*open)(const char *name),
               const blas_symbol *symbols)
{
    const char *path;
    loading->number = -1;
    if (!environment_path(variable, &path, loading->why, sizeof loading->why))
        return;
    const char *named[] = {path, NULL};
    text_copy(loading->why, sizeof loading->why, "not installed");
    for (const char *const *file = path != NULL ? named : files; *file != NULL && loading->number != 0; file++)
        if (open_file(loading, *file, open, symbols))
            loading->number = 0;
    if (loading->number == 0)
        loading->why[0] = '\0';
}

int blas_loaded(blas_loading *loading, void (*load_once)(void), char *why, size_t why_capacity)
{
    pthread_once(&loading->once, load_once);
    text_copy(why, why_capacity, loading->why);
    return loading->number;
}

static _Thread_local const char *failed_call = ""; /* of each thread, for its next message */

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
