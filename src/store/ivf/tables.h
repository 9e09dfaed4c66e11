/* The index of a collection (warpwave/ivf.h) in the file.
 *
 *   NAME_ivf(...)                       one row: the header below
 *   NAME_ivf_lists(list INTEGER PRIMARY KEY, rows, farthest, nearest, unbounded, was_split, equal_rows, changed)
 *   NAME_ivf_centroids(list INTEGER PRIMARY KEY, centroid BLOB, checksum)      dim floats
 *   NAME_ivf_rows(place INTEGER PRIMARY KEY, list)                   of every vector; and an index over list
 *   NAME_ivf_rules(found INTEGER PRIMARY KEY, nprobe, factor)        what a calibration has learnt
 *
 * A collection has them if its record's format is STORE_FORMAT_INDEXED (or that of an earlier version, without checksums).
 * Versions that do not know them refuse that format, so the tables are never out of step with the rows. The writer changes them
 * in the transaction that changes the rows: new vectors enter the list of their nearest centroid, removed ones leave theirs,
 * lists that have grown too large are split.
 *
 * The index is derived data. If its tables are damaged, exact searches go on; queries with nprobe or recall, and writes, are
 * refused until it is built again or dropped.
 */
#ifndef WW_STORE_IVF_TABLES_H
#define WW_STORE_IVF_TABLES_H

#include "store/schema.h"
#include "vectors/collection.h"
#include "vectors/internal/lists.h"
#include "vectors/internal/mirror.h"
#include "vectors/query/results.h"

/* An index's tables, as a connection sees them. */
typedef struct ivf_tables {
    sqlite3 *db;
    const char *schema;
    const collection_record *record;
} ivf_tables;

/* The row of NAME_ivf. */
typedef struct ivf_header {
    int64_t built;   /* the write that built the index */
    int64_t changed; /* the last write that built, split or calibrated */
    int64_t version; /* random; such a write changes it */
    int64_t nlist;
    double loss;
    int64_t rows_trained;
    int64_t rows_added;  /* since the index was built, before first_place */
    int64_t first_place; /* vectors from this place on were also added since */
    int64_t lists_split;
    int64_t calibration_k; /* 0: not calibrated */
    int64_t calibration_queries;
    int64_t calibration_rows_added;
    int64_t calibration_rows; /* live, at that time */
    int64_t calibration_time; /* in seconds since 1970 */
} ivf_header;

static inline bool ivf_is_there(const collection_record *record)
{
    return record->format == STORE_FORMAT_INDEXED || record->format == STORE_FORMAT_UNCHECKED_INDEXED;
}

/* Fails with WW_CORRUPT_FILE; the message says what is wrong with the index and what to do. */
__attribute__((format(printf, 2, 3))) ww_status ivf_damaged(const char *name, const char *format, ...);

/* Turns a failure that says that the file is damaged into such a one; returns other failures unchanged. */
ww_status ivf_explain(const char *name, ww_status status);

/* Create the tables, empty; drop the existing ones, or empty them if called within an SQL statement; rename them with their
 * collection. These and all functions below run in the caller's transaction. */
ww_status ivf_tables_create(const ivf_tables *t);

/* Makes the SQL index over the lists of NAME_ivf_rows, which is faster than filling a table that has it. */
ww_status ivf_index_lists(const ivf_tables *t);
ww_status ivf_tables_drop(sqlite3 *db, const char *schema, const char *name);
ww_status ivf_tables_rename(sqlite3 *db, const char *schema, const char *name, const char *to);

/* Adds the columns that an index of an earlier version lacks, and the checksums of its centroids. An index whose tables are
 * damaged stays so. */
ww_status ivf_upgrade(const ivf_tables *t);

/* The checksum of the centroid of a list. */
uint64_t ivf_centroid_checksum(int64_t list, const void *centroid, size_t bytes);

/* Read and write the header, and the rules (memory_free()) of a calibration, if there are any. */
ww_status ivf_header_read(const ivf_tables *t, ivf_header *header);
ww_status ivf_header_write(const ivf_tables *t, const ivf_header *header);
ww_status ivf_rules_read(const ivf_tables *t, const ivf_header *header, ivf_rule **rules);
ww_status ivf_rules_write(const ivf_tables *t, const ivf_calibration *calibration);

/* Number of rows added since the index was built. */
int64_t ivf_rows_added(const ivf_tables *t, const ivf_header *header);

/* Columns of NAME_ivf_lists, and the record in a statement's current row, starting at column `first`. */
#define IVF_LIST_COLUMNS "rows, farthest, nearest, unbounded, was_split, equal_rows"
ww_status ivf_list_from_row(const ivf_tables *t, sqlite3_stmt *row, int first, list_record *list);
void ivf_list_bind(sqlite3_stmt *statement, int first, const list_record *list);

/* The records of all lists, and numbers and centroids of the lists that changed after the write `since`; -1: of all lists. Free
 * each array with memory_free(). */
typedef struct ivf_lists {
    list_record *records; /* header->nlist */
    uint32_t *changed;
    float *centroids;
    int64_t changed_count;
} ivf_lists;
ww_status ivf_lists_read(const ivf_tables *t, const ivf_header *header, int64_t since, ivf_lists *lists);
void ivf_lists_free(ivf_lists *lists);

#endif
