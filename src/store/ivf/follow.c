/* Reading an index from its tables into a mirror: all of it, or what has changed since the mirror was last read. */
#include "store/ivf/follow.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"

typedef struct following {
    const ivf_tables *t;
    mirror *m;
    const ivf_behind *behind;
    bool whole;
    ivf_header header;
    ivf_lists lists;
    uint8_t *is_changed; /* of each list */
    int64_t *rows;
    uint32_t *row_lists;
    int64_t count, room;
    uint32_t *touched;
    list_record *touched_records;
    list_record *changed_records;
    int64_t touched_count;
    ivf_rule *rules;
} following;

static ww_status take_memory(following *f)
{
    const size_t lists = (size_t)f->header.nlist;
    f->room = f->whole ? f->t->record->live : f->behind->rows_added;
    for (int64_t i = 0; !f->whole && i < f->lists.changed_count; i++)
        f->room += f->lists.records[f->lists.changed[i]].rows;
    const size_t rows = (size_t)min_i64(f->room, f->t->record->live);
    f->room = (int64_t)rows;
    f->is_changed = memory_alloc_zeroed(lists, sizeof *f->is_changed);
    f->rows = memory_alloc(rows * sizeof *f->rows);
    f->row_lists = memory_alloc(rows * sizeof *f->row_lists);
    f->touched = memory_alloc(lists * sizeof *f->touched);
    f->touched_records = memory_alloc(lists * sizeof *f->touched_records);
    f->changed_records = memory_alloc(lists * sizeof *f->changed_records);
    if (!f->is_changed || !f->rows || !f->row_lists || !f->touched || !f->touched_records || !f->changed_records)
        return memory_failed("the lists of an index", rows * (sizeof *f->rows + sizeof *f->row_lists) + lists * 80);
    for (int64_t i = 0; i < f->lists.changed_count; i++) {
        f->is_changed[f->lists.changed[i]] = 1;
        f->changed_records[i] = f->lists.records[f->lists.changed[i]];
    }
    return WW_OK;
}

static void free_memory(following *f)
{
    ivf_lists_free(&f->lists);
    memory_free(f->is_changed);
    memory_free(f->rows);
    memory_free(f->row_lists);
    memory_free(f->touched);
    memory_free(f->touched_records);
    memory_free(f->changed_records);
    memory_free(f->rules);
}

/* Enters a place and its list from the table. */
static ww_status enter(following *f, int64_t place, int64_t list)
{
    const int64_t row = mirror_row(f->m, place);
    if (row < 0 || list < 0 || list >= f->header.nlist || f->count == f->room)
        return ivf_damaged(f->t->record->name, "place %lld, in list %lld, has no vector, or occurs twice", (long long)place,
                           (long long)list);
    f->rows[f->count] = row;
    f->row_lists[f->count++] = (uint32_t)list;
    return WW_OK;
}

/* Reads places and their lists, starting at a place. Rows of changed lists are read elsewhere, unless all lists changed. */
static ww_status read_places(following *f, int64_t first_place, int64_t *found)
{
    const ivf_tables *t = f->t;
    sqlite3_stmt *s = NULL;
    int code = SQLITE_DONE;
    ww_status status =
        schema_statement(t->db, &s, "SELECT place, list FROM \"%w\".\"%w_ivf_rows\" WHERE place >= ?1 ORDER BY place",
                         t->schema, t->record->name);
    if (status == WW_OK)
        sqlite3_bind_int64(s, 1, first_place);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t place = sqlite3_column_int64(s, 0), list = sqlite3_column_int64(s, 1);
        const bool elsewhere = !f->whole && list >= 0 && list < f->header.nlist && f->is_changed[list];
        (*found)++;
        status = elsewhere ? WW_OK : enter(f, place, list);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(t->db, code, t->record->name);
    sqlite3_finalize(s);
    return status;
}

