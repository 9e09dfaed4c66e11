/* Rows enter and leave the lists of an index in the file, and lists are split. */
#include "store/ivf/index_writer.h"

#include <string.h>

#include "arithmetic/row_values.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"

enum {
    PENDING_BYTES = 4 * 1024 * 1024, /* of vectors that wait for a list */
    PENDING_ROWS_MAX = 4096,
    PENDING_ROWS_FIRST = 16,
};

typedef enum index_statement {
    INSERT_PLACE,
    FIND_LIST,
    DELETE_PLACE,
    SET_LIST,
    WRITE_LIST,
    COUNT_LIST,
    WRITE_CENTROID,
    READ_LIST
} index_statement;

/* Each takes the database and the collection, in this order, once or twice. */
static const char *const TEXTS[INDEX_STATEMENTS] = {
    [INSERT_PLACE] = "INSERT INTO \"%w\".\"%w_ivf_rows\"(place, list) VALUES(?1, ?2)",
    [FIND_LIST] = "SELECT list FROM \"%w\".\"%w_ivf_rows\" WHERE place = ?1",
    [DELETE_PLACE] = "DELETE FROM \"%w\".\"%w_ivf_rows\" WHERE place = ?1",
    [SET_LIST] = "UPDATE \"%w\".\"%w_ivf_rows\" SET list = ?2 WHERE place = ?1",
    [WRITE_LIST] = "INSERT OR REPLACE INTO \"%w\".\"%w_ivf_lists\"(list, changed, " IVF_LIST_COLUMNS
                   ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [COUNT_LIST] = "UPDATE \"%w\".\"%w_ivf_lists\" SET rows = ?2, farthest = ?3, nearest = ?4, unbounded = ?5, was_split = ?6, "
                   "equal_rows = ?7 WHERE list = ?1",
    [WRITE_CENTROID] = "INSERT OR REPLACE INTO \"%w\".\"%w_ivf_centroids\"(list, centroid, checksum) VALUES(?1, ?2, ?3)",
    [READ_LIST] = "SELECT r.place, v.vector FROM \"%w\".\"%w_ivf_rows\" AS r JOIN \"%w\".\"%w_vectors\" AS v ON v.place = "
                  "r.place WHERE r.list = ?1 ORDER BY r.place",
};

/* What must be written for a list. */
enum { LIST_COUNTED = 1, LIST_SPLIT = 2 };

static ww_status ready(index_writer *w, const ivf_tables *t, index_statement which)
{
    const char *name = t->record->name;
    return w->statements[which]
               ? WW_OK
               : schema_statement(t->db, &w->statements[which], TEXTS[which], t->schema, name, t->schema, name);
}

void index_writer_close(index_writer *w)
{
    for (int i = 0; i < INDEX_STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    ww_collection_destroy(w->outline);
    ww_device_close(w->device);
    memory_free(w->dirty);
    memory_free(w->pending);
    memory_free(w->places);
    *w = (index_writer){0};
}

void index_writer_forget(index_writer *w)
{
    w->known = false;
    w->pending_count = 0;
}

int64_t index_writer_preparations(const index_writer *w)
{
    int64_t count = 0;
    for (int i = 0; i < INDEX_STATEMENTS; i++)
        count += sqlite_preparations(w->statements[i]);
    return count;
}

/* ---- what the file has --------------------------------------------------------------------------------------------------- */

static ww_status dirty_reserve(index_writer *w, int64_t lists)
{
    if (lists <= w->dirty_room)
        return WW_OK;
    uint8_t *moved = memory_resize(w->dirty, (size_t)lists);
    if (!moved)
        return memory_failed("the lists of an index", (size_t)lists);
    memset(moved + w->dirty_room, 0, (size_t)(lists - w->dirty_room));
    w->dirty = moved;
    w->dirty_room = lists;
    return WW_OK;
}

ww_status index_outline(const ivf_tables *t, const ivf_header *header, const ivf_lists *lists, ww_device *device,
                        ww_collection **outline)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = t->record->name;
    config.dim = t->record->dim;
    config.metric = t->record->metric;
    config.type = t->record->type;
    return outline_create(device, &config, &(list_set){header->nlist, lists->centroids, lists->records}, outline);
}

static ww_status make_outline(index_writer *w, const ivf_tables *t, const ivf_lists *lists)
{
    ww_collection_destroy(w->outline);
    w->outline = NULL;
    const ww_status status = w->device ? WW_OK : ww_device_open("cpu", &w->device);
    return status == WW_OK ? index_outline(t, &w->header, lists, w->device, &w->outline) : status;
}

