/* Files that many ranks write at once, and that cannot be mistaken for complete files.
 *
 * OUT.part has its final size from the start; every rank writes rows at their places. OUT.progress says what is complete: a
 * fingerprint of the run, and the number of blocks that all ranks have flushed to disk. At the end the parts are renamed and
 * the progress is deleted. An interrupted run leaves both behind, and --resume continues from there, with any number of ranks,
 * to the same bytes.
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
    uint64_t fingerprint; /* of everything that determines the bytes */
    int64_t blocks_total, blocks_done;
    int64_t bytes_done; /* of the journal, if there is one */
} parts;

/* Add to a fingerprint: a number, a text, or a file's identity, size and time. */
void fingerprint_number(uint64_t *fingerprint, int64_t number);
void fingerprint_text(uint64_t *fingerprint, const char *text);
ww_status fingerprint_file(uint64_t *fingerprint, const char *path);

/* Chooses the element type of row numbers. Refuses a file name or numbers that do not fit. */
ww_status part_file_rows(part_file *f, const char *what, const char *target, int64_t row_count);

/* Finds the progress of a run to resume, or begins a new one. Does not touch the files. Collective. */
ww_status parts_resume(parts *p, ww_cluster *cluster, bool resume);

/* Makes the files. Only on rank 0. */
ww_status parts_make(parts *p);

/* Rank 0 makes the files, or finds those of the resumed run; then all ranks open them. Collective. */
ww_status parts_open(parts *p, ww_cluster *cluster, bool resume);

/* Write `count` rows starting at row `first`; flush them. */
ww_status part_write(const part_file *f, int64_t first, int64_t count, const void *data);
ww_status parts_flush(const parts *p);

/* All ranks have written and flushed a block: rank 0 records it. */
ww_status parts_block_done(parts *p);

/* Renames the parts to their final names. Only on rank 0. */
ww_status parts_finish(parts *p);
void parts_close(parts *p);

#endif
