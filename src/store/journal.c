/* The journal of a store's file: the write-ahead log, and a rollback journal for large writes.
 *
 * In WAL mode SQLite writes each page twice, into the log and from there into the file. It lets readers go on, who need the
 * pages that a write replaces. A large write mostly adds pages, and if no other connection has the file open, nobody reads it.
 * Then the write uses a rollback journal, which only keeps the pages that the write replaces: new ones go straight into the
 * file. SQLite permits the change of mode only without other connections. Those that open the file during the write wait for
 * its end, as writers do, and find WAL mode again. If the process is killed, the next connection rolls the write back.
 */
#include "store/store_state.h"

enum {
    WAL_BYTES = 16 * 1024 * 1024, /* the log is moved into the file at this size, whatever the page size */
    WAIT_MS_MAX = 1000,           /* for readers that came in during a large write, before WAL mode returns */
};

static ww_status set_synchronous(const ww_store *store, const char *level)
{
    return schema_run(store->writer, "PRAGMA synchronous = %s", level);
}

/* Outside WAL mode the end of a transaction is the removal of its journal. At level full SQLite does not sync the folder after
 * that, so a power failure at any later time could bring the journal back, and it would undo everything. At level extra SQLite
 * does sync. */
static ww_status set_synchronous_for_rollback(const ww_store *store)
{
    return store->config.synchronous == WW_SYNCHRONOUS_OFF ? WW_OK : set_synchronous(store, "extra");
}

ww_status store_enter_wal(ww_store *store)
{
    ww_status status = set_synchronous_for_rollback(store);
    if (status == WW_OK)
        status = schema_run(store->writer, "PRAGMA journal_mode = wal");
    const int64_t page = schema_pragma(store->writer, "page_size");
    if (status == WW_OK)
        status = schema_run(store->writer, "PRAGMA wal_autocheckpoint = %lld", (long long)(WAL_BYTES / (page > 0 ? page : 1)));
    if (status == WW_OK) /* after a large write the log shrinks again */
        status = schema_run(store->writer, "PRAGMA journal_size_limit = %d", WAL_BYTES);
    if (status == WW_OK)
        status = set_synchronous(store, ww_synchronous_name(store->config.synchronous));
    store->outside_wal = status != WW_OK;
    return status;
}

void store_return_to_wal(ww_store *store)
{
    if (!store->outside_wal)
        return;
    sqlite3_busy_timeout(store->writer, WAIT_MS_MAX);
    (void)store_enter_wal(store); /* if a reader has the file for longer, the next write tries again */
    sqlite3_busy_timeout(store->writer, store->config.busy_ms);
}

void store_choose_journal(ww_store *store, int64_t bytes)
{
    if (bytes < LARGE_WRITE_BYTES) {
        store_return_to_wal(store);
        return;
    }
    store->outside_wal = true; /* also if something fails: then the end of the write sets everything again */
    if (set_synchronous_for_rollback(store) == WW_OK)
        (void)sqlite3_exec(store->writer, "PRAGMA journal_mode = delete", NULL, NULL, NULL);
}
