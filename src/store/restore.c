/* Copying single collections between stores: to a new file, and from a file into a store.
 *
 * Both files are attached to one connection, and one transaction copies the tables as they are. So handles, places, checksums
 * and indexes stay, and a reader sees all of it or nothing. The other file may come from anybody: only ordinary tables with our
 * names are read, and only columns that ours have.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"
#include "store/ivf/tables.h"
#include "store/multi/multi.h"
#include "store/sparse/sparse.h"
#include "store/store_state.h"
#include "store/texts/texts.h"

STRUCT_INIT(ww_store_copy, {0})

enum { INSTRUCTIONS_BETWEEN_LOOKS = 10000 };

/* A call, and the collection that it copies now. */
typedef struct copying {
    const ww_store_copy *asked;
    const char *function;
    sqlite3 *db;
    const char *from, *to; /* the schemas of both files */
    const char *name, *new_name;
    collection_record old, new;
    int64_t done; /* collections */
    bool cancelled;
} copying;

/* ---- tables -------------------------------------------------------------------------------------------------------------- */

/* What two tables have in common. */
typedef struct table_pair {
    char *columns; /* those of the new one that the old one has, too; from sqlite3_malloc() */
    bool there;    /* the old one is an ordinary table */
    bool equal;    /* and has the same columns in the same order */
} table_pair;

/* `from` and `to` are names of tables; `but` is a column that is left out. */
static ww_status compare(const copying *c, const char *from, const char *to, const char *but, table_pair *pair)
{
    sqlite3_stmt *s = NULL;
    *pair = (table_pair){0};
    ww_status status = schema_statement(
        c->db, &s,
        "SELECT (SELECT group_concat('\"' || name || '\"') FROM (SELECT name FROM pragma_table_info(?2, %Q) WHERE name <> %Q "
        "AND "
        "name IN (SELECT name FROM pragma_table_info(?1, %Q)) ORDER BY cid)), (SELECT group_concat(name) FROM (SELECT name "
        "FROM "
        "pragma_table_info(?1, %Q) ORDER BY cid)) = (SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info(?2, "
        "%Q) "
        "ORDER BY cid)) FROM \"%w\".sqlite_schema WHERE type = 'table' AND rootpage > 0 AND lower(name) = lower(?1)",
        c->to, but, c->from, c->from, c->to, c->from);
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(s, 1, from, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, to, -1, SQLITE_STATIC);
    const int code = sqlite3_step(s);
    pair->there = code == SQLITE_ROW && sqlite3_column_text(s, 0);
    if (pair->there) {
        pair->columns = sqlite3_mprintf("%s", (const char *)sqlite3_column_text(s, 0));
        pair->equal = sqlite3_column_int(s, 1) != 0;
        status = pair->columns ? WW_OK : memory_failed("the columns of a table", STORE_TEXT_BYTES);
    } else if (code != SQLITE_DONE && code != SQLITE_ROW) {
        status = sqlite_failed(c->db, code, from);
    }
    sqlite3_finalize(s);
    return status;
}

/* Copies the rows of a table of the collection. Without a list of columns SQLite copies whole cells. */
static ww_status copy_rows(const copying *c, const char *suffix)
{
    table_pair pair = {0};
    char *from = sqlite3_mprintf("%s%s", c->name, suffix), *to = sqlite3_mprintf("%s%s", c->new_name, suffix);
    ww_status status = from && to ? compare(c, from, to, "", &pair) : memory_failed("the name of a table", STORE_TEXT_BYTES);
    if (status == WW_OK && !pair.there)
        status = ww_fail(WW_CORRUPT_FILE, "collection '%s': it has no table %s", c->name, from);
    if (status == WW_OK && pair.equal)
        status = schema_run(c->db, "INSERT INTO \"%w\".\"%w\" SELECT * FROM \"%w\".\"%w\"", c->to, to, c->from, from);
    else if (status == WW_OK)
        status = schema_run(c->db, "INSERT INTO \"%w\".\"%w\"(%s) SELECT %s FROM \"%w\".\"%w\"", c->to, to, pair.columns,
                            pair.columns, c->from, from);
    sqlite3_free(pair.columns);
    sqlite3_free(from);
    sqlite3_free(to);
    return status;
}

