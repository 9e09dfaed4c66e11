/* The tables of an index: made, dropped, renamed, read. */
#include "store/ivf/tables.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "base/status.h"

enum { REASON_BYTES = 512 };

static const char *const SUFFIXES[] = {"_ivf", "_ivf_lists", "_ivf_centroids", "_ivf_rows", "_ivf_rules"};
enum { SUFFIX_COUNT = sizeof SUFFIXES / sizeof *SUFFIXES };

#define HEADER_COLUMNS                                                                                                         \
    "built, changed, version, nlist, loss, rows_trained, rows_added, first_place, lists_split, calibration_k, "                \
    "calibration_queries, calibration_rows_added, calibration_rows, calibration_time"
enum { HEADER_NUMBERS = 14 };

/* ---- damage -------------------------------------------------------------------------------------------------------------- */

ww_status ivf_damaged(const char *name, const char *format, ...)
{
    char reason[REASON_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return ww_fail(WW_CORRUPT_FILE,
                   "collection '%s': its index is damaged: %s. No row is lost; build the index again, or drop it", name,
                   reason);
}

ww_status ivf_explain(const char *name, ww_status status)
{
    char reason[REASON_BYTES];
    if (status != WW_CORRUPT_FILE || strstr(ww_error_message(), "': its index "))
        return status;
    snprintf(reason, sizeof reason, "%s", ww_error_message());
    return ivf_damaged(name, "%s", reason);
}

/* ---- the tables ---------------------------------------------------------------------------------------------------------- */

/* The SQL index over lists keeps its name when the collection is renamed. */
ww_status ivf_tables_create(const ivf_tables *t)
{
    static const char *const DECLARATIONS[SUFFIX_COUNT] = {
        ("(built INTEGER, changed INTEGER, version INTEGER, nlist INTEGER, loss REAL, rows_trained INTEGER, rows_added "
         "INTEGER, "
         "first_place INTEGER, lists_split INTEGER, calibration_k INTEGER, calibration_queries INTEGER, calibration_rows_added "
         "INTEGER, calibration_rows INTEGER, calibration_time INTEGER)"),
        ("(list INTEGER PRIMARY KEY, rows INTEGER, farthest REAL, nearest REAL, unbounded INTEGER, was_split INTEGER, "
         "equal_rows INTEGER, changed INTEGER)"),
        "(list INTEGER PRIMARY KEY, centroid BLOB, checksum INTEGER)",
        "(place INTEGER PRIMARY KEY, list INTEGER)",
        "(found INTEGER PRIMARY KEY, nprobe INTEGER, factor REAL)",
    };
    ww_status status = ivf_tables_drop(t->db, t->schema, t->record->name);
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++)
        status = schema_run(t->db, "CREATE TABLE IF NOT EXISTS \"%w\".\"%w%s\"%s", t->schema, t->record->name, SUFFIXES[i],
                            DECLARATIONS[i]);
    return status;
}

ww_status ivf_index_lists(const ivf_tables *t)
{
    return schema_run(t->db, "CREATE INDEX IF NOT EXISTS \"%w\".\"warpwave_ivf_%lld\" ON \"%w_ivf_rows\"(list)", t->schema,
                      (long long)t->record->uid, t->record->name);
}

/* SQLite cannot drop a table while a statement runs, and an SQL command runs inside one. In that case the table is emptied. */
ww_status ivf_tables_drop(sqlite3 *db, const char *schema, const char *name)
{
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++) {
        status = schema_run(db, "DROP TABLE IF EXISTS \"%w\".\"%w%s\"", schema, name, SUFFIXES[i]);
        if (status != WW_OK && (sqlite3_errcode(db) & 0xff) == SQLITE_LOCKED)
            status = schema_run(db, "DELETE FROM \"%w\".\"%w%s\"", schema, name, SUFFIXES[i]);
    }
    return status;
}

static ww_status is_there(sqlite3 *db, const char *schema, const char *name, bool *there)
{
    sqlite3_stmt *found = NULL;
    const ww_status status = schema_statement(
        db, &found, "SELECT 1 FROM \"%w\".sqlite_schema WHERE type = 'table' AND lower(name) = lower(%Q)", schema, name);
    *there = status == WW_OK && sqlite3_step(found) == SQLITE_ROW;
    sqlite3_finalize(found);
    return status;
}

