/* The tables of a store. Callers choose the names of collections, so names reach SQL only quoted (%w) or bound. */
#include "store/schema.h"

#include <stdarg.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "store/ivf/tables.h"
#include "store/multi/multi.h"
#include "store/sparse/sparse.h"
#include "store/texts/texts.h"
#include "store/upgrade.h"

static const char *const SUFFIXES[] = {"_rows", "_vectors", "_removed"}; /* of the tables that every collection has */
/* Suffixes of all tables that a collection may have, including those of FTS5. */
#define ALL_SUFFIXES                                                                                                           \
    "(VALUES('_rows'), ('_vectors'), ('_removed'), ('_fts'), ('_fts_data'), ('_fts_idx'), ('_fts_content'), "                  \
    "('_fts_docsize'), ('_fts_config'), ('_ivf'), ('_ivf_lists'), ('_ivf_centroids'), ('_ivf_rows'), ('_ivf_rules'), "         \
    "('_sparse'), ('_sparse_blocks'), ('_sparse_pending'), ('_multi'))"
enum { SUFFIX_COUNT = sizeof SUFFIXES / sizeof *SUFFIXES };

/* The last columns are all columns again, to find those that files of earlier versions lack. */
#define RECORD_COLUMNS                                                                                                         \
    "w.name, w.uid, w.epoch, w.dim, w.metric, w.type, w.format, w.next_handle, w.next_place, w.sequence, w.log_start, "        \
    "w.live, w.*"
enum { RECORD_NUMBERS = 12, DIGEST_USUAL = 2 * RECORD_NUMBERS };

int64_t schema_epoch(void)
{
    int64_t epoch;
    sqlite3_randomness(sizeof epoch, &epoch);
    return epoch;
}

int64_t record_vector_bytes(const collection_record *record)
{
    return (int64_t)record->dim * (int64_t)row_type_bytes((int32_t)record->type);
}

ww_status row_damaged(const char *name, const char *what, int64_t number)
{
    return ww_fail(WW_CORRUPT_FILE,
                   "collection '%s': %s %lld is not as it was written: its checksum differs. The disk or another program has "
                   "changed the file. Write or remove the row, or take the last backup",
                   name, what, (long long)number);
}

/* ---- statements ---------------------------------------------------------------------------------------------------------- */

static ww_status prepare(sqlite3 *db, sqlite3_stmt **statement, const char *format, va_list arguments)
{
    char *text = sqlite3_vmprintf(format, arguments);
    if (!text)
        return memory_failed("a statement of SQL", STORE_TEXT_BYTES);
    const int code = sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    const ww_status status = code == SQLITE_OK ? WW_OK : sqlite_failed(db, code, text);
    sqlite3_free(text);
    return status;
}

ww_status schema_statement(sqlite3 *db, sqlite3_stmt **statement, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const ww_status status = prepare(db, statement, format, arguments);
    va_end(arguments);
    return status;
}

ww_status schema_run(sqlite3 *db, const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list arguments;
    va_start(arguments, format);
    ww_status status = prepare(db, &statement, format, arguments);
    va_end(arguments);
    int code = SQLITE_ROW;
    while (status == WW_OK && code == SQLITE_ROW)
        code = sqlite3_step(statement);
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(db, code, sqlite3_sql(statement));
    sqlite3_finalize(statement);
    return status;
}

