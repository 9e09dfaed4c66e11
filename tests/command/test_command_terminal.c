/* The command at a terminal: bars that come and go, pictures in grays, and ctrl-C. The terminal is a pseudo-terminal. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/command.h"
#include "support/data/random.h"

enum { PATIENCE_SECONDS = 60 };

typedef struct terminal {
    int master;
    pid_t process;
    time_t started;
    char text[1 << 20]; /* all that was shown */
    size_t used;
} terminal;

static terminal shown;

/* Starts `warpwave ARGUMENTS...` on a fresh terminal that controls it. */
static void terminal_start(terminal *t, int columns, const char *const *environment, const char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char name[128];
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    *t = (terminal){.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), .started = time(NULL)};
    if (t->master < 0) {
        print_message("SKIP: there are no pseudo-terminals here (/dev/pts is not mounted)\n");
        skip();
    }
    assert_int_equal(grantpt(t->master), 0);
    assert_int_equal(unlockpt(t->master), 0);
    assert_int_equal(ptsname_r(t->master, name, sizeof name), 0);
    assert_int_equal(ioctl(t->master, TIOCSWINSZ, &size), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawnattr_init(&attributes), 0);
    /* So that the first terminal it opens becomes its controlling terminal. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    assert_int_equal(
        posix_spawn(&t->process, COMMAND_PATH, &actions, &attributes, (char *const *)arguments, (char *const *)environment), 0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

/* Reads the available bytes. Returns false when the command has closed the terminal. Ends a command that takes too long. */
static bool terminal_read(terminal *t)
{
    struct pollfd ready = {.fd = t->master, .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_SECONDS * 1000) != 1 || time(NULL) - t->started > PATIENCE_SECONDS) {
        kill(t->process, SIGKILL);
        fail_msg("the command took more than %d seconds, and this was all:\n%.2000s", PATIENCE_SECONDS, t->text);
    }
    if (t->used >= sizeof t->text - 1)
        fail_msg("the command printed more than %zu bytes", sizeof t->text - 1);
    const size_t used = t->used % sizeof t->text; /* as above, so that gcc 13 knows it */
    const ssize_t count = read(t->master, t->text + used, sizeof t->text - used - 1);
    if (count <= 0)
        return false;
    t->used += (size_t)count;
    return true;
}

static void terminal_wait_for(terminal *t, const char *text)
{
    while (!strstr(t->text, text))
        if (!terminal_read(t))
            fail_msg("no '%s' in:\n%s", text, t->text);
}

