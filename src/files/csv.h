/* Numbers in text: CSV and similar formats. The whole file is read at once, because nothing else tells how many rows it has. */
#ifndef WW_FILES_CSV_H
#define WW_FILES_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/files/source.h"

/* The contents of a table; csv_free() frees the memory. */
typedef struct csv_table {
    int64_t rows, dim;
    float *values; /* rows x dim */
    char *ids;     /* the ids' texts, each with a NUL; NULL without an id column */
    size_t *id_at; /* where each row's id starts */
} csv_table;

/* Reads every row of `source`. `id_column` is NULL, or the name or number (from 1) of a column with ids instead of numbers.
 * Refuses a file that is not a table of numbers, with line and column. If it fails, nothing must be freed. Blocks on the
 * disk. */
ww_status csv_read(const file_source *source, const char *id_column, csv_table *out);
void csv_free(csv_table *of);

#endif
