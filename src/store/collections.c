/* The collections of a store: made, opened, dropped, listed, indexed. */
#include <string.h>

#include "arithmetic/row_types.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"
#include "base/text.h"
#include "store/ivf/tables.h"
#include "store/page_size.h"
#include "store/store_state.h"
#include "store/upgrade.h"
#include "vectors/collection.h"
#include "vectors/query/results.h"

enum { DESCRIPTION_BYTES = 256, JSON_PATH_BYTES_MAX = 200 };

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

void stored_destroy(ww_collection *base)
{
    stored *c = stored_of(base);
    readers_close(c->idle);
    if (c->writer || c->written) {
        store_lock_for_good(c->store);
        writer_close(c->writer);
        view_close(c->written);
        store_unlock(c->store);
    }
    collection_release(&c->base);
    pthread_mutex_destroy(&c->lock);
    ww_store_close(c->store);
    memory_free(c);
}

ww_status stored_is(const stored *c, const collection_record *record)
{
    if (record->uid != c->uid)
        return ww_fail(WW_NOT_FOUND, "collection '%s' was dropped, and another one has its name; open that", c->base.name);
    if (record->dim == c->base.dim && record->metric == c->base.metric && record->type == c->base.type)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': its entry in warpwave_collections was changed while it was open",
                   c->base.name);
}

/* A ww_collection for the record. */
static ww_status open_record(ww_store *store, const collection_record *record, const ww_collection_config *like,
                             ww_collection **collection)
{
    ww_collection_config config = *like;
    config.name = record->name;
    config.dim = record->dim;
    config.metric = record->metric;
    config.type = record->type;
    stored *c = memory_alloc_zeroed(1, sizeof *c);
    if (!c)
        return memory_failed("a collection of a store", sizeof *c);
    store_retain(store);
    c->store = store;
    c->uid = record->uid;
    pthread_mutex_init(&c->lock, NULL);
    ww_status status = collection_init(&c->base, store->device, &config, &STORED_OPERATIONS);
    const view_config written = {.db = store->writer,
                                 .schema = "main",
                                 .name = record->name,
                                 .device = c->base.device,
                                 .screen = c->base.screen,
                                 .keep_host_copy = c->base.keep_host_copy,
                                 .rows = c->base.rows};
    if (status == WW_OK)
        status = view_open(&written, &c->written);
    if (status == WW_OK)
        status = writer_open(store->writer, "main", record->name, &c->writer);
    if (status == WW_OK)
        *collection = &c->base;
    else
        stored_destroy(&c->base);
    return status;
}

/* Reads in a transaction of its own. */
ww_status store_find_record(ww_store *store, const char *name, collection_record *record)
{
    bool has = false;
    ww_status status = store_lock(store);
    if (status != WW_OK)
        return status;
    status = store_has_collections(store->writer, &has);
    if (status == WW_OK)
        status = has ? schema_find(store->writer, "main", name, record)
                     : ww_fail(WW_NOT_FOUND, "there is no collection '%s' in the store", name);
    store_unlock(store);
    return status;
}

ww_status ww_store_collection(ww_store *store, const char *name, ww_collection **collection)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_collection");
    if (status != WW_OK)
        return status;
    if (!name || !collection)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_collection: %s is NULL", name ? "collection" : "name");
    collection_record record;
    ww_collection_config config = ww_collection_config_default();
    config.rows = store->config.rows;
    status = store_find_record(store, name, &record);
    return status == WW_OK ? open_record(store, &record, &config, collection) : status;
}

/* ---- making and dropping ------------------------------------------------------------------------------------------------- */

ww_status store_prepare_file(ww_store *store, int64_t vector_bytes)
{
    const int32_t page = store->config.page_bytes ? store->config.page_bytes : page_bytes_for(vector_bytes);
    ww_status status = store_check_writable(store);
    if (status == WW_OK)
        status = store_lock(store);
    if (status != WW_OK)
        return status;
    status = schema_run(store->writer, "PRAGMA page_size = %d", page);
    if (status == WW_OK) /* pages that are free can be given back step by step: ww_store_shrink() */
        status = schema_run(store->writer, "PRAGMA auto_vacuum = incremental");
    if (status == WW_OK)
        status = store_enter_wal(store);
    store_unlock(store);
    return status;
}

ww_status collection_declare(sqlite3 *db, const char *schema, const ww_collection_config *config)
{
    return schema_run(db, "CREATE VIRTUAL TABLE \"%w\".\"%w\" USING warpwave(dim=%d, metric=%s, type=%s)", schema, config->name,
                      config->dim, ww_metric_name(config->metric), ww_vector_type_name(config->type));
}

