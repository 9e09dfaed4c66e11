/* The library's kernels by name, from kernels.def. */
#include <string.h>

#include "emulator/emulator.h"

#define KERNEL_ENTRY(module, name, args_type) extern const emulated_kernel emulated_##name;
#include "kernels/kernels.def"
#undef KERNEL_ENTRY

static const emulated_kernel *const kernels[] = {
#define KERNEL_ENTRY(module, name, args_type) &emulated_##name,
#include "kernels/kernels.def"
#undef KERNEL_ENTRY
    NULL,
};

const emulated_kernel *emulator_find(const char *name)
{
    for (const emulated_kernel *const *kernel = kernels; *kernel; kernel++)
        if (strcmp((*kernel)->name, name) == 0)
            return *kernel;
    return NULL;
}
