/* The module `warpwave` and its functions on a connection. */
#ifndef WW_STORE_SQLITE_MODULE_H
#define WW_STORE_SQLITE_MODULE_H

#include "store/sqlite_api.h"

/* Registers both. Returns a SQLite code, and on failure a text from sqlite3_mprintf() in `message` (may be NULL). */
int module_register(sqlite3 *db, char **message);

#endif
