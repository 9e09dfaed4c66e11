/* Transactions of several writes: ww_store_begin() to ww_store_commit() or ww_store_rollback().
 *
 * The thread that begins one keeps the store's lock until it ends. Its writes join the transaction, each with a savepoint of
 * its own; mirrors in memory are not told of them and read the committed rows from the file at the next search.
 */
#include "base/float_guard.h"
#include "base/status.h"
#include "store/store_state.h"

bool store_is_mine(ww_store *store)
{
    pthread_mutex_lock(&store->lock);
    const bool mine = store->transaction && pthread_equal(store->owner, pthread_self());
    pthread_mutex_unlock(&store->lock);
    return mine;
}

static void set_owner(ww_store *store, bool transaction)
{
    pthread_mutex_lock(&store->lock);
    store->transaction = transaction;
    store->owner = pthread_self();
    pthread_mutex_unlock(&store->lock);
}

static ww_status was_rolled_back(const ww_store *store)
{
    return ww_fail(WW_IO_ERROR, "%s: the transaction was rolled back after a failed write; end it and begin again",
                   store->path);
}

ww_status store_begin_write(ww_store *store, int64_t bytes)
{
    if (!store_is_mine(store))
        return store_begin_bytes(store, bytes);
    /* A savepoint would begin another transaction, and this write would be committed without those before it. */
    if (sqlite3_get_autocommit(store->writer))
        return was_rolled_back(store);
    return schema_run(store->writer, "SAVEPOINT one_write");
}

ww_status store_end_write(ww_store *store, ww_status status)
{
    if (!store_is_mine(store))
        return store_end(store, status);
    if (status != WW_OK) /* the message describes the first failure */
        (void)sqlite3_exec(store->writer, "ROLLBACK TO one_write", NULL, NULL, NULL);
    const int code = sqlite3_exec(store->writer, "RELEASE one_write", NULL, NULL, NULL);
    return status == WW_OK && code != SQLITE_OK ? sqlite_failed(store->writer, code, store->path) : status;
}

static ww_status check_mine(ww_store *store, const char *function)
{
    const ww_status status = store_check_handle(store, function);
    if (status != WW_OK || store_is_mine(store))
        return status;
    return ww_fail(WW_INVALID_ARGUMENT, "%s: this thread has not begun a transaction on %s", function, store->path);
}

ww_status ww_store_begin(ww_store *store)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_begin");
    if (status == WW_OK)
        status = store_begin(store);
    if (status == WW_OK)
        set_owner(store, true);
    return status;
}

ww_status ww_store_commit(ww_store *store)
{
    FLOAT_GUARD();
    const ww_status status = check_mine(store, "ww_store_commit");
    if (status != WW_OK)
        return status;
    set_owner(store, false); /* the lock stays this thread's until store_end() */
    /* A disk that filled up may have made SQLite roll everything back. */
    if (sqlite3_get_autocommit(store->writer))
        return store_end(store, was_rolled_back(store));
    return store_end(store, WW_OK);
}

ww_status ww_store_rollback(ww_store *store)
{
    FLOAT_GUARD();
    const ww_status status = check_mine(store, "ww_store_rollback");
    if (status != WW_OK)
        return status;
    set_owner(store, false);
    (void)store_end(store, WW_CANCELLED);
    return WW_OK;
}
