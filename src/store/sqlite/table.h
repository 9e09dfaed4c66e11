/* A virtual table on a connection: a collection as SQL sees it.
 *
 *   table.c    the table as a whole: create, connect, rename, drop; transactions and savepoints
 *   plan.c     chooses the plan of a SELECT
 *   cursor.c   the rows of a SELECT
 *   request.c  what a SELECT asks for, from SQL values: query, k, radius, filter, lists of rowids
 *   update.c   INSERT, UPDATE, DELETE
 *   command.c  INSERT INTO docs(docs): commands about the index
 *   hybrid.c   hybrid(...), a function that gives rows found by words and by vectors
 *   integrity.c  whether the tables behind it agree
 *   shadow.c   whether the tables behind it are what they should be: nothing of the host's may run inside our statements
 * SQLite may disconnect a table and connect another one for the same collection at any time, even in the middle of a
 * transaction: after a failing ATTACH or PRAGMA schema_version it reads its schema again. So a table keeps nothing that is not
 * in the file: every change writes the collection's record, and reads it first if anybody else has written since. A table only
 * translates: store/writer.h writes rows, and store/view.h searches and reads them.
 */
#ifndef WW_STORE_SQLITE_TABLE_H
#define WW_STORE_SQLITE_TABLE_H

#include <stdbool.h>

#include "store/filter/kept_filters.h"
#include "store/sqlite/arguments.h"
#include "store/sqlite/plan.h"
#include "store/sqlite/sparse_text.h"
#include "store/view/view.h"
#include "store/writer/writer.h"

typedef struct table {
    sqlite3_vtab base; /* must be first: SQLite has pointers to it */
    sqlite3 *db;
    char *schema, *name;
    table_arguments arguments; /* those of the collection, if known */
    view *view;                /* opened by the first SELECT */
    writer *writer;            /* opened by the first change */
    bool uncertain;            /* connected within a write transaction: an earlier part of it may have changed the collection */
    bool reentered;            /* table_enter() refused a call: that is why the statement fails, whatever SQLite says */
    bool busy;                 /* one of our statements may be running: any call now comes from it */
    bool shadow_is_checked;    /* shadow_check() found nothing wrong at the preparation counts below */
    int64_t written_by, read_by; /* writer_preparations() and view_preparations() at that time */
    int64_t changes; /* the connection's change count after our last change: unchanged if nobody has written since */
    kept_filters filters;
    vector_buffer vector;            /* the vector of the row that is being written */
    sparse_text sparse;              /* and its sparse vector */
    const struct embedder *embedder; /* the connection's model */
} table;

/* Reports a failure of the library to SQLite: returns its code, and sets the thread's message as the table's. */
int table_failed(table *t, ww_status status);
/* Fails with this code and message. */
__attribute__((format(printf, 3, 4))) int table_refuse(table *t, int code, const char *format, ...);

/* Get the view and the writer, opening them if necessary. */
ww_status table_view(table *t, view **opened);
ww_status table_writer(table *t, writer **opened);
/* Does the record agree with the table's arguments? Somebody may have edited it. */
ww_status table_check_record(const table *t, const collection_record *record);
/* Called around everything that runs statements. table_enter() fails if one of those statements calls it, through a trigger, a
 * foreign key action or a view of the host's. After a failure do not call table_leave(). */
ww_status table_enter(table *t);
void table_leave(table *t);

/* Refuses a view or virtual table in place of one of the tables behind it and, to write, a trigger on one. The message has its
 * name. */
ww_status shadow_check(const table *t, bool to_write);
/* Called after reading. If a statement was prepared, this checks that it reads the tables themselves. A statement that failed
 * because of a host's view may itself use this table and would keep it open forever, so it is finalized. */
ww_status table_reading_ended(table *t, ww_status status);

/* Opens a table that SQLite does not know, as CONNECT would, for a function that reads a collection. Close it with
 * table_close(). */
ww_status table_open(sqlite3 *db, const char *schema, const char *name, const collection_record *record, table **opened);
void table_close(table *t); /* accepts NULL */

/* Refuses a vector from ww_embed() if another model made the collection's vectors. */
ww_status table_check_model(const table *t, sqlite3_value *vector);

/* Closes the writer, after a failure, or if its statements may contain a trigger of the host's: the trigger may use the table
 * itself, and then they would keep each other open forever. */
void table_close_writer(table *t);

/* Runs a command (command.c) in a change that has begun. */
ww_status table_command(table *t, writer *w, const char *text);

/* Checks the tables behind it. `problem` is a text from sqlite3_mprintf(), NULL if nothing is wrong. `quick` does not compare
 * tables with each other. */
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
