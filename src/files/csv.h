/* Numbers in text: CSV and its relatives. The whole file is read at once, since nothing else says how many rows there are. */
#ifndef WW_FILES_CSV_H
#define WW_FILES_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "files/source.h"

/* What a table holds. The memory is given back by csv_free(). */
typedef struct csv_table {
    int64_t rows, dim;
    float *values; /* rows x dim */
    char *ids;     /* the ids' texts, each with its NUL; NULL without an id column */
    size_t *id_at; /* where each row's begins */
} csv_table;

/* Reads every row of `source`. `id_column` is NULL, or the name or number (from 1) of a column that holds ids in place of
 * numbers. Refuses what is not a table of numbers, by line and column. On failure there is nothing to give back. Blocks on the
 * disk. */
ww_status csv_read(const file_source *source, const char *id_column, csv_table *out);
void csv_free(csv_table *of);

#endif
