/* Adding checksums to a collection of an earlier version. */
#include "store/upgrade.h"
#include "base/float_guard.h"

#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/tables.h"
#include "store/sparse/sparse.h"
#include "store/texts/texts.h"

enum { ROWS_AT_ONCE = 256 };

/* A row that was read, and what will be written. */
typedef struct upgraded_row {
    int64_t place, handle;
    uint64_t vector, entry; /* with their mark */
    uint64_t text;          /* 0: there is none */
} upgraded_row;

typedef struct upgrading {
    const upgrade *u;
    sqlite3_stmt *read, *read_text, *write_row, *write_vector; /* read_text is NULL if there are no texts */
    sqlite3_stmt *read_sparse;
    bool sparse; /* there are sparse vectors */
    upgraded_row rows[ROWS_AT_ONCE];
    int64_t count, done;
    uint64_t digest;
} upgrading;

/* Adds a column unless it exists. */
static ww_status add_column(const upgrade *u, const char *suffix, const char *column, const char *type)
{
    sqlite3_stmt *found = NULL;
    ww_status status = schema_statement(u->db, &found, "SELECT 1 FROM pragma_table_info('%q%q', %Q) WHERE name = %Q",
                                        u->record->name, suffix, u->schema, column);
    const int code = status == WW_OK ? sqlite3_step(found) : SQLITE_DONE;
    if (status == WW_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(u->db, code, u->record->name);
    sqlite3_finalize(found);
    return status == WW_OK && code == SQLITE_DONE ? schema_run(u->db, "ALTER TABLE \"%w\".\"%w%w\" ADD COLUMN %s %s", u->schema,
                                                               u->record->name, suffix, column, type)
                                                  : status;
}

ww_status upgrade_list(sqlite3 *db, const char *schema)
{
    collection_record list = {.name = "warpwave_collections"};
    return add_column(&(upgrade){.db = db, .schema = schema, .record = &list}, "", "digest", "INTEGER NOT NULL DEFAULT 0");
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static ww_status prepare(upgrading *p)
{
    const upgrade *u = p->u;
    const char *name = u->record->name;
    bool texts = false;
    ww_status status =
        schema_statement(u->db, &p->read,
                         "SELECT v.place, v.handle, v.vector, r.place, r.id, r.payload FROM \"%w\".\"%w_vectors\" AS v LEFT "
                         "JOIN \"%w\".\"%w_rows\" AS r ON r.handle = v.handle WHERE v.place >= ?1 ORDER BY v.place LIMIT %d",
                         u->schema, name, u->schema, name, (int)ROWS_AT_ONCE);
    if (status == WW_OK)
        status = schema_statement(u->db, &p->write_row,
                                  "UPDATE \"%w\".\"%w_rows\" SET checksum = ?2, text_checksum = ?3 WHERE handle = ?1",
                                  u->schema, name);
    if (status == WW_OK)
        status = schema_statement(u->db, &p->write_vector, "UPDATE \"%w\".\"%w_vectors\" SET checksum = ?2 WHERE place = ?1",
                                  u->schema, name);
    if (status == WW_OK)
        status = sparse_exist(&(sparse_tables){u->db, u->schema, name}, &p->sparse);
    if (status == WW_OK)
        status = texts_exist(&(text_tables){u->db, u->schema, name}, &texts);
    if (status == WW_OK && texts)
        status = schema_statement(u->db, &p->read_text, "SELECT text FROM \"%w\".\"%w_fts\" WHERE rowid = ?1", u->schema, name);
    return status;
}

static ww_status read_text(const upgrading *p, upgraded_row *row)
{
    if (!p->read_text)
        return WW_OK;
    sqlite3_bind_int64(p->read_text, 1, row->handle);
    const int code = sqlite3_step(p->read_text);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(p->read_text, 0) : NULL;
    row->text = checksum_text(text);
    sqlite3_reset(p->read_text);
    return code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(p->u->db, code, p->u->record->name);
}

/* Reads the statement's current row. */
static ww_status read_row(upgrading *p, upgraded_row *row)
{
    sqlite3_stmt *s = p->read;
    const collection_record *record = p->u->record;
    *row = (upgraded_row){.place = sqlite3_column_int64(s, 0), .handle = sqlite3_column_int64(s, 1)};
    const void *vector = sqlite3_column_blob(s, 2);
    const char *id = (const char *)sqlite3_column_text(s, 4);
    const char *payload = (const char *)sqlite3_column_text(s, 5);
    if (!vector || sqlite3_column_bytes(s, 2) != record_vector_bytes(record) || !id ||
        sqlite3_column_type(s, 3) != SQLITE_INTEGER || sqlite3_column_int64(s, 3) != row->place)
        return ww_fail(WW_CORRUPT_FILE,
                       "collection '%s' cannot be upgraded: the vector at place %lld does not belong to a row, or has a wrong "
                       "length; a check of the store says more",
                       record->name, (long long)row->place);
    ww_status status = read_text(p, row);
    const checksum_parts parts = {id, (size_t)sqlite3_column_bytes(s, 4), payload, (size_t)sqlite3_column_bytes(s, 5),
                                  row->text};
    const uint64_t mark = checksum_mark(row->handle, row->place), entry = checksum_entry(&parts);
    row->vector = checksum_bytes(vector, (size_t)record_vector_bytes(record));
    uint64_t vectors = row->vector;
    if (status == WW_OK)
        status = sparse_checksum_at(&(sparse_tables){p->u->db, p->u->schema, record->name}, p->sparse, &p->read_sparse,
                                    row->place, &vectors);
    p->digest += checksum_row(entry, vectors);
    row->vector ^= mark;
    row->entry = entry ^ mark;
    return status;
}

/* Reads the next rows, which start at `place`. */
static ww_status read_some(upgrading *p, int64_t place)
{
    int code = SQLITE_DONE;
    ww_status status = WW_OK;
    p->count = 0;
    sqlite3_bind_int64(p->read, 1, place);
    while (status == WW_OK && p->count < ROWS_AT_ONCE && (code = sqlite3_step(p->read)) == SQLITE_ROW)
        status = read_row(p, &p->rows[p->count++]);
    if (status == WW_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(p->u->db, code, p->u->record->name);
    sqlite3_reset(p->read);
    return status;
}

static ww_status write_some(const upgrading *p)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < p->count; i++) {
        const upgraded_row *row = &p->rows[i];
        sqlite3_bind_int64(p->write_row, 1, row->handle);
        sqlite3_bind_int64(p->write_row, 2, (int64_t)row->entry);
        if (row->text != 0)
            sqlite3_bind_int64(p->write_row, 3, (int64_t)row->text);
        else
            sqlite3_bind_null(p->write_row, 3);
        status = schema_step(p->write_row);
        sqlite3_bind_int64(p->write_vector, 1, row->place);
        sqlite3_bind_int64(p->write_vector, 2, (int64_t)row->vector);
        if (status == WW_OK)
            status = schema_step(p->write_vector);
    }
    return status;
}

static ww_status told(upgrading *p)
{
    const upgrade *u = p->u;
    p->done += p->count;
    if (!progress_tell(u->progress, u->progress_user, p->done, u->record->live))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': cancelled after %lld of %lld rows; it is unchanged", u->record->name,
                   (long long)p->done, (long long)u->record->live);
}

