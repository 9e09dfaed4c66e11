/* Environment variables with the paths of files to load or folders to write to.
 *
 * A program that runs with more rights than its caller (setuid) must not load code that the caller chose, so there all of them
 * count as not set. A relative path is refused, because it would mean another file in each working directory.
 */
#ifndef WW_BASE_SYSTEM_ENVIRONMENT_H
#define WW_BASE_SYSTEM_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Sets `path` to the variable's value, or to NULL if it is not set or empty. Returns false, with the reason in `why`, if it is
 * not an absolute path. */
bool environment_path(const char *variable, const char **path, char *why, size_t why_capacity);

/* The same for a folder that is only a preference: any value other than an absolute path counts as not set. */
const char *environment_folder(const char *variable);

#endif