/* Reads to the end and returns the exit code. */
static int terminal_end(terminal *t)
{
    int status;
    while (terminal_read(t))
        continue;
    close(t->master);
    assert_int_equal(waitpid(t->process, &status, 0), t->process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *const colourful[] = {NO_LEAK_CHECK, "LC_ALL=C.UTF-8", "TERM=xterm-256color", NULL};
static const char *const demo[] = {"warpwave", "demo", "--device", "cpu", NULL};
static const char half_block[] = "\xe2\x96\x80";

static void demo_draws_half_blocks_in_grays(void **state)
{
    (void)state;
    terminal_start(&shown, 120, colourful, demo);
    assert_int_equal(terminal_end(&shown), 0);
    assert_non_null(strstr(shown.text, half_block));
    assert_non_null(strstr(shown.text, "\033[38;5;232;48;5;"));
    assert_non_null(strstr(shown.text, "accuracy  0.9495"));
}

static void demo_draws_shades_where_the_terminal_cannot(void **state)
{
    (void)state;
    static const char *const plain[][5] = {
        {NO_LEAK_CHECK, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "NO_COLOR=1", NULL},
        {NO_LEAK_CHECK, "LC_ALL=C.UTF-8", "TERM=dumb", NULL},
        {NO_LEAK_CHECK, "LC_ALL=C.UTF-8", NULL},
        {NO_LEAK_CHECK, "LC_ALL=C", "TERM=xterm-256color", NULL},
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        terminal_start(&shown, 120, plain[i], demo);
        assert_int_equal(terminal_end(&shown), 0);
        assert_null(strstr(shown.text, half_block));
        assert_null(strchr(shown.text, '\033'));
        assert_non_null(strstr(shown.text, "%@@"));
    }
}

static void demo_draws_no_more_than_fits(void **state)
{
    (void)state;
    static const char *const plain[] = {"LC_ALL=C", NULL};
    terminal_start(&shown, 55, plain, demo);
    assert_int_equal(terminal_end(&shown), 0);
    for (char *line = strtok(shown.text, "\r\n"); line; line = strtok(NULL, "\r\n"))
        if (strspn(line, " .:-=+*#%@") == strlen(line))
            assert_int_equal(strlen(line), 3 * 16 + 2 * 2);
}

static void a_bar_comes_and_goes(void **state)
{
    (void)state;
    static const char *const bench[] = {"warpwave", "bench",     "--device", "cpu",      "--rows", "5000", "--dim",
                                        "8",        "--queries", "2",        "--repeat", "1",      NULL};
    terminal_start(&shown, 80, colourful, bench);
    assert_int_equal(terminal_end(&shown), 0);
    assert_non_null(strstr(shown.text, "\rmaking rows ["));
    assert_non_null(strstr(shown.text, "%"));
    const char *gone = strstr(shown.text, "\r\033[K");
    assert_non_null(gone);
    assert_non_null(strstr(gone, "plain read")); /* the report comes after the bars are gone */
    assert_null(strstr(strstr(gone, "plain read"), "["));
}

static void quiet_shows_no_bar(void **state)
{
    (void)state;
    static const char *const bench[] = {"warpwave", "bench",     "--device", "cpu",      "--rows", "5000",    "--dim",
                                        "8",        "--queries", "2",        "--repeat", "1",      "--quiet", NULL};
    terminal_start(&shown, 80, colourful, bench);
    assert_int_equal(terminal_end(&shown), 0);
    assert_null(strchr(shown.text, '['));
    assert_non_null(strstr(shown.text, "plain read"));
}

static void ctrl_c_ends_a_bench_with_130(void **state)
{
    (void)state;
    static const char *const bench[] = {"warpwave", "bench", "--device", "cpu", "--rows", "50000", "--repeat", "10000", NULL};
    terminal_start(&shown, 80, colourful, bench);
    terminal_wait_for(&shown, "making rows");
    assert_int_equal(write(shown.master, "\003", 1), 1);
    assert_int_equal(terminal_end(&shown), 130);
    assert_non_null(strstr(shown.text, "warpwave bench: interrupted"));
    assert_null(strstr(shown.text, "GFLOP/s"));
}

static void ctrl_c_ends_a_search_and_leaves_files_as_they_were(void **state)
{
    (void)state;
    enum { ROWS = 5000, DIM = 16 };
    float *rows = malloc(sizeof(float) * ROWS * DIM);
    char out[SCRATCH_PATH_BYTES], base[SCRATCH_PATH_BYTES];
    size_t size;
    test_random random = {3};
    assert_non_null(rows);
    random_normals(&random, rows, (int64_t)ROWS * DIM);
    snprintf(base, sizeof base, "%s", scratch_path("base.fbin"));
    CHECK_OK(ww_matrix_write_f32(base, rows, ROWS, DIM));
    free(rows);
    snprintf(out, sizeof out, "%s", scratch_path("out.ibin"));
    scratch_write("out.ibin", "before", 6);
    const char *const search[] = {"warpwave", "search", "--base",          base, "--queries", base,
                                  "-k",       "3",      "--metric",        "l2", "--device",  "cpu",
                                  "--repeat", "10000",  "--out-neighbors", out,  NULL};
    terminal_start(&shown, 80, colourful, search);
    terminal_wait_for(&shown, "\rsearching [");
    terminal_wait_for(&shown, " left"); /* an estimate, after a second */
    assert_int_equal(write(shown.master, "\003", 1), 1);
    assert_int_equal(terminal_end(&shown), 130);
    assert_non_null(strstr(shown.text, "warpwave search: interrupted"));
    char *text = scratch_content(out, &size);
    assert_string_equal(text, "before");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo_draws_half_blocks_in_grays),
        cmocka_unit_test(demo_draws_shades_where_the_terminal_cannot),
        cmocka_unit_test(demo_draws_no_more_than_fits),
        cmocka_unit_test(a_bar_comes_and_goes),
        cmocka_unit_test(quiet_shows_no_bar),
        cmocka_unit_test(ctrl_c_ends_a_bench_with_130),
        cmocka_unit_test(ctrl_c_ends_a_search_and_leaves_files_as_they_were),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
