/* A writer as the files of this room see it. */
#ifndef WW_STORE_WRITER_WRITER_STATE_H
#define WW_STORE_WRITER_WRITER_STATE_H

#include "store/ivf/index_writer.h"
#include "store/multi/multi.h"
#include "store/sparse/sparse.h"
#include "store/texts/texts.h"
#include "store/writer/writer.h"

typedef enum statement {
    INSERT_ROW,
    INSERT_VECTOR,
    FIND_ID,
    FIND_HANDLE,
    GET_ENTRY,
    GET_CHECKSUM,
    SET_PLACE,
    SET_ID,
    SET_ENTRY,
    DELETE_ROW,
    LOG_REMOVAL,
    STATEMENT_COUNT
} statement;

/* Statements that insert WRITER_ROWS_AT_ONCE rows, and what is known of these rows. */
typedef struct bulk_writer {
    sqlite3_stmt *rows, *places;
    void *elements; /* vectors that were converted to the collection's type */
    uint64_t entries[WRITER_ROWS_AT_ONCE], vectors[WRITER_ROWS_AT_ONCE]; /* checksums */
} bulk_writer;

enum { HANDLE_TEXT_BYTES = 24 };

struct writer {
    sqlite3 *db;
    char *schema;
    char *name;
    sqlite3_stmt *find, *update; /* of the record */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    bool known;   /* the record is the file's, plus our changes */
    bool changed; /* the record must be written */
    collection_record record;
    float *floats;              /* a vector being converted from or to the collection's type */
    void *elements;             /* the same vector in that type */
    uint64_t entry_checksum;    /* of the entry that was inserted last */
    int64_t change_first_place; /* the current change assigned the places from here on */
    int64_t logged;             /* removals since the length of the log was looked at */
    bulk_writer bulk;
    text_writer texts;
    sparse_writer sparse;
    multi_writer multi;
    index_writer index;
};

static inline text_tables text_tables_of(const writer *w)
{
    return (text_tables){w->db, w->schema, w->record.name};
}

static inline sparse_tables sparse_tables_of(const writer *w)
{
    return (sparse_tables){w->db, w->schema, w->record.name};
}

static inline multi_table multi_table_of(const writer *w)
{
    return (multi_table){w->db, w->schema, w->record.name};
}

static inline ivf_tables ivf_tables_of(const writer *w)
{
    return (ivf_tables){w->db, w->schema, &w->record};
}

/* ---- writer_rows.c ---- */
/* Prepares a statement if necessary. */
ww_status writer_ready(writer *w, statement which);
/* Runs a statement that returns no rows. `constraint` says that a value already existed. */
ww_status writer_run(writer *w, statement which, bool *constraint);
/* Runs a statement whose parameters are one or two numbers. */
ww_status writer_run_numbers(writer *w, statement which, int64_t first, int64_t second);
/* Check what a row has; the vector is also converted to the collection's type, in row->elements. */
ww_status writer_check_id(const writer *w, const writer_row *row);
ww_status writer_check_payload(const writer *w, const writer_row *row);
ww_status writer_check_vector(writer *w, writer_row *row);
/* WW_DUPLICATE_ID, for an id whose vector is at `place`. */
ww_status writer_duplicate(const writer *w, const char *id, int64_t place);
size_t writer_payload_bytes(const writer_row *row);
void writer_bind_payload(sqlite3_stmt *s, int number, const writer_row *row);
void writer_bind_text_checksum(sqlite3_stmt *s, int number, uint64_t checksum); /* 0: NULL, there is no text */
/* Bind the columns of a row's entry, and of its vector, to the parameters from `first` on. Return its checksum. */
uint64_t writer_bind_entry(sqlite3_stmt *s, int first, const writer_row *row, const char *id);
uint64_t writer_bind_vector(const writer *w, sqlite3_stmt *s, int first, const writer_row *row);
ww_status writer_place_taken(const writer *w, int64_t place); /* WW_CORRUPT_FILE */
/* Adds the row's vector, which is inserted, to the index if there is one. */
ww_status writer_index_vector(writer *w, const writer_row *row);
/* Adds the row's vector at row->place, and returns its checksum. */
ww_status writer_insert_vector(writer *w, const writer_row *row, uint64_t *checksum);

/* Adds the row's sparse vector and multivector, and makes `vector`, the checksum of its dense one, that of all of them. */
ww_status writer_insert_others(writer *w, const writer_row *row, uint64_t *vector);

/* ---- writer_bulk.c ---- */
void bulk_writer_close(bulk_writer *b);

#endif
