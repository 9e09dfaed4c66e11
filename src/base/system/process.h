/* Tells the process that made an object from a child that fork() made later.
 *
 * A child inherits every handle of its parent but none of its threads: locks that they held stay locked for ever, a pool has no
 * workers, and a GPU's driver works only in the parent. So objects with any of these remember the process that made them, and
 * refuse to work in another one before they take a lock. This costs little: a handler that fork() calls in the child changes
 * the number, and a check is one comparison.
 */
#ifndef WW_BASE_PROCESS_H
#define WW_BASE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* The number of a process, counted over forks, from 1 on. 0 means none; a zeroed struct has that. */
typedef uint32_t process_mark;

extern _Atomic process_mark process_number;

/* Returns the mark of this process, to be stored in new objects. The first call in a process makes sure that forks are
 * noticed. */
process_mark process_here(void);

/* Returns true if the object with that mark was made in this process. */
static inline bool process_is_ours(process_mark made_in)
{
    return made_in == atomic_load_explicit(&process_number, memory_order_relaxed);
}

/* Returns WW_OK, or WW_OTHER_PROCESS with "WHAT: opened in another process; open it again here". */
ww_status process_refuse(const char *what);
static inline ww_status process_check(process_mark made_in, const char *what)
{
    return process_is_ours(made_in) ? WW_OK : process_refuse(what);
}

#endif