static ww_status upgrade_rows(upgrading *p)
{
    int64_t place = 0;
    ww_status status = prepare(p);
    do {
        if (status == WW_OK)
            status = read_some(p, place);
        if (status == WW_OK)
            status = write_some(p);
        if (status == WW_OK)
            status = told(p);
        place = p->count > 0 ? p->rows[p->count - 1].place + 1 : place;
    } while (status == WW_OK && p->count == ROWS_AT_ONCE);
    sqlite3_finalize(p->read);
    sqlite3_finalize(p->read_text);
    sqlite3_finalize(p->read_sparse);
    sqlite3_finalize(p->write_row);
    sqlite3_finalize(p->write_vector);
    if (status == WW_OK && p->done != p->u->record->live)
        status = ww_fail(WW_CORRUPT_FILE,
                         "collection '%s' cannot be upgraded: there are %lld vectors in the file; its list of collections says "
                         "%lld",
                         p->u->record->name, (long long)p->done, (long long)p->u->record->live);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

static ww_status add_columns(const upgrade *u)
{
    ww_status status = upgrade_list(u->db, u->schema);
    if (status == WW_OK)
        status = add_column(u, "_rows", "checksum", "INTEGER NOT NULL DEFAULT 0");
    if (status == WW_OK)
        status = add_column(u, "_rows", "text_checksum", "INTEGER");
    if (status == WW_OK)
        status = add_column(u, "_vectors", "checksum", "INTEGER NOT NULL DEFAULT 0");
    return status;
}

ww_status upgrade_collection(const upgrade *u)
{
    collection_record *record = u->record;
    if (record_has_checksums(record))
        return WW_OK;
    upgrading *p = memory_alloc_zeroed(1, sizeof *p);
    if (!p)
        return memory_failed("an upgrade", sizeof *p);
    p->u = u;
    ww_status status = add_columns(u);
    if (status == WW_OK)
        status = upgrade_rows(p);
    const ivf_tables index = {u->db, u->schema, record};
    if (status == WW_OK && ivf_is_there(record))
        status = ivf_upgrade(&index);
    if (status == WW_OK) {
        record->format = ivf_is_there(record) ? STORE_FORMAT_INDEXED : STORE_FORMAT;
        record->digest = p->digest;
        status = schema_update(u->db, u->schema, record);
    }
    memory_free(p);
    return status;
}
