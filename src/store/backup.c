/* Copying a store while it is in use.
 *
 * SQLite copies page by page. A read transaction on the source connection keeps the snapshot, so the copy is consistent and
 * writers cannot make it start over. The copy's collections get new epochs: if the copy later replaces the original file, no
 * process mistakes the rows it has in memory for the copy's.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/float_guard.h"
#include "base/status.h"
#include "store/store_state.h"

enum { PAGES_AT_ONCE = 256 };

/* Checks that `path` may be overwritten: a regular file other than the store itself. */
static ww_status target_check(const ww_store *store, const char *path, bool *there)
{
    struct stat file;
    *there = stat(path, &file) == 0;
    if (!*there)
        return WW_OK;
    if ((uint64_t)file.st_dev == store->file.file_device && (uint64_t)file.st_ino == store->file.file_inode)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_backup: %s is the store itself", path);
    return S_ISREG(file.st_mode) ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "ww_store_backup: %s is not a file", path);
}

static ww_status target_open(const ww_store *store, const char *path, bool there, sqlite3 **target)
{
    bool has = false;
    ww_status status = sqlite_check_file(path);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_open_v2(path, target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return sqlite_failed(*target, code, path);
    sqlite3_extended_result_codes(*target, 1);
    sqlite3_busy_timeout(*target, store->config.busy_ms);
    struct stat file;
    if (!there || (stat(path, &file) == 0 && file.st_size == 0))
        return WW_OK;
    status = store_has_collections(*target, &has);
    if (status != WW_OK || has)
        return status;
    return ww_fail(WW_INVALID_ARGUMENT, "ww_store_backup: %s is a database but not a store, so it was not replaced", path);
}

static ww_status copy_pages(sqlite3 *from, sqlite3 *target, const char *path, ww_progress progress, void *user)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", from, "main");
    if (!backup)
        return sqlite_failed(target, sqlite3_errcode(target), path);
    ww_status status = WW_OK;
    int code = SQLITE_OK;
    while (status == WW_OK && code == SQLITE_OK) {
        code = sqlite3_backup_step(backup, PAGES_AT_ONCE);
        const int64_t total = sqlite3_backup_pagecount(backup);
        if ((code == SQLITE_OK || code == SQLITE_DONE) &&
            progress_tell(progress, user, total - sqlite3_backup_remaining(backup), total))
            status = ww_fail(WW_CANCELLED, "ww_store_backup: cancelled; %s is unchanged or does not exist", path);
    }
    const int finished = sqlite3_backup_finish(backup);
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(target, code, path);
    if (status == WW_OK && finished != SQLITE_OK)
        status = sqlite_failed(target, finished, path);
    return status;
}

static ww_status copy(const ww_store *store, const char *path, bool there, ww_progress progress, void *user)
{
    sqlite3 *from = NULL, *target = NULL;
    bool has = false;
    ww_status status = store_connect(store, true, &from);
    if (status == WW_OK)
        status = schema_run(from, "BEGIN");
    if (status == WW_OK)
        status = store_has_collections(from, &has); /* the first read fixes the snapshot */
    if (status == WW_OK)
        status = target_open(store, path, there, &target);
    if (status == WW_OK)
        status = copy_pages(from, target, path, progress, user);
    if (status == WW_OK && has)
        status = schema_run(target, "UPDATE warpwave_collections SET epoch = random()");
    if (target && sqlite3_close(target) != SQLITE_OK && status == WW_OK)
        status = ww_fail(WW_INTERNAL, "ww_store_backup: %s could not be closed", path);
    sqlite3_close(from);
    return status;
}

ww_status ww_store_backup(ww_store *store, const char *path, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    bool there = false;
    ww_status status = store_check_handle(store, "ww_store_backup");
    if (status != WW_OK)
        return status;
    if (!path)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_backup: path is NULL");
    status = target_check(store, path, &there);
    if (status != WW_OK)
        return status;
    status = copy(store, path, there, progress, user);
    if (status != WW_OK && !there)
        (void)unlink(path);
    return status;
}
