/* Selections of a collection in a store: SQLite finds the handles in order, and the view fetches their rows. */
#include "base/status.h"
#include "store/store_state.h"

ww_status stored_find_handles(const stored *c, reader *r, const ww_selection *selection, filter_places *handles)
{
    const filter_where where = {selection->where, selection->parameters, selection->parameter_count, selection->filter};
    const filter_page page = {selection->first_handle, selection->limit > 0 ? selection->limit : -1};
    const filter_target target = {.db = r->db,
                                  .schema = "main",
                                  .collection = view_record(r->view)->name,
                                  .guard = &r->guard,
                                  .page = &page,
                                  .seconds_max = (double)c->store->config.filter_ms / 1000.0};
    ww_status status = filter_check(&where, c->base.name);
    if (status == WW_OK)
        status = filter_run(&where, &target, handles);
    return status;
}

ww_status stored_select_handles(stored *c, const ww_selection *selection, filter_places *handles)
{
    reader *r = NULL;
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    status = stored_find_handles(c, r, selection, handles);
    reading_end(c, r);
    return status;
}

ww_status stored_select(ww_collection *base, const ww_selection *selection, uint32_t fetch, ww_results **results)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    filter_places handles = {0};
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    status = stored_find_handles(c, r, selection, &handles);
    const view_list list = {.by = VIEW_BY_HANDLE, .count = handles.count, .numbers = handles.places, .fetch = fetch};
    if (status == WW_OK)
        status = view_get(r->view, &list, results);
    reading_end(c, r);
    filter_places_free(&handles);
    return status;
}

ww_status stored_select_count(ww_collection *base, const ww_selection *selection, int64_t *count)
{
    filter_places handles = {0};
    const ww_status status = stored_select_handles(stored_of(base), selection, &handles);
    *count = handles.count;
    filter_places_free(&handles);
    return status;
}
