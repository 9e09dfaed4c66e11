/* Compacting: first the file is rewritten without free pages, which returns the space to the file system. Then places are
 * renumbered without gaps and the log of removals is emptied.
 *
 * Rewriting comes first because it needs disk space and changes nothing that a caller can see: if it fails, rows keep their
 * numbers. Renumbering is one transaction. It frees about one page in a thousand, and the log of removals.
 */
#include "base/checksum.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/index_writer.h"
#include "store/multi/multi.h"
#include "store/sparse/sparse.h"
#include "store/store_state.h"
#include "store/texts/texts.h"
#include "store/upgrade.h"

enum { MOVED_AT_ONCE = 1024, FREE_SHARE = 64 };

/* Exchanges the marks in a checksum: a ^ b is (a | b) - (a & b), which SQL can compute and which does not overflow. */
#define NEW_MARK ", checksum = (checksum | ?3) - (checksum & ?3)"

typedef struct compaction {
    stored *c;
    sqlite3 *db;
    ww_progress progress;
    void *user;
    sqlite3_stmt *next, *move_vector, *move_row, *move_list, *move_sparse,
        *move_multi; /* the last three only if there are such tables */
    bool indexed, sparse, multi;
    int64_t done;
    int64_t total;
} compaction;

static ww_status told(const compaction *m, int64_t done)
{
    if (!progress_tell(m->progress, m->user, done, m->total))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': cancelled after %lld of %lld rows; it is unchanged", m->c->base.name,
                   (long long)done, (long long)m->total);
}

static ww_status prepare(compaction *m)
{
    const char *name = m->c->base.name;
    ww_status status = schema_statement(
        m->db, &m->next, "SELECT place, handle FROM main.\"%w_vectors\" WHERE place >= ?1 ORDER BY place LIMIT %d", name,
        (int)MOVED_AT_ONCE);
    if (status == WW_OK)
        status = schema_statement(m->db, &m->move_vector,
                                  "UPDATE main.\"%w_vectors\" SET place = ?2" NEW_MARK " WHERE place = ?1", name);
    if (status == WW_OK)
        status =
            schema_statement(m->db, &m->move_row, "UPDATE main.\"%w_rows\" SET place = ?2" NEW_MARK " WHERE handle = ?1", name);
    if (status == WW_OK && m->indexed)
        status = schema_statement(m->db, &m->move_list, "UPDATE main.\"%w_ivf_rows\" SET place = ?2 WHERE place = ?1", name);
    if (status == WW_OK && m->sparse)
        status = schema_statement(m->db, &m->move_sparse,
                                  "UPDATE main.\"%w_sparse\" SET place = ?2" NEW_MARK " WHERE place = ?1", name);
    if (status == WW_OK && m->multi)
        status = schema_statement(m->db, &m->move_multi, "UPDATE main.\"%w_multi\" SET place = ?2" NEW_MARK " WHERE place = ?1",
                                  name);
    return status;
}

/* `marks` is what changes in the checksum: the old mark and the new one. */
static ww_status move(const compaction *m, sqlite3_stmt *statement, int64_t which, int64_t place, uint64_t marks)
{
    sqlite3_bind_int64(statement, 1, which);
    sqlite3_bind_int64(statement, 2, place);
    if (sqlite3_bind_parameter_count(statement) > 2)
        sqlite3_bind_int64(statement, 3, (int64_t)marks);
    const int code = sqlite3_step(statement);
    const ww_status status = code == SQLITE_DONE ? WW_OK : sqlite_failed(m->db, code, m->c->base.name);
    sqlite3_reset(statement);
    return status;
}

/* Moves the next rows, in order of place, starting at `*from`. A row's new place is the number of rows before it; that place is
 * free. */
