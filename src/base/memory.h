/* Memory on the host: every allocation of the library goes through here.
 *
 * That gives one place that can count what is held, and one place where a test can make the n-th allocation fail.
 */
#ifndef WW_BASE_MEMORY_H
#define WW_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { CACHE_LINE_BYTES = 64 };

/* Return NULL when there is no memory; the caller says so with memory_failed(). A size of 0 gives a valid pointer. */
void *memory_alloc(size_t bytes);
void *memory_alloc_zeroed(size_t count, size_t element_bytes); /* refuses a product that overflows */
void *memory_alloc_aligned(size_t bytes);                      /* to a cache line */
void *memory_resize(void *block, size_t bytes);                /* on failure the block stays as it was */
char *memory_copy_text(const char *text, size_t length);       /* adds the NUL */
void memory_free(void *block);                                 /* accepts NULL; for all of the above */

/* a*b in `product`; false if it overflows. */
bool size_multiply(size_t a, size_t b, size_t *product);

/* WW_OUT_OF_MEMORY with `what`, the bytes asked and the bytes free on this machine. */
ww_status memory_failed(const char *what, size_t bytes);
#ifdef __clang_analyzer__ /* as in base/status.h */
#define memory_failed(what, bytes) ((void)(memory_failed)(what, bytes), WW_OUT_OF_MEMORY)
#endif

/* Memory that this process may use: the machine's, or less where a container (cgroup) or RLIMIT_AS limits it; and how much of
 * it is available now, not counting what the library has promised and not yet used. 0 where the system does not say. */
int64_t memory_total_bytes(void);
int64_t memory_available_bytes(void);

/* Test hooks. After memory_fail_at(n) the n-th allocation from now (counting from 1) fails, once; 0 switches it off.
 * memory_blocks_held() counts blocks taken and not given back, by the whole process. */
void memory_fail_at(int64_t n);
int64_t memory_blocks_held(void);

#endif
