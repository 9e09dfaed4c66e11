/* The compiled kernels inside the library: for each module (a file of src/kernels) and chip one code object.
 *
 * cmake/Kernels.cmake makes them and the table. A library built without a device compiler has none.
 */
#ifndef WW_KERNELS_EMBEDDED_H
#define WW_KERNELS_EMBEDDED_H

#include <stddef.h>

typedef struct embedded_kernels {
    const char *module; /* "score" */
    const char *chip;   /* "gfx90a": an HSACO; "sm_90a": PTX */
    const void *bytes;  /* followed by a zero byte, so that PTX is text as drivers want it */
    size_t size;        /* without that byte */
} embedded_kernels;

/* The code of that module for exactly that chip, or NULL. */
const embedded_kernels *embedded_find(const char *module, const char *chip);

/* The text of a kernel or of a header it includes, for a compiler at run time; `name` as an include has it. */
typedef struct embedded_source {
    const char *name; /* "kernels/rows.c", "kernels/simt.h" */
    const char *text;
} embedded_source;

/* All of them; the list ends with a NULL name. */
const embedded_source *embedded_sources(void);

/* The chips that every module is there for, AMD's first; NULL past the end. */
size_t embedded_chip_count(void);
const char *embedded_chip(size_t index);

#endif