/* Reads header and lists if they are not known. Reads centroids only if they have changed. */
static ww_status know(index_writer *w, const ivf_tables *t)
{
    ivf_lists lists = {0};
    if (w->known)
        return WW_OK;
    ww_status status = ivf_header_read(t, &w->header);
    if (status != WW_OK)
        return status;
    const bool same = w->outline && w->version == w->header.version && outline_lists(w->outline) == w->header.nlist;
    status = ivf_lists_read(t, &w->header, same ? INT64_MAX : -1, &lists);
    if (status == WW_OK && same)
        outline_set_records(w->outline, lists.records);
    else if (status == WW_OK)
        status = make_outline(w, t, &lists);
    ivf_lists_free(&lists);
    if (status == WW_OK)
        status = dirty_reserve(w, w->header.nlist);
    if (status != WW_OK)
        return status;
    memset(w->dirty, 0, (size_t)w->dirty_room);
    w->version = w->header.version;
    w->known = true;
    return WW_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static ww_status run(index_writer *w, const ivf_tables *t, index_statement which, int64_t first, int64_t second)
{
    const ww_status status = ready(w, t, which);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[which], 1, first);
    if (sqlite3_bind_parameter_count(w->statements[which]) > 1)
        sqlite3_bind_int64(w->statements[which], 2, second);
    return schema_step(w->statements[which]);
}

static ww_status assign_pending(index_writer *w, const ivf_tables *t)
{
    const int64_t count = w->pending_count;
    if (count == 0)
        return WW_OK;
    uint32_t *lists = memory_alloc((size_t)count * sizeof *lists);
    if (!lists)
        return memory_failed("the lists of new rows", (size_t)count * sizeof *lists);
    ww_status status = outline_assign(w->outline, w->pending, count, lists);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        status = run(w, t, INSERT_PLACE, w->places[i], lists[i]);
        w->dirty[lists[i]] |= LIST_COUNTED;
    }
    w->pending_count = 0;
    memory_free(lists);
    return status;
}

static ww_status pending_reserve(index_writer *w, const ivf_tables *t)
{
    if (w->pending_count < w->pending_room)
        return WW_OK;
    const size_t dim = (size_t)t->record->dim;
    const int64_t room = max_i64(2 * w->pending_room, PENDING_ROWS_FIRST);
    float *pending = memory_resize(w->pending, (size_t)room * dim * sizeof *pending);
    w->pending = pending ? pending : w->pending;
    int64_t *places = pending ? memory_resize(w->places, (size_t)room * sizeof *places) : NULL;
    w->places = places ? places : w->places;
    if (!places)
        return memory_failed("new rows of an index", (size_t)room * dim * sizeof *pending);
    w->pending_room = room;
    return WW_OK;
}

ww_status index_writer_add(index_writer *w, const ivf_tables *t, int64_t place, const void *elements)
{
    const int64_t dim = t->record->dim;
    ww_status status = know(w, t);
    if (status == WW_OK)
        status = pending_reserve(w, t);
    if (status != WW_OK)
        return status;
    row_widen((int32_t)t->record->type, elements, t->record->dim, w->pending + w->pending_count * dim);
    w->places[w->pending_count++] = place;
    const bool full =
        w->pending_count >= PENDING_ROWS_MAX || (w->pending_count + 1) * dim * (int64_t)sizeof *w->pending > PENDING_BYTES;
    return full ? ivf_explain(t->record->name, assign_pending(w, t)) : WW_OK;
}

ww_status index_writer_remove(index_writer *w, const ivf_tables *t, int64_t place)
{
    int64_t list = -1;
    ww_status status = know(w, t);
    if (status == WW_OK)
        status = assign_pending(w, t); /* the row may be one of them */
    if (status == WW_OK)
        status = ready(w, t, FIND_LIST);
    if (status != WW_OK)
        return ivf_explain(t->record->name, status);
    sqlite3_stmt *s = w->statements[FIND_LIST];
    sqlite3_bind_int64(s, 1, place);
    const int code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        list = sqlite3_column_int64(s, 0);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    sqlite3_reset(s);
    if (status == WW_OK && (list < 0 || list >= w->header.nlist || outline_record(w->outline, list).rows == 0))
        status = ivf_damaged(t->record->name, "the vector at place %lld is in no list", (long long)place);
    if (status == WW_OK)
        status = run(w, t, DELETE_PLACE, place, 0);
    if (status != WW_OK)
        return ivf_explain(t->record->name, status);
    outline_remove(w->outline, (uint32_t)list);
    w->dirty[list] |= LIST_COUNTED;
    return WW_OK;
}

