/* Loading kernels of the caller's: the object becomes a file in memory, which the system's loader opens as any other. The file
 * stays open while it is loaded, so that no other has its name: the loader knows objects by their names. */
#include "emulator/object.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"

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

static void *open_object(int file, const void *image, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file >= 0 && write_all(file, image, bytes) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

void *emulator_object_load(const void *image, size_t bytes, char *why, size_t why_bytes)
{
    (void)dlerror();
    const int file = memfd_create("kernels", MFD_CLOEXEC);
    void *object = open_object(file, image, bytes);
    if (object == NULL) {
        const char *reason = dlerror();
        text_copy(why, why_bytes, reason != NULL ? reason : "no file in memory can be made");
        if (file >= 0)
            close(file);
        return NULL;
    }
    const emulated_calls **table = dlsym(object, "warpwave_emulator");
    int *from = dlsym(object, "warpwave_emulator_file");
    if (table == NULL || from == NULL) {
        text_copy(why, why_bytes, "it has no kernels for the emulator: compile it with WARPWAVE_OWN_KERNEL");
        dlclose(object);
        close(file);
        return NULL;
    }
    *from = file;
    *table = &calls;
    return object;
}

void emulator_object_unload(void *object)
{
    if (object == NULL)
        return;
    const int *from = dlsym(object, "warpwave_emulator_file");
    const int file = *from;
    dlclose(object);
    close(file);
}

const emulated_kernel *emulator_object_find(void *object, const char *name)
{
    char symbol[300];
    const int length = snprintf(symbol, sizeof symbol, "emulated_%s", name);
    return length > 0 && (size_t)length < sizeof symbol ? dlsym(object, symbol) : NULL;
}
