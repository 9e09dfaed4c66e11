/* The scalar functions: ww_dot, ww_l2, ww_cosine, ww_vector, ww_to_json, ww_version; and ww_model, ww_embed. */
#ifndef WW_STORE_SQLITE_FUNCTIONS_H
#define WW_STORE_SQLITE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <warpwave/status.h>

#include "store/sqlite_api.h"

/* The model of a connection. */
typedef struct embedder embedder;
const char *embedder_fingerprint(const embedder *e); /* "" if none was opened */
/* Did ww_embed() make these bytes with the model that is open? It remembers the last 65,536 vectors or so by their hashes. */
bool embedder_made(const embedder *e, const void *vector, size_t bytes);
void embedder_release(void *user);

/* Register them on a connection; return a SQLite code. `shared` gets the connection's model, which the caller must release. */
int functions_register(sqlite3 *db);
int models_register(sqlite3 *db, embedder **shared);

/* Sets the thread's message as the error of a function. */
void function_fail(sqlite3_context *context, ww_status status, const char *function);

#endif
