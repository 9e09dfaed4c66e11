/* Runs a test in its own process. */
#include "support/process.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "support/devices.h"

/* Is any thread but the caller running or about to run? */
static bool others_run(void)
{
    DIR *threads = opendir("/proc/self/task");
    bool run = false;
    for (const struct dirent *entry = threads ? readdir(threads) : NULL; entry && !run; entry = readdir(threads)) {
        char path[300], line[512] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        const bool another = entry->d_name[0] != '.' && atoi(entry->d_name) != gettid();
        FILE *file = another ? fopen(path, "r") : NULL;
        if (file && fgets(line, sizeof line, file)) {
            const char *state = strrchr(line, ')'); /* of a thread's number, its name in brackets and its state */
            run = state && strncmp(state, ") R", 3) == 0;
        }
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return run;
}

pid_t fork_when_idle(void)
{
    enum { LOOKS = 2000, QUIET_LOOKS = 5 };
    for (int i = 0, quiet = 0; TEST_INSTRUMENTED && i < LOOKS && quiet < QUIET_LOOKS; i++, quiet = others_run() ? 0 : quiet + 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return fork();
}

void in_a_process(void (*work)(void), int seconds)
{
    fflush(NULL);
    const pid_t child = fork_when_idle();
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
