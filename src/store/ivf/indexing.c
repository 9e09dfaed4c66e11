/* The index of a collection of a store: built, calibrated and dropped in one transaction each.
 *
 * The transaction stays open while the index is built, so that nobody else writes; searches continue. If the process dies, the
 * old index remains.
 */
#include "base/memory.h"
#include "base/status.h"
#include "store/ivf/follow.h"
#include "store/store_state.h"

/* Begins the transaction and a write. */
static ww_status change_begin(stored *c)
{
    ww_status status = process_check(c->store->made_in, c->store->path);
    if (status == WW_OK)
        status = store_begin(c->store);
    if (status != WW_OK)
        return status;
    writer_forget(c->writer);
    c->written_version = 0;
    status = writer_begin(c->writer);
    if (status == WW_OK)
        status = stored_is(c, writer_record(c->writer));
    if (status == WW_OK)
        return WW_OK;
    writer_forget(c->writer);
    return store_end(c->store, status);
}

static ww_status change_end(stored *c, ww_status status)
{
    if (status == WW_OK)
        status = writer_flush(c->writer);
    if (status == WW_OK)
        status = store_commit_write(c->store);
    writer_forget(c->writer);
    return store_end(c->store, status);
}

ww_status stored_build_ivf(ww_collection *base, const ww_ivf_config *config)
{
    stored *c = stored_of(base);
    ww_status status = change_begin(c);
    if (status != WW_OK)
        return status;
    status = view_begin(c->written, VIEW_MEMORY);
    if (status == WW_OK) {
        status = view_build_index(c->written, config, c->writer);
        view_end(c->written);
    }
    return change_end(c, status);
}

ww_status stored_calibrate(ww_collection *base, const ww_calibrate_config *config)
{
    stored *c = stored_of(base);
    ww_status status = change_begin(c);
    if (status != WW_OK)
        return status;
    status = view_begin(c->written, VIEW_MEMORY);
    if (status == WW_OK) {
        status = view_calibrate_index(c->written, config, c->writer);
        view_end(c->written);
    }
    return change_end(c, status);
}

ww_status stored_drop_ivf(ww_collection *base)
{
    stored *c = stored_of(base);
    const ww_status status = change_begin(c);
    if (status != WW_OK)
        return status;
    return change_end(c, ivf_is_there(writer_record(c->writer)) ? writer_drop_index(c->writer)
                                                                : ivf_not_found(base, "ww_collection_drop_ivf"));
}

ww_status stored_describe_ivf(ww_collection *base, ww_ivf_info *info)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    status = ivf_is_there(view_record(r->view)) ? view_describe_index(r->view, info)
                                                : ivf_not_found(base, "ww_collection_describe_ivf");
    reading_end(c, r);
    return status;
}
