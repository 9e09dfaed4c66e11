/* Connections that read: each call uses one, with its own transaction and view. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "device/share.h"
#include "store/store_state.h"
#include "vectors/collection.h"

enum { RESTARTS_MAX = 1000 };

/* ---- connections --------------------------------------------------------------------------------------------------------- */

static void reader_close(reader *r)
{
    view_close(r->view);
    kept_filters_clear(&r->filters);
    sqlite3_finalize(r->begin);
    sqlite3_finalize(r->commit);
    sqlite3_close(r->db);
    memory_free(r);
}

void readers_close(reader *list)
{
    while (list) {
        reader *next = list->next;
        reader_close(list);
        list = next;
    }
}

static ww_status reader_open(stored *c, ww_device *device, int64_t generation, reader **opened)
{
    reader *r = memory_alloc_zeroed(1, sizeof *r);
    if (!r)
        return memory_failed("a connection to a store", sizeof *r);
    r->generation = generation;
    ww_status status = store_connect(c->store, true, &r->db);
    if (status == WW_OK)
        status = schema_statement(r->db, &r->begin, "BEGIN");
    if (status == WW_OK)
        status = schema_statement(r->db, &r->commit, "COMMIT");
    const view_config config = {.db = r->db,
                                .schema = "main",
                                .name = c->base.name,
                                .device = device,
                                .screen = c->base.screen,
                                .keep_host_copy = c->base.keep_host_copy,
                                .rows = c->base.rows,
                                .memory_bytes = c->store->config.memory_bytes,
                                .restarts = true,
                                .progress = c->store->config.loading,
                                .progress_user = c->store->config.loading_user};
    if (status == WW_OK)
        status = view_open(&config, &r->view);
    if (status == WW_OK && filter_guard_install(r->db, &r->guard) != SQLITE_OK)
        status = ww_fail(WW_INTERNAL, "%s: no authorizer could be installed", c->store->path);
    if (status == WW_OK)
        filter_watch(r->db);
    if (status == WW_OK)
        *opened = r;
    else
        reader_close(r);
    return status;
}

void readers_release(stored *c)
{
    pthread_mutex_lock(&c->lock);
    reader *unused = c->searched ? NULL : c->idle;
    if (unused)
        c->idle = NULL;
    pthread_mutex_unlock(&c->lock);
    readers_close(unused);
}

/* An idle reader, or a new one. */
static ww_status reader_take(stored *c, view_need need, reader **taken)
{
    ww_status status = store_check_file(c->store);
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&c->lock);
    c->searched |= need != VIEW_RECORD;
    reader *r = c->idle;
    if (r)
        c->idle = r->next;
    const int64_t generation = c->generation;
    ww_device *device = NULL;
    status = r ? WW_OK : device_share(c->base.device, &device);
    pthread_mutex_unlock(&c->lock);
    if (!r && status == WW_OK)
        status = reader_open(c, device, generation, &r);
    ww_device_close(device);
    if (status == WW_OK)
        *taken = r;
    return status;
}

static void reader_give(stored *c, reader *r)
{
    pthread_mutex_lock(&c->lock);
    const bool useful = r->generation == c->generation;
    if (useful) {
        r->next = c->idle;
        c->idle = r;
    }
    pthread_mutex_unlock(&c->lock);
    if (!useful)
        reader_close(r);
}

/* ---- transactions -------------------------------------------------------------------------------------------------------- */

static void transaction_end(reader *r)
{
    view_end(r->view);
    if (!sqlite3_get_autocommit(r->db) && schema_step(r->commit) != WW_OK)
        (void)sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
}

/* One attempt. The collection must be the one that was opened, not a new one with the same name. */
static ww_status transaction_begin(stored *c, reader *r, view_need need)
{
    ww_status status = schema_step(r->begin);
    if (status == WW_OK)
        status = view_begin(r->view, need);
    if (status == WW_OK)
        status = stored_is(c, view_record(r->view));
    return status;
}

/* Tries until no write comes between the start of the transaction and the view. */
static ww_status transaction_begin_newest(stored *c, reader *r, view_need need)
{
    int64_t before = -1;
    ww_status status = transaction_begin(c, r, need);
    for (int i = 0; status != WW_OK && view_is_outdated(r->view) && i < RESTARTS_MAX; i++) {
        /* A mirror is never ahead of the committed state, and a new transaction sees all of that. So if the transaction is
         * behind a second time without progress, an older copy has replaced the file that the mirror was read from. */
        const int64_t sequence = view_record(r->view)->sequence;
        if (sequence <= before)
            view_reload(r->view);
        before = sequence;
        transaction_end(r);
        status = transaction_begin(c, r, need);
    }
    return status;
}

ww_status reading_begin(stored *c, view_need need, reader **opened)
{
    reader *r = NULL;
    ww_status status = process_check(c->store->made_in, c->store->path);
    if (status == WW_OK)
        status = reader_take(c, need, &r);
    if (status != WW_OK)
        return status;
    status = transaction_begin_newest(c, r, need);
    if (status == WW_OK) {
        *opened = r;
        return WW_OK;
    }
    transaction_end(r);
    reader_give(c, r);
    return status;
}

void reading_end(stored *c, reader *r)
{
    transaction_end(r);
    reader_give(c, r);
}

/* ---- another device ------------------------------------------------------------------------------------------------------ */

/* Moving to the same group again may redistribute the rows. A group that lost a member counts as another group: its rows are
 * read from the file again. */
static bool is_same_group(stored *c, ww_device *device)
{
    ww_device_info info = ww_device_info_default();
    pthread_mutex_lock(&c->lock);
    const bool same = c->base.device == device;
    pthread_mutex_unlock(&c->lock);
    return same && ww_device_describe(device, &info) == WW_OK && info.member_count > 0;
}

/* Readers of the old device are closed when their calls return them. */
ww_status stored_move(ww_collection *base, ww_device *device)
{
    stored *c = stored_of(base);
    ww_device *retained = NULL;
    reader *r = NULL;
    ww_status status = process_check(c->store->made_in, c->store->path);
    if (status == WW_OK)
        status = device_share(device, &retained);
    if (status != WW_OK)
        return status;
    pthread_mutex_lock(&c->lock);
    const int64_t generation = c->generation + 1;
    pthread_mutex_unlock(&c->lock);
    status = reader_open(c, retained, generation, &r);
    if (status == WW_OK)
        status = transaction_begin_newest(c, r, VIEW_SEARCH); /* if it cannot be loaded there, it does not move */
    if (r)
        transaction_end(r);
    if (status == WW_OK && is_same_group(c, device))
        status = view_balance(r->view);
    if (status == WW_OK)
        status = store_lock(c->store); /* the last step that can fail */
    if (status != WW_OK) {
        if (r)
            reader_close(r);
        ww_device_close(retained);
        return status;
    }
    (void)view_move(c->written, retained); /* the device is open: it cannot fail */
    store_unlock(c->store);
    pthread_mutex_lock(&c->lock);
    ww_device *old_device = c->base.device;
    reader *old = c->idle;
    c->base.device = retained;
    c->device_id[0] = '\0';
    c->generation = r->generation = c->generation + 1;
    r->next = NULL;
    c->idle = r;
    pthread_mutex_unlock(&c->lock);
    readers_close(old);
    ww_device_close(old_device);
    return WW_OK;
}