static ww_status renumber_some(compaction *m, int64_t *from, bool *end)
{
    int64_t places[MOVED_AT_ONCE], handles[MOVED_AT_ONCE];
    int count = 0, code = SQLITE_DONE;
    sqlite3_bind_int64(m->next, 1, *from);
    while (count < MOVED_AT_ONCE && (code = sqlite3_step(m->next)) == SQLITE_ROW) {
        places[count] = sqlite3_column_int64(m->next, 0);
        handles[count++] = sqlite3_column_int64(m->next, 1);
    }
    ww_status status = code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(m->db, code, m->c->base.name);
    sqlite3_reset(m->next);
    for (int i = 0; status == WW_OK && i < count; i++, m->done++) {
        if (places[i] == m->done)
            continue;
        const uint64_t marks = checksum_mark(handles[i], places[i]) ^ checksum_mark(handles[i], m->done);
        status = move(m, m->move_vector, places[i], m->done, marks);
        if (status == WW_OK)
            status = move(m, m->move_row, handles[i], m->done, marks);
        if (status == WW_OK && m->move_list)
            status = move(m, m->move_list, places[i], m->done, 0);
        if (status == WW_OK && m->move_sparse)
            status = move(m, m->move_sparse, places[i], m->done, marks);
        if (status == WW_OK && m->move_multi)
            status = move(m, m->move_multi, places[i], m->done, marks);
    }
    *end = count < MOVED_AT_ONCE;
    *from = count > 0 ? places[count - 1] + 1 : *from;
    return status == WW_OK ? told(m, m->done) : status;
}

/* The index counts added rows by their places, so its header changes too. Then its tiny lists are merged. */
static ww_status renumber_index(const compaction *m, collection_record *record)
{
    const ivf_tables tables = {m->db, "main", record};
    ivf_header header;
    ww_status status = ivf_header_read(&tables, &header);
    if (status != WW_OK)
        return status;
    header.rows_added = ivf_rows_added(&tables, &header);
    header.first_place = record->live; /* the next place */
    status = ivf_header_write(&tables, &header);
    record->next_place = record->live;
    return status == WW_OK && record->live > 0 ? index_writer_merge(&tables) : status;
}

static ww_status renumber(compaction *m, collection_record *record)
{
    int64_t from = 0;
    bool end = record->next_place == record->live; /* the places already have no gaps */
    ww_status status = end ? WW_OK : prepare(m);
    while (status == WW_OK && !end)
        status = renumber_some(m, &from, &end);
    sqlite3_finalize(m->next);
    sqlite3_finalize(m->move_vector);
    sqlite3_finalize(m->move_row);
    sqlite3_finalize(m->move_list);
    sqlite3_finalize(m->move_sparse);
    sqlite3_finalize(m->move_multi);
    if (status != WW_OK || record->next_place == record->live)
        return status;
    if (m->done != record->live)
        return ww_fail(WW_CORRUPT_FILE,
                       "collection '%s': there are %lld vectors in the file; its list of collections says %lld",
                       m->c->base.name, (long long)m->done, (long long)record->live);
    record->sequence++;
    record->log_start = record->sequence;
    status = m->indexed ? renumber_index(m, record) : WW_OK;
    if (status == WW_OK)
        status = schema_run(m->db, "DELETE FROM main.\"%w_removed\"", m->c->base.name);
    record->next_place = record->live;
    record->epoch = schema_epoch();
    return status == WW_OK ? schema_update(m->db, "main", record) : status;
}

/* Makes the digest from the rows' checksums again: it is wrong if a row whose own checksum was damaged has been removed. */
static ww_status sum_checksums(const compaction *m, collection_record *record)
{
    const char *name = m->c->base.name;
    const sparse_tables sparse = {m->db, "main", name};
    const multi_table multi = {m->db, "main", name};
    uint64_t digest = 0;
    int code = SQLITE_DONE;
    sqlite3_stmt *s = NULL, *read = NULL, *read_multi = NULL;
    ww_status status = schema_statement(m->db, &s,
                                        "SELECT r.handle, r.place, r.checksum, v.checksum FROM main.\"%w_rows\" AS r JOIN "
                                        "main.\"%w_vectors\" AS v ON v.place = r.place",
                                        name, name);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const uint64_t mark = checksum_mark(sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1));
        uint64_t vector = (uint64_t)sqlite3_column_int64(s, 3) ^ mark;
        status = sparse_checksum_at(&sparse, m->sparse, &read, sqlite3_column_int64(s, 1), &vector);
        if (status == WW_OK)
            status = multi_checksum_at(&multi, m->multi, &read_multi, sqlite3_column_int64(s, 1), &vector);
        digest += checksum_row((uint64_t)sqlite3_column_int64(s, 2) ^ mark, vector);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(m->db, code, name);
    sqlite3_finalize(s);
    sqlite3_finalize(read);
    sqlite3_finalize(read_multi);
    if (status != WW_OK || digest == record->digest)
        return status;
    record->digest = digest;
    return schema_update(m->db, "main", record);
}

