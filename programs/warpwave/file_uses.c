/* Finds inputs and outputs that are the same file. */
#include "warpwave/file_uses.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/output.h"
#include "base/text.h"
#include "warpwave/command.h"

/* Identifies a file: by itself if it exists, else by its folder and its name there. */
typedef struct identity {
    bool known, exists;
    dev_t device;
    ino_t number;
    mode_t mode;
    char name[PATH_MAX];
} identity;

const char *output_path(const char *path)
{
    return path && strcmp(path, "-") == 0 ? OUTPUT_STDOUT : path;
}

static void identify(const file_use *use, identity *id)
{
    struct stat facts;
    const bool standard = strcmp(use->path, "-") == 0;
    *id = (identity){0};
    if (standard ? fstat(use->output ? STDOUT_FILENO : STDIN_FILENO, &facts) == 0 : stat(use->path, &facts) == 0) {
        id->known = id->exists = true;
    } else if (use->output && !standard) {
        char directory[PATH_MAX];
        const char *slash = strrchr(use->path, '/');
        text_copy(id->name, sizeof id->name, slash ? slash + 1 : use->path);
        snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - use->path) + 1 : 1, slash ? use->path : ".");
        id->known = stat(directory, &facts) == 0;
    }
    if (id->known) {
        id->device = facts.st_dev;
        id->number = facts.st_ino;
        id->mode = facts.st_mode;
    }
}

/* Many programs can read and write terminals and /dev/null at once, but not a file or a pipe. */
static bool same(const identity *a, const identity *b)
{
    return a->known && b->known && a->exists == b->exists && a->device == b->device && a->number == b->number &&
           strcmp(a->name, b->name) == 0 && !(a->exists && S_ISCHR(a->mode));
}

static ww_status refuse(const file_use *written, const file_use *other)
{
    if (other->output)
        return ww_fail(WW_INVALID_ARGUMENT, "%s '%s' and %s '%s' are the same file; write to two", other->what, other->path,
                       written->what, written->path);
    return ww_fail(WW_INVALID_ARGUMENT, "%s '%s' is the same file as %s '%s', which it would overwrite; write to another",
                   written->what, written->path, other->what, other->path);
}

ww_status file_uses_check(const file_use *uses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        identity written, other;
        if (!uses[i].output || !uses[i].path)
            continue;
        identify(&uses[i], &written);
        for (size_t j = 0; j < count; j++) {
            if (j == i || !uses[j].path || (uses[j].output && j > i))
                continue;
            identify(&uses[j], &other);
            if (same(&written, &other))
                return command_line_wrong(refuse(&uses[i], &uses[j]));
        }
    }
    return WW_OK;
}
