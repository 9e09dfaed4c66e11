/* Starts threads. A thread inherits its creator's signal mask, so signals are blocked in the creator: the new thread never runs
 * with signals enabled. */
#include "base/system/threads.h"

#include <signal.h>

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    sigset_t all, callers;
    sigfillset(&all);
    const int masked = pthread_sigmask(SIG_SETMASK, &all, &callers);
    const int code = pthread_create(thread, NULL, run, argument);
    if (masked == 0)
        pthread_sigmask(SIG_SETMASK, &callers, NULL);
    if (code == 0)
        (void)pthread_setname_np(*thread, name);
    return code;
}
