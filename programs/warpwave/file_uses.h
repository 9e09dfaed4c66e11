/* Checks the files that a command reads and writes: an output must not be one of the inputs, nor another output.
 *
 * Files are the same if they are the same on disk, even under other names, symbolic links or hard links. Commands check this
 * before they do any work.
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
} file_use;

/* WW_OK, or WW_INVALID_ARGUMENT as a wrong command line with both files in the message. Ignores inputs that do not exist. */
ww_status file_uses_check(const file_use *uses, size_t count);

/* The path that writers take for an output: OUTPUT_STDOUT for "-". */
const char *output_path(const char *path);

#endif
