/* The scalar functions: ww_dot, ww_l2, ww_cosine, ww_vector, ww_to_json, ww_version; and ww_model, ww_embed. */
#ifndef WW_STORE_SQLITE_FUNCTIONS_H
#define WW_STORE_SQLITE_FUNCTIONS_H

#include <warpwave/status.h>

#include "store/sqlite_api.h"

/* Register them on a connection; a SQLite code. */
int functions_register(sqlite3 *db);
int models_register(sqlite3 *db);

/* The thread's message as the error of a function. */
void function_fail(sqlite3_context *context, ww_status status, const char *function);

#endif