/* ---- splitting ----------------------------------------------------------------------------------------------------------- */

/* The rows of a list, read from the file. */
typedef struct list_rows {
    int64_t count, room;
    int64_t *places;
    char *elements;
    bool *moved;
} list_rows;

static void list_rows_free(list_rows *rows)
{
    memory_free(rows->places);
    memory_free(rows->elements);
    memory_free(rows->moved);
}

static ww_status list_rows_read(index_writer *w, const ivf_tables *t, int64_t list, list_rows *rows)
{
    const int64_t bytes = record_vector_bytes(t->record);
    const size_t room = (size_t)outline_record(w->outline, list).rows;
    int code = SQLITE_DONE;
    ww_status status = ready(w, t, READ_LIST);
    if (status != WW_OK)
        return status;
    rows->places = memory_alloc(room * sizeof *rows->places);
    rows->elements = memory_alloc(room * (size_t)bytes);
    rows->moved = memory_alloc(room * sizeof *rows->moved);
    if (!rows->places || !rows->elements || !rows->moved)
        return memory_failed("the rows of a list", room * ((size_t)bytes + sizeof *rows->places + 1));
    sqlite3_stmt *s = w->statements[READ_LIST];
    sqlite3_bind_int64(s, 1, list);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (rows->count == (int64_t)room || sqlite3_column_bytes(s, 1) != bytes) {
            status = ivf_damaged(t->record->name, "list %lld has rows that it does not count", (long long)list);
            break;
        }
        rows->places[rows->count] = sqlite3_column_int64(s, 0);
        memcpy(rows->elements + rows->count++ * bytes, sqlite3_column_blob(s, 1), (size_t)bytes);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    if (status == WW_OK && rows->count != (int64_t)room)
        status = ivf_damaged(t->record->name, "list %lld counts %lld rows and has %lld", (long long)list, (long long)room,
                             (long long)rows->count);
    sqlite3_reset(s);
    return status;
}

static ww_status split(index_writer *w, const ivf_tables *t, int64_t list)
{
    list_rows rows = {0};
    ww_status status = dirty_reserve(w, w->header.nlist + 1);
    if (status == WW_OK)
        status = list_rows_read(w, t, list, &rows);
    if (status == WW_OK)
        status = outline_split(w->outline, list, &(outline_rows){rows.count, rows.elements}, rows.moved);
    const int64_t lists = status == WW_OK ? outline_lists(w->outline) : 0;
    w->dirty[list] |= LIST_COUNTED;
    if (lists > w->header.nlist) {
        for (int64_t i = 0; status == WW_OK && i < rows.count; i++)
            if (rows.moved[i])
                status = run(w, t, SET_LIST, rows.places[i], w->header.nlist);
        w->dirty[list] |= LIST_SPLIT;
        w->dirty[w->header.nlist] |= LIST_COUNTED | LIST_SPLIT;
        w->header.nlist = lists;
        w->header.lists_split++;
        w->header.changed = t->record->sequence;
        w->header.version = w->version = schema_epoch();
    }
    list_rows_free(&rows);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

/* Writes a list, with the number of the write that changed it. */
static ww_status write_list(index_writer *w, const ivf_tables *t, int64_t list, const list_record *record, int64_t changed)
{
    const ww_status status = ready(w, t, WRITE_LIST);
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(w->statements[WRITE_LIST], 1, list);
    sqlite3_bind_int64(w->statements[WRITE_LIST], 2, changed);
    ivf_list_bind(w->statements[WRITE_LIST], 3, record);
    return schema_step(w->statements[WRITE_LIST]);
}

static ww_status write_centroid(index_writer *w, const ivf_tables *t, int64_t list, const float *centroid)
{
    const ww_status status = ready(w, t, WRITE_CENTROID);
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)t->record->dim * sizeof *centroid;
    sqlite3_bind_int64(w->statements[WRITE_CENTROID], 1, list);
    sqlite3_bind_blob64(w->statements[WRITE_CENTROID], 2, centroid, bytes, SQLITE_STATIC);
    sqlite3_bind_int64(w->statements[WRITE_CENTROID], 3, (int64_t)ivf_centroid_checksum(list, centroid, bytes));
    return schema_step(w->statements[WRITE_CENTROID]);
}

/* Writes new counts. The list keeps the number of the write that split it. */
static ww_status write_counts(index_writer *w, const ivf_tables *t, int64_t list)
{
    const list_record record = outline_record(w->outline, list);
    if (w->dirty[list] & LIST_SPLIT)
        return write_list(w, t, list, &record, t->record->sequence);
    const ww_status status = ready(w, t, COUNT_LIST);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = w->statements[COUNT_LIST];
    sqlite3_bind_int64(s, 1, list);
    ivf_list_bind(s, 2, &record);
    return schema_step(s);
}

