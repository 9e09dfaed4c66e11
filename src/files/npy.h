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
    char type[WW_ARRAY_TYPE_TEXT]; /* as in the file, printable */
    bool fortran_order;
    int rank; /* can be more than WW_ARRAY_RANK_MAX; then the rest of the shape is not stored */
    int64_t shape[WW_ARRAY_RANK_MAX];
    int64_t element_offset, shape_offset; /* where they are in the file */
    int64_t data_offset;
} npy_header;

/* Reads and checks the header, but not yet against the size of the data. Blocks on the disk. */
ww_status npy_header_read(const file_source *source, npy_header *array);

/* An array over bytes in memory, for the fuzzer of the reader. The caller keeps the bytes for as long as the array. */
ww_status npy_open_bytes(const char *name, const void *bytes, size_t size, ww_npy **npy);

#endif