/* Copies tables that the collection has now been given, and that have rows already: those that a new table begins with. */
static ww_status replace_rows(const copying *c, const char *const *suffixes, size_t count)
{
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < count; i++) {
        status = schema_run(c->db, "DELETE FROM \"%w\".\"%w%s\"", c->to, c->new_name, suffixes[i]);
        if (status == WW_OK)
            status = copy_rows(c, suffixes[i]);
    }
    return status;
}

static ww_status copy_texts(const copying *c)
{
    static const char *const SUFFIXES[] = {"_fts_data", "_fts_idx", "_fts_content", "_fts_docsize", "_fts_config"};
    bool exist = false;
    ww_status status = texts_exist(&(text_tables){c->db, c->from, c->name}, &exist);
    if (status != WW_OK || !exist)
        return status;
    status = texts_create(&(text_tables){c->db, c->to, c->new_name});
    return status == WW_OK ? replace_rows(c, SUFFIXES, sizeof SUFFIXES / sizeof *SUFFIXES) : status;
}

static ww_status copy_sparse(const copying *c)
{
    static const char *const SUFFIXES[] = {"_sparse", "_sparse_blocks", "_sparse_pending"};
    bool exist = false;
    ww_status status = sparse_exist(&(sparse_tables){c->db, c->from, c->name}, &exist);
    if (status != WW_OK || !exist)
        return status;
    status = sparse_create(&(sparse_tables){c->db, c->to, c->new_name});
    return status == WW_OK ? replace_rows(c, SUFFIXES, sizeof SUFFIXES / sizeof *SUFFIXES) : status;
}

static ww_status copy_multi(const copying *c)
{
    bool exist = false;
    ww_status status = multi_table_exists(&(multi_table){c->db, c->from, c->name}, &exist);
    if (status != WW_OK || !exist)
        return status;
    status = multi_table_create(&(multi_table){c->db, c->to, c->new_name});
    return status == WW_OK ? copy_rows(c, "_multi") : status;
}

static ww_status copy_ivf(const copying *c)
{
    static const char *const SUFFIXES[] = {"_ivf", "_ivf_lists", "_ivf_centroids", "_ivf_rows", "_ivf_rules"};
    if (!ivf_is_there(&c->old))
        return WW_OK;
    ww_status status = ivf_tables_create(&(ivf_tables){c->db, c->to, &c->new});
    if (status == WW_OK)
        status = replace_rows(c, SUFFIXES, sizeof SUFFIXES / sizeof *SUFFIXES);
    return status == WW_OK ? ivf_index_lists(&(ivf_tables){c->db, c->to, &c->new}) : status;
}

/* Copies what a table of the whole store, if there is one, has about the collection. */
static ww_status copy_about(const copying *c, const char *table, ww_status (*prepare)(sqlite3 *db, const char *schema))
{
    table_pair pair = {0};
    ww_status status = compare(c, table, table, "uid", &pair);
    if (status == WW_OK && !pair.columns) { /* one of both has no such table */
        status = prepare(c->db, c->to);
        if (status == WW_OK)
            status = compare(c, table, table, "uid", &pair);
    }
    if (status == WW_OK)
        status = schema_run(c->db, "DELETE FROM \"%w\".\"%w\" WHERE uid = %lld", c->to, table, (long long)c->new.uid);
    if (status == WW_OK && pair.there)
        status =
            schema_run(c->db, "INSERT INTO \"%w\".\"%w\"(uid, %s) SELECT %lld, %s FROM \"%w\".\"%w\" WHERE uid = %lld", c->to,
                       table, pair.columns, (long long)c->new.uid, pair.columns, c->from, table, (long long)c->old.uid);
    sqlite3_free(pair.columns);
    return status;
}

