/* A file of ids: UTF-8 text, one id a line. */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <stdint.h>

#include <warpwave/files.h>

#include "base/status.h"

typedef struct ids {
    char *text;         /* the whole file, each line ended by a NUL */
    const char **lines; /* `count` of them */
    int64_t count;
} ids;

/* Reads the file ("-": standard input) into `list`. A final CR of a line is not part of the id; a last line without a newline
 * counts. Refuses, naming file and line, empty lines, ids of more than WW_ID_BYTES_MAX bytes and what is not UTF-8. Blocks on
 * the disk. */
ww_status ids_read(const char *path, ids *list);

/* The same from the id column of a matrix, which must outlive the list. */
ww_status ids_of_matrix(const ww_matrix *matrix, int64_t rows, const char *path, ids *list);

/* Frees it; accepts one that was never read but is zero. */
void ids_free(ids *list);

#endif
