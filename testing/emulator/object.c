/* Loads callers' kernels: writes the object to a file with a unique name, loads it with the system's loader, and removes the
 * file at once. */
#include "emulator/object.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define FILE_NAME "warpwave-kernels-"

static emulated_place *here(void)
{
    return emulated_here;
}

static const emulated_calls calls = {.here = here,
                                     .barrier = emulated_barrier,
                                     .wave_barrier = emulated_wave_barrier,
                                     .shuffle_u32 = emulated_shuffle_u32,
                                     .shuffle_u64 = emulated_shuffle_u64,
                                     .ballot = emulated_ballot,
                                     .uniform_u32 = emulated_uniform_u32,
                                     .shared = emulated_shared,
                                     .shared_dynamic = emulated_shared_dynamic,
                                     .shared_at = emulated_shared_at};

static bool write_all(int file, const char *from, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(file, from, bytes);
        if (written <= 0)
            return false;
        from += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* The loader identifies objects by name, so two that are loaded at the same time need different names. */
static void *open_object(const void *image, size_t bytes)
{
    char path[512];
    const char *folder = getenv("TMPDIR");
    const int length =
        snprintf(path, sizeof path, "%s/" FILE_NAME "XXXXXX", folder != NULL && folder[0] == '/' ? folder : "/tmp");
    const int file = length > 0 && (size_t)length < sizeof path ? mkstemp(path) : -1;
    if (file < 0)
        return NULL;
    void *object = write_all(file, image, bytes) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    close(file);
    unlink(path);
    return object;
}

void *emulator_object_load(const void *image, size_t bytes, char *why, size_t why_bytes)
{
    (void)dlerror();
    void *object = open_object(image, bytes);
    if (object == NULL) {
        const char *reason = dlerror();
        text_copy(why, why_bytes, reason != NULL ? reason : "no temporary file for it can be written");
        return NULL;
    }
    const emulated_calls **table = dlsym(object, "warpwave_emulator");
    if (table == NULL) {
        text_copy(why, why_bytes, "it has no kernels for the emulator: compile it with WARPWAVE_OWN_KERNEL");
        dlclose(object);
        return NULL;
    }
    *table = &calls;
    return object;
}

void emulator_object_unload(void *object)
{
    if (object != NULL)
        dlclose(object);
}

void *emulator_object_hold(const emulated_kernel *kernel)
{
    Dl_info info;
    const bool found = dladdr(kernel, &info) != 0 && info.dli_fname != NULL;
    return found && strstr(info.dli_fname, FILE_NAME) != NULL ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

const emulated_kernel *emulator_object_find(void *object, const char *name)
{
    char symbol[300];
    const int length = snprintf(symbol, sizeof symbol, "emulated_%s", name);
    return length > 0 && (size_t)length < sizeof symbol ? dlsym(object, symbol) : NULL;
}