static ww_status read_changed_lists(following *f)
{
    const ivf_tables *t = f->t;
    sqlite3_stmt *s = NULL;
    ww_status status = schema_statement(t->db, &s, "SELECT place FROM \"%w\".\"%w_ivf_rows\" WHERE list = ?1 ORDER BY place",
                                        t->schema, t->record->name);
    for (int64_t i = 0; status == WW_OK && i < f->lists.changed_count; i++) {
        const int64_t list = f->lists.changed[i], before = f->count;
        int code = SQLITE_DONE;
        sqlite3_bind_int64(s, 1, list);
        while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
            status = enter(f, sqlite3_column_int64(s, 0), list);
        if (status == WW_OK && code != SQLITE_DONE)
            status = sqlite_failed(t->db, code, t->record->name);
        if (status == WW_OK && f->count - before != f->lists.records[list].rows)
            status = ivf_damaged(t->record->name, "list %lld counts %lld rows and has %lld", (long long)list,
                                 (long long)f->lists.records[list].rows, (long long)(f->count - before));
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return status;
}

/* Rows of the mirror are in order of place, and so are the rows of each list. */
static ww_status read_rows(following *f)
{
    const int64_t expected = f->whole ? f->t->record->live : f->behind->rows_added;
    int64_t found = 0;
    ww_status status = f->whole ? WW_OK : read_changed_lists(f);
    if (status == WW_OK)
        status = read_places(f, f->whole ? 0 : f->behind->first_place, &found);
    if (status == WW_OK && found != expected)
        status =
            ivf_damaged(f->t->record->name, "%lld of %lld vectors are in its lists", (long long)found, (long long)expected);
    return status;
}

static void find_touched(following *f)
{
    enum { TOUCHED = 2 };
    for (int64_t i = 0; i < f->count; i++) {
        const uint32_t list = f->row_lists[i];
        if (f->is_changed[list])
            continue;
        f->is_changed[list] = TOUCHED;
        f->touched[f->touched_count] = list;
        f->touched_records[f->touched_count++] = f->lists.records[list];
    }
}

static ww_status restore(following *f)
{
    const ivf_header *h = &f->header;
    const ivf_update update = {.nlist = h->nlist,
                               .loss = h->loss,
                               .rows_trained = h->rows_trained,
                               .rows_added = ivf_rows_added(f->t, h),
                               .lists_split = h->lists_split,
                               .calibration = {.k = (int32_t)h->calibration_k,
                                               .queries = h->calibration_queries,
                                               .time = h->calibration_time,
                                               .rows_added = h->calibration_rows_added,
                                               .rows_live = h->calibration_rows,
                                               .rules = f->rules},
                               .changed = f->lists.changed,
                               .lists = {f->lists.changed_count, f->lists.centroids, f->changed_records},
                               .rows = f->rows,
                               .row_lists = f->row_lists,
                               .row_count = f->count,
                               .touched = f->touched,
                               .touched_records = f->touched_records,
                               .touched_count = f->touched_count};
    return ivf_restore(mirror_collection(f->m), &update);
}

static ww_status read_all(following *f)
{
    const ww_collection *c = mirror_collection(f->m);
    ww_status status = ivf_header_read(f->t, &f->header);
    if (status != WW_OK)
        return status;
    f->whole = !c->index || !f->behind->loaded || f->header.built > f->behind->sequence || f->header.nlist < c->index->nlist;
    if (!f->whole && f->behind->rows_added == 0 && f->header.changed <= f->behind->sequence)
        return WW_OK; /* rows were removed, or payloads have changed */
    status = ivf_lists_read(f->t, &f->header, f->whole ? -1 : f->behind->sequence, &f->lists);
    if (status == WW_OK)
        status = take_memory(f);
    const int64_t before = c->index && !f->whole ? c->index->nlist : f->header.nlist;
    for (int64_t l = before; status == WW_OK && l < f->header.nlist; l++)
        if (!f->is_changed[l])
            status = ivf_damaged(f->t->record->name, "list %lld is new but not marked as changed", (long long)l);
    if (status == WW_OK)
        status = read_rows(f);
    if (status == WW_OK)
        status = ivf_rules_read(f->t, &f->header, &f->rules);
    if (status != WW_OK)
        return status;
    find_touched(f);
    return restore(f);
}

static void drop_index(mirror *m)
{
    ww_collection *c = mirror_collection(m);
    if (c->index)
        (void)ww_collection_drop_ivf(c);
}

ww_status ivf_follow(const ivf_tables *t, mirror *m, const ivf_behind *behind)
{
    following f = {.t = t, .m = m, .behind = behind};
    ww_status status = WW_OK;
    if (ivf_is_there(t->record))
        status = read_all(&f);
    else
        drop_index(m);
    free_memory(&f);
    if (status != WW_CORRUPT_FILE)
        return status;
    drop_index(m); /* the next query that needs it fails with the reason */
    return WW_OK;
}

/* ---- figures ------------------------------------------------------------------------------------------------------------- */

ww_status ivf_info_read(const ivf_tables *t, ww_ivf_info *info)
{
    ivf_header h;
    ivf_lists lists = {0};
    ww_status status = ivf_header_read(t, &h);
    if (status == WW_OK)
        status = ivf_lists_read(t, &h, INT64_MAX, &lists);
    if (status != WW_OK)
        return status;
    info->nlist = h.nlist;
    info->rows = t->record->live;
    info->rows_mean = (double)info->rows / (double)h.nlist;
    info->loss = h.loss;
    info->rows_trained = h.rows_trained;
    info->rows_added = ivf_rows_added(t, &h);
    info->lists_split = h.lists_split;
    info->calibration_queries = h.calibration_queries;
    info->calibration_k = (int32_t)h.calibration_k;
    info->calibration_time = h.calibration_time;
    if (h.calibration_k > 0) {
        info->calibration_rows_added = info->rows_added - h.calibration_rows_added;
        info->calibration_rows_removed = h.calibration_rows + info->calibration_rows_added - info->rows;
    }
    for (int64_t i = 0; i < h.nlist; i++)
        info->rows_largest = max_i64(info->rows_largest, lists.records[i].rows);
    ivf_lists_free(&lists);
    return WW_OK;
}
