/* SQLite as this room sees it: the library, or, in the loadable extension, the table of functions that the host hands over.
 *
 * The room is compiled twice. With WARPWAVE_SQLITE_EXTENSION every call goes through that table, so the extension works in a
 * host that brings a SQLite of its own; sqlite/ has the one file that defines the pointer (SQLITE_EXTENSION_INIT1).
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

enum { SQLITE_VERSION_MIN = 3038000 }; /* ->> and sqlite3_vtab_in() */

/* A status for SQLite's `code`, with its message, what was being done, and what to do about it. */
ww_status sqlite_failed(sqlite3 *db, int code, const char *what);

/* How often a statement has been prepared, by its owner and by SQLite, which does it again if the schema has changed; 0 for
 * NULL. */
int64_t sqlite_preparations(sqlite3_stmt *statement);

/* Where SQLite is a copy of our own beside another one in the process (python/bundled_sqlite.c): refuses a file that the
 * other has open. NULL everywhere else. */
extern ww_status (*sqlite_file_check)(const char *path);

/* Asks it, before a connection is made or used. */
ww_status sqlite_check_file(const char *path);

/* An address that is another one in every copy of SQLite in the process. */
const void *sqlite_identity(void);

#endif
