/* SQLite as this room sees it: a table of functions, which sqlite_host.c chooses. So the same code works as SQLite's extension
 * in a host that has its own SQLite. */
#ifndef WW_STORE_SQLITE_API_H
#define WW_STORE_SQLITE_API_H

#include <sqlite3ext.h>
extern const sqlite3_api_routines *sqlite3_api; /* what the macros of sqlite3ext.h call through */

#include <stdint.h>

#include <warpwave/status.h>

enum { SQLITE_VERSION_MIN = 3038000 }; /* for ->> and sqlite3_vtab_in() */

/* Makes `api` the SQLite of this process's stores, unless there is one already. Returns the one in use. */
const sqlite3_api_routines *sqlite_host_choose(const sqlite3_api_routines *api);

/* Makes the SQLite that this library is linked with the one in use if there is none yet. Called by ww_store_open(). */
ww_status sqlite_host_ready(void);

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
