/* The library's memory as tests of behaviour see it: how much it holds, and allocations that fail on demand. */
#ifndef TESTS_MEMORY_H
#define TESTS_MEMORY_H

#include <stdint.h>

/* The n-th allocation of the library from now, counting from 1, fails, once. 0: none does. */
void fail_allocation_at(int64_t n);

/* Blocks of the whole process that the library has allocated and not freed. */
int64_t blocks_held(void);

#endif
