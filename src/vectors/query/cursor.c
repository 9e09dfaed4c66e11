/* Cursors over collections in memory, and the calls. */
#include "vectors/internal/cursor.h"

#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "vectors/filter/select.h"
#include "vectors/ids/handles.h"
#include "vectors/query/fetch.h"
#include "vectors/ranking/pick.h"

/* ---- in memory ----------------------------------------------------------------------------------------------------------- */

/* Makes results of the next `count` handles. No write came since the cursor was opened, so all of them are live. Called with
 * the lock. */
static ww_status rows_of(const ww_cursor *cursor, int64_t count, ww_results **results)
{
    const ww_collection *c = cursor->collection;
    ww_results *made = NULL;
    ww_status status = results_create(1, count, &made);
    if (status == WW_OK) {
        for (int64_t i = 0; i < count; i++) {
            made->rows[i] = handle_find(&c->moved, &c->store, cursor->handles[cursor->at + i]);
            made->scores[i] = 0.0f;
        }
        made->starts[1] = count;
        status = results_fetch(made, c, cursor->fetch);
    }
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

void cursors_keep(ww_collection *c)
{
    pthread_mutex_lock(&c->cursors_lock);
    for (ww_cursor *cursor = c->cursors; cursor; cursor = cursor->next) {
        if (cursor->rest || cursor->kept != WW_OK || cursor->at == cursor->count)
            continue;
        cursor->rest_at = cursor->at;
        cursor->kept = rows_of(cursor, cursor->count - cursor->at, &cursor->rest);
        if (cursor->kept != WW_OK)
            text_copy(cursor->why, sizeof cursor->why, ww_error_message());
    }
    pthread_mutex_unlock(&c->cursors_lock);
}

/* Lists the handles of the selection, or of all rows in their order. Called with the lock. */
static ww_status list_handles(ww_cursor *cursor, const ww_selection *selection)
{
    const ww_collection *c = cursor->collection;
    selected_rows found = {0};
    ww_status status = selection ? selected_rows_find(c, selection, &found) : WW_OK;
    if (status != WW_OK)
        return status;
    const int64_t count = selection ? found.count : c->store.rows_live;
    cursor->listed = true;
    cursor->handles = memory_alloc((size_t)max_i64(count, 1) * sizeof *cursor->handles);
    if (!cursor->handles)
        status = memory_failed("a cursor's list of rows", (size_t)count * sizeof *cursor->handles);
    int64_t row = -1;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        row = selection ? found.rows[i].row : store_next(&c->store, row);
        cursor->handles[i] = store_handle(&c->store, row);
    }
    cursor->count = status == WW_OK ? count : 0;
    memory_free(found.rows);
    return status;
}

ww_status memory_cursor_open(ww_cursor *cursor, const ww_selection *selection)
{
    ww_collection *c = cursor->collection;
    collection_lock_read(c);
    const ww_status status = list_handles(cursor, selection);
    if (status == WW_OK) { /* with the lock, so that no write comes in between */
        pthread_mutex_lock(&c->cursors_lock);
        cursor->next = c->cursors;
        c->cursors = cursor;
        pthread_mutex_unlock(&c->cursors_lock);
    }
    collection_unlock(c);
    return status;
}

ww_status cursor_page_of_rest(const ww_cursor *cursor, int64_t count, ww_results **results)
{
    int64_t *starts = NULL;
    picked_hit *hits = NULL;
    ww_status status = picked_create(1, count, &starts, &hits);
    if (status == WW_OK) {
        for (int64_t i = 0; i < count; i++)
            hits[i] = (picked_hit){cursor->rest, cursor->at - cursor->rest_at + i, 0.0f};
        starts[1] = count;
        status = results_pick(&(picked_hits){1, starts, hits}, results);
    }
    memory_free(starts);
    memory_free(hits);
    return status;
}

ww_status memory_cursor_read(ww_cursor *cursor, int64_t count, ww_results **results)
{
    ww_collection *c = cursor->collection;
    const int64_t rows = min_i64(count, cursor->count - cursor->at);
    collection_lock_read(c);
    ww_status status = cursor->kept;
    if (status != WW_OK)
        status = ww_fail(status, "ww_cursor_next: before a write, the rows could not be copied: %s", cursor->why);
    else
        status = cursor->rest ? cursor_page_of_rest(cursor, rows, results) : rows_of(cursor, rows, results);
    if (status == WW_OK)
        cursor->at += rows;
    collection_unlock(c);
    return status;
}

void memory_cursor_close(ww_cursor *cursor)
{
    ww_collection *c = cursor->collection;
    pthread_mutex_lock(&c->cursors_lock);
    for (ww_cursor **link = &c->cursors; *link; link = &(*link)->next)
        if (*link == cursor) {
            *link = cursor->next;
            break;
        }
    pthread_mutex_unlock(&c->cursors_lock);
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

static void cursor_free(ww_cursor *cursor)
{
    ww_results_destroy(cursor->rest);
    memory_free(cursor->handles);
    pthread_mutex_destroy(&cursor->lock);
    memory_free(cursor);
}

ww_status ww_cursor_create(ww_collection *collection, const ww_selection *selection, uint32_t fetch, ww_cursor **cursor)
{
    FLOAT_GUARD();
    static const char function[] = "ww_cursor_create";
    if (!cursor)
        return fail_null(function, "cursor");
    ww_selection read = {0};
    ww_status status =
        selection ? selection_read(collection, function, selection, &read) : collection_check(collection, function);
    if (status == WW_OK)
        status = fetch_check(function, fetch);
    if (status != WW_OK)
        return status;
    CANCEL_BY(read.cancel);
    ww_cursor *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a cursor", sizeof *made);
    pthread_mutex_init(&made->lock, NULL);
    made->collection = collection;
    made->fetch = fetch;
    made->after = -1;
    status = collection->operations->cursor_open(made, selection ? &read : NULL);
    if (status == WW_OK)
        *cursor = made;
    else
        cursor_free(made);
    return status;
}

ww_status ww_cursor_next(ww_cursor *cursor, int64_t count, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_cursor_next";
    if (!cursor || !results)
        return fail_null(function, cursor ? "results" : "cursor");
    ww_status status = collection_check(cursor->collection, function);
    if (status == WW_OK && (count < 1 || count > WW_ROWS_MAX))
        status = ww_fail(WW_OUT_OF_RANGE, "%s: count is %lld; it must be 1 to %lld", function, (long long)count,
                         (long long)WW_ROWS_MAX);
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&cursor->lock);
    status = cursor->collection->operations->cursor_read(cursor, count, results);
    pthread_mutex_unlock(&cursor->lock);
    return status;
}

void ww_cursor_destroy(ww_cursor *cursor)
{
    if (!cursor || !process_is_ours(cursor->collection->made_in))
        return;
    cursor->collection->operations->cursor_close(cursor);
    cursor_free(cursor);
}
