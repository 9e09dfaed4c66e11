/* Kernels of callers: a shared object that the host's compiler makes from a kernel's source with WARPWAVE_OWN_KERNEL
 * (kernels/simt/emulated_kernel.h). */
#ifndef WW_EMULATOR_OBJECT_H
#define WW_EMULATOR_OBJECT_H

#include "emulator/emulator.h"

/* Loads the object whose file has these bytes. Returns NULL, with the reason in `why`, if that fails. The caller may change the
 * bytes afterwards. */
void *emulator_object_load(const void *image, size_t bytes, char *why, size_t why_bytes);
void emulator_object_unload(void *object); /* accepts NULL */

/* Keeps the object of a kernel loaded while the kernel is queued; release it with emulator_object_unload(). Returns NULL for
 * the library's own kernels. */
void *emulator_object_hold(const emulated_kernel *kernel);

/* Returns its kernel with this name, or NULL. */
const emulated_kernel *emulator_object_find(void *object, const char *name);

#endif
