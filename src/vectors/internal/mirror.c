/* Mirrors: the table of all mirrors, and the runs that map rows to places and handles. */
#include "vectors/internal/mirror.h"

#include <stdatomic.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "base/clock.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/query/results.h"
#include "vectors/query/search.h"

enum { PADDED_NUMBERS = 64, ROW_EXTRA_BYTES = 32 }; /* of a row: norm, scale, bound, residual, place and handle, about */
static const int64_t REST_NANOSECONDS = 1000000000; /* of a mirror before it may be freed for another */

enum { TIDY_ROWS_MIN = 4096 }; /* with fewer removed rows, moving the others takes longer than it saves */

/* Rows from `row` to the start of the next run: their places and handles are consecutive. */
typedef struct run {
    int64_t row;
    int64_t place;
    int64_t handle;
} run;

struct mirror {
    mirror *next; /* in the table */
    bool listed;
    mirror_key key;
    int64_t users; /* protected by the table's lock */
    process_mark made_in;
    atomic_bool searched;     /* mirror_first_search() */
    atomic_llong bytes, used; /* memory, about; when it was last searched, in nanoseconds */
    pthread_rwlock_t lock;    /* protects everything below */
    ww_collection *rows;
    run *runs;
    int64_t run_count;
    int64_t run_room;
    bool loaded;
    bool abandoned;
    int64_t sequence;
    int64_t next_place;
    mirror_multi multi;
};

typedef struct file_use {
    struct file_use *next;
    mirror_key file;
    int64_t users;
    process_mark made_in;
} file_use;

/* The stores of a process share copies of the same collection in memory, so it has one table of them, and of its files. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static mirror *table;
static file_use *files;

/* In a child of fork() the lock is unlocked, even if another thread held it in the parent, and the parent's entries are
   ignored. */
static void table_acquire(void)
{
    pthread_mutex_lock(&table_lock);
}

static void table_release(void)
{
    pthread_mutex_unlock(&table_lock);
}

