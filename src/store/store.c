/* Opening and closing a store, and its write transactions. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"
#include "device/share.h"
#include "store/page_size.h"
#include "store/store_state.h"
#include "vectors/internal/mirror.h"

enum { BUSY_MS = 5000, FILTER_MS = 60000, CACHE_KEPT_BYTES = 8 * 1024 * 1024 };

STRUCT_INIT(ww_store_config, {.busy_ms = BUSY_MS, .filter_ms = FILTER_MS})
STRUCT_INIT(ww_store_info, {0})

static const char *const synchronous_names[] = {
    [WW_SYNCHRONOUS_FULL] = "full", [WW_SYNCHRONOUS_NORMAL] = "normal", [WW_SYNCHRONOUS_OFF] = "off"};

const char *ww_synchronous_name(ww_synchronous level)
{
    const unsigned index = (unsigned)level;
    return index < sizeof synchronous_names / sizeof *synchronous_names ? synchronous_names[index] : NULL;
}

/* ---- transactions -------------------------------------------------------------------------------------------------------- */

ww_status store_check_writable(ww_store *store)
{
    if (store->config.read_only)
        return ww_fail(WW_INVALID_ARGUMENT, "%s was opened read-only", store->path);
    if (store_is_mine(store))
        return ww_fail(WW_UNSUPPORTED,
                       "%s: this thread has begun a transaction, which can only write and remove rows; commit "
                       "it or roll it back first",
                       store->path);
    return WW_OK;
}

ww_status store_lock(ww_store *store)
{
    if (store_is_mine(store)) /* it has the lock */
        return WW_OK;
    const int64_t until = clock_nanoseconds() / 1000000 + store->config.busy_ms;
    const struct timespec deadline = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
    bool late = store->config.busy_ms == 0;
    pthread_mutex_lock(&store->lock);
    while (store->locked && !late)
        late = pthread_cond_timedwait(&store->unlocked, &store->lock, &deadline) == ETIMEDOUT;
    const bool got = !store->locked;
    store->locked = true;
    pthread_mutex_unlock(&store->lock);
    if (!got)
        return ww_fail(WW_BUSY, "%s: another thread has been using the store for %d ms; try again, or raise busy_ms",
                       store->path, store->config.busy_ms);
    sqlite3_busy_timeout(store->writer, (int)max_i64(0, until - clock_nanoseconds() / 1000000));
    return WW_OK;
}

void store_lock_for_good(ww_store *store)
{
    if (store_is_mine(store))
        return;
    pthread_mutex_lock(&store->lock);
    while (store->locked)
        pthread_cond_wait(&store->unlocked, &store->lock);
    store->locked = true;
    pthread_mutex_unlock(&store->lock);
}

void store_unlock(ww_store *store)
{
    if (store_is_mine(store))
        return;
    pthread_mutex_lock(&store->lock);
    store->locked = false;
    pthread_cond_signal(&store->unlocked);
    pthread_mutex_unlock(&store->lock);
}

ww_status store_begin_bytes(ww_store *store, int64_t bytes)
{
    ww_status status = store_check_writable(store);
    if (status == WW_OK)
        status = store_check_file(store);
    if (status == WW_OK)
        status = store_lock(store);
    if (status != WW_OK)
        return status;
    store_choose_journal(store, bytes);
    /* Outside WAL mode readers could keep a write from its end, so it locks them out from the start. */
    status = store->begin ? WW_OK : schema_statement(store->writer, &store->begin, "BEGIN EXCLUSIVE");
    if (status == WW_OK && !store->commit)
        status = schema_statement(store->writer, &store->commit, "COMMIT");
    if (status == WW_OK)
        status = schema_step(store->begin);
    if (status != WW_OK) {
        store_return_to_wal(store);
        store_unlock(store);
    }
    return status;
}

ww_status store_begin(ww_store *store)
{
    return store_begin_bytes(store, 0);
}

ww_status store_commit_write(ww_store *store)
{
    const ww_status status = store_check_place(store);
    return status == WW_OK ? schema_step(store->commit) : status;
}

/* After a disk failure FTS5 (seen in SQLite 3.40) can keep part of a change in memory and write it with the next change.
 * Reading the schema again makes it reopen its tables. */
static void forget_words(const ww_store *store, ww_status status)
{
    if (status == WW_IO_ERROR || status == WW_OUT_OF_MEMORY || status == WW_CORRUPT_FILE)
        (void)sqlite3_exec(store->writer, "PRAGMA writable_schema = reset", NULL, NULL, NULL);
}

/* Between writes the writing connection keeps few pages in memory. */
static void cache_trim(const ww_store *store)
{
    int used = 0, peak = 0;
    if (sqlite3_db_status(store->writer, SQLITE_DBSTATUS_CACHE_USED, &used, &peak, 0) == SQLITE_OK && used > CACHE_KEPT_BYTES)
        (void)sqlite3_db_release_memory(store->writer);
}