/* The note that the caller wants to have kept. */
static ww_status keep_note(const copying *c)
{
    if (!c->asked->note_key || c->done > 0)
        return WW_OK;
    return schema_run(c->db, "INSERT OR REPLACE INTO \"%w\".warpwave_notes(uid, key, text) VALUES(%lld, %Q, %Q)", c->to,
                      (long long)c->new.uid, c->asked->note_key, c->asked->note);
}

/* Indexes over values of payloads: their names are NAME_payload_ with the path. */
static ww_status copy_indexes(const copying *c)
{
    sqlite3_stmt *s = NULL;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(
        c->db, &s,
        "SELECT substr(name, length(?1) + 10) FROM \"%w\".sqlite_schema WHERE type = 'index' AND lower(tbl_name) = "
        "lower(?1 || '_rows') AND substr(lower(name), 1, length(?1) + 10) = lower(?1 || '_payload_$')",
        c->from);
    if (status == WW_OK)
        sqlite3_bind_text(s, 1, c->name, -1, SQLITE_STATIC);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(s, 0);
        status = path ? schema_run(c->db, "CREATE INDEX \"%w\".\"%w_payload_%w\" ON \"%w_rows\"(payload ->> %Q)", c->to,
                                   c->new_name, path, c->new_name, path)
                      : memory_failed("the path of an index", STORE_TEXT_BYTES);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(c->db, code, c->name);
    sqlite3_finalize(s);
    return status;
}

/* ---- collections --------------------------------------------------------------------------------------------------------- */

/* Drops the collection that is in the way. One of the same shape passes on its uid and its virtual table, so that handles
 * stay good. */
static ww_status drop_present(copying *c, int64_t *uid, bool *declared)
{
    collection_record present;
    *uid = 0;
    *declared = false;
    ww_status status = schema_find(c->db, c->to, c->new_name, &present);
    if (status == WW_NOT_FOUND)
        return WW_OK;
    if (status != WW_OK && status != WW_CORRUPT_FILE)
        return status;
    const bool same = status == WW_OK && c->name && present.dim == c->old.dim && present.metric == c->old.metric &&
                      present.type == c->old.type && strcmp(present.name, c->new_name) == 0;
    if (!same)
        return collection_drop(c->db, c->new_name);
    *uid = present.uid;
    status = collection_is_declared(c->db, c->new_name, declared);
    return status == WW_OK ? schema_drop(c->db, c->to, c->new_name) : status;
}

/* Makes the collection's tables and its record, with the counters of the old one. */
static ww_status make(copying *c)
{
    const ww_collection_config config = {.name = c->new_name, .dim = c->old.dim, .metric = c->old.metric, .type = c->old.type};
    int64_t uid = 0;
    bool declared = false;
    ww_status status = drop_present(c, &uid, &declared);
    if (status == WW_OK)
        status = schema_create(c->db, c->to, &config, declared, &c->new);
    if (status == WW_OK && uid != 0)
        status = schema_run(c->db, "UPDATE \"%w\".warpwave_collections SET uid = %lld WHERE uid = %lld", c->to, (long long)uid,
                            (long long)c->new.uid);
    if (status != WW_OK)
        return status;
    c->new.uid = uid != 0 ? uid : c->new.uid;
    c->new.format = c->old.format;
    c->new.next_handle = c->old.next_handle;
    c->new.next_place = c->old.next_place;
    c->new.sequence = c->old.sequence;
    c->new.log_start = c->old.log_start;
    c->new.live = c->old.live;
    c->new.digest = c->old.digest;
    status = schema_update(c->db, c->to, &c->new);
    return status == WW_OK && !declared ? collection_declare(c->db, c->to, &config) : status;
}

