/* Registering the module and the functions. */
#include "store/sqlite/module.h"

#include "store/sqlite/functions.h"
#include "store/sqlite/table.h"

int module_register(sqlite3 *db, char **message)
{
    int code = functions_register(db);
    if (code == SQLITE_OK)
        code = models_register(db);
    if (code == SQLITE_OK)
        code = sqlite3_create_module_v2(db, "warpwave", table_module, NULL, NULL);
    if (code != SQLITE_OK && message)
        *message = sqlite3_mprintf("warpwave: %s", sqlite3_errmsg(db));
    return code;
}