/* Releases the free pages, then shortens the file, immediately or once other readers are done. The caller holds the lock. */
static ww_status shrink(ww_store *store)
{
    ww_status status = schema_run(store->writer, "PRAGMA auto_vacuum = incremental"); /* as in new files: shrink.c needs it */
    if (status == WW_OK)
        status = schema_run(store->writer, "VACUUM");
    if (status == WW_OK)
        (void)sqlite3_wal_checkpoint_v2(store->writer, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return status;
}

/* Releases the pages that renumbering freed if they are more than 1/64 of the file. If that fails, later writes reuse the
 * space. */
static void shrink_rest(ww_store *store)
{
    if (store_lock(store) != WW_OK)
        return;
    if (schema_pragma(store->writer, "freelist_count") * FREE_SHARE > schema_pragma(store->writer, "page_count"))
        (void)shrink(store);
    else
        (void)sqlite3_wal_checkpoint_v2(store->writer, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    store_unlock(store);
}

static ww_status find_record(const compaction *m, collection_record *record)
{
    const ww_status status = schema_find(m->db, "main", m->c->base.name, record);
    return status == WW_OK ? stored_is(m->c, record) : status;
}

/* Removing a row leaves its vector in the file. */
static ww_status delete_removed(const compaction *m)
{
    const char *name = m->c->base.name;
    return schema_run(m->db, "DELETE FROM main.\"%w_vectors\" WHERE place IN (SELECT place FROM main.\"%w_removed\")", name,
                      name);
}

/* Rewrites the file unless the caller cancels. */
static ww_status rewrite(compaction *m)
{
    collection_record record;
    ww_status status = store_lock(m->c->store);
    if (status != WW_OK)
        return status;
    status = find_record(m, &record);
    m->total = status == WW_OK ? record.live : 0;
    if (status == WW_OK)
        status = told(m, 0);
    if (status == WW_OK)
        status = delete_removed(m);
    if (status == WW_OK)
        status = shrink(m->c->store);
    store_unlock(m->c->store);
    return status;
}

ww_status stored_compact(ww_collection *base, ww_progress progress, void *user)
{
    stored *c = stored_of(base);
    compaction m = {.c = c, .db = c->store->writer, .progress = progress, .user = user};
    collection_record record;
    ww_status status = process_check(c->store->made_in, c->store->path);
    if (status == WW_OK)
        status = store_check_writable(c->store);
    if (status == WW_OK)
        status = rewrite(&m);
    if (status == WW_OK)
        status = store_begin(c->store);
    if (status != WW_OK)
        return status;
    writer_forget(c->writer);
    status = find_record(&m, &record);
    if (status == WW_OK)
        status = upgrade_collection(&(upgrade){.db = m.db, .schema = "main", .record = &record});
    if (status == WW_OK) {
        m.total = record.live;
        m.indexed = ivf_is_there(&record);
        status = delete_removed(&m); /* other processes may have removed some since the file was rewritten */
        if (status == WW_OK)
            status = sparse_exist(&(sparse_tables){m.db, "main", record.name}, &m.sparse);
        if (status == WW_OK)
            status = multi_table_exists(&(multi_table){m.db, "main", record.name}, &m.multi);
        if (status == WW_OK)
            status = sum_checksums(&m, &record);
        if (status == WW_OK)
            status = renumber(&m, &record);
        if (status == WW_OK)
            status = texts_rebuild(&(text_tables){m.db, "main", record.name});
        if (status == WW_OK)
            status = sparse_rebuild(&(sparse_tables){m.db, "main", record.name});
    }
    status = store_end(c->store, status);
    if (status == WW_OK)
        shrink_rest(c->store);
    return status;
}
