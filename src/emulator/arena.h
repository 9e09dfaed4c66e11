/* The memory that the threads of a block run in: their stacks, and the block's shared memory.
 *
 * It is kept from one launch to the next, since taking it anew would cost more than a small kernel does: megabytes that the
 * operating system clears page by page, and that the address sanitizer marks twice. A few pieces stay with the process.
 */
#ifndef WW_EMULATOR_ARENA_H
#define WW_EMULATOR_ARENA_H

#include <stdbool.h>

/* A piece for a block of as many threads as there may be, one stack more than that, or NULL. The stacks come first,
 * FIBER_STACK_STRIDE apart; what they hold is what was there before. */
char *arena_take(void);
char *arena_shared(char *arena); /* its EMULATOR_SHARED_BYTES */
/* `clean`: every fiber on its stacks has ended. Accepts NULL. */
void arena_give(char *arena, bool clean);

#endif
