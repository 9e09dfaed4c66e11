/* The compiled kernels inside the library, packed: for each module (a file of src/kernels) and chip an HSACO, or PTX and, where
 * ptxas was there at build time, the cubin that it makes of it, which the driver need not compile.
 *
 * cmake/Kernels.cmake makes them and the table. A library may have been built without any; then it says why.
 */
#ifndef WW_KERNELS_EMBEDDED_H
#define WW_KERNELS_EMBEDDED_H

#include <stddef.h>

#include "base/status.h"

typedef struct embedded_kernels {
    const char *module; /* "score" */
    const char *chip;   /* "gfx90a", "sm_90a" */
    const char *format; /* "HSACO", "PTX" or "cubin" */
    const void *packed; /* a frame of zstd */
    size_t packed_bytes;
    const void *base; /* in a wheel: the frame of the same module for another chip, against which this one is packed; or NULL */
    size_t base_bytes;
} embedded_kernels;

/* All of them; the list ends with a NULL module. */
const embedded_kernels *embedded_all(void);

/* Unpacks the code into memory for memory_free(): `bytes` long and followed by a NUL, since drivers want PTX as a string.
 * Takes about a millisecond. Fails with WW_CORRUPT_FILE if the library's file is damaged there, or without memory. */
ww_status embedded_unpack(const embedded_kernels *kernels, char **code, size_t *bytes);

/* The text of a kernel or of a header it includes, for a compiler at run time; `name` as an include has it. */
typedef struct embedded_source {
    const char *name; /* "kernels/search/rows.c", "kernels/simt/simt.h" */
    const char *text;
} embedded_source;

/* All of them; the list ends with a NULL name. */
const embedded_source *embedded_sources(void);

/* The chips that kernels were compiled for, AMD's first; NULL past the end. */
size_t embedded_chip_count(void);
const char *embedded_chip(size_t index);

/* Why there is no chip, and what to type to have kernels; "" where there is one. */
const char *embedded_absence(void);

#endif
