/* A file that is written whole or not at all.
 *
 * The bytes go to a new file beside the target, are brought to the disk, and only then does the new file take the target's
 * name. A program that reads the target meanwhile, or after a crash, finds the old file or the new one and nothing between. On
 * failure the new file is removed and the target is as it was. A pipe or a character device has no such thing as whole: it is
 * written to as it is, and so is OUTPUT_STDOUT, whatever standard output is.
 */
#ifndef WW_FILES_OUTPUT_H
#define WW_FILES_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "files/source.h"

#define OUTPUT_STDOUT "/dev/stdout"

typedef struct output {
    char name[SOURCE_NAME_BYTES]; /* for messages */
    char target[PATH_MAX];
    char temporary[PATH_MAX]; /* "" while there is none */
    int descriptor;
    bool failed; /* a write was: what is in the file is not what should be, and it takes nobody's place */
    bool direct; /* a pipe, a device or standard output: there is no new file, and nothing to rename */
} output;

/* Begins the new file. Call output_discard() on failure, too. All of these block on the disk. */
ww_status output_open(output *o, const char *path);
/* After a failure every further write fails, and so does output_finish(). */
ww_status output_write(output *o, const void *from, size_t bytes);

/* Brings the new file to the disk and closes it, which output_finish() does too: for several files, none of which should take
 * its place while another can still fail. */
ww_status output_settle(output *o);

/* Puts the new file in the target's place. */
ww_status output_finish(output *o);

/* Removes what was begun and not finished. */
void output_discard(output *o);

#endif
