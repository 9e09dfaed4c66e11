/* A writer: opening and closing, the record of its collection, the index, and trimming the log of removals. */
#include "store/writer/writer.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "store/upgrade.h"
#include "store/writer/writer_state.h"

enum {
    TRIM_EVERY = 64,       /* writes between two checks of the length of the log of removals */
    LOG_ENTRIES_MIN = 1024 /* a log this short is never trimmed */
};

ww_status writer_open(sqlite3 *db, const char *schema, const char *name, writer **opened)
{
    writer *w = memory_alloc_zeroed(1, sizeof *w);
    if (!w)
        return memory_failed("a writer", sizeof *w);
    w->db = db;
    w->schema = memory_copy_text(schema, strlen(schema));
    w->name = memory_copy_text(name, strlen(name));
    if (!w->schema || !w->name) {
        writer_close(w);
        return memory_failed("a writer", strlen(schema) + strlen(name));
    }
    *opened = w;
    return WW_OK;
}

void writer_close(writer *w)
{
    if (!w)
        return;
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(w->statements[i]);
    bulk_writer_close(&w->bulk);
    text_writer_close(&w->texts);
    sparse_writer_close(&w->sparse);
    multi_writer_close(&w->multi);
    index_writer_close(&w->index);
    sqlite3_finalize(w->find);
    sqlite3_finalize(w->update);
    memory_free(w->elements);
    memory_free(w->floats);
    memory_free(w->name);
    memory_free(w->schema);
    memory_free(w);
}

const collection_record *writer_record(const writer *w)
{
    return &w->record;
}

void writer_forget(writer *w)
{
    w->known = w->changed = false;
    text_writer_forget(&w->texts);
    sparse_writer_forget(&w->sparse);
    multi_writer_forget(&w->multi);
    index_writer_forget(&w->index);
}

ww_status writer_read(writer *w)
{
    if (w->known)
        return WW_OK;
    ww_status status = w->find ? WW_OK : schema_prepare_find(w->db, w->schema, w->name, &w->find);
    if (status == WW_OK)
        status = schema_read(w->find, w->name, &w->record);
    w->known = status == WW_OK;
    return status;
}

int64_t writer_preparations(const writer *w)
{
    int64_t count = sqlite_preparations(w->update) + sqlite_preparations(w->bulk.rows) + sqlite_preparations(w->bulk.places) +
                    text_writer_preparations(&w->texts) + sparse_writer_preparations(&w->sparse) +
                    multi_writer_preparations(&w->multi) + index_writer_preparations(&w->index);
    for (int i = 0; i < STATEMENT_COUNT; i++)
        count += sqlite_preparations(w->statements[i]);
    return count;
}

ww_status writer_begin(writer *w)
{
    ww_status status = writer_read(w);
    if (status == WW_OK)
        status = upgrade_collection(&(upgrade){.db = w->db, .schema = w->schema, .record = &w->record});
    if (status != WW_OK)
        return status;
    w->record.sequence++;
    w->changed = true;
    w->change_first_place = w->record.next_place;
    return WW_OK;
}

ww_status writer_clear(writer *w)
{
    static const char *const tables[] = {"rows", "vectors", "removed"};
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < sizeof tables / sizeof *tables; i++)
        status = schema_run(w->db, "DELETE FROM \"%w\".\"%w_%s\"", w->schema, w->record.name, tables[i]);
    const text_tables texts = text_tables_of(w);
    if (status == WW_OK)
        status = text_writer_clear(&w->texts, &texts);
    const sparse_tables sparse = sparse_tables_of(w);
    if (status == WW_OK)
        status = sparse_writer_clear(&w->sparse, &sparse);
    const multi_table multi = multi_table_of(w);
    if (status == WW_OK)
        status = multi_writer_clear(&w->multi, &multi);
    if (status == WW_OK && ivf_is_there(&w->record))
        status = writer_drop_index(w);
    w->record.live = 0;
    w->record.digest = 0;
    w->record.next_place = w->change_first_place = 0;
    w->record.log_start = w->record.sequence;
    w->record.epoch = schema_epoch();
    return status;
}

