/* The scalar functions: ww_dot, ww_l2, ww_cosine, ww_vector, ww_to_json, ww_version; and ww_model, ww_embed. */
#ifndef WW_STORE_SQLITE_FUNCTIONS_H
#define WW_STORE_SQLITE_FUNCTIONS_H

#include <warpwave/status.h>

#include "store/sqlite_api.h"

/* How ww_embed() marks its vectors, so that a table knows which model they are of. */
enum { EMBEDDED_SUBTYPE = 'E' };

/* The model of a connection. */
typedef struct embedder embedder;
const char *embedder_fingerprint(const embedder *e); /* "" where none was opened */
void embedder_release(void *user);

/* Register them on a connection; a SQLite code. `shared` gets the model of the connection, which the caller has to release. */
int functions_register(sqlite3 *db);
int models_register(sqlite3 *db, embedder **shared);

/* The thread's message as the error of a function. */
void function_fail(sqlite3_context *context, ww_status status, const char *function);

#endif
