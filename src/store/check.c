/* Checking a store: the file must be sound and its tables must agree with each other. Everything is read in one transaction, so
 * concurrent writes do not matter.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/checksum.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "store/ivf/follow.h"
#include "store/multi/multi.h"
#include "store/sparse/sparse.h"
#include "store/store_state.h"
#include "store/texts/texts.h"
#include "vectors/write/payloads.h"

enum { FAULT_BYTES = 400, TOLD_ROWS = 4096 };

typedef struct checking {
    ww_store *store;
    sqlite3 *db;
    ww_progress progress;
    void *user;
    int64_t done, total; /* rows */
    int64_t faults;
    char first[FAULT_BYTES];
} checking;

__attribute__((format(printf, 2, 3))) static void fault(checking *k, const char *format, ...)
{
    if (k->faults++ > 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(k->first, sizeof k->first, format, arguments);
    va_end(arguments);
}

/* SQLite's own check, which returns "ok" or one line per fault. */
static ww_status check_integrity(checking *k)
{
    sqlite3_stmt *s = NULL;
    ww_status status = schema_statement(k->db, &s, "PRAGMA integrity_check(100)");
    if (status != WW_OK)
        return status;
    int code;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *line = (const char *)sqlite3_column_text(s, 0);
        if (!line || strcmp(line, "ok") != 0)
            fault(k, "SQLite: %s", line ? line : "no answer");
    }
    if (code != SQLITE_DONE)
        fault(k, "SQLite: %s", sqlite3_errmsg(k->db));
    sqlite3_finalize(s);
    return WW_OK;
}

static bool is_finite(const collection_record *record, const void *elements, float *wide)
{
    row_widen((int32_t)record->type, elements, record->dim, wide);
    return vector_is_finite(wide, record->dim);
}

/* A table that cannot be read is a fault of the file. The other collections are still checked. */
static ww_status unreadable(checking *k, const collection_record *record, ww_status status)
{
    if (status != WW_CORRUPT_FILE)
        return status;
    fault(k, "'%s': %s", record->name, ww_error_message());
    return WW_OK;
}

/* Checks every vector: its length, its values, its place, and that a row refers to it. */
static ww_status check_vectors(checking *k, const collection_record *record)
{
    sqlite3_stmt *s = NULL;
    int64_t count = 0;
    float *wide = memory_alloc((size_t)record->dim * sizeof *wide);
    if (!wide)
        return memory_failed("a vector", (size_t)record->dim * sizeof *wide);
    ww_status status =
        schema_statement(k->db, &s,
                         "SELECT v.place, v.handle, v.vector, r.place, %s, v.place IN (SELECT place FROM "
                         "main.\"%w_removed\") FROM main.\"%w_vectors\" AS v LEFT "
                         "JOIN main.\"%w_rows\" AS r ON r.handle = v.handle ORDER BY v.place",
                         record_has_checksums(record) ? "v.checksum" : "NULL", record->name, record->name, record->name);
    if (status != WW_OK) {
        memory_free(wide);
        return unreadable(k, record, status);
    }
    int code = SQLITE_DONE;
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const long long place = sqlite3_column_int64(s, 0), handle = sqlite3_column_int64(s, 1);
        if (sqlite3_column_int(s, 5)) /* it was removed */
            continue;
        const int bytes = sqlite3_column_bytes(s, 2);
        if (sqlite3_column_type(s, 2) != SQLITE_BLOB || bytes != record_vector_bytes(record))
            fault(k, "'%s': the vector at place %lld has %d bytes; %lld belong there", record->name, place, bytes,
                  (long long)record_vector_bytes(record));
        else if (!is_finite(record, sqlite3_column_blob(s, 2), wide))
            fault(k, "'%s': the vector at place %lld is not finite", record->name, place);
        else if (record_has_checksums(record) &&
                 !checksum_agrees(sqlite3_column_blob(s, 2), (size_t)bytes, handle, place, sqlite3_column_int64(s, 4)))
            fault(k, "'%s': the vector at place %lld differs from its checksum", record->name, place);
        if (place < 0 || place >= record->next_place)
            fault(k, "'%s': place %lld was never assigned", record->name, place);
        if (sqlite3_column_type(s, 3) == SQLITE_NULL || sqlite3_column_int64(s, 3) != place)
            fault(k, "'%s': the vector at place %lld belongs to no row (handle %lld)", record->name, place, handle);
        count++;
        if (++k->done % TOLD_ROWS == 0 && progress_tell(k->progress, k->user, k->done, k->total))
            status = ww_fail(WW_CANCELLED, "ww_store_check: cancelled after %lld of %lld rows", (long long)k->done,
                             (long long)k->total);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        fault(k, "'%s': reading its vectors: %s", record->name, sqlite3_errmsg(k->db));
    sqlite3_finalize(s);
    memory_free(wide);
    if (status == WW_OK && count != record->live)
        fault(k, "'%s': there are %lld vectors; the list of collections says %lld", record->name, (long long)count,
              (long long)record->live);
    return status;
}

/* Checks id and payload of the statement's current row against their checksum. Returns the entry's checksum; `vector` gets
 * that of its dense vector. */