int64_t schema_pragma(sqlite3 *db, const char *pragma)
{
    sqlite3_stmt *asked = NULL;
    int64_t number = 0;
    if (schema_statement(db, &asked, "PRAGMA %s", pragma) == WW_OK && sqlite3_step(asked) == SQLITE_ROW)
        number = sqlite3_column_int64(asked, 0);
    sqlite3_finalize(asked);
    return number;
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

static ww_status name_is_sound(const char *name)
{
    const size_t length = name ? strnlen(name, COLLECTION_NAME_BYTES_MAX + 1) : 0;
    if (length == 0 || length > COLLECTION_NAME_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "the name of the collection %s; a name has 1 to %d bytes",
                       length == 0 ? "is empty" : "is too long", COLLECTION_NAME_BYTES_MAX);
    if (!utf8_check(name, length))
        return ww_fail(WW_INVALID_ARGUMENT, "the name of the collection, '%s', is not UTF-8", name);
    if (sqlite3_strnicmp(name, "sqlite_", 7) == 0 || sqlite3_strnicmp(name, "warpwave_", 9) == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': names that begin with sqlite_ or warpwave_ are reserved", name);
    return WW_OK;
}

/* Is there no table, view or index named NAME, or NAME with one of the suffixes, in any case? With `declared` a virtual table
 * named NAME does not count. */
static ww_status name_is_free(sqlite3 *db, const char *schema, const char *name, bool declared)
{
    sqlite3_stmt *found = NULL;
    ww_status status =
        schema_statement(db, &found,
                         "SELECT type, name FROM \"%w\".sqlite_schema WHERE lower(name) = lower(?1) AND NOT (?2 AND type = "
                         "'table' AND rootpage = 0) OR lower(name) IN (SELECT lower(?1 || column1) FROM " ALL_SUFFIXES ")",
                         schema);
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(found, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int(found, 2, declared);
    const int code = sqlite3_step(found);
    if (code == SQLITE_ROW)
        status = ww_fail(WW_INVALID_ARGUMENT, "collection '%s': the file has a %s named '%s' already; choose another name",
                         name, (const char *)sqlite3_column_text(found, 0), (const char *)sqlite3_column_text(found, 1));
    else if (code != SQLITE_DONE)
        status = sqlite_failed(db, code, "looking for a name");
    sqlite3_finalize(found);
    return status;
}

/* Refuses names such as `a_rows`, the name of a table of collection `a`: then `a` could not be dropped alone. */
static ww_status name_is_no_table_of(sqlite3 *db, const char *schema, const char *name)
{
    sqlite3_stmt *found = NULL;
    ww_status status = schema_statement(
        db, &found,
        "SELECT name FROM \"%w\".warpwave_collections WHERE lower(name) = lower(?1) OR EXISTS (SELECT 1 FROM " ALL_SUFFIXES
        " WHERE lower(?1) = lower(name || column1) OR lower(name) = lower(?1 || column1))",
        schema);
    if (status != WW_OK)
        return status;
    sqlite3_bind_text(found, 1, name, -1, SQLITE_STATIC);
    const int code = sqlite3_step(found);
    if (code == SQLITE_ROW)
        status = ww_fail(WW_INVALID_ARGUMENT, "collection '%s': there is a collection '%s' already; choose another name", name,
                         (const char *)sqlite3_column_text(found, 0));
    else if (code != SQLITE_DONE)
        status = sqlite_failed(db, code, "looking for a name");
    sqlite3_finalize(found);
    return status;
}

ww_status schema_check_name(sqlite3 *db, const char *schema, const char *name, bool declared)
{
    ww_status status = name_is_sound(name);
    if (status == WW_OK)
        status = name_is_no_table_of(db, schema, name);
    if (status == WW_OK)
        status = name_is_free(db, schema, name, declared);
    return status;
}

/* ---- records ------------------------------------------------------------------------------------------------------------- */

ww_status schema_prepare(sqlite3 *db, const char *schema)
{
    const ww_status status =
        schema_run(db,
                   "CREATE TABLE IF NOT EXISTS \"%w\".warpwave_collections("
                   "name TEXT NOT NULL UNIQUE COLLATE NOCASE, uid INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL, "
                   "dim INTEGER NOT NULL, metric TEXT NOT NULL, type TEXT NOT NULL, format INTEGER NOT NULL, "
                   "next_handle INTEGER NOT NULL, next_place INTEGER NOT NULL, sequence INTEGER NOT NULL, "
                   "log_start INTEGER NOT NULL, live INTEGER NOT NULL, digest INTEGER NOT NULL DEFAULT 0)",
                   schema);
    return status == WW_OK ? upgrade_list(db, schema) : status;
}

static bool metric_from_name(const char *name, ww_metric *metric)
{
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    for (size_t i = 0; name && i < sizeof metrics / sizeof *metrics; i++)
        if (strcmp(ww_metric_name(metrics[i]), name) == 0) {
            *metric = metrics[i];
            return true;
        }
    return false;
}

static bool type_from_name(const char *name, ww_vector_type *type)
{
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(ww_vector_type_name(types[i]), name) == 0) {
            *type = types[i];
            return true;
        }
    return false;
}

/* The number of the column `digest`; 0 if there is none. */
static int digest_column(sqlite3_stmt *row)
{
    const int count = sqlite3_column_count(row);
    if (count > DIGEST_USUAL && strcmp(sqlite3_column_name(row, DIGEST_USUAL), "digest") == 0)
        return DIGEST_USUAL;
    for (int i = RECORD_NUMBERS; i < count; i++)
        if (strcmp(sqlite3_column_name(row, i), "digest") == 0)
            return i;
    return 0;
}

/* Counting never gets there, and counting on from a valid record never overflows. */
static const int64_t COUNTER_MAX = INT64_MAX / 2;

/* Reads the current row of a statement over RECORD_COLUMNS. The format is checked first: in a newer format the other columns
 * may mean anything. */
static ww_status record_from_row(sqlite3_stmt *row, collection_record *record)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    text_copy(record->name, sizeof record->name, name ? name : "");
    record->format = sqlite3_column_int64(row, 6);
    if (record->format > STORE_FORMAT_INDEXED)
        return ww_fail(WW_UNSUPPORTED,
                       "collection '%s' was written in format %lld by a newer version; this one (%s) reads up to format %d",
                       record->name, (long long)record->format, WW_VERSION_TEXT, STORE_FORMAT_INDEXED);
    record->uid = sqlite3_column_int64(row, 1);
    record->epoch = sqlite3_column_int64(row, 2);
    const int64_t dim = sqlite3_column_int64(row, 3);
    record->dim = (int32_t)dim;
    const bool metric_known = metric_from_name((const char *)sqlite3_column_text(row, 4), &record->metric);
    const char *type = (const char *)sqlite3_column_text(row, 5);
    const bool type_known = type_from_name(type, &record->type);
    record->next_handle = sqlite3_column_int64(row, 7);
    record->next_place = sqlite3_column_int64(row, 8);
    record->sequence = sqlite3_column_int64(row, 9);
    record->log_start = sqlite3_column_int64(row, 10);
    record->live = sqlite3_column_int64(row, 11);
    const int digest = record_has_checksums(record) ? digest_column(row) : 0;
    record->digest = digest > 0 ? (uint64_t)sqlite3_column_int64(row, digest) : 0;
    if (record->format < 1 || (record_has_checksums(record) && digest == 0) || dim < 1 || dim > WW_DIM_MAX || !metric_known ||
        !type_known || record->next_handle < 0 || record->next_place < 0 || record->next_place > COUNTER_MAX ||
        record->sequence < 0 || record->sequence > COUNTER_MAX || record->live < 0 || record->live > WW_ROWS_MAX)
        return ww_fail(WW_CORRUPT_FILE, "collection '%s': " RECORD_DAMAGED " (format %lld, dim %lld, type '%s')", record->name,
                       (long long)record->format, (long long)dim, type ? type : "");
    return WW_OK;
}

ww_status schema_prepare_find(sqlite3 *db, const char *schema, const char *name, sqlite3_stmt **statement)
{
    const ww_status status = schema_statement(
        db, statement, "SELECT " RECORD_COLUMNS " FROM \"%w\".warpwave_collections AS w WHERE w.name = ?1", schema);
    if (status == WW_OK)
        sqlite3_bind_text(*statement, 1, name, -1, SQLITE_TRANSIENT);
    return status;
}

ww_status schema_read(sqlite3_stmt *statement, const char *name, collection_record *record)
{
    *record = (collection_record){0};
    const int code = sqlite3_step(statement);
    ww_status status;
    if (code == SQLITE_ROW)
        status = record_from_row(statement, record);
    else if (code == SQLITE_DONE)
        status = ww_fail(WW_NOT_FOUND, "there is no collection '%s' in the store", name);
    else
        status = sqlite_failed(sqlite3_db_handle(statement), code, "reading the list of collections");
    sqlite3_reset(statement);
    return status;
}

ww_status schema_find(sqlite3 *db, const char *schema, const char *name, collection_record *record)
{
    sqlite3_stmt *statement = NULL;
    ww_status status = schema_prepare_find(db, schema, name, &statement);
    if (status == WW_OK)
        status = schema_read(statement, name, record);
    sqlite3_finalize(statement);
    return status;
}

ww_status schema_step(sqlite3_stmt *statement)
{
    const int code = sqlite3_step(statement);
    const ww_status status =
        code == SQLITE_DONE ? WW_OK : sqlite_failed(sqlite3_db_handle(statement), code, sqlite3_sql(statement));
    sqlite3_reset(statement);
    return status;
}

ww_status schema_prepare_update(sqlite3 *db, const char *schema, sqlite3_stmt **statement)
{
    return schema_statement(
        db, statement,
        "UPDATE \"%w\".warpwave_collections SET epoch = ?2, next_handle = ?3, next_place = ?4, sequence = ?5, "
        "log_start = ?6, live = ?7, format = ?8, digest = ?9 WHERE uid = ?1",
        schema);
}

ww_status schema_update_by(sqlite3_stmt *statement, const collection_record *record)
{
    const int64_t values[] = {record->uid,       record->epoch, record->next_handle, record->next_place,     record->sequence,
                              record->log_start, record->live,  record->format,      (int64_t)record->digest};
    for (int i = 0; i < (int)(sizeof values / sizeof *values); i++)
        sqlite3_bind_int64(statement, i + 1, values[i]);
    return schema_step(statement);
}

ww_status schema_update(sqlite3 *db, const char *schema, const collection_record *record)
{
    sqlite3_stmt *statement = NULL;
    ww_status status = schema_prepare_update(db, schema, &statement);
    if (status == WW_OK)
        status = schema_update_by(statement, record);
    sqlite3_finalize(statement);
    return status;
}

ww_status schema_list(sqlite3 *db, const char *schema, collection_record **records, int64_t *count)
{
    sqlite3_stmt *statement = NULL;
    collection_record *list = NULL;
    int64_t found = 0, room = 0;
    ww_status status = schema_statement(
        db, &statement, "SELECT " RECORD_COLUMNS " FROM \"%w\".warpwave_collections AS w ORDER BY w.name", schema);
    int code = SQLITE_DONE;
    while (status == WW_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (found == room) {
            room = 2 * room + 8;
            collection_record *moved = memory_resize(list, (size_t)room * sizeof *list);
            if (!moved) {
                status = memory_failed("the list of collections", (size_t)room * sizeof *list);
                break;
            }
            list = moved;
        }
        list[found] = (collection_record){0};
        status = record_from_row(statement, &list[found]);
        list[found].is_damaged = status == WW_CORRUPT_FILE;
        list[found++].is_newer = status == WW_UNSUPPORTED;
        if (status == WW_CORRUPT_FILE || status == WW_UNSUPPORTED) /* one bad record must not hide the others */
            status = WW_OK;
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(db, code, "reading the list of collections");
    sqlite3_finalize(statement);
    if (status != WW_OK) {
        memory_free(list);
        return status;
    }
    *records = list;
    *count = found;
    return WW_OK;
}

/* ---- collections --------------------------------------------------------------------------------------------------------- */

static ww_status config_check(const ww_collection_config *config)
{
    if (config->dim < 1 || config->dim > WW_DIM_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "collection '%s': dim is %d; it must be 1 to %d", config->name, config->dim,
                       WW_DIM_MAX);
    if (!ww_metric_name(config->metric))
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': metric is %d; it must be WW_COSINE, WW_L2 or WW_DOT",
                       config->name, (int)config->metric);
    return WW_OK;
}

static ww_status create_tables(sqlite3 *db, const char *schema, const char *name)
{
    ww_status status =
        schema_run(db,
                   "CREATE TABLE \"%w\".\"%w_rows\"(handle INTEGER PRIMARY KEY, place INTEGER NOT NULL, checksum INTEGER NOT "
                   "NULL, text_checksum INTEGER, id TEXT NOT NULL UNIQUE, payload TEXT)",
                   schema, name);
    if (status == WW_OK)
        status = schema_run(
            db,
            "CREATE TABLE \"%w\".\"%w_vectors\"(place INTEGER PRIMARY KEY, handle INTEGER NOT NULL, checksum INTEGER "
            "NOT NULL, vector BLOB NOT NULL)",
            schema, name);
    if (status == WW_OK)
        status = schema_run(db,
                            "CREATE TABLE \"%w\".\"%w_removed\"(sequence INTEGER, place INTEGER, PRIMARY KEY(sequence, place)) "
                            "WITHOUT ROWID",
                            schema, name);
    return status;
}

ww_status schema_create(sqlite3 *db, const char *schema, const ww_collection_config *config, bool declared,
                        collection_record *record)
{
    collection_record made = {.epoch = schema_epoch()};
    ww_status status = schema_prepare(db, schema);
    if (status == WW_OK)
        status = schema_check_name(db, schema, config->name, declared);
    if (status == WW_OK)
        status = config_check(config);
    if (status == WW_OK)
        status = create_tables(db, schema, config->name);
    if (status == WW_OK)
        status = schema_run(db,
                            "INSERT INTO \"%w\".warpwave_collections(name, epoch, dim, metric, type, format, next_handle, "
                            "next_place, sequence, log_start, live) VALUES(%Q, %lld, %d, %Q, %Q, %d, %d, 0, 0, 0, 0)",
                            schema, config->name, made.epoch, config->dim, ww_metric_name(config->metric),
                            ww_vector_type_name(config->type), STORE_FORMAT, declared ? 1 : 0);
    if (status == WW_OK && record)
        status = schema_find(db, schema, config->name, record);
    return status;
}

ww_status schema_drop(sqlite3 *db, const char *schema, const char *name)
{
    collection_record record;
    ww_status status = schema_find(db, schema, name, &record);
    if (status == WW_CORRUPT_FILE)
        status = WW_OK; /* the name is all that is needed */
    if (status == WW_OK)
        status = texts_drop(&(text_tables){db, schema, name});
    if (status == WW_OK)
        status = sparse_drop(&(sparse_tables){db, schema, name});
    if (status == WW_OK)
        status = multi_table_drop(&(multi_table){db, schema, name});
    if (status == WW_OK)
        status = ivf_tables_drop(db, schema, name);
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++)
        status = schema_run(db, "DROP TABLE IF EXISTS \"%w\".\"%w%s\"", schema, name, SUFFIXES[i]);
    if (status == WW_OK)
        status = schema_run(db, "DELETE FROM \"%w\".warpwave_collections WHERE name = %Q COLLATE NOCASE", schema, name);
    return status;
}

