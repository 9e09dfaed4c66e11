/* Runs the built command from a test. Its output goes to files, because a full pipe would block it. */
#include "support/command.h"

#include <fcntl.h>
#include <fenv.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/devices.h"

enum { ARGUMENTS_MAX = 64, EMULATOR_WORDS_MAX = 8 };

/* All that was written to a temporary file, which is closed. */
static char *take_text(FILE *file)
{
    char *text = NULL;
    size_t room = 0;
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    if (getdelim(&text, &room, '\0', file) < 0) { /* nothing was written */
        free(text);
        text = strdup("");
    }
    assert_non_null(text);
    fclose(file);
    return text;
}

/* These tests start hundreds of processes. Where each would need seconds to look for leaks, they do so in `make check-all`
 * only.
 */
static void spare_leak_detection(void)
{
#ifdef TEST_LEAK_CHECK_IS_SLOW
    setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1); /* the second is for command_round() */
#endif
}

void command_round(int mode)
{
    char text[16];
    if (mode == FE_TONEAREST) {
        unsetenv("LD_PRELOAD");
        return;
    }
    snprintf(text, sizeof text, "%d", mode);
    setenv("WARPWAVE_TEST_ROUNDING", text, 1);
    setenv("LD_PRELOAD", BUILD_DIR "/tests/preload_rounding.so", 1);
    if (TEST_INSTRUMENTED) /* the sanitizer must be loaded before all other libraries */
        setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1);
}

/* Programs for another architecture are started by the emulator that `make check-other-architecture` names, others directly.
 * Fills `line`; the emulator's words are in `words`. Returns the path to start. */
static const char *put_emulator_first(const char *path, const char *const *arguments, char *words, const char **line)
{
    const char *emulator = getenv("WARPWAVE_TEST_EMULATOR");
    const char *first = path;
    size_t count = 0;
    if (emulator && strncmp(path, BUILD_DIR, strlen(BUILD_DIR)) == 0) {
        char *rest = strcpy(words, emulator);
        for (char *word = strtok_r(rest, " ", &rest); word && count < EMULATOR_WORDS_MAX; word = strtok_r(NULL, " ", &rest))
            line[count++] = word;
        first = line[0];
        line[count++] = path;
        arguments++;
    }
    do {
        assert_true(count < ARGUMENTS_MAX + EMULATOR_WORDS_MAX);
        line[count++] = *arguments;
    } while (*arguments++);
    return first;
}

command_result program_run(const char *path, const char *const *arguments)
{
    spare_leak_detection();
    char words[SCRATCH_PATH_BYTES];
    const char *line[ARGUMENTS_MAX + EMULATOR_WORDS_MAX];
    path = put_emulator_first(path, arguments, words, line);
    command_result result = {0};
    posix_spawn_file_actions_t actions;
    pid_t process;
    int status;
    FILE *out = tmpfile(), *err = tmpfile();
    if (!out || !err) {
        fail_msg("no temporary files can be made");
        abort(); /* never reached, but the static analyzer does not know that */
    }
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(err), 2);
    const int failed = posix_spawn(&process, path, &actions, NULL, (char *const *)line, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        fail_msg("%s: %s", path, strerror(failed));
    assert_int_equal(waitpid(process, &status, 0), process);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = take_text(out);
    result.err = take_text(err);
    return result;
}

command_result command_run(const char *const *arguments)
{
    const char *list[ARGUMENTS_MAX] = {"warpwave"};
    for (size_t i = 0; arguments[i]; i++) {
        assert_true(i + 2 < ARGUMENTS_MAX);
        list[i + 1] = arguments[i];
    }
    return program_run(COMMAND_PATH, list);
}

void command_free(command_result *result)
{
    free(result->out);
    free(result->err);
    *result = (command_result){0};
}

void command_says(const char *file, int line, int expected, const char *text, const char *const *arguments)
{
    command_result result = command_run(arguments);
    const char *where = expected == 0 ? result.out : result.err;
    if (result.code != expected || !strstr(where, text)) {
        print_error("%s:%d: exit code %d, not %d, or no '%s' in:\n%s\n%s\n", file, line, result.code, expected, text,
                    result.out, result.err);
        fail();
    }
    /* With --json, a failure is also reported on stdout. */
    const bool told = strncmp(result.out, "{\n  \"error\": true", 17) == 0;
    if (expected == 0 ? *result.err : *result.out && !told) {
        print_error("%s:%d: output where there should be none:\n%s\n%s\n", file, line, result.out, result.err);
        fail();
    }
    command_free(&result);
}

json_t *command_json(const char *file, int line, const char *const *arguments)
{
    json_error_t error;
    command_result result = command_run(arguments);
    json_t *value = json_loads(result.out, 0, &error);
    if (result.code != 0 || *result.err || !value) {
        print_error("%s:%d: exit code %d, JSON: %s, in:\n%s\n%s\n", file, line, result.code, error.text, result.out,
                    result.err);
        fail();
    }
    command_free(&result);
    return value;
}
