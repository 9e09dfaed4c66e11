/* The file of a store: connections to it, and whether it is still the file that was opened. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "store/sqlite/module.h"
#include "store/store_state.h"
#include "store/texts/texts.h"

/* Rows with ids in no order touch pages all over the index of ids. store_end() frees what a write leaves. */
enum { WRITER_CACHE_KIB = 65536 };

/* ---- connections --------------------------------------------------------------------------------------------------------- */

/* A file is data: its triggers, views and foreign keys do nothing. Defensive mode would keep the writing connection from its
 * own tables, so only readers use it. The schema stays trusted, because SQLite 3.38 to 3.40 treats `->>`, which indexes over
 * payloads call, as unsafe. Otherwise indexes and constraints can only call SQLite's own functions. */
static ww_status distrust(sqlite3 *db, bool reads_only)
{
    static const struct {
        int option, value;
    } OPTIONS[] = {{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                   {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                   {SQLITE_DBCONFIG_ENABLE_FKEY, 0},
                   {SQLITE_DBCONFIG_DEFENSIVE, 1}};
    const size_t count = sizeof OPTIONS / sizeof *OPTIONS - (reads_only ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        const int code = sqlite3_db_config(db, OPTIONS[i].option, OPTIONS[i].value, NULL);
        if (code != SQLITE_OK)
            return sqlite_failed(db, code, "configuring a connection");
    }
    return WW_OK;
}

/* The first statement reads the beginning of the file. */
static ww_status is_database(const ww_store *store, sqlite3 *db)
{
    const int code = sqlite3_exec(db, "PRAGMA schema_version", NULL, NULL, NULL);
    if ((code & 0xff) == SQLITE_NOTADB)
        return ww_fail(WW_CORRUPT_FILE, "%s is not a store: it is no SQLite database", store->path);
    return code == SQLITE_OK ? WW_OK : sqlite_failed(db, code, store->path);
}

static ww_status set_up(const ww_store *store, sqlite3 *db, bool reads_only)
{
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, store->config.busy_ms);
    ww_status status = distrust(db, reads_only);
    if (status == WW_OK)
        status = is_database(store, db);
    if (status == WW_OK)
        status = schema_run(db, "PRAGMA synchronous = %s", ww_synchronous_name(store->config.synchronous));
    if (status == WW_OK) /* if another process truncated a mapped file, this one would crash; some SQLites map by default */
        status = schema_run(db, "PRAGMA mmap_size = 0");
    if (status == WW_OK && !reads_only)
        status = schema_run(db, "PRAGMA cache_size = -%d", WRITER_CACHE_KIB);
    if (status == WW_OK) { /* collections are also virtual tables, which only their module can create and drop */
        const int code = reads_only ? texts_register(db) : module_register(db, NULL);
        status = code == SQLITE_OK ? WW_OK : sqlite_failed(db, code, "registering the module warpwave");
    }
    if (status == WW_OK && reads_only)
        status = schema_run(db, "PRAGMA query_only = on");
    return status;
}

ww_status store_check_file(const ww_store *store)
{
    struct stat file;
    const ww_status status = sqlite_check_file(store->path);
    if (status != WW_OK || !store->unchanging)
        return status;
    if (stat(store->path, &file) == 0 && file.st_size == store->unchanged_size &&
        file.st_mtim.tv_sec == store->unchanged_time.tv_sec && file.st_mtim.tv_nsec == store->unchanged_time.tv_nsec &&
        store_bytes_with_suffix(store, "-wal") == 0)
        return WW_OK;
    return ww_fail(WW_IO_ERROR,
                   "%s was changed since it was opened. Its folder is not writable, so changes cannot be "
                   "followed: close the store and open it again",
                   store->path);
}

/* Is the file that was opened still the one at its path? SQLite would keep using a removed file and acknowledge writes that
 * nobody can ever read; a new connection would create an empty file in its place. */
ww_status store_check_place(const ww_store *store)
{
    struct stat file;
    const bool there = stat(store->path, &file) == 0;
    if (there && (uint64_t)file.st_dev == store->file.file_device && (uint64_t)file.st_ino == store->file.file_inode)
        return WW_OK;
    return ww_fail(WW_IO_ERROR, "%s %s since the store was opened; nothing was written. Close the store and open it again",
                   store->path, there ? "was replaced by another file" : "was removed or renamed");
}

/* Opens the file as immutable, so that SQLite needs no other file beside it. */
static int open_unchanging(const ww_store *store, int flags, sqlite3 **opened)
{
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, "file:");
    for (const char *at = store->path; *at; at++) {
        if (strchr("%?#", *at))
            sqlite3_str_appendf(uri, "%%%02x", *at);
        else
            sqlite3_str_appendchar(uri, 1, *at);
    }
    sqlite3_str_appendall(uri, "?immutable=1");
    char *text = sqlite3_str_finish(uri);
    const int code = text ? sqlite3_open_v2(text, opened, flags | SQLITE_OPEN_URI, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

/* Why SQLite could not open the file: often its folder does not exist. */
static ww_status cannot_open(const ww_store *store, sqlite3 *db, int code)
{
    const char *slash = strrchr(store->path, '/');
    char *folder = slash ? sqlite3_mprintf("%.*s", (int)(slash - store->path), store->path) : NULL;
    const bool missing = (code & 0xff) == SQLITE_CANTOPEN && folder && folder[0] && access(folder, F_OK) != 0;
    const ww_status status = missing ? ww_fail(WW_IO_ERROR, "%s: the folder %s does not exist", store->path, folder)
                                     : sqlite_failed(db, code, store->path);
    sqlite3_free(folder);
    return status;
}

ww_status store_connect(const ww_store *store, bool reads_only, sqlite3 **db)
{
    /* Readers also open the file for writing: in WAL mode a reader may have to recover after a crash. */
    const int flags = (store->config.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX |
                      (store->config.must_exist || store->config.read_only ? 0 : SQLITE_OPEN_CREATE);
    sqlite3 *opened = NULL;
    ww_status status = store_check_file(store);
    if (status == WW_OK && store->file_entered)
        status = store_check_place(store);
    if (status != WW_OK)
        return status;
    const int code = store->unchanging
                         ? open_unchanging(store, flags, &opened)
                         : sqlite3_open_v2(store->path, &opened, flags, store->config.exclusive ? "unix-excl" : NULL);
    status = code == SQLITE_OK ? WW_OK : cannot_open(store, opened, code);
    if (status == WW_OK)
        status = set_up(store, opened, reads_only);
    if (status == WW_OK)
        *db = opened;
    else
        sqlite3_close(opened);
    return status;
}

ww_status store_has_collections(sqlite3 *db, bool *has)
{
    sqlite3_stmt *found = NULL;
    ww_status status =
        schema_statement(db, &found, "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'warpwave_collections'");
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(found);
    *has = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(db, code, "looking for collections");
    sqlite3_finalize(found);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

/* Counts this process as a user of the file, which exists now. */
static ww_status enter_file(ww_store *store)
{
    struct stat file;
    if (stat(store->path, &file) != 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", store->path);
    store->file.file_device = (uint64_t)file.st_dev;
    store->file.file_inode = (uint64_t)file.st_ino;
    store->file.sqlite = sqlite_identity();
    store->file.exclusive = store->config.exclusive != 0;
    const ww_status status = mirror_file_enter(&store->file, store->path);
    store->file_entered = status == WW_OK;
    return status;
}

/* Checks a file that is not empty: it must be a database in WAL mode with collections that this version can read. */
static ww_status look_at_file(ww_store *store)
{
    bool has = false;
    ww_status status = store_has_collections(store->writer, &has);
    if (status != WW_OK || !has)
        return status;
    collection_record *records = NULL;
    int64_t count = 0;
    status = schema_list(store->writer, "main", &records, &count);
    memory_free(records);
    return status == WW_OK && !store->config.read_only ? store_enter_wal(store) : status;
}

/* Makes the path absolute, so that later connections open the same file even after a chdir(). */
static ww_status path_settle(ww_store *store)
{
    const char *absolute = sqlite3_db_filename(store->writer, "main");
    if (!absolute || !absolute[0])
        return WW_OK;
    char *copy = memory_copy_text(absolute, strlen(absolute));
    if (!copy)
        return memory_failed("a store", strlen(absolute));
    memory_free(store->path);
    store->path = copy;
    return WW_OK;
}

static ww_status connect_first(ww_store *store)
{
    ww_status status = store_connect(store, false, &store->writer);
    if (status == WW_OK)
        status = path_settle(store);
    return status == WW_OK ? look_at_file(store) : status;
}

/* Bytes of the file with this suffix beside the store's; 0 if there is none. */
int64_t store_bytes_with_suffix(const ww_store *store, const char *suffix)
{
    struct stat file;
    char *name = sqlite3_mprintf("%s%s", store->path, suffix);
    const int64_t bytes = name && stat(name, &file) == 0 ? (int64_t)file.st_size : 0;
    sqlite3_free(name);
    return bytes;
}

static bool folder_is_writable(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? sqlite3_mprintf("%.*s", (int)(slash - path + 1), path) : sqlite3_mprintf(".");
    const bool writable = folder && access(folder, W_OK) == 0;
    sqlite3_free(folder);
    return writable;
}

/* A file in WAL mode needs a -shm beside it, which SQLite cannot create in a read-only folder. If the -wal is empty, the file
 * is complete and is opened as immutable. store_check_file() makes sure that it really does not change. */
static ww_status connect_unchanging(ww_store *store, ww_status failed)
{
    struct stat file;
    if (folder_is_writable(store->path))
        return failed;
    if (store_bytes_with_suffix(store, "-wal") > 0)
        return ww_fail(WW_IO_ERROR,
                       "%s cannot be read: its last writes are in %s-wal, and reading those needs the right to write to the "
                       "folder. Open the store once with that right, which moves them, or copy both files to another folder",
                       store->path, store->path);
    if (stat(store->path, &file) != 0)
        return failed;
    sqlite3_close(store->writer);
    store->writer = NULL;
    store->unchanging = true;
    store->unchanged_size = file.st_size;
    store->unchanged_time = file.st_mtim;
    return connect_first(store);
}

ww_status store_open_file(ww_store *store)
{
    struct stat file;
    const bool there = stat(store->path, &file) == 0;
    if (!there && (store->config.must_exist || store->config.read_only))
        return ww_fail(WW_IO_ERROR, "there is no file %s", store->path);
    if (there && !S_ISREG(file.st_mode))
        return ww_fail(WW_INVALID_ARGUMENT, "%s is not a file", store->path);
    /* Must happen before SQLite opens the file: closing a connection would drop the locks of another SQLite. */
    ww_status status = there ? enter_file(store) : WW_OK;
    if (status == WW_OK)
        status = connect_first(store);
    if (status == WW_IO_ERROR && there && store->config.read_only)
        status = connect_unchanging(store, status);
    return status == WW_OK && !there ? enter_file(store) : status;
}