/* Finds the path of an index over payloads whose name still has the old prefix, in `path` (sqlite3_free()); NULL if there is
 * none. The new prefix may begin with the old one: a name with the new prefix was already renamed. */
static ww_status index_to_rename(sqlite3 *db, const char *schema, const char *const prefixes[2], char **path)
{
    sqlite3_stmt *found = NULL;
    *path = NULL;
    ww_status status =
        schema_statement(db, &found,
                         "SELECT substr(name, length(?1) + 1) FROM \"%w\".sqlite_schema WHERE type = 'index' AND "
                         "substr(lower(name), 1, length(?1)) = lower(?1) AND substr(name, length(?1) + 1, 1) = '$' AND NOT "
                         "(length(?2) > length(?1) AND substr(lower(name), 1, length(?2)) = lower(?2)) LIMIT 1",
                         schema);
    if (status != WW_OK)
        return status;
    for (int i = 0; i < 2; i++)
        sqlite3_bind_text(found, i + 1, prefixes[i], -1, SQLITE_STATIC);
    const int code = sqlite3_step(found);
    if (code == SQLITE_ROW && !(*path = sqlite3_mprintf("%s", (const char *)sqlite3_column_text(found, 0))))
        status = ww_fail(WW_OUT_OF_MEMORY, "out of memory for the name of an index");
    else if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(db, code, "looking for indexes");
    sqlite3_finalize(found);
    return status;
}

