/* Writes a file completely or not at all.
 *
 * The bytes go to a new file in the target's directory, which is synced to the disk and then renamed to the target. A program
 * that reads the target meanwhile, or after a crash, finds either the old file or the new one. If writing fails, the new file
 * is removed and the target is unchanged. A pipe, a character device or standard output (OUTPUT_STDOUT) is written directly.
 */
#ifndef WW_BASE_FILES_OUTPUT_H
#define WW_BASE_FILES_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/files/source.h"

#define OUTPUT_STDOUT "/dev/stdout"

typedef struct output {
    char name[SOURCE_NAME_BYTES]; /* for messages */
    char target[PATH_MAX];
    char temporary[PATH_MAX]; /* "" if there is none */
    int descriptor;
    bool failed; /* a write has failed: the new file is incomplete and must not replace the target */
    bool direct; /* a pipe, a device or standard output: there is no new file, and nothing to rename */
} output;

/* Starts the new file. Call output_discard() after a failure, too. All of these block on the disk. */
ww_status output_open(output *o, const char *path);
/* After a failure, all further writes and output_finish() fail. */
ww_status output_write(output *o, const void *from, size_t bytes);

/* Syncs the new file to the disk and closes it; output_finish() also does that. For several files, when none should replace its
 * target while another one can still fail. */
ww_status output_settle(output *o);

/* Renames the new file to the target. */
ww_status output_finish(output *o);

/* Removes a file that was started and not finished. */
void output_discard(output *o);

#endif
