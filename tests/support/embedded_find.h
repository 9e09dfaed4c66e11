/* Finds an embedded module by its name and chip. The library looks for the best chip instead (gpu/module.c). */
#ifndef WW_TESTS_EMBEDDED_FIND_H
#define WW_TESTS_EMBEDDED_FIND_H

#include <stdbool.h>
#include <string.h>

#include "kernels/embedded.h"

static inline const embedded_kernels *embedded_find_format(const char *module, const char *chip, bool cubin)
{
    for (const embedded_kernels *kernels = embedded_all(); kernels->module; kernels++)
        if (strcmp(kernels->module, module) == 0 && strcmp(kernels->chip, chip) == 0 &&
            (strcmp(kernels->format, "cubin") == 0) == cubin)
            return kernels;
    return NULL;
}

/* The HSACO or PTX of the module for exactly that chip, or NULL. */
static inline const embedded_kernels *embedded_find(const char *module, const char *chip)
{
    return embedded_find_format(module, chip, false);
}

/* Its cubin, or NULL. */
static inline const embedded_kernels *embedded_find_cubin(const char *module, const char *chip)
{
    return embedded_find_format(module, chip, true);
}

#endif