ww_status ww_store_create(ww_store *store, const ww_collection_config *config, ww_collection **collection)
{
    FLOAT_GUARD();
    static const char function[] = "ww_store_create";
    ww_collection_config checked;
    ww_status status = store_check_handle(store, function);
    if (status == WW_OK)
        status = struct_read(&checked, sizeof checked, config, function, "ww_collection_config");
    if (status != WW_OK)
        return status;
    if (!checked.name)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: config->name is NULL; a collection of a store has a name", function);
    if (!ww_screen_name(checked.screen))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: screen is %d; it must be WW_SCREEN_INT8 or WW_SCREEN_NONE", function,
                       (int)checked.screen);
    collection_record record = {0};
    status = collection_check_rows(function, &checked);
    if (status == WW_OK)
        status = store_prepare_file(store, checked.dim * (int64_t)row_type_bytes((int32_t)checked.type));
    if (status == WW_OK)
        status = store_begin(store);
    if (status != WW_OK)
        return status;
    status = schema_create(store->writer, "main", &checked, false, &record);
    if (status == WW_OK)
        status = collection_declare(store->writer, "main", &checked);
    status = store_end(store, status);
    return status == WW_OK && collection ? open_record(store, &record, &checked, collection) : status;
}

ww_status collection_is_declared(sqlite3 *db, const char *name, bool *declared)
{
    sqlite3_stmt *found = NULL;
    const ww_status status =
        schema_statement(db, &found,
                         "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0 AND lower(name) = "
                         "lower(%Q)",
                         name);
    if (status != WW_OK)
        return status;
    *declared = sqlite3_step(found) == SQLITE_ROW;
    sqlite3_finalize(found);
    return WW_OK;
}

ww_status collection_drop(sqlite3 *db, const char *name)
{
    bool declared = false;
    const ww_status status = collection_is_declared(db, name, &declared);
    if (status != WW_OK)
        return status;
    return declared ? schema_run(db, "DROP TABLE main.\"%w\"", name) : schema_drop(db, "main", name);
}

ww_status ww_store_drop(ww_store *store, const char *name)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_drop");
    if (status == WW_OK && !name)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_drop: name is NULL");
    collection_record record;
    if (status == WW_OK)
        status = store_find_record(store, name, &record); /* a new file has no table to look in */
    if (status == WW_OK || status == WW_CORRUPT_FILE)     /* a damaged collection can be dropped */
        status = store_begin(store);
    return status == WW_OK ? store_end(store, collection_drop(store->writer, name)) : status;
}

/* Renames the virtual table, whose module renames the other tables. Refuses a name that another table has, because SQLite would
 * report it as an internal error. */
static ww_status rename_collection(ww_store *store, const char *name, const char *to)
{
    bool declared = false;
    ww_status status = collection_is_declared(store->writer, name, &declared);
    if (status == WW_OK && declared)
        status = schema_check_name(store->writer, "main", to, false);
    if (status != WW_OK)
        return status;
    status = declared ? schema_run(store->writer, "ALTER TABLE main.\"%w\" RENAME TO \"%w\"", name, to)
                      : schema_rename(store->writer, "main", name, to, false);
    return status == WW_OK ? schema_rename_indexes(store->writer, "main", name, to) : status;
}

ww_status ww_store_rename(ww_store *store, const char *name, const char *to)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_rename");
    if (status == WW_OK && (!name || !to))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_rename: %s is NULL", name ? "to" : "name");
    collection_record record;
    if (status == WW_OK)
        status = store_find_record(store, name, &record);
    if (status == WW_OK)
        status = store_begin(store);
    return status == WW_OK ? store_end(store, rename_collection(store, record.name, to)) : status;
}

/* ---- listing ------------------------------------------------------------------------------------------------------------- */

/* The model of a collection as a JSON member of its description, "" if it has none. From sqlite3_malloc(). */
static ww_status model_text(ww_store *store, const collection_record *record, char **text)
{
    ww_store_model m = {0};
    sqlite3_stmt *made = NULL;
    ww_status status = store_read_model(store, record, &m);
    *text = NULL;
    if (status == WW_NOT_FOUND)
        return WW_OK;
    if (status == WW_OK)
        status =
            schema_statement(store->writer, &made,
                             "SELECT json_object('name', %Q, 'fingerprint', %Q, 'path', %Q, 'pooling', %Q, 'query_prefix', %Q, "
                             "'document_prefix', %Q)",
                             m.name, m.fingerprint, m.path, m.pooling, m.query_prefix, m.document_prefix);
    if (status == WW_OK && sqlite3_step(made) == SQLITE_ROW)
        *text = sqlite3_mprintf(",\"model\":%s", (const char *)sqlite3_column_text(made, 0));
    if (status == WW_OK && !*text)
        status = ww_fail(WW_OUT_OF_MEMORY, "no memory for the description of a collection");
    sqlite3_finalize(made);
    return status;
}

