/* Which kernels a device has code for. */
#include "support/kernels.h"

#include <string.h>

#include "gpu/chip.h"
#include "kernels/embedded.h"
#include "support/embedded_find.h"

static const char *const modules[] = {
#define KERNEL_ENTRY(module, name, args_type) #module,
#include "kernels/kernels.def"
#undef KERNEL_ENTRY
};

bool kernel_is_there(const ww_device *device, int32_t kernel)
{
    if (strcmp(device->info.backend, "emulator") == 0)
        return true;
    for (size_t i = 0; i < embedded_chip_count(); i++)
        if (chip_fitness(device->info.arch, embedded_chip(i)) > 0 && embedded_find(modules[kernel], embedded_chip(i)) != NULL)
            return true;
    return false;
}
