/* Reading a collection of a store, and the table of its operations. */
#include <math.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "device/share.h"
#include "store/maps/maps.h"
#include "store/store_state.h"
#include "vectors/collection.h"

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* Finds the rows that the `where` admits. */
static ww_status filter_ready(stored *c, reader *r, const filter_where *where, const kept_filter **found)
{
    const filter_target target = {.db = r->db,
                                  .schema = "main",
                                  .collection = view_record(r->view)->name,
                                  .guard = &r->guard,
                                  .seconds_max = (double)c->store->config.filter_ms / 1000.0};
    return kept_filters_find(&r->filters, where, &target, found);
}

static ww_status mask_check(const reader *r, const stored *c, const ww_query *query)
{
    if (!query->mask || query->mask_rows > 0 || view_record(r->view)->next_place == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': there is a mask, but mask_rows is 0; for all rows it must be %lld",
                   c->base.name, (long long)view_record(r->view)->next_place);
}

enum { GLANCE_QUERIES_MAX = 4 }; /* more are worth loading the rows with their codes */

static view_need need_of(const ww_query *query)
{
    if (query->sparse || (query->match && query->match->mode == WW_MATCH_TEXT))
        return VIEW_RECORD;
    if (query->multi || query->nprobe > 0 || query->recall > 0.0f)
        return VIEW_MEMORY;
    return query->query_count <= GLANCE_QUERIES_MAX ? VIEW_GLANCE : VIEW_SEARCH;
}

static ww_status stored_query(ww_collection *base, const ww_query *query, ww_results **results)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    view_places only = {0};
    const kept_filter *filter = NULL;
    const filter_where where = {query->where, query->parameters, query->parameter_count, query->filter};
    ww_status status = reading_begin(c, need_of(query), &r);
    if (status != WW_OK)
        return status;
    status = mask_check(r, c, query);
    if (status == WW_OK && (where.text || where.filter))
        status = filter_ready(c, r, &where, &filter);
    if (status == WW_OK && filter)
        only = (view_places){filter->places.places, filter->places.count, filter->number};
    if (status == WW_OK)
        status = query->multi    ? view_multi(r->view, query, filter ? &only : NULL, results)
                 : query->sparse ? view_sparse(r->view, query, filter ? &only : NULL, results)
                 : query->match  ? view_match(r->view, query, filter ? &only : NULL, results)
                                 : view_query(r->view, query, filter ? &only : NULL, results);
    reading_end(c, r);
    return status;
}

static ww_status stored_search(ww_collection *base, const ww_query *query, int64_t *rows, float *scores)
{
    const stored *c = stored_of(base);
    ww_results *found = NULL;
    const ww_status status = stored_query(base, query, &found);
    for (int64_t q = 0; status == WW_OK && q < query->query_count; q++) {
        const int64_t first = found->starts[q], count = found->starts[q + 1] - first, at = q * query->k;
        memcpy(rows + at, found->rows + first, (size_t)count * sizeof *rows);
        memcpy(scores + at, found->scores + first, (size_t)count * sizeof *scores);
        for (int64_t i = at + count; i < at + query->k; i++) {
            rows[i] = -1;
            scores[i] = c->base.metric == WW_L2 ? INFINITY : -INFINITY;
        }
    }
    ww_results_destroy(found);
    return status;
}

/* ---- looking up ---------------------------------------------------------------------------------------------------------- */

static ww_status look_up(stored *c, const view_list *list, ww_results **results)
{
    reader *r = NULL;
    if (store_is_mine(c->store)) { /* with the writes of the transaction so far */
        const ww_status status = view_begin(c->written, VIEW_RECORD);
        return status == WW_OK ? view_get(c->written, list, results) : status;
    }
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    status = view_get(r->view, list, results);
    reading_end(c, r);
    return status;
}

static ww_status stored_get(ww_collection *base, const ww_get *get, ww_results **results)
{
    const view_list list = {.by = get->ids       ? VIEW_BY_ID
                                  : get->handles ? VIEW_BY_HANDLE
                                                 : VIEW_ALL,
                            .count = get->count,
                            .ids = get->ids,
                            .numbers = get->handles,
                            .after = -1,
                            .fetch = get->fetch};
    return look_up(stored_of(base), &list, results);
}

/* Finds the place of the list's only entry; -1 if it does not exist. */
static ww_status find_one(stored *c, const view_list *list, int64_t *place)
{
    ww_results *found = NULL;
    const ww_status status = look_up(c, list, &found);
    if (status == WW_OK)
        *place = found->starts[1] > 0 ? found->rows[0] : -1;
    ww_results_destroy(found);
    return status;
}

