/* Starts the library's own threads.
 *
 * They receive no signals: signals belong to the program, whose threads may wait for them with sigwait. They have names, so
 * that a debugger or `top -H` shows to whom they belong.
 */
#ifndef WW_BASE_SYSTEM_THREADS_H
#define WW_BASE_SYSTEM_THREADS_H

#include <pthread.h>

/* Like pthread_create(), with the default attributes; `name` has at most 15 bytes. Returns an errno. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

#endif
