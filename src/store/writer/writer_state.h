/* A writer as the files of this room see it. */
#ifndef WW_STORE_WRITER_WRITER_STATE_H
#define WW_STORE_WRITER_WRITER_STATE_H

#include "store/ivf/index_writer.h"
#include "store/texts/texts.h"
#include "store/writer/writer.h"

typedef enum statement {
    INSERT_ROW,
    INSERT_VECTOR,
    FIND_ID,
    FIND_HANDLE,
    GET_PAYLOAD,
    SET_PLACE,
    SET_ID,
    SET_PAYLOAD,
    DELETE_ROW,
    DELETE_VECTOR,
    LOG_REMOVAL,
    STATEMENT_COUNT
} statement;

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
    int64_t change_first_place; /* the current change assigned the places from here on */
    text_writer texts;
    index_writer index;
};

static inline text_tables text_tables_of(const writer *w)
{
    return (text_tables){w->db, w->schema, w->record.name};
}

static inline ivf_tables ivf_tables_of(const writer *w)
{
    return (ivf_tables){w->db, w->schema, &w->record};
}

#endif