static uint64_t check_entry(checking *k, const collection_record *record, sqlite3_stmt *s, uint64_t *vector)
{
    const int64_t handle = sqlite3_column_int64(s, 0);
    const uint64_t mark = checksum_mark(handle, sqlite3_column_int64(s, 1));
    const uint64_t entry = (uint64_t)sqlite3_column_int64(s, 5) ^ mark;
    const char *id = sqlite3_column_blob(s, 2), *payload = (const char *)sqlite3_column_text(s, 3);
    const checksum_parts parts = {id ? id : "", (size_t)sqlite3_column_bytes(s, 2), payload, (size_t)sqlite3_column_bytes(s, 3),
                                  (uint64_t)sqlite3_column_int64(s, 6)};
    if (checksum_entry(&parts) != entry)
        fault(k, "'%s': id or payload of handle %lld differ from their checksum", record->name, (long long)handle);
    *vector = (uint64_t)sqlite3_column_int64(s, 7) ^ mark;
    return entry;
}

/* Reads the checksums of sparse vectors and multivectors, which the digest has, too. */
typedef struct sparse_sums {
    sparse_tables tables;
    bool exist, multi_exist;
    sqlite3_stmt *read, *read_multi;
    ww_status status; /* why they could not be read, other than damage */
} sparse_sums;

/* The checksum of the statement's current row. Damage is reported by check_sparse(). */
static uint64_t check_row(checking *k, const collection_record *record, sqlite3_stmt *s, sparse_sums *sums)
{
    uint64_t vector = 0;
    const uint64_t entry = check_entry(k, record, s, &vector);
    ww_status status = sparse_checksum_at(&sums->tables, sums->exist, &sums->read, sqlite3_column_int64(s, 1), &vector);
    const multi_table multi = {k->db, "main", record->name};
    if (status == WW_OK)
        status = multi_checksum_at(&multi, sums->multi_exist, &sums->read_multi, sqlite3_column_int64(s, 1), &vector);
    sums->status = status == WW_CORRUPT_FILE ? sums->status : status;
    return checksum_row(entry, vector);
}

/* Checks every row: its vector, its number, its id and its payload. */
static ww_status check_rows(checking *k, const collection_record *record)
{
    sqlite3_stmt *s = NULL;
    int64_t count = 0;
    uint64_t digest = 0;
    ww_status status = schema_statement(k->db, &s,
                                        "SELECT r.handle, r.place, CAST(r.id AS BLOB), r.payload, v.handle, %s FROM "
                                        "main.\"%w_rows\" AS r LEFT JOIN main.\"%w_vectors\" AS v ON v.place = r.place",
                                        record_has_checksums(record) ? "r.checksum, r.text_checksum, v.checksum" : "0, 0, 0",
                                        record->name, record->name);
    sparse_sums sums = {.tables = {k->db, "main", record->name}};
    if (status == WW_OK)
        status = sparse_exist(&sums.tables, &sums.exist);
    if (status == WW_OK)
        status = multi_table_exists(&(multi_table){k->db, "main", record->name}, &sums.multi_exist);
    if (status != WW_OK) {
        sqlite3_finalize(s);
        return unreadable(k, record, status);
    }
    int code = SQLITE_DONE;
    while (sums.status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const long long handle = sqlite3_column_int64(s, 0);
        const char *id = sqlite3_column_blob(s, 2);
        const int id_bytes = sqlite3_column_bytes(s, 2);
        const char *payload = (const char *)sqlite3_column_text(s, 3);
        if (handle < 0 || handle >= record->next_handle)
            fault(k, "'%s': handle %lld was never assigned", record->name, handle);
        if (id_bytes < 1 || id_bytes > WW_ID_BYTES_MAX)
            fault(k, "'%s': the id of handle %lld has %d bytes", record->name, handle, id_bytes);
        else if (!utf8_check(id, (size_t)id_bytes))
            fault(k, "'%s': the id of handle %lld is not UTF-8; give the row another one", record->name, handle);
        if (sqlite3_column_type(s, 4) == SQLITE_NULL || sqlite3_column_int64(s, 4) != handle)
            fault(k, "'%s': the row with handle %lld has no vector", record->name, handle);
        if (payload && payload_check(record->name, 0, payload) != WW_OK)
            fault(k, "'%s': the payload of handle %lld is not JSON", record->name, handle);
        if (record_has_checksums(record))
            digest += check_row(k, record, s, &sums);
        count++;
    }
    if (sums.status == WW_OK && code != SQLITE_DONE)
        fault(k, "'%s': reading its rows: %s", record->name, sqlite3_errmsg(k->db));
    sqlite3_finalize(s);
    sqlite3_finalize(sums.read);
    sqlite3_finalize(sums.read_multi);
    if (sums.status != WW_OK)
        return sums.status;
    if (digest != record->digest && k->faults == 0)
        fault(k,
              "'%s': the sum of its rows' checksums is not the one that the list of collections says; compacting corrects it",
              record->name);
    if (count != record->live)
        fault(k, "'%s': there are %lld rows; the list of collections says %lld", record->name, (long long)count,
              (long long)record->live);
    return WW_OK;
}

