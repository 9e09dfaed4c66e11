/* Runs a test in its own process. */
#include "support/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

void in_a_process(void (*work)(void), int seconds)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work();
        fflush(NULL);
        _exit(0);
    }
    int status = -1;
    pid_t ended = 0;
    for (int tick = 0; ended == 0 && tick < seconds * 100; tick++) {
        const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
        nanosleep(&pause, NULL);
        ended = waitpid(child, &status, WNOHANG);
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        fail_msg("not done after %d seconds", seconds);
    }
    if (!WIFEXITED(status))
        fail_msg("ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == PROCESS_SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}