ww_status store_end(ww_store *store, ww_status status)
{
    if (status == WW_OK && !sqlite3_get_autocommit(store->writer))
        status = store_commit_write(store);
    if (!sqlite3_get_autocommit(store->writer)) /* the message describes the first failure */
        (void)sqlite3_exec(store->writer, "ROLLBACK", NULL, NULL, NULL);
    forget_words(store, status);
    store_return_to_wal(store);
    cache_trim(store);
    store_unlock(store);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static ww_status config_check(const ww_store_config *config)
{
    if (!ww_synchronous_name(config->synchronous))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_open: synchronous is %d; it must be full, normal or off",
                       (int)config->synchronous);
    if (config->busy_ms < 0 || config->filter_ms < 0)
        return ww_fail(WW_OUT_OF_RANGE, "ww_store_open: %s is %d; it must not be negative",
                       config->busy_ms < 0 ? "busy_ms" : "filter_ms",
                       config->busy_ms < 0 ? config->busy_ms : config->filter_ms);
    if (config->memory_bytes < 0)
        return ww_fail(WW_OUT_OF_RANGE, "ww_store_open: memory_bytes is %lld; it must not be negative",
                       (long long)config->memory_bytes);
    if (!ww_row_place_name(config->rows))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_open: rows is %d; it must be WW_ROWS_DEVICE or WW_ROWS_HOST",
                       (int)config->rows);
    if (config->exclusive && config->read_only)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_open: exclusive and read_only are both set; a read-only store "
                                            "keeps no other process out");
    const int32_t page = config->page_bytes;
    if (page != 0 && (page < PAGE_BYTES_MIN || page > PAGE_BYTES_MAX || (page & (page - 1)) != 0))
        return ww_fail(WW_OUT_OF_RANGE, "ww_store_open: page_bytes is %d; it must be a power of two, %d to %d", page,
                       PAGE_BYTES_MIN, PAGE_BYTES_MAX);
    return WW_OK;
}

static ww_status sqlite_check(void)
{
    const ww_status status = sqlite_host_ready();
    if (status != WW_OK)
        return status;
    if (sqlite3_libversion_number() < SQLITE_VERSION_MIN)
        return ww_fail(WW_UNSUPPORTED, "a store needs SQLite 3.38 or later; this is %s", sqlite3_libversion());
    if (!sqlite3_threadsafe())
        return ww_fail(WW_UNSUPPORTED, "a store needs a SQLite that was built for threads");
    return WW_OK;
}

static void store_free(ww_store *store)
{
    sqlite3_finalize(store->begin);
    sqlite3_finalize(store->commit);
    if (store->writer) {
        /* Closing the last connection moves the log into the file. If others have the file open, this moves what it can, so
         * that a copy of the file has as much as possible. */
        if (!store->config.read_only) {
            sqlite3_busy_timeout(store->writer, 0);
            (void)sqlite3_wal_checkpoint_v2(store->writer, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        }
        sqlite3_close(store->writer);
    }
    if (store->file_entered)
        mirror_file_leave(&store->file);
    ww_device_close(store->device);
    pthread_cond_destroy(&store->unlocked);
    pthread_mutex_destroy(&store->lock);
    memory_free(store->path);
    memory_free(store);
}

static void lock_create(ww_store *store)
{
    pthread_condattr_t steady; /* a clock that cannot be set */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&store->unlocked, &steady);
    pthread_condattr_destroy(&steady);
    pthread_mutex_init(&store->lock, NULL);
}

ww_status ww_store_open(const char *path, ww_device *device, const ww_store_config *config, ww_store **store)
{
    FLOAT_GUARD();
    if (!path || !device || !store)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_open: %s is NULL", !path ? "path" : !device ? "device" : "store");
    ww_store_config checked;
    ww_status status = ww_store_config_init(&checked, sizeof checked);
    if (status == WW_OK && config)
        status = struct_read(&checked, sizeof checked, config, "ww_store_open", "ww_store_config");
    if (status == WW_OK)
        status = config_check(&checked);
    if (status == WW_OK)
        status = sqlite_check();
    if (status != WW_OK)
        return status;
    ww_store *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a store", sizeof *made);
    atomic_init(&made->users, 1);
    made->made_in = process_here();
    made->config = checked;
    lock_create(made);
    made->path = memory_copy_text(path, strlen(path));
    if (!made->path)
        status = memory_failed("a store", strlen(path));
    if (status == WW_OK)
        status = device_share(device, &made->device);
    if (status == WW_OK)
        status = store_open_file(made);
    if (status == WW_OK)
        *store = made;
    else
        store_free(made);
    return status;
}

void store_retain(ww_store *store)
{
    atomic_fetch_add(&store->users, 1);
}

void ww_store_close(ww_store *store)
{
    if (store && process_is_ours(store->made_in) && atomic_fetch_sub(&store->users, 1) == 1)
        store_free(store);
}

ww_status store_check_handle(const ww_store *store, const char *function)
{
    if (!store)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: store is NULL", function);
    const ww_status status = process_check(store->made_in, store->path);
    return status == WW_OK ? store_check_file(store) : status;
}
