/* Which page size a new file gets, by what its vectors take. */
#ifndef WW_STORE_PAGE_SIZE_H
#define WW_STORE_PAGE_SIZE_H

#include <stdint.h>

enum { PAGE_BYTES_MIN = 512, PAGE_BYTES_MAX = 65536 };

/* The bytes of file that a vector of `bytes` bytes takes in the table of vectors, with pages of this size, times 1000. */
int64_t page_milli_bytes(int64_t page_bytes, int64_t vector_bytes);

/* The best page size, 4096 to 65536: the smallest one that wastes no more than a hundredth more than the one that wastes least.
 * Small ones write less for a single row. */
int32_t page_bytes_for(int64_t vector_bytes);

#endif
