/* A file of ids: UTF-8 text, one id per line. */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <stdint.h>

#include <warpwave/files.h>

#include "base/status.h"

typedef struct ids {
    char *text;         /* the whole file, each line ended by a NUL */
    const char **lines; /* `count` pointers */
    int64_t count;
} ids;

/* Reads the file ("-": standard input) into `list`. A CR at the end of a line is not part of the id; a last line without a
 * newline counts. Refuses empty lines, ids of more than WW_ID_BYTES_MAX bytes and invalid UTF-8, naming the file and the line.
 * Blocks on the disk. */
ww_status ids_read(const char *path, ids *list);

/* Reads the id column of a matrix, which must outlive the list. */
ww_status ids_of_matrix(const ww_matrix *matrix, int64_t rows, const char *path, ids *list);

/* Frees the list; accepts a zeroed one that was never read. */
void ids_free(ids *list);

#endif
