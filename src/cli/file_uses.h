/* Which files a command reads and which it writes: an output must not be one of the inputs, nor another output.
 *
 * Files are the same if they are the same on the disk, whatever they are called: other names, symbolic and hard links. That is
 * asked before any work is done.
 */
#ifndef CLI_FILE_USES_H
#define CLI_FILE_USES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct file_use {
    const char *what; /* for messages: "--base", "IN" */
    const char *path; /* "-": standard input, or output; NULL: not given */
    bool output;
    int descriptor; /* above 0: of an input that is open, and counts in place of the path */
} file_use;

/* WW_OK, or WW_INVALID_ARGUMENT as a wrong command line with both in the message. An input that is not there is not this
 * function's affair. */
ww_status file_uses_check(const file_use *uses, size_t count);

/* The path that writers take for an output: OUTPUT_STDOUT for "-". */
const char *output_path(const char *path);

#endif