/* ---- the index ----------------------------------------------------------------------------------------------------------- */

ww_status writer_build_index(writer *w, const struct ivf *index, const mirror *rows)
{
    const ivf_tables tables = ivf_tables_of(w);
    const ww_status status = index_writer_build(&w->index, &tables, index, rows);
    w->record.format = STORE_FORMAT_INDEXED;
    return status;
}

ww_status writer_calibrate_index(writer *w, const struct ivf_calibration *learnt)
{
    const ivf_tables tables = ivf_tables_of(w);
    return index_writer_calibrate(&w->index, &tables, learnt);
}

ww_status writer_drop_index(writer *w)
{
    index_writer_forget(&w->index);
    w->record.format = STORE_FORMAT;
    return ivf_tables_drop(w->db, w->schema, w->record.name);
}

/* ---- the log ------------------------------------------------------------------------------------------------------------- */

static ww_status ask_number(writer *w, int64_t *number, const char *format, long long argument)
{
    sqlite3_stmt *s = NULL;
    ww_status status = schema_statement(w->db, &s, format, w->schema, w->record.name, argument);
    if (status != WW_OK)
        return status;
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *number = sqlite3_column_int64(s, 0);
    else
        status = sqlite_failed(w->db, code, w->name);
    sqlite3_finalize(s);
    return status;
}

/* Keeps the newer half of a log that is longer than half of the collection, and deletes the vectors that the other half names.
 * So removed vectors take at most half as much room as the others. A mirror older than the log reads everything again. */
static ww_status trim_log(writer *w)
{
    int64_t entries = 0, until = 0;
    ww_status status = ask_number(w, &entries, "SELECT count(*) FROM \"%w\".\"%w_removed\" WHERE sequence >= %lld", 0);
    const int64_t entries_max = w->record.live / 2 > LOG_ENTRIES_MIN ? w->record.live / 2 : LOG_ENTRIES_MIN;
    if (status != WW_OK || entries <= entries_max)
        return status;
    status = ask_number(w, &until, "SELECT sequence FROM \"%w\".\"%w_removed\" ORDER BY sequence LIMIT 1 OFFSET %lld",
                        (long long)(entries / 2));
    if (status == WW_OK)
        status = schema_run(w->db,
                            "DELETE FROM \"%w\".\"%w_vectors\" WHERE place IN (SELECT place FROM \"%w\".\"%w_removed\" WHERE "
                            "sequence <= %lld)",
                            w->schema, w->record.name, w->schema, w->record.name, (long long)until);
    if (status == WW_OK)
        status = schema_run(w->db, "DELETE FROM \"%w\".\"%w_removed\" WHERE sequence <= %lld", w->schema, w->record.name,
                            (long long)until);
    if (status == WW_OK)
        w->record.log_start = until;
    return status;
}

ww_status writer_flush(writer *w)
{
    if (!w->known)
        return ww_fail(WW_INTERNAL, "collection '%s': its record was forgotten before it was written", w->name);
    if (!w->changed)
        return WW_OK;
    const ivf_tables tables = ivf_tables_of(w);
    ww_status status = ivf_is_there(&w->record) ? index_writer_finish(&w->index, &tables) : WW_OK;
    const sparse_tables sparse = sparse_tables_of(w);
    if (status == WW_OK)
        status = sparse_writer_flush(&w->sparse, &sparse);
    if (status == WW_OK && (w->record.sequence % TRIM_EVERY == 0 || w->logged > LOG_ENTRIES_MIN)) {
        status = trim_log(w);
        w->logged = 0;
    }
    if (status == WW_OK && !w->update)
        status = schema_prepare_update(w->db, w->schema, &w->update);
    if (status == WW_OK)
        status = schema_update_by(w->update, &w->record);
    if (status == WW_OK)
        w->changed = false;
    return status;
}