static ww_status stored_find(ww_collection *base, const char *id, int64_t *row)
{
    stored *c = stored_of(base);
    int64_t place = -1;
    const view_list list = {.by = VIEW_BY_ID, .count = 1, .ids = &id};
    const ww_status status = find_one(c, &list, &place);
    if (status == WW_OK && place < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s'", c->base.name, WW_ID_BYTES_MAX, id);
    if (status == WW_OK)
        *row = place;
    return status;
}

static ww_status stored_find_handle(ww_collection *base, int64_t handle, int64_t *row)
{
    stored *c = stored_of(base);
    int64_t place = -1;
    const view_list list = {.by = VIEW_BY_HANDLE, .count = 1, .numbers = &handle};
    const ww_status status = find_one(c, &list, &place);
    if (status == WW_OK && place < 0)
        return ww_fail(WW_NOT_FOUND, "collection '%s': the row with handle %lld does not exist, or was removed", c->base.name,
                       (long long)handle);
    if (status == WW_OK)
        *row = place;
    return status;
}

/* Copies what the request asks for from the row that was found. */
static ww_status give_row(const stored *c, const ww_results *found, const row_request *request)
{
    const bool ids = request->fetch & WW_FETCH_IDS;
    const char *text = ids ? ww_results_id(found, 0, 0) : ww_results_payload(found, 0, 0);
    if (request->fetch == 0)
        *request->handle = found->handles[0];
    else if (request->fetch & WW_FETCH_VECTORS)
        (void)row_narrow((int32_t)c->base.type, found->vectors, c->base.dim,
                         request->elements); /* exact: the values came from this type */
    else
        return row_text_copy(request, text ? text : "", text ? strlen(text) : 0);
    return WW_OK;
}

static ww_status stored_row(ww_collection *base, int64_t row, const row_request *request)
{
    const stored *c = stored_of(base);
    ww_results *found = NULL;
    const view_list list = {.by = VIEW_BY_PLACE, .count = 1, .numbers = &row, .fetch = request->fetch};
    ww_status status = look_up(stored_of(base), &list, &found);
    if (status == WW_OK && found->rows[0] < 0)
        status = ww_fail(WW_NOT_FOUND, "collection '%s': row %lld does not exist, or was removed", base->name, (long long)row);
    if (status == WW_OK)
        status = give_row(c, found, request);
    ww_results_destroy(found);
    return status;
}

static int64_t stored_next(ww_collection *base, int64_t row)
{
    int64_t place = -1;
    const view_list list = {.by = VIEW_ALL, .count = 1, .after = row};
    return find_one(stored_of(base), &list, &place) == WW_OK ? place : -1;
}

/* The name of the collection's device. */
static ww_status device_id_of(stored *c, char *id, size_t capacity)
{
    ww_status status = WW_OK;
    pthread_mutex_lock(&c->lock);
    if (c->device_id[0] == '\0') {
        ww_device_info device = ww_device_info_default();
        status = ww_device_describe(c->base.device, &device);
        text_copy(c->device_id, sizeof c->device_id, status == WW_OK ? device.id : "");
    }
    text_copy(id, capacity, c->device_id);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static ww_status stored_describe(ww_collection *base, ww_collection_info *info)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    status = view_describe(r->view, info);
    if (status == WW_OK)
        status = device_id_of(c, info->device, sizeof info->device);
    reading_end(c, r);
    return status;
}

static ww_status stored_digest(ww_collection *base, uint64_t *digest)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    const collection_record *record = view_record(r->view);
    *digest = record->digest;
    if (!record_has_checksums(record))
        status = ww_fail(WW_UNSUPPORTED,
                         "collection '%s' has no checksums: an earlier version wrote it. The next write adds them, and so does "
                         "'warpwave store upgrade'",
                         c->base.name);
    reading_end(c, r);
    return status;
}

static ww_status stored_count_words(ww_collection *base, const char *text, ww_word_counts *counts)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    ww_status status = reading_begin(c, VIEW_RECORD, &r);
    if (status != WW_OK)
        return status;
    status = view_count_words(r->view, text, counts);
    reading_end(c, r);
    return status;
}

static int64_t stored_count(ww_collection *base)
{
    ww_collection_info info = {0};
    return stored_describe(base, &info) == WW_OK ? info.rows_live : 0;
}

static ww_device *stored_device(ww_collection *base)
{
    stored *c = stored_of(base);
    ww_device *device = NULL;
    pthread_mutex_lock(&c->lock);
    (void)device_share(base->device, &device);
    pthread_mutex_unlock(&c->lock);
    return device;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static ww_status stored_reserve(ww_collection *base, int64_t rows)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    bool loaded = false;
    ww_status status = reading_begin(c, VIEW_MEMORY, &r);
    if (status != WW_OK)
        return status;
    view_end(r->view); /* its lock would block ours */
    const collection_record record = *view_record(r->view);
    status = view_reserve(r->view, &record, max_i64(0, rows - record.live), &loaded);
    reading_end(c, r);
    return status;
}

/* Rows that are damaged in memory are intact in the file: the next search reads them again. */
static ww_status stored_check(ww_collection *base, ww_damage_report *report, ww_progress progress, void *user)
{
    stored *c = stored_of(base);
    reader *r = NULL;
    ww_status status = reading_begin(c, VIEW_MEMORY, &r);
    if (status != WW_OK)
        return status;
    status = view_check(r->view, report, progress, user);
    view_end(r->view); /* its lock would block the reload */
    if (status == WW_DAMAGED)
        view_reload(r->view);
    reading_end(c, r);
    return status;
}

const collection_operations STORED_OPERATIONS = {
    .host_rows = true,
    .where = true,
    .texts = true,
    .write = stored_write,
    .remove = stored_remove,
    .select_remove = stored_select_remove,
    .set_payloads = stored_set_payloads,
    .clear = stored_clear,
    .compact = stored_compact,
    .reserve = stored_reserve,
    .move = stored_move,
    .check = stored_check,
    .build_ivf = stored_build_ivf,
    .calibrate = stored_calibrate,
    .drop_ivf = stored_drop_ivf,
    .describe_ivf = stored_describe_ivf,
    .query = stored_query,
    .search = stored_search,
    .get = stored_get,
    .select = stored_select,
    .select_count = stored_select_count,
    .cursor_open = stored_cursor_open,
    .cursor_read = stored_cursor_read,
    .cursor_close = stored_cursor_close,
    .find = stored_find,
    .find_handle = stored_find_handle,
    .row = stored_row,
    .next = stored_next,
    .count = stored_count,
    .digest = stored_digest,
    .count_words = stored_count_words,
    .describe = stored_describe,
    .device = stored_device,
    .map_read = stored_map_read,
    .map_write = stored_map_write,
    .destroy = stored_destroy,
};
