/* Writing to a collection of a store: one transaction per call.
 *
 * Memory is allocated first (room in the mirror, if there is one), then comes the transaction. After the commit the rows, which
 * are still in memory, are added to the mirror. If that fails, nothing is lost: the mirror is dropped, and the next search
 * reads the file.
 */
#include <stdlib.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include <warpwave/multi.h>
#include <warpwave/sparse.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/tables.h"
#include "store/store_state.h"
#include "vectors/write/payloads.h"

enum { TOLD_ROWS = 4096 }; /* between two calls of a progress callback */

/* A write in progress. */
typedef struct change {
    stored *c;
    bool loaded;   /* there is a mirror to bring up to date */
    bool may_miss; /* ids to remove need not exist */
    bool joined;   /* this is part of a transaction of ww_store_begin() */
    collection_record before;
    int64_t *places; /* of added rows */
    int64_t *handles;
    int64_t *removed; /* places of removed rows */
    int64_t removed_count;
} change;

/* A number that every commit to the file changes; other connections' commits show once a transaction has begun. 0: unknown. */
static uint32_t data_version(sqlite3 *db)
{
    uint32_t version = 0;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_DATA_VERSION, &version) == SQLITE_OK ? version : 0;
}

/* Begins the transaction, and allocates lists for `rows` added and `rows` removed rows. */
static ww_status change_begin(change *w, int64_t rows, int64_t rows_more)
{
    stored *c = w->c;
    const int64_t vector_bytes = rows_more * c->base.dim * (int64_t)row_type_bytes((int32_t)c->base.type);
    ww_status status = process_check(c->store->made_in, c->store->path);
    if (status == WW_OK && vector_bytes >= LARGE_WRITE_BYTES)
        readers_release(c);
    if (status == WW_OK)
        status = store_begin_write(c->store, vector_bytes);
    if (status != WW_OK)
        return status;
    const uint32_t version = data_version(c->store->writer);
    if (version == 0 || version != c->written_version)
        writer_forget(c->writer);
    c->written_version = 0; /* unknown until this write is committed */
    status = writer_read(c->writer);
    if (status == WW_OK) {
        w->before = *writer_record(c->writer);
        status = stored_is(c, &w->before);
    }
    if (status == WW_OK)
        status = view_reserve(c->written, &w->before, rows_more, &w->loaded);
    if (ivf_is_there(&w->before))
        w->loaded = false; /* the next search reads the rows with their lists */
    w->joined = store_is_mine(c->store);
    if (w->joined)
        w->loaded = false; /* the next search reads the rows after the commit */
    if (status == WW_OK && w->loaded) {
        const size_t bytes = (size_t)rows * sizeof *w->places;
        w->places = memory_alloc(bytes);
        w->handles = memory_alloc(bytes);
        w->removed = memory_alloc(bytes);
        if (!w->places || !w->handles || !w->removed)
            status = memory_failed("the rows of a write", 3 * bytes);
    }
    if (status == WW_OK)
        status = writer_begin(c->writer);
    if (status == WW_OK)
        return WW_OK;
    writer_forget(c->writer);
    return store_end_write(c->store, status);
}

/* Commits if `status` is WW_OK, and updates the mirror. `rows`, the added rows, may be NULL. */
static ww_status change_end(change *w, ww_status status, const ww_rows *rows)
{
    stored *c = w->c;
    if (status == WW_OK)
        status = writer_flush(c->writer);
    if (status == WW_OK && !w->joined)
        status = store_commit_write(c->store);
    if (status == WW_OK && w->loaded) {
        const view_commit commit = {.before = &w->before,
                                    .after = writer_record(c->writer),
                                    .added = {.count = rows ? rows->count : 0,
                                              .vectors = rows && !rows->elements ? rows->vectors : NULL,
                                              .elements = rows ? rows->elements : NULL,
                                              .row_stride = rows ? rows->row_stride : 0,
                                              .places = w->places,
                                              .handles = w->handles},
                                    .removed = w->removed,
                                    .removed_count = w->removed_count};
        view_committed(c->written, &commit);
    }
    if (status == WW_OK && !w->joined) /* a joined write may still be rolled back, so the writer forgets it */
        c->written_version = data_version(c->store->writer);
    else
        writer_forget(c->writer);
    return store_end_write(c->store, status); /* nothing is left to commit after a success */
}

