/* Paths from the environment. */
#include "base/system/environment.h"

#include <stdio.h>
#include <stdlib.h>

bool environment_path(const char *variable, const char **path, char *why, size_t why_capacity)
{
    const char *text = secure_getenv(variable);
    *path = text && *text ? text : NULL;
    if (!*path || **path == '/')
        return true;
    snprintf(why, why_capacity, "%s is '%s', which is not an absolute path", variable, *path);
    *path = NULL;
    return false;
}

const char *environment_folder(const char *variable)
{
    const char *text = secure_getenv(variable);
    return text && *text == '/' ? text : NULL;
}
