/* Reading vectors from the file, into a mirror or for one search.
 *
 * The calling thread, which owns the connection, fills one buffer from SQLite while a second thread takes the other buffer's
 * rows: it adds them to the mirror, where the device copies them and computes norms and codes, or searches them
 * (view_stream.c). A few rows, as in a typical catch-up, are taken at once.
 */
#include <pthread.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/checksum.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/system/threads.h"
#include "base/text.h"
#include "store/ivf/follow.h"
#include "store/view/view_state.h"
#include "vectors/collection.h"
#include "vectors/internal/mirror.h"

enum {
    PIECE_BYTES = 4 * 1024 * 1024, /* of vectors in a buffer */
    PIECE_ROWS_MIN = 64,
    REASON_BYTES = 1024,
};

typedef struct piece {
    void *elements;
    int64_t *places;
    int64_t *handles;
    int64_t count;
} piece;

typedef struct loader {
    view *v;
    const view_reading *reading;
    int64_t *gone; /* places of removed vectors, in order */
    int64_t gone_count, gone_room, gone_passed;
    int64_t rows_max; /* of a piece */
    piece pieces[2];
    int filling; /* index of the buffer being filled */
    int64_t done;

    /* Shared by the two threads. */
    bool started;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const piece *handed; /* waiting for the second thread, or NULL */
    bool finished;       /* no more pieces will come */
    ww_status status;    /* of the second thread's rows */
    char reason[REASON_BYTES];
} loader;

static ww_status piece_create(const loader *l, piece *p)
{
    const size_t bytes = (size_t)(l->rows_max * record_vector_bytes(&l->v->record));
    p->elements = memory_alloc(bytes);
    p->places = memory_alloc((size_t)l->rows_max * sizeof *p->places);
    p->handles = memory_alloc((size_t)l->rows_max * sizeof *p->handles);
    return p->elements && p->places && p->handles ? WW_OK : memory_failed("vectors on their way from the file", bytes);
}

static ww_status loader_create(loader *l, int64_t rows_expected)
{
    l->rows_max = max_i64(min_i64(PIECE_BYTES / record_vector_bytes(&l->v->record), rows_expected), PIECE_ROWS_MIN);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    return piece_create(l, &l->pieces[0]);
}

static bool is_finite(const loader *l, const piece *p, int64_t row, float *wide)
{
    const collection_record *record = &l->v->record;
    row_widen((int32_t)record->type, (const char *)p->elements + row * record_vector_bytes(record), record->dim, wide);
    return vector_is_finite(wide, record->dim);
}

/* If the device refuses a vector, something other than this library wrote it. */
static ww_status take_in(const loader *l, const piece *p)
{
    const mirror_rows rows = {.count = p->count, .elements = p->elements, .places = p->places, .handles = p->handles};
    const ww_status status = l->reading->take(l->reading->context, &rows);
    if (status != WW_INVALID_ARGUMENT)
        return status;
    float *wide = memory_alloc((size_t)l->v->record.dim * sizeof *wide);
    int64_t bad = 0;
    while (wide && bad < p->count && is_finite(l, p, bad, wide))
        bad++;
    memory_free(wide);
    return bad < p->count ? ww_fail(WW_CORRUPT_FILE, "collection '%s': the vector at place %lld is not finite", l->v->name,
                                    (long long)p->places[bad])
                          : status;
}

static void *take_in_all(void *argument)
{
    loader *l = argument;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->handed && !l->finished)
            pthread_cond_wait(&l->changed, &l->lock);
        if (!l->handed)
            break;
        pthread_mutex_unlock(&l->lock);
        const ww_status status = l->status == WW_OK ? take_in(l, l->handed) : l->status;
        pthread_mutex_lock(&l->lock);
        if (status != WW_OK && l->status == WW_OK) {
            l->status = status;
            text_copy(l->reason, sizeof l->reason, ww_error_message());
        }
        l->handed = NULL;
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Waits until the second thread has nothing to do. The caller holds its lock. */
static ww_status wait_for_taker(loader *l)
{
    while (l->handed)
        pthread_cond_wait(&l->changed, &l->lock);
    return l->status == WW_OK ? WW_OK : ww_fail(l->status, "%s", l->reason);
}

