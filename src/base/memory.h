/* Host memory. Every allocation of the library goes through these functions, so that memory is counted in one place, and tests
 * can make the n-th allocation fail.
 */
#ifndef WW_BASE_MEMORY_H
#define WW_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { CACHE_LINE_BYTES = 64 };

/* Return NULL if there is not enough memory; the caller reports that with memory_failed(). A size of 0 gives a valid
 * pointer. */
void *memory_alloc(size_t bytes);
void *memory_alloc_zeroed(size_t count, size_t element_bytes); /* fails if the product overflows */
void *memory_alloc_aligned(size_t bytes);                      /* aligned to a cache line */
void *memory_resize(void *block, size_t bytes);                /* if it fails, the block does not change */
char *memory_copy_text(const char *text, size_t length);       /* appends a NUL */
void memory_free(void *block);                                 /* for all of the above; accepts NULL */

/* Writes a*b to `product`. Returns false if it overflows. */
bool size_multiply(size_t a, size_t b, size_t *product);

/* Fails with WW_OUT_OF_MEMORY and a message with `what`, the bytes that were requested and those that are free on this
 * machine. */
ww_status memory_failed(const char *what, size_t bytes);
#ifdef __clang_analyzer__ /* as in base/status.h */
#define memory_failed(what, bytes) ((void)(memory_failed)(what, bytes), WW_OUT_OF_MEMORY)
#endif

/* Return the memory that this process may use: the machine's, or less if a container (cgroup) or RLIMIT_AS limits it; and how
 * much of it is available now, without what the library has allocated and not yet used. 0 if the system does not tell. */
int64_t memory_total_bytes(void);
int64_t memory_available_bytes(void);

/* Test hooks. After memory_fail_at(n) the n-th allocation from now (counting from 1) fails, once; 0 switches it off.
 * memory_blocks_held() returns how many blocks of the whole process are allocated and not freed. */
void memory_fail_at(int64_t n);
int64_t memory_blocks_held(void);

#endif
