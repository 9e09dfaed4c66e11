/* The number of this process, which every fork() increments in the child. */
#include "base/system/process.h"

#include <pthread.h>

_Atomic process_mark process_number = 1; /* one for the process: it tells it from its children */

static void count_in_child(void)
{
    atomic_fetch_add_explicit(&process_number, 1, memory_order_relaxed);
}

/* It only fails if there is no memory for a list entry; then forks are not noticed. */
static void notice_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_in_child);
}

process_mark process_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* handlers are added once, for the process */
    pthread_once(&once, notice_forks);
    return atomic_load_explicit(&process_number, memory_order_relaxed);
}

ww_status process_refuse(const char *what)
{
    return ww_fail(WW_OTHER_PROCESS, "%s: opened in another process, before fork(); open it again here", what);
}
