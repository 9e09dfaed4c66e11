/* Opens ROCm's libraries. AMD's packages put them into /opt/rocm/lib, /opt/rocm-VERSION/lib or /opt/rocm/core-VERSION/lib and
 * leave configuring the loader to the administrator. AMD's pip packages put them into site-packages: the runtime and hipRTC
 * into _rocm_sdk_core/lib, rocBLAS into _rocm_sdk_libraries/lib or, for one family of chips, _rocm_sdk_libraries_FAMILY/lib. */
#include "gpu/driver/rocm_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/environment.h"
#include "base/text.h"

#define PIP_PACKAGES   "/_rocm_sdk_[cl]*/lib" /* core and libraries; devel repeats them */
#define PYTHON_FOLDERS "/lib*/python3*/*-packages" PIP_PACKAGES

static void *open_file(const char *path)
{
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL; /* dlerror() keeps an earlier reason */
}

static int newest_first(const void *a, const void *b)
{
    return strverscmp(*(char *const *)b, *(char *const *)a);
}

/* Opens FOLDER/PATTERN/name of the first folder that has it, the newest version first. */
static void *open_in(const char *folder, const char *pattern, const char *name)
{
    char path[1024];
    void *library = NULL;
    glob_t found;
    const int length = folder != NULL ? snprintf(path, sizeof path, "%s%s/%s", folder, pattern, name) : -1;
    if (length < 0 || (size_t)length >= sizeof path || glob(path, GLOB_NOSORT, NULL, &found) != 0)
        return NULL;
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, newest_first);
    for (size_t i = 0; library == NULL && i < found.gl_pathc; i++)
        library = open_file(found.gl_pathv[i]);
    globfree(&found);
    return library;
}

/* Cuts the last `count` names off a path. Returns false if it has fewer. */
static bool cut_names(char *path, int count)
{
    for (int i = 0; i < count; i++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    return true;
}

/* Opens the library next to the package that this code is installed in: site-packages/warpwave/lib/libwarpwave.so. */
static void *open_beside_this_package(const char *name)
{
    static const char anything_here = 0;
    char path[512];
    Dl_info found;
    if (dladdr(&anything_here, &found) == 0 || found.dli_fname == NULL || found.dli_fname[0] != '/' ||
        strlen(found.dli_fname) >= sizeof path)
        return NULL;
    text_copy(path, sizeof path, found.dli_fname);
    return cut_names(path, 3) ? open_in(path, PIP_PACKAGES, name) : NULL;
}

/* Opens the library in the packages of the running Python, if this program is one: PREFIX/bin/python3. */
static void *open_for_this_program(const char *name)
{
    char path[512];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    return cut_names(path, 2) ? open_in(path, PYTHON_FOLDERS, name) : NULL;
}

/* The active environment first, then where this code and the running program are, then the user's and the machine's packages.
 */
static void *open_pip_package(const char *name)
{
    const char *base = environment_folder("PYTHONUSERBASE");
    void *library = open_in(environment_folder("VIRTUAL_ENV"), PYTHON_FOLDERS, name);
    if (library == NULL)
        library = open_in(environment_folder("CONDA_PREFIX"), PYTHON_FOLDERS, name);
    if (library == NULL)
        library = open_beside_this_package(name);
    if (library == NULL)
        library = open_for_this_program(name);
    if (library == NULL)
        library = base != NULL ? open_in(base, PYTHON_FOLDERS, name)
                               : open_in(environment_folder("HOME"), "/.local" PYTHON_FOLDERS, name);
    return library != NULL ? library : open_in("/usr/local", PYTHON_FOLDERS, name);
}

void *rocm_library_open(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *folder = environment_folder("ROCM_PATH");
    if (folder == NULL)
        folder = environment_folder("ROCM_HOME");
    if (library != NULL || strchr(name, '/') != NULL)
        return library;
    if (folder != NULL) {
        library = open_in(folder, "/lib", name);
        return library != NULL ? library : open_in(folder, "/.." PIP_PACKAGES, name);
    }
    library = open_pip_package(name);
    if (library == NULL)
        library = open_in("/opt/rocm", "/lib", name);
    if (library == NULL)
        library = open_in("/opt/rocm", "/core-*/lib", name);
    return library != NULL ? library : open_in("/opt/rocm-*", "/lib", name);
}

/* The path of the library with this function, without its last names. */
static bool path_above(const void *function, int names, char *path, size_t capacity)
{
    Dl_info found;
    if (dladdr(function, &found) == 0 || found.dli_fname == NULL || strlen(found.dli_fname) > capacity / 2)
        return false;
    text_copy(path, capacity, found.dli_fname);
    return cut_names(path, names);
}

void *rocm_library_beside(const void *function, const char *name)
{
    char path[512];
    if (!path_above(function, 1, path, sizeof path))
        return NULL;
    text_append(path, sizeof path, "/");
    text_append(path, sizeof path, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void rocm_release(const void *function, char *text, size_t capacity)
{
    char path[512], line[32] = "";
    text_copy(text, capacity, "");
    if (!path_above(function, 2, path, sizeof path)) /* the file, and its folder lib */
        return;
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