static ww_status told(loader *l)
{
    const view *v = l->v;
    const ww_query *query = l->reading->query;
    if (query && progress_tell(query->progress, query->progress_user, 0, query->query_count))
        return ww_fail(WW_CANCELLED, "the call was cancelled");
    if (!progress_tell(v->progress, v->progress_user, l->done, v->record.live))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': cancelled after %lld of %lld rows were loaded", v->name, (long long)l->done,
                   (long long)v->record.live);
}

/* Hands the full piece to the second thread, which is started for the first one. */
static ww_status hand_over(loader *l)
{
    piece *p = &l->pieces[l->filling];
    l->done += p->count;
    if (!l->started && thread_start(&l->thread, "ww-store-load", take_in_all, l) != 0) {
        const ww_status status = take_in(l, p); /* no thread could be started, so this one does both */
        p->count = 0;
        return status == WW_OK ? told(l) : status;
    }
    l->started = true;
    pthread_mutex_lock(&l->lock);
    ww_status status = wait_for_taker(l);
    if (status == WW_OK) {
        l->handed = p;
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    l->filling ^= 1;
    piece *next = &l->pieces[l->filling];
    next->count = 0;
    if (status == WW_OK && !next->elements)
        status = piece_create(l, next); /* few rows need only one buffer */
    return status == WW_OK ? told(l) : status;
}

/* Reads the rows that are left, and ends the second thread. */
static ww_status loader_finish(loader *l, ww_status status)
{
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        const ww_status taken = wait_for_taker(l);
        l->finished = true;
        pthread_cond_signal(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
        status = status == WW_OK ? taken : status;
    }
    piece *p = &l->pieces[l->filling];
    if (status == WW_OK && p->count > 0) {
        l->done += p->count;
        status = take_in(l, p);
    }
    return status == WW_OK && l->done > 0 ? told(l) : status;
}

static void loader_destroy(loader *l)
{
    memory_free(l->gone);
    for (int i = 0; i < 2; i++) {
        memory_free(l->pieces[i].elements);
        memory_free(l->pieces[i].places);
        memory_free(l->pieces[i].handles);
    }
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
}

/* Reads the places of removed vectors from `first_place` on. */
static ww_status read_gone(loader *l, int64_t first_place)
{
    view *v = l->v;
    ww_status status = view_ready(v, READ_GONE);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = v->statements[READ_GONE];
    int code = SQLITE_DONE;
    sqlite3_bind_int64(s, 1, first_place);
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        if (l->gone_count == l->gone_room) {
            const int64_t room = 2 * l->gone_room + 256;
            int64_t *moved = memory_resize(l->gone, (size_t)room * sizeof *moved);
            if (!moved) {
                status = memory_failed("the places of removed vectors", (size_t)room * sizeof *moved);
                break;
            }
            l->gone = moved;
            l->gone_room = room;
        }
        l->gone[l->gone_count++] = sqlite3_column_int64(s, 0);
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(v->db, code, v->name);
    sqlite3_reset(s);
    return status;
}

/* Has the vector at this place been removed? Called with ascending places. */
static bool is_gone(loader *l, int64_t place)
{
    while (l->gone_passed < l->gone_count && l->gone[l->gone_passed] < place)
        l->gone_passed++;
    return l->gone_passed < l->gone_count && l->gone[l->gone_passed] == place;
}

/* Reads the statement's current row. */
static ww_status read_row(loader *l, sqlite3_stmt *s)
{
    const view *v = l->v;
    piece *p = &l->pieces[l->filling];
    const int64_t bytes = record_vector_bytes(&v->record);
    const int64_t place = sqlite3_column_int64(s, 0);
    if (is_gone(l, place))
        return WW_OK;
    const void *vector = sqlite3_column_type(s, 2) == SQLITE_BLOB ? sqlite3_column_blob(s, 2) : NULL;
    if (!vector || sqlite3_column_bytes(s, 2) != bytes)
        return ww_fail(WW_CORRUPT_FILE, "collection '%s': the vector at place %lld has %d bytes; %lld belong there", v->name,
                       (long long)place, sqlite3_column_bytes(s, 2), (long long)bytes);
    if (place < 0 || place >= v->record.next_place)
        return ww_fail(WW_CORRUPT_FILE, "collection '%s': there is a vector at place %lld, which was never assigned", v->name,
                       (long long)place);
    const int64_t handle = sqlite3_column_int64(s, 1);
    if (v->has_checksums && !checksum_agrees(vector, (size_t)bytes, handle, place, sqlite3_column_int64(s, 3)))
        return row_damaged(v->name, "the vector at place", place);
    memcpy((char *)p->elements + p->count * bytes, vector, (size_t)bytes);
    p->places[p->count] = place;
    p->handles[p->count] = handle;
    p->count++;
    return p->count == l->rows_max ? hand_over(l) : WW_OK;
}

ww_status view_read(view *v, const view_reading *reading, int64_t *count)
{
    loader l = {.v = v, .reading = reading};
    ww_status status = view_ready(v, READ_VECTORS);
    if (status != WW_OK)
        return status;
    status = loader_create(&l, reading->rows_expected);
    if (status == WW_OK)
        status = read_gone(&l, reading->first_place);
    if (status == WW_OK) {
        sqlite3_stmt *s = v->statements[READ_VECTORS];
        int code = SQLITE_DONE;
        sqlite3_bind_int64(s, 1, reading->first_place);
        while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
            status = read_row(&l, s);
        if (status == WW_OK && code != SQLITE_DONE)
            status = sqlite_failed(v->db, code, v->name);
        sqlite3_reset(s);
        status = loader_finish(&l, status);
    }
    *count = l.done;
    loader_destroy(&l);
    return status;
}

ww_status view_check_count(const view *v, int64_t rows)
{
    if (rows == v->record.live)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE,
                   "collection '%s': there are %lld vectors in the file; its list of collections says %lld. Its tables were "
                   "changed by other means; a check of the store says more",
                   v->name, (long long)rows, (long long)v->record.live);
}