/* Checks every text against its checksum, which is with its row. */
static ww_status check_words(checking *k, const collection_record *record, const text_tables *tables)
{
    sqlite3_stmt *s = NULL;
    bool exist = false;
    int code = SQLITE_DONE;
    ww_status status = texts_exist(tables, &exist);
    if (status == WW_OK)
        status = exist ? schema_statement(k->db, &s,
                                          "SELECT r.handle, r.text_checksum, f.text FROM main.\"%w_rows\" AS r LEFT JOIN "
                                          "main.\"%w_fts\" AS f ON f.rowid = r.handle",
                                          record->name, record->name)
                       : schema_statement(k->db, &s,
                                          "SELECT handle, text_checksum, NULL FROM main.\"%w_rows\" WHERE text_checksum IS NOT "
                                          "NULL",
                                          record->name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        if (checksum_text((const char *)sqlite3_column_text(s, 2)) != (uint64_t)sqlite3_column_int64(s, 1))
            fault(k, "'%s': the text of handle %lld differs from its checksum", record->name,
                  (long long)sqlite3_column_int64(s, 0));
    if (status == WW_OK && code != SQLITE_DONE)
        fault(k, "'%s': reading its texts: %s", record->name, sqlite3_errmsg(k->db));
    sqlite3_finalize(s);
    return status;
}

/* Checks the texts and the index of their words. */
static ww_status check_texts(checking *k, const collection_record *record)
{
    int64_t faults = 0;
    const text_tables tables = {k->db, "main", record->name};
    ww_status status = texts_check(&tables, &faults);
    if (status == WW_OK && record_has_checksums(record))
        status = check_words(k, record, &tables);
    if (faults > 0)
        fault(k, "'%s': %lld texts do not belong to a row or are not in the index of words; compacting rebuilds that index",
              record->name, (long long)faults);
    return status == WW_OK ? WW_OK : unreadable(k, record, status);
}

static void index_fault(void *user, const char *reason)
{
    fault(user, "%s", reason);
}

/* Checks the sparse vectors and their index, and the multivectors. */
static ww_status check_sparse(checking *k, const collection_record *record)
{
    const sparse_tables tables = {k->db, "main", record->name};
    ww_status status = sparse_check(&tables, record->next_place, index_fault, k);
    if (status == WW_OK)
        status = multi_table_check(&(multi_table){k->db, "main", record->name}, record->next_place, index_fault, k);
    return status == WW_OK ? WW_OK : unreadable(k, record, status);
}

/* Checks the index, if there is one. */
static ww_status check_index(checking *k, const collection_record *record)
{
    const ivf_tables tables = {k->db, "main", record};
    return ivf_is_there(record) ? ivf_check(&tables, index_fault, k) : WW_OK;
}

static ww_status check_collections(checking *k)
{
    collection_record *records = NULL;
    int64_t count = 0;
    bool has = false;
    ww_status status = store_has_collections(k->db, &has);
    if (status == WW_OK && has)
        status = schema_list(k->db, "main", &records, &count);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        k->total += records[i].is_damaged || records[i].is_newer ? 0 : records[i].live;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        if (records[i].is_damaged) {
            fault(k, "collection '%s': " RECORD_DAMAGED, records[i].name);
            continue;
        }
        if (records[i].is_newer) {
            fault(k, "collection '%s' was not checked: a newer version wrote it, in format %lld", records[i].name,
                  (long long)records[i].format);
            continue;
        }
        status = check_vectors(k, &records[i]);
        if (status == WW_OK)
            status = check_rows(k, &records[i]);
        if (status == WW_OK)
            status = check_texts(k, &records[i]);
        if (status == WW_OK)
            status = check_sparse(k, &records[i]);
        if (status == WW_OK)
            status = check_index(k, &records[i]);
    }
    memory_free(records);
    return status;
}

/* A failure of SQLite counts as a fault of the file if SQLite calls the file corrupt. */
static ww_status check_all(checking *k)
{
    ww_status status = schema_run(k->db, "BEGIN");
    if (status == WW_OK)
        status = check_collections(k); /* first, because these faults name their collection and SQLite's name only pages */
    if (status == WW_OK || status == WW_CORRUPT_FILE) {
        const ww_status integrity = check_integrity(k);
        status = integrity == WW_OK ? status : integrity;
    }
    if (status == WW_CORRUPT_FILE && k->faults > 0)
        status = WW_OK; /* already reported as a fault */
    return status;
}

ww_status ww_store_check(ww_store *store, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    checking k = {.store = store, .progress = progress, .user = user};
    ww_status status = store_check_handle(store, "ww_store_check");
    if (status != WW_OK)
        return status;
    status = store_connect(store, true, &k.db);
    if (status == WW_OK)
        status = check_all(&k);
    sqlite3_close(k.db);
    if (status != WW_OK || k.faults == 0)
        return status;
    return ww_fail(WW_CORRUPT_FILE, "%s has %lld fault%s: %s", store->path, (long long)k.faults,
                   k.faults == 1 ? "" : "s, the first", k.first);
}