/* The index of a collection as a JSON member of its description. A single statement reads it, so it is a snapshot. */
static ww_status index_text(ww_store *store, const collection_record *record, char **text)
{
    sqlite3_stmt *s = NULL;
    *text = NULL;
    if (!ivf_is_there(record))
        return WW_OK;
    const ww_status status = schema_statement(
        store->writer, &s,
        "SELECT json_object('nlist', nlist, 'rows_trained', rows_trained, 'rows_added', added, 'lists_split', lists_split, "
        "'calibration_queries', calibration_queries, 'calibration_k', calibration_k, 'calibration_rows_added', "
        "iif(calibration_k > 0, added - calibration_rows_added, 0), 'calibration_rows_removed', "
        "iif(calibration_k > 0, calibration_rows + added - calibration_rows_added - live, 0), 'calibration_time', "
        "calibration_time) FROM (SELECT i.*, i.rows_added + c.next_place - i.first_place AS added, c.live AS live "
        "FROM main.\"%w_ivf\" AS i, warpwave_collections AS c WHERE c.uid = %lld)",
        record->name, (long long)record->uid);
    if (status == WW_OUT_OF_MEMORY)
        return status;
    const bool found = status == WW_OK && sqlite3_step(s) == SQLITE_ROW;
    *text = sqlite3_mprintf(",\"index\":%s", found ? (const char *)sqlite3_column_text(s, 0) : "{\"error\":\"it is damaged\"}");
    sqlite3_finalize(s);
    return *text ? WW_OK : ww_fail(WW_OUT_OF_MEMORY, "no memory for the description of a collection");
}

static ww_status describe(ww_store *store, const collection_record *r, char **text)
{
    char *model = NULL, *index = NULL;
    const bool readable = !r->is_damaged && !r->is_newer;
    ww_status status = readable ? model_text(store, r, &model) : WW_OK;
    if (status == WW_OK && readable)
        status = index_text(store, r, &index);
    if (status != WW_OK) {
        sqlite3_free(model);
        return status;
    }
    if (r->is_damaged)
        *text = sqlite3_mprintf("{\"error\":\"" RECORD_DAMAGED "\"}");
    else if (r->is_newer)
        *text = sqlite3_mprintf("{\"error\":\"a newer version wrote it, in format %lld\"}", (long long)r->format);
    else
        *text = sqlite3_mprintf("{\"dim\":%d,\"metric\":\"%s\",\"type\":\"%s\",\"rows\":%lld,\"format\":%lld%s%s}", r->dim,
                                ww_metric_name(r->metric), ww_vector_type_name(r->type), (long long)r->live,
                                (long long)r->format, model ? model : "", index ? index : "");
    sqlite3_free(model);
    sqlite3_free(index);
    return *text ? WW_OK : ww_fail(WW_OUT_OF_MEMORY, "no memory for the description of a collection");
}

/* The caller holds the store's lock. */
static ww_status list_results(ww_store *store, const collection_record *records, int64_t count, ww_results **results)
{
    ww_results *made = NULL;
    ww_status status = results_create(1, count, &made);
    if (status == WW_OK) {
        made->starts[1] = count;
        status = results_prepare(made, WW_FETCH_IDS | WW_FETCH_PAYLOADS, 1,
                                 (size_t)count * (COLLECTION_NAME_BYTES_MAX + DESCRIPTION_BYTES) + 1);
    }
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        char *text = NULL;
        const collection_record *r = &records[i];
        made->rows[i] = i;
        made->handles[i] = r->uid;
        made->scores[i] = 0.0f;
        status = describe(store, r, &text);
        if (status == WW_OK)
            status = results_put(made, &made->ids[i], r->name, strlen(r->name));
        if (status == WW_OK)
            status = results_put(made, &made->payloads[i], text, strlen(text));
        sqlite3_free(text);
    }
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

static ww_status list_records(ww_store *store, collection_record **records, int64_t *count)
{
    bool has = false;
    *records = NULL;
    *count = 0;
    ww_status status = store_lock(store);
    if (status != WW_OK)
        return status;
    status = store_has_collections(store->writer, &has);
    if (status == WW_OK && has)
        status = schema_list(store->writer, "main", records, count);
    store_unlock(store);
    return status;
}

ww_status ww_store_list(ww_store *store, ww_results **results)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_list");
    if (status != WW_OK)
        return status;
    if (!results)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_list: results is NULL");
    collection_record *records = NULL;
    int64_t count = 0;
    status = list_records(store, &records, &count);
    if (status == WW_OK)
        status = store_lock(store);
    if (status == WW_OK) {
        status = list_results(store, records, count, results);
        store_unlock(store);
    }
    memory_free(records);
    return status;
}

