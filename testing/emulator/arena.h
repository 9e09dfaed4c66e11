/* The memory that the threads of a block run in: their stacks, and the block's shared memory.
 *
 * It is kept from one launch to the next, because allocating it again would take longer than running a small kernel: the
 * operating system clears megabytes page by page, and the address sanitizer marks them twice. The process keeps up to 16.
 */
#ifndef WW_EMULATOR_ARENA_H
#define WW_EMULATOR_ARENA_H

#include <stdbool.h>

/* Memory for a block of EMULATOR_MAX_THREADS, with one stack more than that, or NULL. The stacks come first, FIBER_STACK_STRIDE
 * apart; their contents are undefined. */
char *arena_acquire(void);
char *arena_shared(char *arena); /* its EMULATOR_SHARED_BYTES of shared memory */
/* `clean`: all fibers on its stacks have ended. Accepts NULL. */
void arena_release(char *arena, bool clean);

#endif
