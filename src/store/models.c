/* Which model made the vectors of a collection: a table with the collections' uids, created with the first model. */
#include <stddef.h>
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

typedef struct model_field {
    const char *name; /* of the column in the table */
    size_t offset, room;
} model_field;

#define FIELD(field) {#field, offsetof(ww_store_model, field), sizeof((ww_store_model){0}.field)}
static const model_field FIELDS[] = {FIELD(name),    FIELD(fingerprint),  FIELD(path),
                                     FIELD(pooling), FIELD(query_prefix), FIELD(document_prefix)};
enum { FIELD_COUNT = sizeof FIELDS / sizeof *FIELDS, FIELDS_FIRST = 3 }; /* the first three are in every file */

static const char *field_of(const ww_store_model *m, int i)
{
    return (const char *)m + FIELDS[i].offset;
}

static ww_status check_model(const ww_store_model *m)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (!is_text(field_of(m, i), FIELDS[i].room))
            return ww_fail(WW_INVALID_ARGUMENT, "ww_store_set_model: %s is not UTF-8 or longer than %zu bytes", FIELDS[i].name,
                           FIELDS[i].room - 1);
    if (m->fingerprint[0] == '\0')
        return ww_fail(WW_INVALID_ARGUMENT, "ww_store_set_model: the fingerprint is empty");
    return WW_OK;
}

/* Counts the columns that the table has: 0 if no model was ever stored, the first three in files of older versions. */
static ww_status count_columns(sqlite3 *db, const char *schema, int *count)
{
    sqlite3_stmt *asked = NULL;
    ww_status status = schema_statement(db, &asked, "SELECT count(*) FROM pragma_table_info('warpwave_models', %Q)", schema);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(asked);
    *count = code == SQLITE_ROW ? sqlite3_column_int(asked, 0) - 1 : 0; /* without the uid */
    if (code != SQLITE_ROW)
        status = sqlite_failed(db, code, "reading the model of a collection");
    sqlite3_finalize(asked);
    return status;
}

/* Uses the writing connection. */
ww_status store_read_model(ww_store *store, const collection_record *record, ww_store_model *model)
{
    sqlite3_stmt *found = NULL;
    int columns = 0, code = SQLITE_DONE;
    ww_status status = count_columns(store->writer, "main", &columns);
    if (status == WW_OK && columns >= FIELDS_FIRST)
        status = schema_statement(
            store->writer, &found, "SELECT name, fingerprint, path%s FROM main.warpwave_models WHERE uid = %lld",
            columns >= FIELD_COUNT ? ", pooling, query_prefix, document_prefix" : "", (long long)record->uid);
    if (status == WW_OK && found)
        code = sqlite3_step(found);
    if (code == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(found); i++) {
            const char *text = (const char *)sqlite3_column_text(found, i);
            text_copy((char *)model + FIELDS[i].offset, FIELDS[i].room, text ? text : "");
        }
    } else if (status == WW_OK && code == SQLITE_DONE) {
        status = ww_fail(WW_NOT_FOUND, "no model is kept with the collection '%s'", record->name);
    } else if (status == WW_OK) {
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
    status = store_read_model(store, &record, &found);
    store_unlock(store);
    return status == WW_OK ? struct_write(model, &found, sizeof found, function, "ww_store_model") : status;
}

static ww_status check_kept(const collection_record *record, const ww_store_model *kept, const ww_store_model *model)
{
    if (strcmp(kept->fingerprint, model->fingerprint) != 0)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "the vectors of the collection '%s' were made by the model '%s' (%.16s...), not by '%s' (%.16s...); vectors of two "
            "models cannot be compared",
            record->name, kept->name, kept->fingerprint, model->name, model->fingerprint);
    if (record->live > 0 &&
        (strcmp(kept->query_prefix, model->query_prefix) != 0 || strcmp(kept->document_prefix, model->document_prefix) != 0))
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "the vectors of the collection '%s' were made with the prefixes '%s' for documents and '%s' for queries, "
            "not '%s' and '%s'; make another collection for those",
            record->name, kept->document_prefix, kept->query_prefix, model->document_prefix, model->query_prefix);
    return WW_OK;
}

ww_status models_prepare(sqlite3 *db, const char *schema)
{
    int columns = 0;
    ww_status status =
        schema_run(db,
                   "CREATE TABLE IF NOT EXISTS \"%w\".warpwave_models(uid INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                   "fingerprint TEXT NOT NULL, path TEXT NOT NULL, pooling TEXT NOT NULL DEFAULT '', query_prefix "
                   "TEXT NOT NULL DEFAULT '', document_prefix TEXT NOT NULL DEFAULT '')",
                   schema);
    if (status == WW_OK)
        status = count_columns(db, schema, &columns);
    for (int i = columns; status == WW_OK && columns >= FIELDS_FIRST && i < FIELD_COUNT; i++)
        status =
            schema_run(db, "ALTER TABLE \"%w\".warpwave_models ADD COLUMN %s TEXT NOT NULL DEFAULT ''", schema, FIELDS[i].name);
    return status;
}

static ww_status write_model(ww_store *store, const collection_record *record, const ww_store_model *model)
{
    ww_store_model kept = {0};
    ww_status status = store_read_model(store, record, &kept);
    status = status == WW_OK ? check_kept(record, &kept, model) : status == WW_NOT_FOUND ? WW_OK : status;
    if (status == WW_OK)
        status = models_prepare(store->writer, "main");
    if (status == WW_OK) /* delete the models of dropped collections */
        status = schema_run(store->writer,
                            "DELETE FROM main.warpwave_models WHERE uid NOT IN (SELECT uid FROM main.warpwave_collections)");
    if (status == WW_OK)
        status = schema_run(store->writer,
                            "INSERT OR REPLACE INTO main.warpwave_models(uid, name, fingerprint, path, pooling, query_prefix, "
                            "document_prefix) VALUES(%lld, %Q, %Q, %Q, %Q, %Q, %Q)",
                            (long long)record->uid, model->name, model->fingerprint, model->path, model->pooling,
                            model->query_prefix, model->document_prefix);
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