ww_status index_writer_finish(index_writer *w, const ivf_tables *t)
{
    if (!w->known)
        return WW_OK; /* no vector was added or removed */
    const int64_t before = w->header.nlist;
    ww_status status = assign_pending(w, t);
    for (int64_t list = -1; status == WW_OK && (list = outline_to_split(w->outline)) >= 0;)
        status = split(w, t, list);
    for (int64_t i = 0; status == WW_OK && i < w->header.nlist; i++) {
        if (w->dirty[i])
            status = write_counts(w, t, i);
        if (status == WW_OK && w->dirty[i] & LIST_SPLIT)
            status = write_centroid(w, t, i, outline_centroid(w->outline, i));
        w->dirty[i] = 0;
    }
    if (status == WW_OK && w->header.nlist > before)
        status = ivf_header_write(t, &w->header);
    return ivf_explain(t->record->name, status);
}

ww_status index_writer_write_all(index_writer *w, const ivf_tables *t, const ww_collection *outline)
{
    ww_status status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_ivf_lists\"", t->schema, t->record->name);
    if (status == WW_OK)
        status = schema_run(t->db, "DELETE FROM \"%w\".\"%w_ivf_centroids\"", t->schema, t->record->name);
    for (int64_t l = 0; status == WW_OK && l < outline_lists(outline); l++) {
        const list_record record = outline_record(outline, l);
        status = write_list(w, t, l, &record, t->record->sequence);
        if (status == WW_OK)
            status = write_centroid(w, t, l, outline_centroid(outline, l));
    }
    return status;
}

/* ---- building ------------------------------------------------------------------------------------------------------------ */

enum { PLACES_AT_ONCE = 256 };

static ww_status write_rows(index_writer *w, const ivf_tables *t, const ivf *index, int64_t list, const mirror *m)
{
    int64_t count = 0;
    const uint32_t *rows = ivf_list_rows(index, list, &count);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < count; first += PLACES_AT_ONCE) {
        int64_t numbers[PLACES_AT_ONCE], places[PLACES_AT_ONCE], handles[PLACES_AT_ONCE];
        const int64_t some = min_i64(PLACES_AT_ONCE, count - first);
        for (int64_t i = 0; i < some; i++)
            numbers[i] = rows[first + i];
        mirror_places(m, numbers, some, places, handles);
        for (int64_t i = 0; status == WW_OK && i < some; i++)
            status = run(w, t, INSERT_PLACE, places[i], list);
    }
    return status;
}

ww_status index_writer_build(index_writer *w, const ivf_tables *t, const ivf *index, const mirror *rows)
{
    const collection_record *record = t->record;
    list_set lists = {0};
    ww_status status = ivf_tables_create(t);
    if (status == WW_OK)
        status = ivf_list_set(index, &lists);
    for (int64_t i = 0; status == WW_OK && i < lists.count; i++) {
        status = write_list(w, t, i, &lists.records[i], record->sequence);
        if (status == WW_OK)
            status = write_centroid(w, t, i, lists.centroids + i * record->dim);
        if (status == WW_OK)
            status = write_rows(w, t, index, i, rows);
    }
    memory_free((void *)(uintptr_t)lists.centroids);
    memory_free((void *)(uintptr_t)lists.records);
    if (status == WW_OK)
        status = ivf_index_lists(t);
    const ivf_header header = {.built = record->sequence,
                               .changed = record->sequence,
                               .version = schema_epoch(),
                               .nlist = index->nlist,
                               .loss = index->loss,
                               .rows_trained = index->rows_trained,
                               .first_place = record->next_place,
                               .lists_split = index->lists_split};
    if (status == WW_OK)
        status = ivf_header_write(t, &header);
    index_writer_forget(w);
    return status;
}

ww_status index_writer_calibrate(index_writer *w, const ivf_tables *t, const ivf_calibration *learnt)
{
    ww_status status = know(w, t);
    if (status == WW_OK)
        status = ivf_rules_write(t, learnt);
    w->header.changed = t->record->sequence;
    w->header.version = w->version = schema_epoch();
    w->header.calibration_k = learnt->k;
    w->header.calibration_queries = learnt->queries;
    w->header.calibration_rows_added = ivf_rows_added(t, &w->header);
    w->header.calibration_rows = t->record->live;
    w->header.calibration_time = learnt->time;
    return status == WW_OK ? ivf_header_write(t, &w->header) : status;
}
