/* Opens ROCm's libraries. AMD's packages put them into /opt/rocm/lib or /opt/rocm-VERSION/lib and leave configuring the loader
 * to the administrator; AMD's pip packages put them into the environment's site-packages. */
#include "gpu/driver/rocm_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/environment.h"
#include "base/text.h"

static void *open_file(const char *path)
{
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL; /* dlerror() keeps an earlier reason */
}

/* Opens FOLDER/PATTERN/name of the last folder that fits, which is the newest version by name. */
static void *open_in(const char *folder, const char *pattern, const char *name)
{
    char path[512];
    void *library = NULL;
    glob_t found;
    const int length = snprintf(path, sizeof path, "%s%s/%s", folder, pattern, name);
    if (length < 0 || (size_t)length >= sizeof path || glob(path, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = found.gl_pathc; library == NULL && i > 0; i--)
        library = open_file(found.gl_pathv[i - 1]);
    globfree(&found);
    return library;
}

void *rocm_library_open(const char *name)
{
    char path[512];
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *folder = environment_folder("ROCM_PATH"), *python = environment_folder("VIRTUAL_ENV");
    if (folder == NULL)
        folder = environment_folder("ROCM_HOME");
    if (library != NULL || strchr(name, '/') != NULL)
        return library;
    if (folder != NULL) {
        const int length = snprintf(path, sizeof path, "%s/lib/%s", folder, name);
        return length > 0 && (size_t)length < sizeof path ? open_file(path) : NULL;
    }
    if (python != NULL)
        library = open_in(python, "/lib/python3*/site-packages/_rocm_sdk_core/lib", name);
    if (library == NULL)
        library = open_in("/opt/rocm", "/lib", name);
    return library != NULL ? library : open_in("/opt/rocm-*", "/lib", name);
}

void rocm_release(const void *function, char *text, size_t capacity)
{
    char path[512], line[32] = "";
    Dl_info found;
    text_copy(text, capacity, "");
    if (dladdr(function, &found) == 0 || found.dli_fname == NULL || strlen(found.dli_fname) > sizeof path / 2)
        return;
    text_copy(path, sizeof path, found.dli_fname);
    for (int i = 0; i < 2; i++) { /* the file, and its folder lib */
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return;
        *slash = '\0';
    }
    text_append(path, sizeof path, "/.info/version");
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(line, sizeof line, file) != NULL && line[0] >= '1' && line[0] <= '9') {
        line[strspn(line, "0123456789.")] = '\0';
        text_copy(text, capacity, line);
    }
    fclose(file);
}
