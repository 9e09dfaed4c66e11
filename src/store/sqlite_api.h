/* SQLite as this room sees it: the library or, in the loadable extension, the host's function table.
 *
 * The room is compiled twice. With WARPWAVE_SQLITE_EXTENSION every call goes through that table, so the extension works in a
 * host that has its own SQLite; one file in sqlite/ defines the pointer (SQLITE_EXTENSION_INIT1).
 */
#ifndef WW_STORE_SQLITE_API_H
#define WW_STORE_SQLITE_API_H

#ifdef WARPWAVE_SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif

#include <stdint.h>

#include <warpwave/status.h>

enum { SQLITE_VERSION_MIN = 3038000 }; /* for ->> and sqlite3_vtab_in() */

/* Returns a status for SQLite's `code`. The message has SQLite's own, what was being done, and what to do. */
ww_status sqlite_failed(sqlite3 *db, int code, const char *what);

/* How often a statement has been prepared, by its owner and again by SQLite after a schema change; 0 for NULL. */
int64_t sqlite_preparations(sqlite3_stmt *statement);

/* Set only if this is our own copy of SQLite beside another one in the process (python/bundled_sqlite.c): refuses a file that
 * the other has open. */
extern ww_status (*sqlite_file_check)(const char *path);

/* Calls it, before a connection is opened or used. */
ww_status sqlite_check_file(const char *path);

/* An address that differs for every copy of SQLite in the process. */
const void *sqlite_identity(void);

#endif
