/* Starting a thread of the library's own.
 *
 * It takes no signals: those are the program's, whose threads may wait for them with sigwait. And it has a name, so that a
 * debugger or `top -H` shows whose it is.
 */
#ifndef WW_BASE_SYSTEM_THREADS_H
#define WW_BASE_SYSTEM_THREADS_H

#include <pthread.h>

/* As pthread_create(), with the default attributes; `name` has 15 bytes at most. Returns an errno. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

#endif