/* Tables that a damaged index lacks stay missing. */
ww_status ivf_tables_rename(sqlite3 *db, const char *schema, const char *name, const char *to)
{
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < SUFFIX_COUNT; i++) {
        bool there = false;
        char *table = sqlite3_mprintf("%s%s", name, SUFFIXES[i]);
        status = table ? is_there(db, schema, table, &there) : memory_failed("the name of a table", strlen(name));
        if (status == WW_OK && there)
            status = schema_run(db, "ALTER TABLE \"%w\".\"%w\" RENAME TO \"%w%s\"", schema, table, to, SUFFIXES[i]);
        sqlite3_free(table);
    }
    return status;
}

uint64_t ivf_centroid_checksum(int64_t list, const void *centroid, size_t bytes)
{
    return checksum_bytes(centroid, bytes) ^ checksum_mark(list, -1);
}

/* Adds a column unless it exists, or the table does not. */
static ww_status add_column(const ivf_tables *t, const char *suffix, const char *column)
{
    sqlite3_stmt *s = NULL;
    bool missing = false;
    ww_status status =
        schema_statement(t->db, &s, "SELECT count(*) > 0 AND sum(name = %Q) = 0 FROM pragma_table_info('%q%q', %Q)", column,
                         t->record->name, suffix, t->schema);
    const int code = status == WW_OK ? sqlite3_step(s) : SQLITE_DONE;
    if (code == SQLITE_ROW)
        missing = sqlite3_column_int(s, 0) != 0;
    else if (status == WW_OK)
        status = sqlite_failed(t->db, code, t->record->name);
    sqlite3_finalize(s);
    return missing ? schema_run(t->db, "ALTER TABLE \"%w\".\"%w%w\" ADD COLUMN %s INTEGER DEFAULT 0", t->schema,
                                t->record->name, suffix, column)
                   : status;
}

