/* The header of a .npy, for matrices (npy.c) and for arrays of any rank (npy_array.c). */
#ifndef WW_FILES_NPY_H
#define WW_FILES_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/arrays.h>

#include "files/layout.h"

typedef struct npy_header {
    ww_element element;
    char type[WW_ARRAY_TYPE_TEXT]; /* as the file says it, printable */
    bool fortran_order;
    int rank; /* may be more than WW_ARRAY_RANK_MAX; then the rest of the shape is not kept */
    int64_t shape[WW_ARRAY_RANK_MAX];
    int64_t element_offset, shape_offset; /* where in the file they were said */
    int64_t data_offset;
} npy_header;

/* Reads and checks the header, not yet against the size of the data. Blocks on the disk. */
ww_status npy_header_read(const file_source *source, npy_header *array);

/* An array over bytes in memory: how the fuzzer reaches the reader. The bytes stay the caller's and must outlive it. */
ww_status npy_open_bytes(const char *name, const void *bytes, size_t size, ww_npy **npy);

#endif
