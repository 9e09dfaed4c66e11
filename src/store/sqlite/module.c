/* Registering the modules and the functions. */
#include "store/sqlite/module.h"

#include "store/sqlite/functions.h"
#include "store/sqlite/table.h"
#include "store/texts/texts.h"

int module_register(sqlite3 *db, char **message)
{
    embedder *shared = NULL;
    int code = functions_register(db);
    if (code == SQLITE_OK)
        code = texts_register(db);
    if (code == SQLITE_OK)
        code = models_register(db, &shared);
    /* The functions share the model and live as long as the connection. */
    if (code == SQLITE_OK)
        code = sqlite3_create_module_v2(db, "warpwave", table_module, shared, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_create_module_v2(db, "hybrid", hybrid_module, shared, NULL);
    if (code != SQLITE_OK && message)
        *message = sqlite3_mprintf("warpwave: %s", sqlite3_errmsg(db));
    if (shared)
        embedder_release(shared);
    return code;
}
