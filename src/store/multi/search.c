/* Searching by multivectors. The mirror's set has the vectors of the mirror's rows; a search first brings it to the mirror's
 * sequence, which is that of the view's snapshot, with what the file has at later places. */
#include <string.h>

#include "base/cancel.h"
#include "base/integers.h"
#include "base/memory.h"
#include "store/multi/multi.h"
#include "store/view/view_state.h"
#include "vectors/collection.h"
#include "vectors/multi/multi.h"
#include "vectors/query/results.h"
#include "vectors/sparse/sparse.h"

enum {
    BATCH_ROWS = 1024,       /* added to the set at a time */
    BATCH_NUMBERS = 1 << 22, /* in them, unless one row has more */
    GARBAGE_ROWS_MIN = 1024, /* removed rows that the set may have, besides as many as live ones */
};

/* Rows that were read and not added yet. */
typedef struct batch {
    float *numbers;
    int64_t number_count;
    ww_multivector rows[BATCH_ROWS];
    uint32_t places[BATCH_ROWS];
    int64_t count;
} batch;

static ww_status add_batch(mirror_multi *mm, batch *b)
{
    const float *at = b->numbers;
    for (int64_t i = 0; i < b->count; i++) {
        b->rows[i].vectors = at;
        at += (size_t)b->rows[i].count * (size_t)b->rows[i].dim;
    }
    const ww_status status = multi_set_add(&mm->set, b->rows, b->places, b->count);
    b->count = b->number_count = 0;
    return status;
}

/* Copies a row to the batch. */
static ww_status keep_row(mirror_multi *mm, batch *b, const multi_row *row)
{
    const int64_t numbers = (int64_t)row->vector.count * row->vector.dim;
    ww_status status = WW_OK;
    if (b->count == BATCH_ROWS || (b->count > 0 && b->number_count + numbers > BATCH_NUMBERS))
        status = add_batch(mm, b);
    if (status != WW_OK)
        return status;
    if (b->count == 0) { /* the first row of a batch determines its room */
        memory_free(b->numbers);
        b->numbers = memory_alloc((size_t)max_i64(numbers, BATCH_NUMBERS) * sizeof *b->numbers);
    }
    if (!b->numbers)
        return memory_failed("multivectors", (size_t)max_i64(numbers, BATCH_NUMBERS) * sizeof *b->numbers);
    memcpy(b->numbers + b->number_count, row->vector.vectors, (size_t)numbers * sizeof *b->numbers);
    b->rows[b->count] = row->vector;
    b->places[b->count++] = (uint32_t)row->place;
    b->number_count += numbers;
    return WW_OK;
}

/* Adds the multivectors at mm->next_place and later. Sets `other` and stops if they are of another dimension. */
static ww_status read_rows(view *v, mirror_multi *mm, batch *b, bool *other)
{
    const multi_table t = {v->db, v->schema, v->record.name};
    sqlite3_stmt *s = NULL;
    multi_space space = {0};
    int code = SQLITE_DONE;
    ww_status status = schema_statement(
        v->db, &s, "SELECT " MULTI_COLUMNS " FROM \"%w\".\"%w_multi\" WHERE place >= ?1 ORDER BY place", t.schema, t.name);
    if (status == WW_OK)
        sqlite3_bind_int64(s, 1, mm->next_place);
    while (status == WW_OK && !*other && (code = sqlite3_step(s)) == SQLITE_ROW) {
        multi_row row;
        status = cancel_asked() ? ww_fail(WW_CANCELLED, "the search was cancelled") : multi_columns(&t, s, &space, &row);
        if (status == WW_OK && row.place >= v->record.next_place)
            status = row_damaged(t.name, "the multivector at place", row.place);
        if (status != WW_OK)
            break;
        if (mm->set.dim == 0)
            mm->set.dim = row.vector.dim;
        *other = mm->set.dim != row.vector.dim;
        if (!*other)
            status = keep_row(mm, b, &row);
    }
    if (status == WW_OK && !*other && code != SQLITE_DONE)
        status = sqlite_failed(v->db, code, v->name);
    if (status == WW_OK && !*other && b->count > 0)
        status = add_batch(mm, b);
    sqlite3_finalize(s);
    memory_free(space.numbers);
    return status;
}

/* Makes the set empty, to be read from the start. */
static void set_restart(mirror_multi *mm, const view *v)
{
    multi_set_free(&mm->set);
    mm->set = (multi_set){.device = mirror_collection(v->active)->device, .metric = v->record.metric};
    mm->next_place = 0;
}

