/* The entry point of the loadable extension.
 *
 * All calls go through the function table of the SQLite that loads it. A process may have two SQLites (a Python package's own
 * beside the system's). The extension has only one such table, so it refuses the second SQLite.
 */
#include "store/sqlite_api.h"

#include <stdatomic.h>
#include <stddef.h>

#include <warpwave/status.h>

#include "store/sqlite/module.h"

const sqlite3_api_routines *sqlite3_api; /* SQLite's headers call through this name; entered once */

WW_API int sqlite3_warpwave_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

int sqlite3_warpwave_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    static _Atomic(const sqlite3_api_routines *) host; /* the one SQLite that has loaded this library */
    const sqlite3_api_routines *before = NULL;
    if (!api)
        return SQLITE_MISUSE;
    if ((api->libversion_number)() < SQLITE_VERSION_MIN) {
        *message = (api->mprintf)("warpwave needs SQLite 3.38 or later; this is %s", (api->libversion)());
        return SQLITE_ERROR;
    }
    if (!atomic_compare_exchange_strong(&host, &before, api) && before != api) {
        *message = (api->mprintf)("warpwave is in use by another SQLite (%s) of this process; load it in one of them only",
                                  (before->libversion)());
        return SQLITE_ERROR;
    }
    if (!before)
        sqlite3_api = api;
    return module_register(db, message);
}
