/* Other programs that the command starts, where they are installed. Each call waits for the program and gives its exit code, or
 * PROGRAM_NOT_THERE if there is none of that name; after ctrl-C it is WW_CANCELLED. */
#ifndef CLI_PROGRAMS_H
#define CLI_PROGRAMS_H

#include "base/status.h"

enum { PROGRAM_NOT_THERE = 127, PROGRAM_NO_MEMBER = 3 };

/* curl: what the address answers goes behind the bytes that are in the file. */
ww_status program_curl(const char *address, const char *path, int *code);

/* pip: a package, NAME==VERSION, becomes the file `package` in the folder; it is not installed. */
ww_status program_pip(const char *package, const char *folder, int *code);

/* Python: the files of an archive whose whole names fit an expression, in the order of their names, go to the descriptor `to`.
 * The code is PROGRAM_NO_MEMBER if there is none. */
ww_status program_unzip(const char *path, const char *members, int to, int *code);

#endif
