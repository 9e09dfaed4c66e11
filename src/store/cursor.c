/* Cursors over a collection of a store: a connection that keeps its read transaction until the cursor is destroyed. Writers go
 * on meanwhile; the WAL file keeps what the transaction needs.
 */
#include "vectors/internal/cursor.h"
#include "base/integers.h"
#include "base/memory.h"
#include "store/store_state.h"

/* In a transaction of ww_store_begin() the writing connection sees rows that no other does, and must not be held: the rows are
 * copied now. */
static ww_status copy_rows(ww_cursor *cursor, const ww_selection *selection)
{
    ww_collection *c = cursor->collection;
    const ww_get all = {.count = WW_ROWS_MAX, .fetch = cursor->fetch};
    const ww_status status =
        selection ? stored_select(c, selection, cursor->fetch, &cursor->rest) : c->operations->get(c, &all, &cursor->rest);
    if (status == WW_OK)
        cursor->count = cursor->rest->starts[1];
    return status;
}

ww_status stored_cursor_open(ww_cursor *cursor, const ww_selection *selection)
{
    stored *c = stored_of(cursor->collection);
    filter_places handles = {0};
    reader *r = NULL;
    if (store_is_mine(c->store))
        return copy_rows(cursor, selection);
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    if (selection)
        status = stored_find_handles(c, r, selection, &handles);
    if (status != WW_OK) {
        reading_end(c, r);
        return status;
    }
    cursor->reader = r;
    cursor->listed = selection != NULL;
    cursor->handles = handles.places;
    cursor->count = handles.count;
    return WW_OK;
}

ww_status stored_cursor_read(ww_cursor *cursor, int64_t count, ww_results **results)
{
    reader *r = cursor->reader;
    const int64_t rows = min_i64(count, cursor->count - cursor->at);
    const view_list list = {.by = cursor->listed ? VIEW_BY_HANDLE : VIEW_ALL,
                            .count = cursor->listed ? rows : count,
                            .numbers = cursor->listed ? cursor->handles + cursor->at : NULL,
                            .after = cursor->after,
                            .fetch = cursor->fetch};
    ww_results *made = NULL;
    const ww_status status = cursor->rest ? cursor_page_of_rest(cursor, rows, &made) : view_get(r->view, &list, &made);
    if (status != WW_OK)
        return status;
    const int64_t found = made->starts[1];
    cursor->at += found;
    if (found > 0)
        cursor->after = made->rows[found - 1];
    *results = made;
    return WW_OK;
}

void stored_cursor_close(ww_cursor *cursor)
{
    if (cursor->reader)
        reading_end(stored_of(cursor->collection), cursor->reader);
}
