/* Opens ROCm's libraries. AMD's packages put them into /opt/rocm/lib and leave configuring the loader to the administrator. */
#include "gpu/driver/rocm_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/environment.h"

void *rocm_library_open(const char *name)
{
    char path[512];
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *folder = environment_folder("ROCM_PATH");
    if (folder == NULL)
        folder = environment_folder("ROCM_HOME");
    if (library != NULL || strchr(name, '/') != NULL)
        return library;
    const int length = snprintf(path, sizeof path, "%s/lib/%s", folder != NULL ? folder : "/opt/rocm", name);
    if (length < 0 || (size_t)length >= sizeof path || access(path, R_OK) != 0)
        return NULL; /* dlerror() keeps the reason of the first attempt */
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
