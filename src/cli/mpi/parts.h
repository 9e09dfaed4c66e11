/* Files that many ranks write at once, and that are never taken for whole before they are.
 *
 * What is being written is OUT.part, of its final size from the start; every rank writes rows at their places. What is complete
 * stands in OUT.progress: a fingerprint of the run, and how many blocks all ranks have brought to the disk. At the end the
 * parts take their names and the progress goes. A run that was interrupted leaves both behind, and --resume goes on from there,
 * with any number of ranks, to the same bytes.
 */
#ifndef CLI_MPI_PARTS_H
#define CLI_MPI_PARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <warpwave/cluster.h>

#include "base/status.h"

typedef struct part_file {
    const char *target; /* NULL: not asked for */
    char part[PATH_MAX];
    int descriptor;
    int64_t rows, dim;
    ww_element element;
    size_t header_bytes;
} part_file;

enum { PARTS_MAX = 2 };

typedef struct parts {
    part_file files[PARTS_MAX];
    char progress[PATH_MAX];
    uint64_t fingerprint; /* of everything that the bytes depend on */
    int64_t blocks_total, blocks_done;
    int64_t bytes_done; /* of a journal, where there is one */
} parts;

/* Adds to a fingerprint: a number, a text, and which file of which size and time it is. */
void fingerprint_number(uint64_t *fingerprint, int64_t number);
void fingerprint_text(uint64_t *fingerprint, const char *text);
ww_status fingerprint_file(uint64_t *fingerprint, const char *path);

/* Chooses the element of row numbers, and refuses a name or numbers that do not fit. */
ww_status part_file_rows(part_file *f, const char *what, const char *target, int64_t row_count);

/* Finds the progress of a run that must be resumed, or begins one; the files are left alone. Collective. */
ww_status parts_resume(parts *p, ww_cluster *cluster, bool resume);

/* Makes the files. Rank 0 alone. */
ww_status parts_make(parts *p);

/* Rank 0 makes the files, or finds those of the run that is resumed; then all open them. Collective. */
ww_status parts_open(parts *p, ww_cluster *cluster, bool resume);

/* Write `count` rows from row `first` on; flush. */
ww_status part_write(const part_file *f, int64_t first, int64_t count, const void *data);
ww_status parts_flush(const parts *p);

/* All ranks have written and flushed a block: rank 0 notes it. */
ww_status parts_block_done(parts *p);

/* Puts the files in their places. Rank 0 alone. */
ww_status parts_finish(parts *p);
void parts_close(parts *p);

#endif
