/* The scalar functions: ww_dot, ww_l2, ww_cosine, ww_vector, ww_to_json, ww_version. */
#ifndef WW_STORE_SQLITE_FUNCTIONS_H
#define WW_STORE_SQLITE_FUNCTIONS_H

#include "store/sqlite_api.h"

/* Registers them on a connection; a SQLite code. */
int functions_register(sqlite3 *db);

#endif
