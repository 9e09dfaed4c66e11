/* The entry point of the loadable extension, which this library is. */
#include "store/sqlite_api.h"

#include <stddef.h>

#include <warpwave/store.h>

#include "store/sqlite/module.h"

int sqlite3_warpwave_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    if (!api)
        return SQLITE_MISUSE;
    if ((api->libversion_number)() < SQLITE_VERSION_MIN) {
        *message = (api->mprintf)("warpwave needs SQLite 3.38 or later; this is %s", (api->libversion)());
        return SQLITE_ERROR;
    }
    const sqlite3_api_routines *used = sqlite_host_choose(api);
    if (used != api) {
        *message = (api->mprintf)("warpwave is in use by another SQLite (%s) of this process; load it in one of them only",
                                  (used->libversion)());
        return SQLITE_ERROR;
    }
    return module_register(db, message);
}