static ww_status upgrade_centroids(const ivf_tables *t)
{
    sqlite3_stmt *read = NULL, *write = NULL;
    int code = SQLITE_DONE;
    ww_status status =
        schema_statement(t->db, &read, "SELECT list, centroid FROM \"%w\".\"%w_ivf_centroids\"", t->schema, t->record->name);
    if (status == WW_OK)
        status = schema_statement(t->db, &write, "UPDATE \"%w\".\"%w_ivf_centroids\" SET checksum = ?2 WHERE list = ?1",
                                  t->schema, t->record->name);
    while (status == WW_OK && (code = sqlite3_step(read)) == SQLITE_ROW) {
        const int64_t list = sqlite3_column_int64(read, 0);
        const void *centroid = sqlite3_column_blob(read, 1);
        const size_t bytes = (size_t)sqlite3_column_bytes(read, 1);
        sqlite3_bind_int64(write, 1, list);
        sqlite3_bind_int64(write, 2, (int64_t)ivf_centroid_checksum(list, centroid ? centroid : "", bytes));
        status = schema_step(write);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    sqlite3_finalize(read);
    sqlite3_finalize(write);
    return status;
}

ww_status ivf_upgrade(const ivf_tables *t)
{
    ww_status status = add_column(t, "_ivf", "calibration_rows");
    if (status == WW_OK)
        status = add_column(t, "_ivf", "calibration_time");
    if (status == WW_OK)
        status = add_column(t, "_ivf_centroids", "checksum");
    if (status == WW_OK)
        status = upgrade_centroids(t);
    return status == WW_CORRUPT_FILE ? WW_OK : status; /* a query that needs the index says so */
}

/* ---- the header ---------------------------------------------------------------------------------------------------------- */

static bool header_is_sound(const ivf_tables *t, const ivf_header *h)
{
    return h->nlist >= 1 && h->nlist <= WW_IVF_LISTS_MAX && h->built >= 0 && h->built <= h->changed &&
           h->changed <= t->record->sequence && h->rows_trained >= 0 && h->rows_added >= 0 && h->rows_added < INT64_MAX / 4 &&
           h->first_place >= 0 && h->first_place <= t->record->next_place && h->lists_split >= 0 && h->calibration_k >= 0 &&
           h->calibration_k <= CALIBRATION_K_MAX && h->calibration_queries >= 0 && h->calibration_rows_added >= 0 &&
           h->calibration_rows_added <= h->rows_added + t->record->next_place - h->first_place && h->calibration_rows >= 0 &&
           h->calibration_rows <= WW_ROWS_MAX && h->calibration_time >= 0;
}

/* Was the header written by a version that did not know all of its columns? */
static bool header_is_old(const ivf_tables *t)
{
    sqlite3_stmt *s = NULL;
    const ww_status status =
        schema_statement(t->db, &s, "SELECT built, calibration_rows_added FROM \"%w\".\"%w_ivf\"", t->schema, t->record->name);
    const bool old = status == WW_OK && sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return old;
}

ww_status ivf_header_read(const ivf_tables *t, ivf_header *header)
{
    sqlite3_stmt *s = NULL;
    ww_status status =
        schema_statement(t->db, &s, "SELECT " HEADER_COLUMNS " FROM \"%w\".\"%w_ivf\" LIMIT 2", t->schema, t->record->name);
    if (status == WW_CORRUPT_FILE && !record_has_checksums(t->record) && header_is_old(t))
        return ww_fail(WW_CORRUPT_FILE,
                       "collection '%s': its index was built by an earlier version, whose tables lack columns; the next write "
                       "adds them, and so does 'warpwave store upgrade'",
                       t->record->name);
    if (status != WW_OK)
        return ivf_explain(t->record->name, status);
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        int64_t values[HEADER_NUMBERS];
        for (int i = 0; i < HEADER_NUMBERS; i++)
            values[i] = sqlite3_column_int64(s, i);
        *header = (ivf_header){values[0],  values[1],  values[2],  values[3], sqlite3_column_double(s, 4),
                               values[5],  values[6],  values[7],  values[8], values[9],
                               values[10], values[11], values[12], values[13]};
        code = sqlite3_step(s);
        if (code == SQLITE_ROW || !header_is_sound(t, header))
            status = ivf_damaged(t->record->name, "its header is invalid");
    } else if (code == SQLITE_DONE) {
        status = ivf_damaged(t->record->name, "it has no header");
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = ivf_explain(t->record->name, sqlite_failed(t->db, code, t->record->name));
    sqlite3_finalize(s);
    return status;
}

ww_status ivf_header_write(const ivf_tables *t, const ivf_header *h)
{
    sqlite3_stmt *s = NULL;
    ww_status status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_ivf\"", t->schema, t->record->name);
    if (status == WW_OK)
        status = schema_statement(t->db, &s,
                                  "INSERT INTO \"%w\".\"%w_ivf\"(" HEADER_COLUMNS
                                  ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                                  t->schema, t->record->name);
    if (status == WW_OK) {
        const int64_t values[HEADER_NUMBERS] = {h->built,
                                                h->changed,
                                                h->version,
                                                h->nlist,
                                                0,
                                                h->rows_trained,
                                                h->rows_added,
                                                h->first_place,
                                                h->lists_split,
                                                h->calibration_k,
                                                h->calibration_queries,
                                                h->calibration_rows_added,
                                                h->calibration_rows,
                                                h->calibration_time};
        for (int i = 0; i < HEADER_NUMBERS; i++)
            sqlite3_bind_int64(s, i + 1, values[i]);
        sqlite3_bind_double(s, 5, h->loss);
        status = schema_step(s);
    }
    sqlite3_finalize(s);
    return ivf_explain(t->record->name, status);
}

int64_t ivf_rows_added(const ivf_tables *t, const ivf_header *header)
{
    return header->rows_added + t->record->next_place - header->first_place;
}

/* ---- rules --------------------------------------------------------------------------------------------------------------- */

