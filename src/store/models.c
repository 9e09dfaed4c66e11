/* Which model made the vectors of a collection: a table of its own, made when the first is kept, by the collections' uids. */
#include <string.h>

#include "base/float_guard.h"
#include "base/status.h"
#include "base/structs.h"
#include "base/text.h"
#include "store/store_state.h"

STRUCT_INIT(ww_store_model, {0})

static bool is_text(const char *text, size_t room)
{
    const size_t length = strnlen(text, room);
    return length < room && utf8_check(text, length);
}

static ww_status check_model(const ww_store_model *m)
{
    if (!is_text(m->name, sizeof m->name) || !is_text(m->fingerprint, sizeof m->fingerprint) ||
        !is_text(m->path, sizeof m->path))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_set_model: name, fingerprint or path is too long or no UTF-8");
    if (m->fingerprint[0] == '\0')
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_set_model: the fingerprint is empty");
    return WW_OK;
}

static void copy_column(sqlite3_stmt *found, int column, char *to, size_t room)
{
    const char *text = (const char *)sqlite3_column_text(found, column);
    text_copy(to, room, text ? text : "");
}

/* What is kept for a collection, with the writing connection. WW_NOT_FOUND if nothing is. */
static ww_status read_model(ww_store *store, const collection_record *record, ww_store_model *model)
{
    sqlite3_stmt *found = NULL;
    ww_status status = schema_statement(store->writer, &found,
                                        "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'warpwave_models'");
    const bool there = status == WW_OK && sqlite3_step(found) == SQLITE_ROW;
    sqlite3_finalize(found);
    found = NULL;
    if (status == WW_OK && there)
        status =
            schema_statement(store->writer, &found, "SELECT name, fingerprint, path FROM main.warpwave_models WHERE uid = %lld",
                             (long long)record->uid);
    if (status != WW_OK)
        return status;
    const int code = there ? sqlite3_step(found) : SQLITE_DONE;
    if (code == SQLITE_ROW) {
        copy_column(found, 0, model->name, sizeof model->name);
        copy_column(found, 1, model->fingerprint, sizeof model->fingerprint);
        copy_column(found, 2, model->path, sizeof model->path);
    } else if (code == SQLITE_DONE) {
        status = ww_fail(WW_NOT_FOUND, "no model is kept with the collection '%s'", record->name);
    } else {
        status = sqlite_failed(store->writer, code, "reading the model of a collection");
    }
    sqlite3_finalize(found);
    return status;
}

ww_status ww_store_get_model(ww_store *store, const char *collection, ww_store_model *model)
{
    FLOAT_GUARD();
    static const char function[] = "ww_store_get_model";
    collection_record record;
    ww_store_model found = {0};
    ww_status status = store_check_handle(store, function);
    if (status != WW_OK)
        return status;
    if (!collection || !model)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, collection ? "model" : "collection");
    status = store_find_record(store, collection, &record);
    if (status == WW_OK)
        status = store_lock(store);
    if (status != WW_OK)
        return status;
    status = read_model(store, &record, &found);
    store_unlock(store);
    return status == WW_OK ? struct_write(model, &found, sizeof found, function, "ww_store_model") : status;
}

static ww_status write_model(ww_store *store, const collection_record *record, const ww_store_model *model)
{
    ww_store_model kept = {0};
    ww_status status = read_model(store, record, &kept);
    if (status == WW_OK && strcmp(kept.fingerprint, model->fingerprint) != 0)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "the vectors of the collection '%s' are of the model '%s' (%.16s...), not of '%s' (%.16s...); vectors of two "
            "models cannot be compared",
            record->name, kept.name, kept.fingerprint, model->name, model->fingerprint);
    if (status != WW_OK && status != WW_NOT_FOUND)
        return status;
    status = schema_run(store->writer,
                        "CREATE TABLE IF NOT EXISTS main.warpwave_models(uid INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                        "fingerprint TEXT NOT NULL, path TEXT NOT NULL)");
    if (status == WW_OK) /* of collections that were dropped */
        status = schema_run(store->writer,
                            "DELETE FROM main.warpwave_models WHERE uid NOT IN (SELECT uid FROM main.warpwave_collections)");
    if (status == WW_OK)
        status = schema_run(store->writer, "INSERT OR REPLACE INTO main.warpwave_models VALUES(%lld, %Q, %Q, %Q)",
                            (long long)record->uid, model->name, model->fingerprint, model->path);
    return status;
}

ww_status ww_store_set_model(ww_store *store, const char *collection, const ww_store_model *model)
{
    FLOAT_GUARD();
    static const char function[] = "ww_store_set_model";
    collection_record record;
    ww_store_model m;
    ww_status status = store_check_handle(store, function);
    if (status == WW_OK && !collection)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: collection is NULL", function);
    if (status == WW_OK)
        status = struct_read(&m, sizeof m, model, function, "ww_store_model");
    if (status == WW_OK)
        status = check_model(&m);
    if (status == WW_OK)
        status = store_find_record(store, collection, &record);
    if (status == WW_OK)
        status = store_begin(store);
    return status == WW_OK ? store_end(store, write_model(store, &record, &m)) : status;
}
