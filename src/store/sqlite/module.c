/* Registering the module and the functions. */
#include "store/sqlite/module.h"

#include "store/sqlite/functions.h"

int module_register(sqlite3 *db, char **message)
{
    const int code = functions_register(db);
    if (code != SQLITE_OK && message)
        *message = sqlite3_mprintf("warpwave: %s", sqlite3_errmsg(db));
    return code;
}
