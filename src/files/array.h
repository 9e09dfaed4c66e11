/* Shared by the readers of arrays: the size of a shape, and reads that several threads share. */
#ifndef WW_FILES_ARRAY_H
#define WW_FILES_ARRAY_H

#include <stdbool.h>

#include <warpwave/arrays.h>

#include "base/files/source.h"

/* Elements and bytes of a shape, into info->elements and info->bytes, which are 0 if a size is; shape entries past the rank
 * become 1. Returns false if a size is negative or the numbers do not fit in 63 bits. An unknown element has no bytes. */
bool array_size(ww_array_info *info);

/* Like source_read(), but several threads read a large range: one thread can neither keep a fast disk busy nor copy as fast as
 * memory allows. */
ww_status source_read_parallel(const file_source *source, int64_t offset, void *to, size_t bytes);

/* Refuses a range outside an array of `size` bytes, and NULL unless there is nothing to write. */
ww_status array_range_check(const char *call, const ww_array_info *info, int64_t offset, const void *to, size_t bytes);

#endif
