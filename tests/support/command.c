/* Running the built command from a test. Its output goes through files, so that no pipe can fill up and stop it. */
#include "support/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATHS = 8, ARGUMENTS_MAX = 64 };

static char scratch[64];

int scratch_make(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/warpwave-test-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

int scratch_remove(void **state)
{
    (void)state;
    DIR *folder = opendir(scratch);
    if (!folder)
        return -1;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    return rmdir(scratch);
}

const char *scratch_path(const char *name)
{
    static char paths[PATHS][256];
    static int next;
    char *path = paths[next++ % PATHS];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

void scratch_write(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(scratch_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

char *file_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    return text;
}

command_result program_run(const char *path, const char *const *arguments)
{
    command_result result = {0};
    posix_spawn_file_actions_t actions;
    pid_t process;
    int status;
    const char *out = scratch_path("stdout"), *err = scratch_path("stderr");
    const int create = O_CREAT | O_WRONLY | O_TRUNC;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out, create, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err, create, 0600);
    const int failed = posix_spawn(&process, path, &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        fail_msg("%s: %s", path, strerror(failed));
    assert_int_equal(waitpid(process, &status, 0), process);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = file_text(out);
    result.err = file_text(err);
    unlink(out);
    unlink(err);
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
    if (expected == 0 ? *result.err : *result.out) {
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
