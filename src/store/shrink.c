/* Giving space back in steps: a step deletes some of the vectors of removed rows and moves some pages from the end of the file
 * to free places before it. Each is a short transaction, so others read and write between them. Rows keep their numbers.
 */
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/status.h"
#include "store/store_state.h"

enum { AUTO_VACUUM_INCREMENTAL = 2 };

#define REMOVED_VECTORS "main.\"%w_removed\" AS r CROSS JOIN main.\"%w_vectors\" AS v ON v.place = r.place"

static ww_status check_file(ww_store *store)
{
    if (schema_pragma(store->writer, "auto_vacuum") == AUTO_VACUUM_INCREMENTAL)
        return WW_OK;
    return ww_fail(
        WW_UNSUPPORTED,
        "%s cannot give space back in steps: an earlier version made it, or another program; compacting a collection "
        "at once, without steps, prepares the file",
        store->path);
}

static ww_status delete_vectors(const ww_store *store, const char *name, int64_t rows)
{
    return schema_run(store->writer,
                      "DELETE FROM main.\"%w_vectors\" WHERE place IN (SELECT r.place FROM " REMOVED_VECTORS " LIMIT %lld)",
                      name, name, name, (long long)rows);
}

static ww_status count_left(const ww_store *store, const collection_record *record, int64_t *bytes)
{
    sqlite3_stmt *counting = NULL;
    const ww_status status =
        schema_statement(store->writer, &counting, "SELECT count(*) FROM " REMOVED_VECTORS, record->name, record->name);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(counting);
    const int64_t rows = code == SQLITE_ROW ? sqlite3_column_int64(counting, 0) : 0;
    sqlite3_finalize(counting);
    *bytes = rows * record_vector_bytes(record) +
             schema_pragma(store->writer, "freelist_count") * schema_pragma(store->writer, "page_size");
    return code == SQLITE_ROW ? WW_OK : sqlite_failed(store->writer, code, "counting the vectors of removed rows");
}

/* The caller has checked the arguments. */
static ww_status shrink_some(ww_store *store, const char *collection, int64_t bytes, int64_t *left)
{
    collection_record record;
    ww_status status = store_begin(store);
    if (status != WW_OK)
        return status;
    status = check_file(store);
    if (status == WW_OK)
        status = schema_find(store->writer, "main", collection, &record);
    if (status == WW_OK)
        status = delete_vectors(store, record.name, max_i64(bytes / record_vector_bytes(&record), 1));
    status = store_end(store, status);
    if (status == WW_OK)
        status = store_lock(store);
    if (status != WW_OK)
        return status;
    const int64_t pages = max_i64(bytes / max_i64(schema_pragma(store->writer, "page_size"), 1), 1);
    status = schema_run(store->writer, "PRAGMA main.incremental_vacuum(%lld)", (long long)min_i64(pages, INT32_MAX));
    if (status == WW_OK) /* the file itself becomes shorter as soon as no reader needs its end */
        (void)sqlite3_wal_checkpoint_v2(store->writer, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (status == WW_OK)
        status = count_left(store, &record, left);
    store_unlock(store);
    return status;
}

ww_status ww_store_shrink(ww_store *store, const char *collection, int64_t bytes, int64_t *left)
{
    FLOAT_GUARD();
    static const char function[] = "ww_store_shrink";
    collection_record record;
    int64_t rest = 0;
    ww_status status = store_check_handle(store, function);
    if (status != WW_OK)
        return status;
    if (!collection || bytes < 1)
        return ww_fail(WW_INVALID_ARGUMENT, collection ? "%s: bytes is %lld; it must be at least 1" : "%s: collection is NULL",
                       function, (long long)bytes);
    status = store_check_writable(store);
    if (status == WW_OK) /* an empty file has no list of collections */
        status = store_find_record(store, collection, &record);
    if (status == WW_OK)
        status = shrink_some(store, collection, bytes, &rest);
    if (status == WW_OK && left)
        *left = rest;
    return status;
}