static void change_free(change *w)
{
    memory_free(w->places);
    memory_free(w->handles);
    memory_free(w->removed);
}

static void note_removed(change *w, int64_t place)
{
    if (w->loaded)
        w->removed[w->removed_count++] = place;
}

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

static ww_status told(const change *w, const ww_rows *rows, int64_t done)
{
    if (done % TOLD_ROWS != 0 && done != rows->count)
        return WW_OK;
    if (!progress_tell(rows->progress, rows->progress_user, done, rows->count))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': cancelled after %lld of %lld rows; nothing was added", w->c->base.name,
                   (long long)done, (long long)rows->count);
}

/* Writes a row by its id, which may already exist. */
static ww_status replace_row(change *w, const ww_rows *rows, writer_row *row, write_kind kind)
{
    writer *to = w->c->writer;
    int64_t handle = -1, place = -1;
    ww_status status = WW_OK;
    if (kind == WRITE_UPDATE)
        status = writer_replace(to, row,
                                WRITER_VECTOR | (rows->payloads ? WRITER_PAYLOAD : 0) | (rows->texts ? WRITER_TEXT : 0) |
                                    (rows->sparse ? WRITER_SPARSE : 0) | (rows->multi ? WRITER_MULTI : 0),
                                &place);
    else if (row->id && w->loaded)
        status = writer_find(to, row->id, &handle, &place);
    if (status == WW_OK && place >= 0)
        note_removed(w, place);
    return status == WW_OK && kind == WRITE_UPSERT ? writer_upsert(to, row) : status;
}

static ww_status make_row(const change *w, const ww_rows *rows, int64_t i, writer_row *row)
{
    *row = (writer_row){.id = rows->ids ? rows->ids[i] : NULL,
                        .payload = rows->payloads ? rows->payloads[i] : NULL,
                        .payload_checked = true,
                        .text = rows->texts ? rows->texts[i] : NULL,
                        .sparse = rows->sparse ? &rows->sparse[i] : NULL,
                        .multi = rows->multi ? &rows->multi[i] : NULL,
                        .handle = -1,
                        .batch_row = i + 1};
    if (rows->elements)
        row->elements = (const char *)rows->elements + i * rows->row_stride * (int64_t)row_type_bytes((int32_t)w->before.type);
    else
        row->vector = rows->vectors + i * rows->row_stride;
    return !rows->ids || row->id ? WW_OK
                                 : ww_fail(WW_INVALID_ARGUMENT, "collection '%s': the id of row %lld of the batch is NULL",
                                           w->c->base.name, (long long)i);
}

/* Writes the next rows, from number `first` on; `count` gets how many. */
static ww_status put_rows(change *w, const ww_rows *rows, int64_t first, write_kind kind, int64_t *count)
{
    writer_row list[WRITER_ROWS_AT_ONCE];
    const int64_t count_max = kind == WRITE_ADD ? min_i64(rows->count - first, WRITER_ROWS_AT_ONCE) : 1;
    ww_status made = WW_OK;
    *count = 0;
    while (*count < count_max && (made = make_row(w, rows, first + *count, &list[*count])) == WW_OK)
        ++*count;
    ww_status status = WW_OK;
    if (kind == WRITE_ADD)
        status = writer_insert_many(w->c->writer, list, *count);
    else if (made == WW_OK)
        status = replace_row(w, rows, &list[0], kind);
    if (status == WW_OK && made != WW_OK) /* rows before the bad one may have replaced its message */
        status = make_row(w, rows, first + *count, &list[0]);
    for (int64_t i = 0; status == WW_OK && w->loaded && i < *count; i++) {
        w->places[first + i] = list[i].place;
        w->handles[first + i] = list[i].handle;
    }
    return status;
}

