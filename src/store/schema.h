/* The tables of a store: what is in them, and how collections are listed, made and dropped.
 *
 *   warpwave_collections   one row per collection: see below
 *   NAME_rows(handle INTEGER PRIMARY KEY, place INTEGER, checksum INTEGER, text_checksum INTEGER, id TEXT UNIQUE, payload TEXT)
 *   NAME_vectors(place INTEGER PRIMARY KEY, handle INTEGER, checksum INTEGER, vector BLOB)
 *   NAME_removed(sequence, place)   recent removals: the places of removed vectors, with the write that removed them. Those
 * vectors are still in NAME_vectors, because deleting them would rewrite their pages; they count as absent
 *   NAME_fts                        texts of rows, if they have any: store/texts/texts.h
 *   NAME_multi                      multivectors of rows, if they have any: store/multi/multi.h
 *   NAME_sparse, NAME_sparse_...    sparse vectors of rows, if they have any: store/sparse/sparse.h
 *   NAME_ivf, NAME_ivf_...          the index, if there is one: store/ivf/tables.h
 *
 * Places ascend with the writes of vectors, so `place >= next_place of the last look` finds new rows without an index. Rows and
 * ties are ordered by place. A write raises `sequence` by one, whatever it changes. Checksums (base/checksum.h) are verified
 * whenever a row is read; those in formats 1 and 2, of earlier versions, are missing, and the first write adds them
 * (store/upgrade.h). All functions work through the caller's connection, in the caller's transaction, on the database `schema`
 * ("main", or the name of an attached one).
 */
#ifndef WW_STORE_SCHEMA_H
#define WW_STORE_SCHEMA_H

#include <stdbool.h>

#include <warpwave/vectors.h>

#include "store/sqlite_api.h"

enum {
    STORE_FORMAT_UNCHECKED = 1,         /* of a collection without checksums, from an earlier version */
    STORE_FORMAT_UNCHECKED_INDEXED = 2, /* of such a one with an index */
    STORE_FORMAT = 3,                   /* of a collection */
    STORE_FORMAT_INDEXED = 4,           /* of one with an index: store/ivf/tables.h */
    COLLECTION_NAME_BYTES_MAX = 128,
    STORE_TEXT_BYTES = 1024 /* holds a statement over a collection's tables, whatever its name */
};

/* The largest handle that a caller may choose for a row. Rows without one get the next number, so this leaves 2^62 numbers for
 * them: a collection that adds a million rows a second needs 146,000 years for these. */
#define HANDLE_CHOSEN_MAX ((INT64_C(1) << 62) - 1)

/* A row of warpwave_collections. */
typedef struct collection_record {
    char name[COLLECTION_NAME_BYTES_MAX + 1]; /* as it was created; case does not distinguish names */
    int64_t uid;                              /* never reused in this file */
    int64_t epoch;                            /* random; clear, compact and backup change it, so that mirrors are read again */
    int32_t dim;
    ww_metric metric;
    ww_vector_type type; /* "f32": how vectors are stored */
    int64_t format;
    int64_t next_handle;
    int64_t next_place;
    int64_t sequence;  /* of the last write */
    int64_t log_start; /* removals by writes after this one are in NAME_removed */
    int64_t live;      /* rows */
    uint64_t digest;   /* the sum of the rows' checksums modulo 2^64 */
    bool is_damaged;   /* set by schema_list(): everything except the name may be wrong */
    bool is_newer;     /* a newer version wrote it: only the name and the format mean anything */
} collection_record;

/* What is wrong with a damaged record, for a message or a list. */
#define RECORD_DAMAGED "its entry in warpwave_collections is invalid"

/* Creates warpwave_collections if it does not exist. Runs in the caller's transaction. */
ww_status schema_prepare(sqlite3 *db, const char *schema);

/* WW_OK if the tables of this name can be made: the name is 1 to 128 bytes of UTF-8, begins with neither sqlite_ nor warpwave_,
 * and no other table collides. `declared`: a virtual table of that name may already exist (CREATE VIRTUAL TABLE lists it before
 * it asks for its tables). */
ww_status schema_check_name(sqlite3 *db, const char *schema, const char *name, bool declared);

/* Creates the tables of a collection and its record, which `record` gets (may be NULL). Handles begin at 0 or, if a virtual
 * table declares the collection, at 1: to programs that use SQL a last_insert_rowid() of 0 means that there is none. Refuses a
 * name that is taken. Runs in the caller's transaction. */
ww_status schema_create(sqlite3 *db, const char *schema, const ww_collection_config *config, bool declared,
                        collection_record *record);

/* Drops the tables and the record, even if the record is damaged. WW_NOT_FOUND if there is none. Runs in the caller's
 * transaction. A virtual table of that name stays. */
ww_status schema_drop(sqlite3 *db, const char *schema, const char *name);

/* Renames the tables behind a collection and its record. Runs in the caller's transaction. A virtual table of the old name
 * stays, for the caller to rename; `declared` says that there is one. */
ww_status schema_rename(sqlite3 *db, const char *schema, const char *name, const char *to, bool declared);

/* Renames the indexes of ww_store_index(), after schema_rename(). Not within a statement, where SQLite cannot drop them. */
ww_status schema_rename_indexes(sqlite3 *db, const char *schema, const char *name, const char *to);

/* Reads the record of a collection. WW_NOT_FOUND if there is none; WW_UNSUPPORTED, with both numbers, if its format is newer
 * than this library's; WW_CORRUPT_FILE if it is invalid. */
ww_status schema_find(sqlite3 *db, const char *schema, const char *name, collection_record *record);

/* Prepares the statement that schema_find() runs, with the name bound, for callers that ask often: step it with schema_read(),
 * which resets it and leaves no read transaction behind. */
ww_status schema_prepare_find(sqlite3 *db, const char *schema, const char *name, sqlite3_stmt **statement);
ww_status schema_read(sqlite3_stmt *statement, const char *name, collection_record *record);

/* Updates the columns that a write changes: next_handle, next_place, sequence, log_start, live, epoch, format, digest. The
 * collection has been upgraded. */
ww_status schema_update(sqlite3 *db, const char *schema, const collection_record *record);

/* The same with a statement that is prepared once, for callers that write often. */
ww_status schema_prepare_update(sqlite3 *db, const char *schema, sqlite3_stmt **statement);
ww_status schema_update_by(sqlite3_stmt *statement, const collection_record *record);

/* Runs and resets a prepared statement that returns no rows. */
ww_status schema_step(sqlite3_stmt *statement);

/* Lists all records in order of name (memory_free()). Marks records that are damaged or that a newer version wrote. */
ww_status schema_list(sqlite3 *db, const char *schema, collection_record **records, int64_t *count);

/* A random epoch. */
int64_t schema_epoch(void);

/* Bytes of a stored vector. */
int64_t record_vector_bytes(const collection_record *record);

/* Fails with WW_CORRUPT_FILE: `what` and `number` ("the vector at place", 5) differ from their checksum. */
ww_status row_damaged(const char *name, const char *what, int64_t number);

/* Do its rows have checksums? */
static inline bool record_has_checksums(const collection_record *record)
{
    return record->format >= STORE_FORMAT;
}

/* Formats and prepares a statement; %w and so on as in sqlite3_mprintf(). */
ww_status schema_statement(sqlite3 *db, sqlite3_stmt **statement, const char *format, ...);
/* Formats and runs a statement. */
ww_status schema_run(sqlite3 *db, const char *format, ...);

/* The number that a pragma returns; 0 if it returns none. */
int64_t schema_pragma(sqlite3 *db, const char *pragma);

#endif
