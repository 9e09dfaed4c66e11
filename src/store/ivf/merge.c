/* Merging lists of an index in the file that removals have left tiny, as a collection in memory does when it is compacted.
 *
 * Their rows move to the nearest of the remaining lists, and lists are renumbered without gaps. Until all lists have their new
 * numbers, moved rows are marked with a negative list number. Only one list's rows are in memory at a time.
 */
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/index_writer.h"

typedef struct merging {
    const ivf_tables *t;
    ivf_header header;
    ww_device *device; /* the CPU */
    ww_collection *outline;
    uint32_t *numbers; /* new number of each list, or IVF_LIST_GOES */
    sqlite3_stmt *read_list, *set_list, *shift_list;
    int64_t *places; /* of one list's rows */
    uint32_t *lists; /* their new lists */
    float *vectors;  /* their vectors */
    int64_t room;
} merging;

static ww_status begin(merging *m)
{
    const ivf_tables *t = m->t;
    const char *name = t->record->name;
    ivf_lists lists = {0};
    ww_status status = ivf_header_read(t, &m->header);
    if (status == WW_OK)
        status = ivf_lists_read(t, &m->header, -1, &lists);
    if (status == WW_OK)
        status = ww_device_open("cpu", &m->device);
    if (status == WW_OK)
        status = index_outline(t, &m->header, &lists, m->device, &m->outline);
    ivf_lists_free(&lists);
    if (status == WW_OK)
        status = schema_statement(t->db, &m->read_list,
                                  "SELECT r.place, v.vector FROM \"%w\".\"%w_ivf_rows\" AS r JOIN \"%w\".\"%w_vectors\" AS v "
                                  "ON v.place = r.place WHERE r.list = ?1 ORDER BY r.place",
                                  t->schema, name, t->schema, name);
    if (status == WW_OK)
        status = schema_statement(t->db, &m->set_list, "UPDATE \"%w\".\"%w_ivf_rows\" SET list = ?2 WHERE place = ?1",
                                  t->schema, name);
    if (status == WW_OK)
        status = schema_statement(t->db, &m->shift_list, "UPDATE \"%w\".\"%w_ivf_rows\" SET list = ?2 WHERE list = ?1",
                                  t->schema, name);
    return status;
}

static void end(merging *m)
{
    sqlite3_finalize(m->read_list);
    sqlite3_finalize(m->set_list);
    sqlite3_finalize(m->shift_list);
    memory_free(m->numbers);
    memory_free(m->places);
    memory_free(m->lists);
    memory_free(m->vectors);
    ww_collection_destroy(m->outline);
    ww_device_close(m->device);
}

static ww_status set(sqlite3_stmt *statement, int64_t which, int64_t list)
{
    sqlite3_bind_int64(statement, 1, which);
    sqlite3_bind_int64(statement, 2, list);
    return schema_step(statement);
}

/* ---- rows of lists that go ----------------------------------------------------------------------------------------------- */

static ww_status reserve(merging *m, int64_t count)
{
    const size_t dim = (size_t)m->t->record->dim, room = (size_t)count;
    if (count <= m->room)
        return WW_OK;
    memory_free(m->places);
    memory_free(m->lists);
    memory_free(m->vectors);
    m->places = memory_alloc(room * sizeof *m->places);
    m->lists = memory_alloc(room * sizeof *m->lists);
    m->vectors = memory_alloc(room * dim * sizeof *m->vectors);
    m->room = m->places && m->lists && m->vectors ? count : 0;
    return m->room > 0 ? WW_OK : memory_failed("the rows of a list", room * (dim * sizeof *m->vectors + sizeof *m->places));
}