static ww_status copy_collection(copying *c)
{
    static const char *const SUFFIXES[] = {"_rows", "_vectors", "_removed"};
    ww_status status = schema_find(c->db, c->from, c->name, &c->old);
    if (status == WW_OK && !record_has_checksums(&c->old))
        return ww_fail(WW_UNSUPPORTED, "collection '%s': an earlier version wrote it; upgrade the store first", c->old.name);
    if (status == WW_OK)
        status = make(c);
    c->name = c->old.name; /* as its tables are called */
    for (size_t i = 0; status == WW_OK && i < sizeof SUFFIXES / sizeof *SUFFIXES; i++)
        status = copy_rows(c, SUFFIXES[i]);
    if (status == WW_OK)
        status = copy_texts(c);
    if (status == WW_OK)
        status = copy_sparse(c);
    if (status == WW_OK)
        status = copy_multi(c);
    if (status == WW_OK)
        status = copy_ivf(c);
    if (status == WW_OK)
        status = copy_indexes(c);
    if (status == WW_OK)
        status = copy_about(c, "warpwave_models", models_prepare);
    if (status == WW_OK)
        status = copy_about(c, "warpwave_notes", notes_prepare);
    return status == WW_OK ? keep_note(c) : status;
}

/* Called by SQLite while statements run. */
static int look(void *user)
{
    copying *c = user;
    c->cancelled = c->cancelled || progress_tell(c->asked->progress, c->asked->user, c->done, c->asked->count);
    return c->cancelled;
}