/* Removes the row with an id; `found` says whether there was one. */
static ww_status remove_row(change *w, const char *id, bool *found)
{
    int64_t handle = -1, place = -1;
    ww_status status = writer_find(w->c->writer, id, &handle, &place);
    *found = status == WW_OK && handle >= 0;
    if (!*found)
        return status;
    note_removed(w, place);
    return writer_remove(w->c->writer, handle, NULL);
}

ww_status stored_write(ww_collection *base, const ww_rows *rows, write_kind kind)
{
    change w = {.c = stored_of(base)};
    bool found;
    ww_status status = change_begin(&w, rows->count + rows->discard_count, rows->count);
    if (status == WW_OK) {
        status = told(&w, rows, 0);
        for (int64_t i = 0; status == WW_OK && i < rows->discard_count; i++)
            status = remove_row(&w, rows->discard_ids[i], &found);
        for (int64_t i = 0, put = 0; status == WW_OK && i < rows->count; i += put) {
            status = put_rows(&w, rows, i, kind, &put);
            if (status == WW_OK)
                status = told(&w, rows, i + put);
        }
        status = change_end(&w, status, rows);
    }
    change_free(&w);
    return status;
}

/* ---- removing ------------------------------------------------------------------------------------------------------------ */

/* Says why an id cannot be removed: it does not exist, or occurs twice in the list. */
static ww_status cannot_remove(const change *w, const char *const *ids, int64_t number)
{
    for (int64_t i = 0; i < number; i++)
        if (strcmp(ids[i], ids[number]) == 0)
            return ww_fail(WW_DUPLICATE_ID, "collection '%s': id '%s' appears twice in the list to remove; nothing was removed",
                           w->c->base.name, ids[number]);
    return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to remove; nothing was removed", w->c->base.name,
                   WW_ID_BYTES_MAX, ids[number]);
}

/* A row to remove, and where its id is in the list. */
typedef struct removal {
    int64_t place, handle, number;
} removal;

static int compare_removals(const void *first, const void *second)
{
    const removal *a = first, *b = second;
    return a->place != b->place ? (a->place > b->place) - (a->place < b->place)
                                : (a->number > b->number) - (a->number < b->number);
}

/* Finds the rows of the ids; `list` has room for all. Without `missing` each id must exist. */
static ww_status find_removals(const change *w, const char *const *ids, int64_t count, removal *list, int64_t *found)
{
    ww_status status = WW_OK;
    *found = 0;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        removal *r = &list[*found];
        r->number = i;
        status = writer_find(w->c->writer, ids[i], &r->handle, &r->place);
        *found += status == WW_OK && r->handle >= 0;
        if (status == WW_OK && r->handle < 0 && !w->may_miss)
            status = cannot_remove(w, ids, i);
    }
    return status;
}

/* Removes the rows in order of their places, so that each page of the file is visited once. */
static ww_status remove_listed(change *w, const char *const *ids, removal *list, int64_t found, int64_t *removed)
{
    ww_status status = WW_OK;
    *removed = 0;
    if (found > 1)
        qsort(list, (size_t)found, sizeof *list, compare_removals);
    for (int64_t i = 0; status == WW_OK && i < found; i++) {
        if (i > 0 && list[i].place == list[i - 1].place) {
            status = w->may_miss ? WW_OK : cannot_remove(w, ids, list[i].number);
            continue;
        }
        note_removed(w, list[i].place);
        status = writer_remove(w->c->writer, list[i].handle, NULL);
        ++*removed;
    }
    return status;
}

ww_status stored_remove(ww_collection *base, const char *const *ids, int64_t count, int64_t *missing)
{
    change w = {.c = stored_of(base), .may_miss = missing != NULL};
    int64_t found = 0, removed = 0;
    removal *list = memory_alloc((size_t)(count + 1) * sizeof *list);
    if (!list)
        return memory_failed("the rows of a write", (size_t)count * sizeof *list);
    ww_status status = change_begin(&w, count, 0);
    if (status == WW_OK) {
        status = find_removals(&w, ids, count, list, &found);
        if (status == WW_OK)
            status = remove_listed(&w, ids, list, found, &removed);
        status = change_end(&w, status, NULL);
    }
    change_free(&w);
    memory_free(list);
    if (status == WW_OK && missing)
        *missing = count - removed;
    return status;
}