ww_status ivf_rules_read(const ivf_tables *t, const ivf_header *header, ivf_rule **rules)
{
    sqlite3_stmt *s = NULL;
    *rules = NULL;
    if (header->calibration_k == 0)
        return WW_OK;
    ivf_rule *made = memory_alloc((size_t)header->calibration_k * sizeof *made);
    if (!made)
        return memory_failed("the calibration of an index", (size_t)header->calibration_k * sizeof *made);
    ww_status status = schema_statement(t->db, &s, "SELECT found, nprobe, factor FROM \"%w\".\"%w_ivf_rules\" ORDER BY found",
                                        t->schema, t->record->name);
    int64_t count = 0;
    int code = SQLITE_DONE;
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const ivf_rule rule = {sqlite3_column_int64(s, 1), sqlite3_column_double(s, 2)};
        if (count == header->calibration_k || sqlite3_column_int64(s, 0) != count + 1 || rule.nprobe < 1 ||
            rule.nprobe > WW_IVF_LISTS_MAX || !(rule.factor >= 0.0) || isinf(rule.factor))
            status = ivf_damaged(t->record->name, "rule %lld of its calibration is invalid", (long long)count + 1);
        else
            made[count++] = rule;
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    if (status == WW_OK && count != header->calibration_k)
        status = ivf_damaged(t->record->name, "its calibration has %lld rules instead of %lld", (long long)count,
                             (long long)header->calibration_k);
    sqlite3_finalize(s);
    if (status == WW_OK)
        *rules = made;
    else
        memory_free(made);
    return ivf_explain(t->record->name, status);
}

ww_status ivf_rules_write(const ivf_tables *t, const ivf_calibration *calibration)
{
    sqlite3_stmt *s = NULL;
    ww_status status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_ivf_rules\"", t->schema, t->record->name);
    if (status == WW_OK)
        status = schema_statement(t->db, &s, "INSERT INTO \"%w\".\"%w_ivf_rules\"(found, nprobe, factor) VALUES(?1, ?2, ?3)",
                                  t->schema, t->record->name);
    for (int32_t i = 0; status == WW_OK && i < calibration->k; i++) {
        sqlite3_bind_int64(s, 1, i + 1);
        sqlite3_bind_int64(s, 2, calibration->rules[i].nprobe);
        sqlite3_bind_double(s, 3, calibration->rules[i].factor);
        status = schema_step(s);
    }
    sqlite3_finalize(s);
    return ivf_explain(t->record->name, status);
}

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

ww_status ivf_list_from_row(const ivf_tables *t, sqlite3_stmt *row, int first, list_record *list)
{
    const bool numbers =
        sqlite3_column_type(row, first + 1) == SQLITE_FLOAT && sqlite3_column_type(row, first + 2) == SQLITE_FLOAT;
    *list = (list_record){.rows = sqlite3_column_int64(row, first),
                          .farthest = (float)sqlite3_column_double(row, first + 1),
                          .nearest = (float)sqlite3_column_double(row, first + 2),
                          .unbounded = sqlite3_column_int(row, first + 3) != 0,
                          .was_split = sqlite3_column_int(row, first + 4) != 0,
                          .equal_rows = sqlite3_column_int64(row, first + 5)};
    if (numbers && list->rows >= 0 && list->rows <= t->record->live && list->equal_rows >= 0 && list->equal_rows <= WW_ROWS_MAX)
        return WW_OK;
    return ivf_damaged(t->record->name, "the numbers of a list are invalid");
}

void ivf_list_bind(sqlite3_stmt *statement, int first, const list_record *list)
{
    sqlite3_bind_int64(statement, first, list->rows);
    sqlite3_bind_double(statement, first + 1, (double)list->farthest);
    sqlite3_bind_double(statement, first + 2, (double)list->nearest);
    sqlite3_bind_int(statement, first + 3, list->unbounded);
    sqlite3_bind_int(statement, first + 4, list->was_split);
    sqlite3_bind_int64(statement, first + 5, list->equal_rows);
}

void ivf_lists_free(ivf_lists *lists)
{
    memory_free(lists->records);
    memory_free(lists->changed);
    memory_free(lists->centroids);
    *lists = (ivf_lists){0};
}