static ww_status copy_all(copying *c)
{
    int64_t uid = 0;
    bool declared = false;
    sqlite3_progress_handler(c->db, INSTRUCTIONS_BETWEEN_LOOKS, look, c);
    ww_status status = schema_prepare(c->db, c->to);
    for (; status == WW_OK && c->done < c->asked->count; c->done++) {
        c->name = c->asked->names[c->done];
        c->new_name = c->asked->to ? c->asked->to[c->done] : c->name;
        status = c->name ? copy_collection(c) : drop_present(c, &uid, &declared);
    }
    sqlite3_progress_handler(c->db, 0, NULL, NULL);
    if (status == WW_OK)
        (void)look(c);
    return c->cancelled ? ww_fail(WW_CANCELLED, "%s: cancelled; nothing was changed", c->function) : status;
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

static ww_status check_call(const copying *c, ww_store *store, const char *path)
{
    ww_status status = store_check_handle(store, c->function);
    if (status == WW_OK)
        status = store_check_writable(store);
    if (status != WW_OK)
        return status;
    const bool drops = strcmp(c->from, "main") != 0; /* only ww_store_restore() may */
    if (!path || (c->asked->count > 0 && !c->asked->names) || c->asked->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s", c->function,
                       path ? "names is NULL, or count is negative" : "path is NULL");
    for (int64_t i = 0; i < c->asked->count; i++)
        if ((!c->asked->names[i] && (!drops || !c->asked->to)) || (c->asked->to && !c->asked->to[i]))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: name %lld is NULL", c->function, (long long)i);
    if (c->asked->note_key && (!c->asked->note || c->asked->count == 0 || !c->asked->names[0] ||
                               strlen(c->asked->note_key) >= WW_NOTE_KEY_BYTES || strlen(c->asked->note) >= WW_NOTE_BYTES))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the note has no text or no collection, or is too long", c->function);
    return WW_OK;
}

static ww_status attach(const copying *c, const char *path, const char *schema)
{
    ww_status status = sqlite_check_file(path);
    if (status == WW_OK)
        status = schema_run(c->db, "ATTACH %Q AS %s", path, schema);
    return status == WW_OK ? schema_run(c->db, "PRAGMA %s.mmap_size = 0", schema) : status;
}

/* The new file has the page size of the store; its own connection has no other user. */
static ww_status copy_out(copying *c, const char *path)
{
    bool has = false;
    const int64_t page = schema_pragma(c->db, "page_size");
    ww_status status = attach(c, path, "other");
    if (status == WW_OK)
        status = schema_run(c->db, "PRAGMA other.page_size = %lld", (long long)page);
    if (status == WW_OK)
        status = schema_run(c->db, "PRAGMA other.auto_vacuum = incremental");
    if (status == WW_OK)
        status = schema_run(c->db, "BEGIN");
    if (status == WW_OK)
        status = store_has_collections(c->db, &has);
    if (status == WW_OK && !has && c->asked->count > 0)
        status = ww_fail(WW_NOT_FOUND, "there is no collection '%s' in the store", c->asked->names[0]);
    if (status == WW_OK)
        status = copy_all(c);
    if (status == WW_OK)
        status = schema_run(c->db, "COMMIT");
    return status == WW_OK ? schema_run(c->db, "PRAGMA other.journal_mode = wal") : status; /* as every store */
}

ww_status ww_store_backup_collections(ww_store *store, const char *path, const ww_store_copy *copy)
{
    FLOAT_GUARD();
    ww_store_copy asked;
    struct stat file;
    copying c = {.asked = &asked, .function = "ww_store_backup_collections", .from = "main", .to = "other"};
    ww_status status = struct_read(&asked, sizeof asked, copy, c.function, "ww_store_copy");
    if (status == WW_OK)
        status = check_call(&c, store, path);
    if (status != WW_OK)
        return status;
    const bool there = stat(path, &file) == 0;
    if (there && (!S_ISREG(file.st_mode) || file.st_size > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s exists already", c.function, path);
    status = store_connect(store, false, &c.db);
    if (status == WW_OK)
        status = copy_out(&c, path);
    if (sqlite3_close(c.db) != SQLITE_OK && status == WW_OK)
        status = ww_fail(WW_INTERNAL, "%s: %s could not be closed", c.function, path);
    if (status != WW_OK && !there)
        (void)unlink(path);
    return status;
}

/* The check of the other file counts rows; the call counts collections, none of which is copied yet. */
static int tell_check(int64_t done, int64_t total, void *user)
{
    const ww_store_copy *asked = user;
    (void)done, (void)total;
    return asked->progress(0, asked->count, asked->user);
}

/* Checks the other file before anything is copied from it. `record` gets its first collection. */
static ww_status check_other(const copying *c, const ww_store *store, const char *path, collection_record *record)
{
    struct stat file;
    ww_store *other = NULL;
    ww_store_config config = ww_store_config_default();
    config.must_exist = 1;
    config.busy_ms = store->config.busy_ms;
    if (stat(path, &file) == 0 && (uint64_t)file.st_dev == store->file.file_device &&
        (uint64_t)file.st_ino == store->file.file_inode)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is the store itself", c->function, path);
    ww_status status = ww_store_open(path, store->device, &config, &other);
    if (status == WW_OK)
        status = ww_store_check(other, c->asked->progress ? tell_check : NULL, (void *)(uintptr_t)c->asked);
    for (int64_t i = 0; status == WW_OK && i < c->asked->count; i++)
        if (c->asked->names[i])
            status = store_find_record(other, c->asked->names[i], record);
    ww_store_close(other);
    return status;
}

static ww_status copy_in(copying *c, const ww_store *store, const char *path)
{
    ww_status status = attach(c, path, "other");
    if (status == WW_OK)
        status = schema_run(c->db, "BEGIN IMMEDIATE");
    if (status == WW_OK)
        status = copy_all(c);
    if (status == WW_OK)
        status = store_check_place(store);
    return status == WW_OK ? schema_run(c->db, "COMMIT") : status;
}

ww_status ww_store_restore(ww_store *store, const char *path, const ww_store_copy *copy)
{
    FLOAT_GUARD();
    ww_store_copy asked;
    collection_record record = {.dim = 1};
    bool has = false;
    copying c = {.asked = &asked, .function = "ww_store_restore", .from = "other", .to = "main"};
    ww_status status = struct_read(&asked, sizeof asked, copy, c.function, "ww_store_copy");
    if (status == WW_OK)
        status = check_call(&c, store, path);
    if (status == WW_OK)
        status = check_other(&c, store, path, &record);
    if (status == WW_OK)
        status = store_connect(store, false, &c.db);
    if (status == WW_OK)
        status = store_has_collections(c.db, &has);
    if (status == WW_OK && !has) {
        sqlite3_close(c.db);
        c.db = NULL;
        status = store_prepare_file(store, record_vector_bytes(&record));
        if (status == WW_OK)
            status = store_connect(store, false, &c.db);
    }
    if (status == WW_OK)
        status = copy_in(&c, store, path);
    sqlite3_close(c.db); /* rolls back what was not committed */
    return status;
}
