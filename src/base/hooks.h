/* The program's hooks, for memory.c and status.c. */
#ifndef WW_BASE_HOOKS_H
#define WW_BASE_HOOKS_H

#include <warpwave/hooks.h>

/* The hooks for memory, or NULL if the program has set none. */
const ww_hooks *hooks_memory(void);

/* Tells the program's log of a failure. */
void hooks_tell(ww_status status, const char *message);

#endif