/* Nobody else writes while the transaction is open, so the rows that a reader sees now are the rows to change. In a transaction
 * of several writes a reader does not see those before this one. */
static ww_status find_selected(const change *w, const ww_selection *selection, filter_places *handles)
{
    if (w->joined)
        return ww_fail(WW_UNSUPPORTED, "collection '%s': rows cannot be selected by a filter in a transaction; name their ids",
                       w->c->base.name);
    return stored_select_handles(w->c, selection, handles);
}

ww_status stored_select_remove(ww_collection *base, const ww_selection *selection, int64_t *removed)
{
    change w = {.c = stored_of(base)};
    filter_places handles = {0};
    ww_status status = change_begin(&w, 0, 0);
    if (status == WW_OK) {
        status = find_selected(&w, selection, &handles);
        if (status == WW_OK && w.loaded) {
            memory_free(w.removed);
            w.removed = memory_alloc((size_t)handles.count * sizeof *w.removed);
            status = w.removed ? WW_OK : memory_failed("the rows of a write", (size_t)handles.count * sizeof *w.removed);
        }
        for (int64_t i = 0; status == WW_OK && i < handles.count; i++) {
            int64_t place = -1;
            status = writer_remove(w.c->writer, handles.places[i], &place);
            if (status == WW_OK)
                note_removed(&w, place);
        }
        status = change_end(&w, status, NULL);
    }
    change_free(&w);
    *removed = handles.count;
    filter_places_free(&handles);
    return status;
}

/* ---- payloads ------------------------------------------------------------------------------------------------------------ */

static ww_status put_payload(writer *to, const char *name, const char *payload, bool merge, int64_t handle)
{
    char *old = NULL, *merged = NULL;
    ww_status status = merge ? writer_payload(to, handle, &old) : WW_OK;
    if (status == WW_OK && merge)
        status = payload_merge(name, old, payload, &merged);
    writer_row row = {.payload = merge ? merged : payload, .payload_checked = true, .handle = handle};
    if (status == WW_OK)
        status = writer_update(to, &row, WRITER_PAYLOAD);
    memory_free(old);
    memory_free(merged);
    return status;
}

static ww_status put_listed(const change *w, const payload_change *asked, int64_t i)
{
    const char *name = w->c->base.name;
    int64_t handle = -1, place = -1;
    const ww_status status = writer_find(w->c->writer, asked->ids[i], &handle, &place);
    if (status == WW_OK && handle < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to give a payload; nothing was changed", name,
                       WW_ID_BYTES_MAX, asked->ids[i]);
    return status == WW_OK ? put_payload(w->c->writer, name, asked->payloads[i], asked->merge, handle) : status;
}

ww_status stored_set_payloads(ww_collection *base, const payload_change *asked, int64_t *changed)
{
    change w = {.c = stored_of(base)};
    filter_places handles = {0};
    ww_status status = change_begin(&w, 0, 0);
    if (status == WW_OK) {
        if (asked->selection)
            status = find_selected(&w, asked->selection, &handles);
        *changed = asked->selection ? handles.count : asked->count;
        for (int64_t i = 0; status == WW_OK && i < *changed; i++)
            status = asked->selection
                         ? put_payload(w.c->writer, base->name, asked->payloads[0], asked->merge, handles.places[i])
                         : put_listed(&w, asked, i);
        status = change_end(&w, status, NULL);
    }
    change_free(&w);
    filter_places_free(&handles);
    return status;
}

ww_status stored_clear(ww_collection *base)
{
    change w = {.c = stored_of(base)};
    ww_status status = change_begin(&w, 0, 0);
    if (status != WW_OK)
        return status;
    w.loaded = false; /* the new epoch needs a new mirror */
    status = change_end(&w, writer_clear(w.c->writer), NULL);
    change_free(&w);
    return status;
}
