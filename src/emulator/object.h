/* Kernels from outside the library: a shared object of the host's compiler, made of a kernel's source with WARPWAVE_OWN_KERNEL
 * (kernels/simt/emulated_kernel.h). */
#ifndef WW_EMULATOR_OBJECT_H
#define WW_EMULATOR_OBJECT_H

#include "emulator/emulator.h"

/* Loads the object whose file has these bytes; NULL with the reason in `why`. The bytes may be changed when it returns. */
void *emulator_object_load(const void *image, size_t bytes, char *why, size_t why_bytes);
void emulator_object_unload(void *object); /* accepts NULL */

/* Keeps the object of a kernel loaded while the kernel is queued; release it with unload. NULL for the library's own kernels.
 */
void *emulator_object_hold(const emulated_kernel *kernel);

/* Its kernel called `name`, or NULL. */
const emulated_kernel *emulator_object_find(void *object, const char *name);

#endif
