/* Numbers in text: CSV and its relatives. The whole file is read at once, since nothing else says how many rows there are. */
#ifndef WW_FILES_CSV_H
#define WW_FILES_CSV_H

#include <stdint.h>

#include "files/source.h"

/* Reads every row of `source`: rows x dim floats in `values`, which the caller gives back with memory_free(). Refuses what is
 * not a table of numbers, by line and column. On failure there is nothing to give back. Blocks on the disk. */
ww_status csv_read(const file_source *source, int64_t *rows, int64_t *dim, float **values);

#endif