static ww_status append(void *context, const mirror_rows *rows)
{
    return mirror_append(context, rows);
}

static ww_status read_removed(view *v, mirror *m, int64_t sequence, const view_overlay *overlay)
{
    ww_status status = view_ready(v, READ_REMOVED);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = v->statements[READ_REMOVED];
    int64_t places[256];
    int64_t count = 0;
    int code = SQLITE_ROW;
    sqlite3_bind_int64(s, 1, sequence);
    while (status == WW_OK && code == SQLITE_ROW) {
        code = sqlite3_step(s);
        const int64_t place = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
        if (overlay && place >= 0 && place < overlay->first_place) {
            const int64_t row = mirror_row(overlay->base, place);
            if (row >= 0)
                overlay->gone[row / 64] &= ~(UINT64_C(1) << (row % 64));
        } else if (code == SQLITE_ROW) {
            places[count++] = place;
        }
        if (count == 256 || (code == SQLITE_DONE && count > 0)) {
            status = mirror_remove(m, places, count);
            count = 0;
        }
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(v->db, code, v->name);
    sqlite3_reset(s);
    return status;
}

ww_status view_catch_up(view *v, mirror *m, const view_overlay *overlay)
{
    const mirror_state before = mirror_state_of(m);
    const collection_record *record = &v->record;
    const int64_t first_place = before.loaded ? before.next_place : 0;
    const int64_t expected = before.loaded ? record->next_place - first_place : min_i64(record->live, record->next_place);
    ww_status status = WW_OK;
    if (!before.loaded && v->memory_bytes > 0 && m == v->shared)
        mirror_make_room(m, expected, v->memory_bytes);
    if (!before.loaded)
        status = mirror_reserve(m, expected);
    int64_t count = 0;
    if (status == WW_OK && expected > 0)
        status = view_read(v, &(view_reading){first_place, expected, append, m, NULL}, &count);
    if (status == WW_OK && before.loaded)
        status = read_removed(v, m, before.sequence, overlay);
    const mirror_state after = mirror_state_of(m);
    if (status == WW_OK && !overlay)
        status = view_check_count(v, after.rows_live);
    if (status == WW_OK)
        status = mirror_tidy(m);
    if (status == WW_OK && !overlay) {
        const ivf_tables tables = {v->db, v->schema, record};
        const ivf_behind behind = {before.loaded, before.sequence, first_place, after.rows - before.rows};
        status = ivf_follow(&tables, m, &behind);
        v->index_reads += ivf_is_there(record);
    }
    if (status == WW_OK)
        mirror_set_state(m, record->sequence, record->next_place);
    return status;
}
