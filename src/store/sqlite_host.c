/* The SQLite that this process's stores use: the one that loads this library as an extension, or else the one that it is linked
 * with.
 *
 * A process may have several copies of SQLite (Python's own, a package's, the system's). Two copies lose each other's locks on
 * a file, so all stores of a process use the first one that asks, and a second one is refused. Every call of this room goes
 * through that copy's table of functions (sqlite3ext.h), which SQLite hands to its extensions.
 */
#define SQLITE_CORE 1 /* calls of this file go to the SQLite that the library is linked with */
#include "store/sqlite_api.h"

#include <pthread.h>

#include "base/status.h"

/* Set once, under `choosing`, before any other file of this room is entered. */
const sqlite3_api_routines *sqlite3_api;
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

const sqlite3_api_routines *sqlite_host_choose(const sqlite3_api_routines *api)
{
    pthread_mutex_lock(&choosing);
    if (!sqlite3_api)
        sqlite3_api = api;
    const sqlite3_api_routines *chosen = sqlite3_api;
    pthread_mutex_unlock(&choosing);
    return chosen;
}

/* SQLite calls this for every connection that is opened while it is registered, and hands over its table. */
static int take_table(sqlite3 *db, const char **message, const sqlite3_api_routines *api)
{
    (void)db, (void)message;
    (void)sqlite_host_choose(api);
    return SQLITE_OK;
}

ww_status sqlite_host_ready(void)
{
    if (sqlite_host_choose(NULL))
        return WW_OK;
    sqlite3 *db = NULL;
    void (*const entry)(void) = (void (*)(void))take_table;
    int code = sqlite3_auto_extension(entry);
    if (code == SQLITE_OK)
        code = sqlite3_open(":memory:", &db);
    sqlite3_cancel_auto_extension(entry);
    sqlite3_close(db);
    if (code == SQLITE_OK && sqlite_host_choose(NULL))
        return WW_OK;
    return ww_fail(code == SQLITE_NOMEM ? WW_OUT_OF_MEMORY : WW_UNSUPPORTED, "SQLite %s cannot serve stores: %s",
                   sqlite3_libversion(), sqlite3_errstr(code));
}