ww_status ww_store_describe(ww_store *store, ww_store_info *info)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_describe");
    if (status != WW_OK)
        return status;
    if (!info)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_describe: info is NULL");
    collection_record *records = NULL;
    ww_store_info found = {.format = STORE_FORMAT};
    status = list_records(store, &records, &found.collections);
    for (int64_t i = 0; status == WW_OK && i < found.collections; i++)
        if (!records[i].is_damaged && records[i].format > found.format)
            found.format = records[i].format;
    memory_free(records);
    if (status == WW_OK)
        status = store_lock(store);
    if (status != WW_OK)
        return status;
    found.page_bytes = schema_pragma(store->writer, "page_size");
    found.bytes_unused = schema_pragma(store->writer, "freelist_count") * found.page_bytes;
    store_unlock(store);
    found.bytes_file = store_bytes_with_suffix(store, "");
    found.bytes_wal = store_bytes_with_suffix(store, "-wal");
    found.bytes_memory = mirror_file_bytes(&store->file);
    text_copy(found.sqlite_version, sizeof found.sqlite_version, sqlite3_libversion());
    return struct_write(info, &found, sizeof found, "ww_store_describe", "ww_store_info");
}

/* ---- indexes ------------------------------------------------------------------------------------------------------------- */

/* "$.lang", "$.a.b", "$.list[0]", "$.\"a b\"": the path becomes part of a statement, in quotes, so any path that SQLite accepts
 * is fine. This check only refuses what cannot be a path. */
static ww_status path_check(const char *path)
{
    const size_t length = strnlen(path, JSON_PATH_BYTES_MAX + 1);
    if (path[0] == '$' && length > 1 && length <= JSON_PATH_BYTES_MAX)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "ww_store_index: path is '%.*s'; it must begin with $ and have 2 to %d bytes, such as \"$.lang\"",
                   JSON_PATH_BYTES_MAX, path, JSON_PATH_BYTES_MAX);
}

/* SQLite checks a path only when it reads the first row, so a bad path for an empty collection must be found here. */
static ww_status path_try(sqlite3 *db, const char *path)
{
    sqlite3_stmt *tried = NULL;
    ww_status status = schema_statement(db, &tried, "SELECT '{}' ->> %Q", path);
    if (status == WW_OK && sqlite3_step(tried) != SQLITE_ROW)
        status = ww_fail(WW_INVALID_ARGUMENT, "ww_store_index: path is '%s': %s", path, sqlite3_errmsg(db));
    sqlite3_finalize(tried);
    return status;
}

ww_status ww_store_index(ww_store *store, const char *collection, const char *path)
{
    FLOAT_GUARD();
    ww_status status = store_check_handle(store, "ww_store_index");
    if (status != WW_OK)
        return status;
    if (!collection || !path)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_index: %s is NULL", collection ? "path" : "collection");
    collection_record record;
    status = path_check(path);
    if (status == WW_OK)
        status = store_find_record(store, collection, &record);
    if (status == WW_OK)
        status = store_begin(store);
    if (status != WW_OK)
        return status;
    status = path_try(store->writer, path);
    if (status == WW_OK)
        status = schema_run(store->writer, "CREATE INDEX IF NOT EXISTS main.\"%w_payload_%w\" ON \"%w_rows\"(payload ->> %Q)",
                            record.name, path, record.name, path);
    return store_end(store, status);
}

/* ---- formats ------------------------------------------------------------------------------------------------------------- */

static ww_status upgrade_one(ww_store *store, const char *name, ww_progress progress, void *user)
{
    collection_record record;
    ww_status status = store_begin(store);
    if (status != WW_OK)
        return status;
    status = schema_find(store->writer, "main", name, &record);
    if (status == WW_OK)
        status = upgrade_collection(&(upgrade){store->writer, "main", &record, progress, user});
    status = store_end(store, status);
    return status == WW_NOT_FOUND ? WW_OK : status; /* it was dropped meanwhile */
}

ww_status ww_store_upgrade(ww_store *store, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    collection_record *records = NULL;
    int64_t count = 0;
    ww_status status = store_check_handle(store, "ww_store_upgrade");
    if (status == WW_OK)
        status = store_check_writable(store);
    if (status == WW_OK)
        status = list_records(store, &records, &count);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        if (!records[i].is_damaged && !records[i].is_newer && !record_has_checksums(&records[i]))
            status = upgrade_one(store, records[i].name, progress, user);
    memory_free(records);
    return status;
}
