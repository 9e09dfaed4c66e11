/* Runs a test in its own process: for actions that a library does only once, and for libraries that may not return. */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <stdio.h>
#include <unistd.h>

#include "support/check.h"

/* Says on the way out of the child what did not hold. */
#define EXPECT(condition)                                                                                                      \
    do {                                                                                                                       \
        if (!(condition)) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s does not hold; last message: %s\n", __FILE__, __LINE__, #condition,                     \
                    ww_error_message());                                                                                       \
            _exit(1);                                                                                                          \
        }                                                                                                                      \
    } while (0)

enum { PROCESS_SKIPPED = 77 };

/* Runs `work` in a child and waits for at most `seconds`. A child that takes longer is ended, and the test fails, as it does if
 * an EXPECT of the child fails or it does not end normally. A child that calls _exit(PROCESS_SKIPPED) skips the test; it has
 * printed why. */
void in_a_process(void (*work)(void), int seconds);

/* fork() for a child that uses the library. libasan's malloc waits for ever in a child if another thread of the parent was in
 * it, so under that sanitizer this waits until the other threads sleep. */
pid_t fork_when_idle(void);

#endif