/* SQLite cannot rename an index, so each is dropped and created again. */
ww_status schema_rename_indexes(sqlite3 *db, const char *schema, const char *name, const char *to)
{
    char *old = sqlite3_mprintf("%s_payload_", name), *new = sqlite3_mprintf("%s_payload_", to), *path = NULL;
    const char *const prefixes[] = {old, new};
    ww_status status = old && new ? WW_OK : ww_fail(WW_OUT_OF_MEMORY, "out of memory for the name of an index");
    while (status == WW_OK && (status = index_to_rename(db, schema, prefixes, &path)) == WW_OK && path) {
        status = schema_run(db, "DROP INDEX \"%w\".\"%w%w\"", schema, old, path);
        if (status == WW_OK)
            status = schema_run(db, "CREATE INDEX \"%w\".\"%w%w\" ON \"%w_rows\"(payload ->> %Q)", schema, new, path, to, path);
        sqlite3_free(path);
    }
    sqlite3_free(old);
    sqlite3_free(new);
    return status;
}

ww_status schema_rename(sqlite3 *db, const char *schema, const char *name, const char *to, bool declared)
{
    ww_status status = schema_check_name(db, schema, to, declared);
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++)
        status = schema_run(db, "ALTER TABLE \"%w\".\"%w%s\" RENAME TO \"%w%s\"", schema, name, SUFFIXES[i], to, SUFFIXES[i]);
    if (status == WW_OK)
        status = texts_rename(&(text_tables){db, schema, name}, to);
    if (status == WW_OK)
        status = sparse_rename(&(sparse_tables){db, schema, name}, to);
    if (status == WW_OK)
        status = multi_table_rename(&(multi_table){db, schema, name}, to);
    if (status == WW_OK)
        status = ivf_tables_rename(db, schema, name, to);
    if (status == WW_OK)
        status =
            schema_run(db, "UPDATE \"%w\".warpwave_collections SET name = %Q WHERE name = %Q COLLATE NOCASE", schema, to, name);
    return status;
}
