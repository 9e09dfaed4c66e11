/* Environment variables that name files to load or folders to write to.
 *
 * A program that runs with more rights than its caller (setuid) must not load code that the caller chose, so there they count
 * as not set. A relative path means another file in every folder a program is started from, and is refused.
 */
#ifndef WW_BASE_SYSTEM_ENVIRONMENT_H
#define WW_BASE_SYSTEM_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Gives in `path` what the variable names, NULL if it is not set or empty. False if that is not an absolute path; `why` says
 * so. */
bool environment_path(const char *variable, const char **path, char *why, size_t why_capacity);

/* The same for a folder that is only a preference: anything but an absolute path counts as not set. */
const char *environment_folder(const char *variable);

#endif
