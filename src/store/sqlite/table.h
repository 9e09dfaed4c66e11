/* A virtual table on a connection: a collection as SQL sees it.
 *
 *   table.c    the table as a whole: created, connected, renamed, dropped; transactions and savepoints
 *   plan.c     which way a SELECT goes
 *   cursor.c   the rows of a SELECT
 *   request.c  what a SELECT asks for, from SQL values: query, k, radius, filter, lists of rowids
 *   update.c   INSERT, UPDATE, DELETE
 *   command.c  INSERT INTO docs(docs): commands about the index
 *   hybrid.c   hybrid(...), a function that gives rows found by words and by vectors
 *   integrity.c  whether the tables behind it agree
 *   shadow.c   whether the tables behind it are what they should be: nothing of the host's may run inside our statements
 * SQLite may disconnect a table and connect another one for the same collection at any time, in the middle of a transaction,
 * too: a failing ATTACH or PRAGMA schema_version makes it read its schema anew. So a table keeps nothing that is not in the
 * file: every change writes the collection's record, and reads it first if anybody else has written since.
 * It only translates: rows are written by store/writer.h, and searched and read through store/view.h.
 */
#ifndef WW_STORE_SQLITE_TABLE_H
#define WW_STORE_SQLITE_TABLE_H

#include <stdbool.h>

#include "store/filter/kept_filters.h"
#include "store/sqlite/arguments.h"
#include "store/sqlite/plan.h"
#include "store/view/view.h"
#include "store/writer/writer.h"

typedef struct table {
    sqlite3_vtab base; /* first: SQLite knows the table by it */
    sqlite3 *db;
    char *schema, *name;
    table_arguments arguments; /* what the collection has, where that is known */
    view *view;                /* with the first SELECT */
    writer *writer;            /* with the first change */
    bool uncertain;            /* connected within a write transaction: an earlier part of it may have changed the collection */
    bool reentered;            /* table_enter() refused somebody since: that is why the statement fails, whatever SQLite says */
    bool busy;                 /* one of our statements may be running: whatever comes in now was called by it */
    bool shadow_is_checked;    /* shadow_check() found nothing, when the statements of the writer and of the view had been */
    int64_t written_by, read_by; /* prepared this many times: writer_preparations(), view_preparations() */
    int64_t changes; /* the connection's count of changes after our last one: the same if nobody has written since */
    kept_filters filters;
    vector_buffer vector;            /* the vector of the row that is being written */
    const struct embedder *embedder; /* the connection's model */
} table;

/* Gives a failure of the library to SQLite: the code, and the thread's message as the table's. */
int table_failed(table *t, ww_status status);
/* Refuses with a text. */
__attribute__((format(printf, 3, 4))) int table_refuse(table *t, int code, const char *format, ...);

/* The view and the writer, opened if they are not. */
ww_status table_view(table *t, view **opened);
ww_status table_writer(table *t, writer **opened);
/* Is the record what the table was made with? Somebody may have edited it. */
ww_status table_check_record(const table *t, const collection_record *record);
/* Around everything that runs statements. table_enter() refuses to be called from within one of them: by a trigger, a foreign
 * key action or a view of the host's. If it fails there is nothing to leave. */
ww_status table_enter(table *t);
void table_leave(table *t);

/* Refuses, with its name, a view or virtual table in the place of a table behind it, and, to write, a trigger on one. */
ww_status shadow_check(const table *t, bool to_write);
/* After reading. If a statement was prepared, what it reads must be the tables themselves. One that a view of the host's has
 * made fail may use this table, which would keep it for good: it is given up. */
ww_status table_reading_ended(table *t, ww_status status);

/* A table that SQLite does not know, for a function that reads a collection: as CONNECT makes it. Closed with table_close(). */
ww_status table_open(sqlite3 *db, const char *schema, const char *name, const collection_record *record, table **opened);
void table_close(table *t); /* accepts NULL */

/* Refuses a vector that ww_embed() made if another model's are kept in the collection. */
ww_status table_check_model(const table *t, sqlite3_value *vector);

/* Closes the writer, after a failure, or if its statements may have programs of the host's in them: such a program may use the
 * table itself, and then the one would keep the other for good. */
void table_close_writer(table *t);

/* Carries out a command (command.c), in a change that has begun. */
ww_status table_command(table *t, writer *w, const char *text);

/* Looks for what is wrong with the tables behind it: a text from sqlite3_mprintf(), NULL if nothing is. `quick` leaves out what
 * reads tables against each other. */
ww_status table_check(const table *t, bool quick, char **problem);

/* The cursor's and the update's side of the module. */
int cursor_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **opened);
int cursor_close(sqlite3_vtab_cursor *base);
int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *plan_text, int count, sqlite3_value **values);
int cursor_next(sqlite3_vtab_cursor *base);
int cursor_eof(sqlite3_vtab_cursor *base);
int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column);
int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid);
int table_update(sqlite3_vtab *vtab, int count, sqlite3_value **values, sqlite3_int64 *rowid);

extern const sqlite3_module *const table_module;
extern const sqlite3_module *const hybrid_module; /* hybrid.c */

#endif
