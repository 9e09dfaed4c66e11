/* The embedded kernels, listed and unpacked. The tables are in an assembler file that the build writes (cmake/Kernels.cmake).
 */
#include "kernels/embedded.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/unpack.h"

extern const embedded_kernels embedded_table[];       /* ends with a NULL module */
extern const char *const embedded_chips[];            /* ends with NULL */
extern const embedded_source embedded_source_table[]; /* ends with a NULL name */
extern const char embedded_absence_text[];

const embedded_kernels *embedded_all(void)
{
    return embedded_table;
}

ww_status embedded_unpack(const embedded_kernels *kernels, char **code, size_t *bytes)
{
    char what[128];
    snprintf(what, sizeof what, "module '%s' for %s in the library", kernels->module, kernels->chip);
    if (!kernels->base)
        return unpack(what, kernels->packed, kernels->packed_bytes, code, bytes);
    char *base = NULL;
    packed_difference difference = {.packed = kernels->packed, .packed_bytes = kernels->packed_bytes};
    ww_status status = unpack(what, kernels->base, kernels->base_bytes, &base, &difference.base_bytes);
    difference.base = base;
    if (status == WW_OK)
        status = unpack_difference(what, &difference, code, bytes);
    memory_free(base);
    return status;
}

size_t embedded_chip_count(void)
{
    size_t count = 0;
    while (embedded_chips[count])
        count++;
    return count;
}

const char *embedded_chip(size_t index)
{
    return index < embedded_chip_count() ? embedded_chips[index] : NULL;
}

const char *embedded_absence(void)
{
    return embedded_absence_text;
}

const embedded_source *embedded_sources(void)
{
    return embedded_source_table;
}
