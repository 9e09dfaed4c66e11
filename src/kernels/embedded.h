/* The compiled kernels inside the library, packed. For each module (a file of src/kernels) and chip there is an HSACO, or PTX.
 * If ptxas was available at build time, there is also a cubin, which the driver need not compile.
 *
 * cmake/Kernels.cmake builds them and the table. A library built without kernels can say why (embedded_absence()).
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

/* Unpacks the code into memory for memory_free(): `bytes` long and followed by a NUL, since drivers want PTX as a string. Takes
 * about a millisecond. Fails with WW_CORRUPT_FILE if the library's file is damaged there, or if memory runs out. */
ww_status embedded_unpack(const embedded_kernels *kernels, char **code, size_t *bytes);

/* The source of a kernel or of a header it includes, for compiling at run time; `name` is the path used in #include. */
typedef struct embedded_source {
    const char *name; /* "kernels/search/rows.c", "kernels/simt/simt.h" */
    const char *text;
} embedded_source;

/* All of them; the list ends with a NULL name. */
const embedded_source *embedded_sources(void);

/* The chips that kernels were compiled for, AMD's first; NULL past the end. */
size_t embedded_chip_count(void);
const char *embedded_chip(size_t index);

/* Why there are no kernels, and how to build them; "" if there are some. */
const char *embedded_absence(void);

#endif