/* Reads the rows of a list. Its record says that it has `rows`. */
static ww_status read_list(merging *m, int64_t list, int64_t rows)
{
    const collection_record *record = m->t->record;
    sqlite3_stmt *s = m->read_list;
    int64_t count = 0;
    int code = SQLITE_DONE;
    ww_status status = reserve(m, rows);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(s, 1, list);
    while ((code = sqlite3_step(s)) == SQLITE_ROW && count < rows &&
           sqlite3_column_bytes(s, 1) == record_vector_bytes(record)) {
        m->places[count] = sqlite3_column_int64(s, 0);
        row_widen((int32_t)record->type, sqlite3_column_blob(s, 1), record->dim, m->vectors + count++ * record->dim);
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(m->t->db, code, record->name);
    else if (code == SQLITE_ROW || count != rows)
        status =
            ivf_damaged(record->name, "list %lld does not have the %lld rows that it counts", (long long)list, (long long)rows);
    sqlite3_reset(s);
    return status;
}

static ww_status move_rows(merging *m, int64_t list, int64_t rows)
{
    ww_status status = rows > 0 ? read_list(m, list, rows) : WW_OK;
    if (status == WW_OK && rows > 0)
        status = outline_assign(m->outline, m->vectors, rows, m->lists);
    for (int64_t i = 0; status == WW_OK && i < rows; i++)
        status = set(m->set_list, m->places[i], -1 - (int64_t)m->lists[i]);
    return status;
}

/* ---- merging ------------------------------------------------------------------------------------------------------------- */

/* Removes the tiny lists, in one pass; `rows` are the row counts of the lists before. */
static ww_status move_lists(merging *m, const int64_t *rows, int64_t lists)
{
    const ivf_tables *t = m->t;
    ww_status status = WW_OK;
    for (int64_t l = 0; status == WW_OK && l < lists; l++)
        if (m->numbers[l] == IVF_LIST_GOES)
            status = move_rows(m, l, rows[l]);
    for (int64_t l = 0; status == WW_OK && l < lists; l++)
        if (m->numbers[l] != IVF_LIST_GOES && m->numbers[l] != l && rows[l] > 0)
            status = set(m->shift_list, l, m->numbers[l]);
    return status == WW_OK ? schema_run(t->db, "UPDATE \"%w\".\"%w_ivf_rows\" SET list = -1 - list WHERE list < 0", t->schema,
                                        t->record->name)
                           : status;
}

static ww_status merge_once(merging *m, bool *more)
{
    const int64_t lists = outline_lists(m->outline);
    int64_t *rows = memory_alloc((size_t)lists * sizeof *rows);
    uint32_t *numbers = memory_resize(m->numbers, (size_t)lists * sizeof *numbers);
    ww_status status = rows && numbers ? WW_OK : memory_failed("merging lists of an index", (size_t)lists * sizeof *rows);
    m->numbers = numbers ? numbers : m->numbers;
    for (int64_t l = 0; status == WW_OK && l < lists; l++)
        rows[l] = outline_record(m->outline, l).rows;
    if (status == WW_OK)
        status = outline_merge(m->outline, m->header.rows_trained, m->numbers);
    *more = status == WW_OK && outline_lists(m->outline) < lists;
    if (*more)
        status = move_lists(m, rows, lists);
    memory_free(rows);
    return status;
}

static ww_status write_all(merging *m)
{
    index_writer w = {0};
    ww_status status = index_writer_write_all(&w, m->t, m->outline);
    index_writer_close(&w);
    m->header.nlist = outline_lists(m->outline);
    m->header.changed = m->t->record->sequence;
    m->header.version = schema_epoch();
    return status == WW_OK ? ivf_header_write(m->t, &m->header) : status;
}

ww_status index_writer_merge(const ivf_tables *t)
{
    merging m = {.t = t};
    bool more = true;
    ww_status status = begin(&m);
    while (status == WW_OK && more)
        status = merge_once(&m, &more);
    if (status == WW_OK && outline_lists(m.outline) < m.header.nlist)
        status = write_all(&m);
    end(&m);
    return ivf_explain(t->record->name, status);
}
