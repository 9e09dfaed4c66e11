/* The library as a guest in another program's process: it leaves signals, threads and the environment alone. */
#include "support/process.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/system/cores.h"
#include "base/system/environment.h"
#include "support/command.h"
#include "support/scratch.h"

static ww_device *opened(void)
{
    ww_device *device = NULL;
    EXPECT(ww_device_open("cpu", &device) == WW_OK);
    return device;
}

/* The program opens a device first and blocks the signal it waits for afterwards: only the library's threads could take it. */
static void wait_for_termination(void)
{
    ww_device *device = opened();
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    EXPECT(pthread_sigmask(SIG_BLOCK, &wanted, NULL) == 0);
    EXPECT(kill(getpid(), SIGTERM) == 0);
    const struct timespec limit = {.tv_sec = 10};
    EXPECT(sigtimedwait(&wanted, NULL, &limit) == SIGTERM);
    ww_device_close(device);
}

static void signals_are_left_to_the_program(void **state)
{
    (void)state;
    in_a_process(wait_for_termination, 30);
}

/* Returns how many threads of this process have a name that starts with `prefix`. */
static int threads_named(const char *prefix)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks != NULL);
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file) {
            if (fgets(name, sizeof name, file))
                count += strncmp(name, prefix, strlen(prefix)) == 0;
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

static void look_at_threads(void)
{
    EXPECT(threads_named("ww-pool-") == 0);
    int32_t cores[CORES_MAX], count = 0;
    EXPECT(cores_to_use(cores, CORES_MAX, &count) == WW_OK);
    ww_device *device = opened();
    EXPECT(threads_named("ww-pool-") == count - 1); /* the caller is the last of them */
    ww_device_close(device);
    EXPECT(threads_named("ww-pool-") == 0);
}

static void threads_have_names(void **state)
{
    (void)state;
    in_a_process(look_at_threads, 30);
}

static void paths_of_the_environment_are_absolute(void **state)
{
    (void)state;
    const char *path;
    char why[128] = "";
    unsetenv("WARPWAVE_TEST_PATH");
    assert_true(environment_path("WARPWAVE_TEST_PATH", &path, why, sizeof why) && !path);
    setenv("WARPWAVE_TEST_PATH", "", 1);
    assert_true(environment_path("WARPWAVE_TEST_PATH", &path, why, sizeof why) && !path);
    setenv("WARPWAVE_TEST_PATH", "/lib/x.so", 1);
    assert_true(environment_path("WARPWAVE_TEST_PATH", &path, why, sizeof why));
    assert_string_equal(path, "/lib/x.so");
    assert_string_equal(environment_folder("WARPWAVE_TEST_PATH"), "/lib/x.so");
    setenv("WARPWAVE_TEST_PATH", "x.so", 1);
    assert_false(environment_path("WARPWAVE_TEST_PATH", &path, why, sizeof why));
    assert_non_null(strstr(why, "WARPWAVE_TEST_PATH is 'x.so'"));
    assert_null(path);
    assert_null(environment_folder("WARPWAVE_TEST_PATH"));
    unsetenv("WARPWAVE_TEST_PATH");
}

/* Makes a library whose constructor creates a file, to show whether it was loaded. */
static bool make_trap(const char *source, const char *library)
{
    char command[3 * SCRATCH_PATH_BYTES];
    const char *text = "#include <stdio.h>\n#include <stdlib.h>\n"
                       "__attribute__((constructor)) static void spring(void) { FILE *f = fopen(getenv(\"TRAP_FILE\"), \"w\"); "
                       "if (f) fclose(f); }\n";
    FILE *file = fopen(source, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "cc -shared -fPIC -o '%s' '%s'", library, source);
    return system(command) == 0;
}

static bool springs(const char *program, const char *trap_file, uid_t user)
{
    remove(trap_file);
    const pid_t child = fork_when_idle();
    assert_true(child >= 0);
    if (child == 0) {
        if (user && (setgid(user) != 0 || setuid(user) != 0))
            _exit(3);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(4);
        execl(program, program, "devices", (char *)NULL);
        _exit(5);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 3);
    return access(trap_file, F_OK) == 0;
}

/* The command, set up to run as root for anyone: it must not load what its caller names. */
static void a_setuid_program_loads_nothing_that_its_caller_names(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    char folder[] = "/tmp/warpwave-setuid-XXXXXX";
    if (geteuid() != 0) {
        printf("SKIP: only root can make a setuid program of another user\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0777), 0);
    char program[64], library[64], source[64], trap_file[64], command[SCRATCH_PATH_BYTES];
    snprintf(program, sizeof program, "%s/warpwave", folder);
    snprintf(library, sizeof library, "%s/trap.so", folder);
    snprintf(source, sizeof source, "%s/trap.c", folder);
    snprintf(trap_file, sizeof trap_file, "%s/sprung", folder);
    snprintf(command, sizeof command, "cp '%s' '%s' && chmod 4755 '%s'", COMMAND_PATH, program, program);
    assert_int_equal(system(command), 0);
    const bool trap = make_trap(source, library);
    static const char *const variables[] = {"WARPWAVE_CUDA_LIBRARY", "WARPWAVE_HIP_LIBRARY", "WARPWAVE_HIPRTC_LIBRARY",
                                            "WARPWAVE_ROCBLAS_LIBRARY", "WARPWAVE_CUBLAS_LIBRARY"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i], library, 1);
    setenv("TRAP_FILE", trap_file, 1);
    const bool as_itself = trap && springs(program, trap_file, 0);
    const bool as_nobody = trap && springs(program, trap_file, NOBODY);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    unsetenv("TRAP_FILE");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    assert_true(trap);
    assert_false(as_nobody);
    if (!as_itself) {
        printf("SKIP: this build loads no GPU driver, so there is nothing to withhold\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_are_left_to_the_program),
        cmocka_unit_test(threads_have_names),
        cmocka_unit_test(paths_of_the_environment_are_absolute),
        cmocka_unit_test(a_setuid_program_loads_nothing_that_its_caller_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