/* Brings the set to the snapshot. Called with the set's lock for writing. */
static ww_status catch_up(view *v, mirror_multi *mm)
{
    bool exist = false, other = true;
    batch *b = memory_alloc_zeroed(1, sizeof *b);
    ww_status status = b ? WW_OK : memory_failed("multivectors", sizeof *b);
    if (status == WW_OK)
        status = multi_table_exists(&(multi_table){v->db, v->schema, v->record.name}, &exist);
    if (!mm->set.device || !exist)
        set_restart(mm, v);
    for (int attempts = 0; status == WW_OK && exist && other && attempts < 2; attempts++) {
        other = false;
        b->count = b->number_count = 0;
        status = read_rows(v, mm, b, &other);
        if (status == WW_OK && !other)
            status = mirror_multi_live(v->active, v->record.next_place);
        other = other || (status == WW_OK && mm->set.rows > 2 * mm->live_rows + GARBAGE_ROWS_MIN);
        if (other && attempts == 0)
            set_restart(mm, v);
    }
    if (status == WW_OK && !exist)
        status = mirror_multi_live(v->active, v->record.next_place);
    if (status != WW_OK)
        set_restart(mm, v);
    mm->sequence = status == WW_OK ? mirror_state_of(v->active).sequence : -1;
    mm->next_place = status == WW_OK ? v->record.next_place : 0;
    if (b)
        memory_free(b->numbers);
    memory_free(b);
    return status;
}

/* Locks the set for reading when it is at the snapshot. While the mirror is locked for reading, its sequence stays. */
static ww_status lock_ready(view *v, mirror_multi *mm)
{
    const int64_t sequence = mirror_state_of(v->active).sequence;
    pthread_rwlock_rdlock(&mm->lock);
    while (mm->sequence != sequence) {
        pthread_rwlock_unlock(&mm->lock);
        pthread_rwlock_wrlock(&mm->lock);
        const ww_status status = mm->sequence != sequence ? catch_up(v, mm) : WW_OK;
        pthread_rwlock_unlock(&mm->lock);
        if (status != WW_OK)
            return status;
        pthread_rwlock_rdlock(&mm->lock);
    }
    return WW_OK;
}

/* Adds the hits to the lists. */
static ww_status find(view *v, const mirror_multi *mm, const ww_query *query, const view_places *only, key_list *lists)
{
    uint64_t *admitted = NULL;
    ww_status status = view_admit(v, query, only, &admitted);
    for (int64_t i = 0; status == WW_OK && admitted && i < divide_up_i64(v->record.next_place, 64); i++)
        admitted[i] &= mm->live[i];
    for (int64_t q = 0; status == WW_OK && q < query->query_count; q++) {
        const ww_multivector *asked = &query->multi->vectors[q];
        if (asked->count > 0 && mm->set.dim != 0 && asked->dim != mm->set.dim)
            status = multi_wrong_dim(v->record.name, mm->set.dim, asked->dim);
    }
    if (status == WW_OK && mm->set.dim != 0)
        status =
            multi_set_search(&mm->set, query, (multi_admitted){admitted ? admitted : mm->live, v->record.next_place}, lists);
    memory_free(admitted);
    return status;
}

ww_status view_multi(view *v, const ww_query *query, const view_places *only, ww_results **results)
{
    ww_results *made = NULL;
    key_list *lists = NULL;
    mirror_multi *mm = mirror_multi_of(v->active);
    if (v->overlaid)
        return ww_fail(WW_UNSUPPORTED, "collection '%s': a transaction with uncommitted changes cannot search multivectors",
                       v->name);
    ww_status status = multi_device_check(mirror_collection(v->active)->device);
    if (status == WW_OK)
        status = sparse_lists_create(query->query_count, &lists);
    if (status == WW_OK)
        status = lock_ready(v, mm);
    if (status == WW_OK) {
        status = find(v, mm, query, only, lists);
        pthread_rwlock_unlock(&mm->lock);
    }
    if (status == WW_OK)
        status = sparse_results(query, lists, &made);
    sparse_lists_free(lists, query->query_count);
    for (int64_t i = 0; status == WW_OK && i < results_hits(made); i++) {
        const int64_t row = mirror_row(v->active, made->rows[i]);
        mirror_places(v->active, &row, 1, &made->rows[i], &made->handles[i]);
    }
    return view_finish(v, status, query->fetch, made, results);
}