/* Reads the records of all lists; `changed` gets the lists that writes after `since` changed. */
static ww_status read_records(const ivf_tables *t, const ivf_header *header, int64_t since, ivf_lists *lists)
{
    sqlite3_stmt *s = NULL;
    int64_t count = 0, rows = 0;
    int code = SQLITE_DONE;
    ww_status status =
        schema_statement(t->db, &s, "SELECT list, changed, " IVF_LIST_COLUMNS " FROM \"%w\".\"%w_ivf_lists\" ORDER BY list",
                         t->schema, t->record->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (count == header->nlist || sqlite3_column_int64(s, 0) != count)
            status = ivf_damaged(t->record->name, "its lists are not numbered from 0 to %lld", (long long)header->nlist - 1);
        else
            status = ivf_list_from_row(t, s, 2, &lists->records[count]);
        if (status != WW_OK)
            break;
        rows += lists->records[count].rows;
        if (since < 0 || sqlite3_column_int64(s, 1) > since)
            lists->changed[lists->changed_count++] = (uint32_t)count;
        count++;
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    if (status == WW_OK && count != header->nlist)
        status = ivf_damaged(t->record->name, "it has %lld lists instead of %lld", (long long)count, (long long)header->nlist);
    if (status == WW_OK && rows != t->record->live)
        status = ivf_damaged(t->record->name, "its lists count %lld rows; there are %lld", (long long)rows,
                             (long long)t->record->live);
    sqlite3_finalize(s);
    return status;
}

static ww_status read_centroids(const ivf_tables *t, ivf_lists *lists)
{
    sqlite3_stmt *s = NULL;
    const size_t bytes = (size_t)t->record->dim * sizeof *lists->centroids;
    const bool has_checksums = record_has_checksums(t->record);
    ww_status status = schema_statement(t->db, &s, "SELECT centroid, %s FROM \"%w\".\"%w_ivf_centroids\" WHERE list = ?1",
                                        has_checksums ? "checksum" : "NULL", t->schema, t->record->name);
    for (int64_t i = 0; status == WW_OK && i < lists->changed_count; i++) {
        float *to = lists->centroids + i * t->record->dim;
        sqlite3_bind_int64(s, 1, lists->changed[i]);
        const int code = sqlite3_step(s);
        const bool whole =
            code == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_BLOB && (size_t)sqlite3_column_bytes(s, 0) == bytes;
        if (whole)
            memcpy(to, sqlite3_column_blob(s, 0), bytes);
        if (code != SQLITE_ROW && code != SQLITE_DONE)
            status = sqlite_failed(t->db, code, t->record->name);
        else if (!whole || !vector_is_finite(to, t->record->dim))
            status = ivf_damaged(t->record->name, "the centroid of list %u is missing or not finite", lists->changed[i]);
        else if (has_checksums && (uint64_t)sqlite3_column_int64(s, 1) != ivf_centroid_checksum(lists->changed[i], to, bytes))
            status = ivf_damaged(t->record->name, "the centroid of list %u is not the one that was written (checksum)",
                                 lists->changed[i]);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return status;
}

ww_status ivf_lists_read(const ivf_tables *t, const ivf_header *header, int64_t since, ivf_lists *lists)
{
    *lists = (ivf_lists){.records = memory_alloc((size_t)header->nlist * sizeof *lists->records),
                         .changed = memory_alloc((size_t)header->nlist * sizeof *lists->changed)};
    ww_status status = lists->records && lists->changed
                           ? WW_OK
                           : memory_failed("the lists of an index", (size_t)header->nlist * sizeof *lists->records);
    if (status == WW_OK)
        status = read_records(t, header, since, lists);
    const size_t bytes = (size_t)lists->changed_count * (size_t)t->record->dim * sizeof *lists->centroids;
    if (status == WW_OK && !(lists->centroids = memory_alloc(bytes)))
        status = memory_failed("the centroids of an index", bytes);
    if (status == WW_OK)
        status = read_centroids(t, lists);
    if (status != WW_OK)
        ivf_lists_free(lists);
    return ivf_explain(t->record->name, status);
}
