/* Which process is this: the one that made a thing, or a child that fork() made of it later?
 *
 * A child inherits every handle of its parent but none of its threads: locks that those held stay locked for ever, a pool
 * has no workers, and a GPU's driver works in the parent alone. So whatever has such things remembers the process it was made
 * in, and refuses to work in another, before it takes a lock. A child costs the others nothing: the number changes in the
 * child, in a handler that fork() calls, and a check is one comparison.
 */
#ifndef WW_BASE_PROCESS_H
#define WW_BASE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* A process among its ancestors: 1 and up. 0 is no process, and what a zeroed struct has. */
typedef uint32_t process_mark;

extern _Atomic process_mark process_number;

/* The mark of this process, to be kept in what is made now. The first call in a process makes sure that forks are noticed. */
process_mark process_here(void);

/* Was the thing with that mark made in this process? */
static inline bool process_is_ours(process_mark made_in)
{
    return made_in == atomic_load_explicit(&process_number, memory_order_relaxed);
}

/* WW_OK, or WW_OTHER_PROCESS with "WHAT: opened in another process; open it again here". */
ww_status process_refuse(const char *what);
static inline ww_status process_check(process_mark made_in, const char *what)
{
    return process_is_ours(made_in) ? WW_OK : process_refuse(what);
}

#endif