static void survive_forks(void)
{
    (void)pthread_atfork(table_acquire, table_release, table_release);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

/* Frees the multivectors, which are then read again. */
static void multi_free(mirror_multi *multi)
{
    multi_set_free(&multi->set);
    multi->set.device = NULL;
    memory_free(multi->live);
    multi->live = NULL;
    multi->next_place = 0;
    multi->sequence = -1;
}

static void mirror_free(mirror *m)
{
    multi_free(&m->multi);
    ww_collection_destroy(m->rows);
    memory_free(m->runs);
    pthread_rwlock_destroy(&m->multi.lock);
    pthread_rwlock_destroy(&m->lock);
    memory_free(m);
}

ww_status mirror_create(ww_device *device, const ww_collection_config *config, mirror **made)
{
    mirror *m = memory_alloc_zeroed(1, sizeof *m);
    if (!m)
        return memory_failed("a collection in memory", sizeof *m);
    ww_status status = collection_lock_create(&m->lock);
    if (status == WW_OK) {
        status = collection_lock_create(&m->multi.lock);
        if (status != WW_OK)
            pthread_rwlock_destroy(&m->lock);
    }
    m->multi.sequence = -1;
    if (status != WW_OK) {
        memory_free(m);
        return status;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* handlers are added once, for the process */
    pthread_once(&once, survive_forks);
    m->made_in = process_here();
    m->users = 1;
    status = ww_collection_create(device, config, &m->rows);
    if (status == WW_OK)
        *made = m;
    else
        mirror_free(m);
    return status;
}

static bool keys_equal(const mirror_key *a, const mirror_key *b)
{
    return a->file_device == b->file_device && a->file_inode == b->file_inode && a->sqlite == b->sqlite && a->uid == b->uid &&
           a->epoch == b->epoch && a->screen == b->screen && a->rows == b->rows && strcmp(a->device, b->device) == 0;
}

ww_status mirror_acquire(const mirror_key *key, ww_device *device, const ww_collection_config *config, mirror **found)
{
    ww_status status = WW_OK;
    table_acquire();
    mirror *m = table;
    while (m && (!process_is_ours(m->made_in) || !keys_equal(&m->key, key)))
        m = m->next;
    if (m) {
        m->users++;
    } else {
        status = mirror_create(device, config, &m);
        if (status == WW_OK) {
            m->key = *key;
            m->listed = true;
            m->next = table;
            table = m;
        }
    }
    table_release();
    if (status == WW_OK)
        *found = m;
    return status;
}

/* Called with the table's lock. */
static void unlist(mirror *m)
{
    for (mirror **link = &table; m->listed && *link; link = &(*link)->next)
        if (*link == m) {
            *link = m->next;
            m->listed = false;
            return;
        }
}

void mirror_release(mirror *m)
{
    if (!m || !process_is_ours(m->made_in))
        return;
    table_acquire();
    const bool last = --m->users == 0;
    if (last)
        unlist(m);
    table_release();
    if (last)
        mirror_free(m);
}

void mirror_abandon(mirror *m)
{
    m->abandoned = true;
    table_acquire();
    unlist(m);
    table_release();
}

void mirror_lock_read(mirror *m)
{
    atomic_store(&m->used, clock_nanoseconds());
    pthread_rwlock_rdlock(&m->lock);
}

void mirror_lock_write(mirror *m)
{
    pthread_rwlock_wrlock(&m->lock);
}

void mirror_unlock(mirror *m)
{
    pthread_rwlock_unlock(&m->lock);
}

mirror_state mirror_state_of(const mirror *m)
{
    return (mirror_state){.loaded = m->loaded,
                          .abandoned = m->abandoned,
                          .sequence = m->sequence,
                          .next_place = m->next_place,
                          .rows = m->rows->store.rows_count,
                          .rows_live = m->rows->store.rows_live};
}

/* docs/guide/memory.md has the parts. */
bool mirror_first_search(mirror *m)
{
    return !atomic_exchange(&m->searched, true);
}

int64_t mirror_bytes(const mirror *m, int64_t rows)
{
    const ww_collection *c = m->rows;
    const int64_t element = (int64_t)row_type_bytes((int32_t)c->type), padded = round_up_i64(c->dim, PADDED_NUMBERS);
    const bool screened = c->screen != WW_SCREEN_NONE && element > 1;
    return rows * (padded * element + (screened ? padded + padded / 2 : 0) + ROW_EXTRA_BYTES) + multi_set_bytes(&m->multi.set);
}

void mirror_set_state(mirror *m, int64_t sequence, int64_t next_place)
{
    atomic_store(&m->bytes, mirror_bytes(m, m->rows->store.rows_count));
    atomic_store(&m->used, clock_nanoseconds());
    m->loaded = true;
    m->sequence = sequence;
    m->next_place = next_place;
}

ww_collection *mirror_collection(mirror *m)
{
    return m->rows;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static bool files_equal(const mirror_key *a, const mirror_key *b)
{
    return a->file_device == b->file_device && a->file_inode == b->file_inode && a->sqlite == b->sqlite;
}

/* Called with the table's lock: the bytes of the file's mirrors except `m`, and the one that has rested longest, or NULL. */
static int64_t look_through(const mirror_key *file, const mirror *m, int64_t now, mirror **rested)
{
    int64_t bytes = 0, longest = now - REST_NANOSECONDS;
    *rested = NULL;
    for (mirror *other = table; other; other = other->next) {
        const int64_t own = atomic_load(&other->bytes), used = atomic_load(&other->used);
        if (other == m || own == 0 || !process_is_ours(other->made_in) || !files_equal(&other->key, file))
            continue;
        bytes += own;
        if (used <= longest) {
            longest = used;
            *rested = other;
        }
    }
    return bytes;
}

int64_t mirror_file_bytes(const mirror_key *file)
{
    mirror *rested = NULL;
    table_acquire();
    const int64_t bytes = look_through(file, NULL, clock_nanoseconds(), &rested);
    table_release();
    return bytes;
}

/* A mirror that somebody uses stays, and counts as used now. */
static void free_rows(mirror *m)
{
    if (pthread_rwlock_trywrlock(&m->lock) != 0) {
        atomic_store(&m->used, clock_nanoseconds());
        return;
    }
    mirror_abandon(m);
    multi_free(&m->multi);
    (void)ww_collection_clear(m->rows); /* its last user frees what is left */
    atomic_store(&m->bytes, 0);
    pthread_rwlock_unlock(&m->lock);
}

void mirror_make_room(mirror *m, int64_t rows, int64_t limit)
{
    for (;;) {
        mirror *rested = NULL;
        table_acquire();
        const int64_t others = look_through(&m->key, m, clock_nanoseconds(), &rested);
        const bool enough = others + mirror_bytes(m, rows) <= limit;
        if (rested && !enough)
            rested->users++;
        table_release();
        if (enough || !rested)
            return;
        free_rows(rested);
        mirror_release(rested);
    }
}

/* ---- runs ---------------------------------------------------------------------------------------------------------------- */

/* Returns the last run that starts at `row` or before; it always exists. */
static const run *run_of_row(const mirror *m, int64_t row)
{
    int64_t low = 0, high = m->run_count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (m->runs[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    return &m->runs[low];
}

static int64_t run_end(const mirror *m, const run *r)
{
    return r + 1 < m->runs + m->run_count ? r[1].row : m->rows->store.rows_count;
}

void mirror_places(const mirror *m, const int64_t *rows, int64_t count, int64_t *places, int64_t *handles)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = rows[i];
        const run *r = row >= 0 ? run_of_row(m, row) : NULL;
        places[i] = r ? r->place + (row - r->row) : -1;
        handles[i] = r ? r->handle + (row - r->row) : -1;
    }
}

ww_status mirror_query(mirror *m, const ww_query *query, ww_results **results)
{
    const ww_status status = collection_query(m->rows, query, results);
    if (status == WW_OK)
        mirror_places(m, (*results)->rows, results_hits(*results), (*results)->rows, (*results)->handles);
    return status;
}

int64_t mirror_row(const mirror *m, int64_t place)
{
    int64_t low = 0, high = m->run_count;
    if (high == 0 || place < m->runs[0].place)
        return -1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (m->runs[middle].place <= place)
            low = middle;
        else
            high = middle;
    }
    const run *r = &m->runs[low];
    const int64_t row = r->row + (place - r->place);
    return row < run_end(m, r) ? row : -1;
}

static uint64_t bits_at(const uint64_t *words, int64_t first, int64_t end)
{
    uint64_t bits = words[first / 64] >> (first % 64);
    if (first % 64 != 0 && end > first / 64 * 64 + 64)
        bits |= words[first / 64 + 1] << (64 - first % 64);
    return bits;
}

void mirror_mask(const mirror *m, const uint64_t *by_place, int64_t places_count, uint64_t *mask)
{
    for (const run *r = m->runs; r < m->runs + m->run_count; r++) {
        const int64_t end = min_i64(run_end(m, r), r->row + max_i64(0, places_count - r->place));
        for (int64_t row = r->row; row < end;) {
            const int64_t count = min_i64(64 - row % 64, end - row);
            uint64_t bits = bits_at(by_place, r->place + (row - r->row), places_count);
            if (count < 64)
                bits &= (UINT64_C(1) << count) - 1;
            mask[row / 64] |= bits << (row % 64);
            row += count;
        }
    }
}

mirror_multi *mirror_multi_of(mirror *m)
{
    return &m->multi;
}

ww_status mirror_multi_live(mirror *m, int64_t places_count)
{
    mirror_multi *multi = &m->multi;
    const int64_t words = divide_up_i64(places_count, 64) + 1;
    uint64_t *live = memory_alloc_zeroed((size_t)words, sizeof *live);
    if (!live)
        return memory_failed("a mask", (size_t)words * sizeof *live);
    for (const run *r = m->runs; r < m->runs + m->run_count; r++)
        for (int64_t row = r->row; row < run_end(m, r); row++) {
            const int64_t place = r->place + (row - r->row);
            if (place < places_count && store_is_live(&m->rows->store, row))
                live[place / 64] |= UINT64_C(1) << (place % 64);
        }
    memory_free(multi->live);
    multi->live = live;
    multi->live_rows = 0;
    for (int64_t i = 0; i < multi->set.segment_count; i++)
        for (int64_t j = 0; j < multi->set.segments[i].count; j++) {
            const uint32_t place = multi->set.segments[i].rows[j];
            multi->live_rows += place < places_count && live[place / 64] >> (place % 64) & 1;
        }
    atomic_store(&m->bytes, mirror_bytes(m, m->rows->store.rows_count));
    return WW_OK;
}

static ww_status runs_reserve(mirror *m, int64_t more)
{
    if (m->run_count + more <= m->run_room)
        return WW_OK;
    const int64_t room = m->run_count + more + m->run_room / 8;
    run *moved = memory_resize(m->runs, (size_t)room * sizeof *moved);
    if (!moved)
        return memory_failed("the places of rows", (size_t)room * sizeof *moved);
    m->runs = moved;
    m->run_room = room;
    return WW_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

ww_status mirror_reserve(mirror *m, int64_t rows_more)
{
    return ww_collection_reserve(m->rows, m->rows->store.rows_live + rows_more);
}

/* Returns true if the i-th new row continues the run before it. */
static bool continues(const mirror *m, const mirror_rows *rows, int64_t i, int64_t row)
{
    if (i > 0)
        return rows->places[i] == rows->places[i - 1] + 1 && rows->handles[i] == rows->handles[i - 1] + 1;
    if (m->run_count == 0)
        return false;
    const run *last = &m->runs[m->run_count - 1];
    return rows->places[i] == last->place + (row - last->row) && rows->handles[i] == last->handle + (row - last->row);
}

ww_status mirror_append(mirror *m, const mirror_rows *rows)
{
    const int64_t first = m->rows->store.rows_count;
    int64_t breaks = 0;
    for (int64_t i = 0; i < rows->count; i++)
        breaks += !continues(m, rows, i, first);
    ww_status status = runs_reserve(m, breaks);
    if (status != WW_OK)
        return status;
    const ww_rows added = {.count = rows->count,
                           .dim = m->rows->dim,
                           .vectors = rows->elements ? NULL : rows->vectors,
                           .elements = rows->elements,
                           .type = m->rows->type,
                           .row_stride = rows->row_stride > 0 ? rows->row_stride : m->rows->dim};
    struct ivf *index = m->rows->index; /* the file decides which lists the rows enter */
    m->rows->index = NULL;
    status = rows->count > 0 ? memory_write(m->rows, &added, WRITE_ADD) : WW_OK;
    m->rows->index = index;
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; i < rows->count; i++)
        if (!continues(m, rows, i, first))
            m->runs[m->run_count++] = (run){first + i, rows->places[i], rows->handles[i]};
    return WW_OK;
}

ww_status mirror_remove(mirror *m, const int64_t *places, int64_t count)
{
    row_store *store = &m->rows->store;
    int64_t removed = 0;
    collection_lock_write(m->rows);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = mirror_row(m, places[i]);
        if (row < 0 || !store_is_live(store, row))
            continue;
        store_mark(store, row, 1, false);
        removed++;
    }
    store->rows_live -= removed;
    const ww_status status = removed > 0 ? store_push_live(store) : WW_OK;
    collection_unlock(m->rows);
    return status;
}

/* Makes the runs of the live rows after they are renumbered. */
static ww_status runs_of_live(const mirror *m, run **runs, int64_t *run_count)
{
    const row_store *store = &m->rows->store;
    int64_t room = m->run_count + 64, count = 0, done = 0;
    run *made = memory_alloc((size_t)room * sizeof *made);
    for (int64_t row = store_next(store, -1); made && row >= 0; row = store_next(store, row), done++) {
        int64_t place, handle;
        mirror_places(m, &row, 1, &place, &handle);
        const run *last = count > 0 ? &made[count - 1] : NULL;
        if (last && place == last->place + (done - last->row) && handle == last->handle + (done - last->row))
            continue;
        if (count == room) {
            room += room / 2;
            run *moved = memory_resize(made, (size_t)room * sizeof *made);
            if (!moved) {
                memory_free(made);
                return memory_failed("the places of rows", (size_t)room * sizeof *made);
            }
            made = moved;
        }
        made[count++] = (run){done, place, handle};
    }
    *runs = made;
    *run_count = count;
    return made ? WW_OK : memory_failed("the places of rows", (size_t)room * sizeof *made);
}

ww_status mirror_tidy(mirror *m)
{
    const row_store *store = &m->rows->store;
    const int64_t removed = store->rows_count - store->rows_live;
    if (removed < TIDY_ROWS_MIN || removed < store->rows_live)
        return WW_OK;
    run *runs = NULL;
    int64_t run_count = 0;
    ww_status status = runs_of_live(m, &runs, &run_count);
    if (status == WW_OK)
        status = memory_compact(m->rows, NULL, NULL);
    if (status != WW_OK) {
        memory_free(runs);
        return status;
    }
    memory_free(m->runs);
    m->runs = runs;
    m->run_room = m->run_count = run_count;
    return WW_OK;
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

/* Returns the entry for a file that this process uses or, with `inherited`, that its parent used before fork(). */
static file_use *file_find(const mirror_key *file, bool inherited)
{
    file_use *use = files;
    while (use && (use->file.file_device != file->file_device || use->file.file_inode != file->file_inode ||
                   process_is_ours(use->made_in) == inherited))
        use = use->next;
    return use;
}

ww_status mirror_file_enter(const mirror_key *file, const char *path)
{
    ww_status status = WW_OK;
    table_acquire();
    file_use *use = file_find(file, false);
    if (file_find(file, true)) {
        status = ww_fail(WW_OTHER_PROCESS,
                         "%s was open when this process was forked. SQLite takes the locks of the parent for its own here, and "
                         "what is written could be lost: fork before the file is opened, close it before the fork, or start "
                         "the process anew (exec, or spawn in Python)",
                         path);
    } else if (use && use->file.sqlite != file->sqlite) {
        status =
            ww_fail(WW_UNSUPPORTED,
                    "%s is open in this process through another SQLite (a second copy of the library); two of them lose each "
                    "other's locks on a file. Close it there, or use it in another process",
                    path);
    } else if (use && file->exclusive && !use->file.exclusive) {
        status = ww_fail(WW_BUSY,
                         "%s is open in this process already, so that other processes cannot be kept out; close it there first",
                         path);
    } else if (use) {
        use->users++;
    } else {
        use = memory_alloc(sizeof *use);
        if (use) {
            *use = (file_use){.next = files, .file = *file, .users = 1, .made_in = process_here()};
            files = use;
        } else {
            status = memory_failed("the list of open files", sizeof *use);
        }
    }
    table_release();
    return status;
}

void mirror_file_leave(const mirror_key *file)
{
    table_acquire();
    file_use *use = file_find(file, false);
    if (use && --use->users == 0) {
        file_use **link = &files;
        while (*link != use)
            link = &(*link)->next;
        *link = use->next;
        memory_free(use);
    }
    table_release();
}
