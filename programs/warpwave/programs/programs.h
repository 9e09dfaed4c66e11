/* Other programs that the command starts, if they are installed. Each call waits for the program and gives its exit code, or
 * PROGRAM_NOT_THERE if there is no such program. Returns WW_CANCELLED after ctrl-C. */
#ifndef CLI_PROGRAMS_H
#define CLI_PROGRAMS_H

#include <stdbool.h>

#include "base/status.h"

enum { PROGRAM_NOT_THERE = 127, PROGRAM_NO_MEMBER = 3 };

/* curl: appends the address's answer to the file. `header` is a file with lines for the request, or NULL. With
 * `may_miss` curl prints nothing: the file need not exist. */
ww_status program_curl(const char *address, const char *path, const char *header, bool may_miss, int *code);

/* pip: downloads a package, NAME==VERSION, as the file `package` in the folder, without installing it. */
ww_status program_pip(const char *package, const char *folder, int *code);

/* Python: writes the members of an archive whose full names match a regular expression to the descriptor `to`, sorted by name.
 * The code is PROGRAM_NO_MEMBER if none matches. */
ww_status program_unzip(const char *path, const char *members, int to, int *code);

/* The same into a folder: each member gets the name that the expression's first group matches. */
ww_status program_unzip_folder(const char *path, const char *members, const char *folder, int *code);

#endif
