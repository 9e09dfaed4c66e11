/* A collection's life: made, described, locked, destroyed. */
#include "vectors/collection.h"

#include <stdio.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "vectors/internal/cursor.h"
#include "vectors/ivf/ivf.h"
#include "vectors/query/digest.h"
#include "vectors/query/search.h"

_Static_assert((int)WW_COSINE == CANON_COSINE && (int)WW_L2 == CANON_L2 && (int)WW_DOT == CANON_DOT,
               "one numbering of metrics");

_Static_assert((int)WW_VECTOR_F32 == ROW_F32 && (int)WW_VECTOR_F16 == ROW_F16 && (int)WW_VECTOR_BF16 == ROW_BF16 &&
                   (int)WW_VECTOR_I8 == ROW_I8 && (int)WW_VECTOR_U8 == ROW_U8,
               "one numbering of types");

static const char *const metric_names[] = {[WW_COSINE] = "cosine", [WW_L2] = "l2", [WW_DOT] = "dot"};

const char *ww_metric_name(ww_metric metric)
{
    const unsigned index = (unsigned)metric;
    return index < sizeof metric_names / sizeof *metric_names ? metric_names[index] : NULL;
}

static const char *const screen_names[] = {[WW_SCREEN_INT8] = "int8", [WW_SCREEN_NONE] = "none"};

const char *ww_screen_name(ww_screen screen)
{
    const unsigned index = (unsigned)screen;
    return index < sizeof screen_names / sizeof *screen_names ? screen_names[index] : NULL;
}

static const char *const type_names[] = {
    [WW_VECTOR_F32] = "f32", [WW_VECTOR_F16] = "f16", [WW_VECTOR_BF16] = "bf16", [WW_VECTOR_I8] = "i8", [WW_VECTOR_U8] = "u8"};

const char *ww_vector_type_name(ww_vector_type type)
{
    const unsigned index = (unsigned)type;
    return index < sizeof type_names / sizeof *type_names ? type_names[index] : NULL;
}

static const char *const place_names[] = {[WW_ROWS_DEVICE] = "device", [WW_ROWS_HOST] = "host"};

const char *ww_row_place_name(ww_row_place place)
{
    const unsigned index = (unsigned)place;
    return index < sizeof place_names / sizeof *place_names ? place_names[index] : NULL;
}

ww_status fail_null(const char *function, const char *what)
{
    return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, what);
}

ww_status collection_check(const ww_collection *collection, const char *function)
{
    if (!collection)
        return fail_null(function, "collection");
    if (process_is_ours(collection->made_in))
        return WW_OK;
    return ww_fail(WW_OTHER_PROCESS, "%s: collection '%s' was opened in another process, before fork(); make one here",
                   function, collection->name);
}

void collection_lock_read(ww_collection *collection)
{
    pthread_rwlock_rdlock(&collection->lock);
}

void collection_lock_write(ww_collection *collection)
{
    pthread_rwlock_wrlock(&collection->lock);
}

void collection_lock_rows(ww_collection *collection)
{
    collection_lock_write(collection);
    cursors_keep(collection);
}

void collection_unlock(ww_collection *collection)
{
    pthread_rwlock_unlock(&collection->lock);
}

ww_status collection_lock_create(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    int code = pthread_rwlockattr_init(&attributes);
    if (code == 0) {
#ifdef __GLIBC__
        pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
        code = pthread_rwlock_init(lock, &attributes);
        pthread_rwlockattr_destroy(&attributes);
    }
    return code == 0 ? WW_OK : ww_fail_errno(WW_INTERNAL, code, "cannot create a collection's lock");
}

STRUCT_INIT(ww_collection_config, {0})
STRUCT_INIT(ww_collection_info, {0})

ww_status collection_check_rows(const char *function, const ww_collection_config *config)
{
    if (!ww_row_place_name(config->rows))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: rows is %d; it must be WW_ROWS_DEVICE or WW_ROWS_HOST", function,
                       (int)config->rows);
    if (config->rows == WW_ROWS_DEVICE)
        return WW_OK;
    if (config->screen == WW_SCREEN_NONE)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: rows on the host need codes on the device; the screen must be int8", function);
    if (row_type_is_bytes((int32_t)config->type))
        return ww_fail(WW_INVALID_ARGUMENT,
                       "%s: rows of %s are their own codes, which a search reads on the device; only f32, f16 "
                       "and bf16 rows can be on the host",
                       function, ww_vector_type_name(config->type));
    return WW_OK;
}

static ww_status config_check(const ww_collection_config *callers, ww_collection_config *config)
{
    if (struct_read(config, sizeof *config, callers, "ww_collection_create", "ww_collection_config"))
        return WW_INVALID_ARGUMENT;
    if (config->dim < 1 || config->dim > WW_DIM_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_create: dim is %d; it must be 1 to %d", config->dim, WW_DIM_MAX);
    if (!ww_metric_name(config->metric))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_create: metric is %d; it must be WW_COSINE, WW_L2 or WW_DOT",
                       (int)config->metric);
    if (!ww_screen_name(config->screen))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_collection_create: screen is %d; it must be WW_SCREEN_INT8 or WW_SCREEN_NONE",
                       (int)config->screen);
    if (!ww_vector_type_name(config->type))
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "ww_collection_create: type is %d; it must be WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8 "
            "or WW_VECTOR_U8",
            (int)config->type);
    return collection_check_rows("ww_collection_create", config);
}

row_shape collection_shape(const ww_collection *collection, const ww_device *device)
{
    return (row_shape){.dim = collection->dim,
                       .type = (int32_t)collection->type,
                       .screen = collection->screen == WW_SCREEN_INT8,
                       .rows_on_host = collection->rows == WW_ROWS_HOST && !device->backend->on_host,
                       .keep_copy =
                           collection->keep_host_copy && collection->rows != WW_ROWS_HOST && !device->backend->on_host};
}

ww_status collection_init(ww_collection *c, ww_device *device, const ww_collection_config *config,
                          const collection_operations *operations)
{
    const char *name = config->name ? config->name : "";
    c->name = memory_copy_text(name, strlen(name));
    if (!c->name)
        return memory_failed("a collection's name", strlen(name) + 1);
    c->operations = operations;
    c->made_in = process_here();
    c->device = device_retain(device);
    c->dim = config->dim;
    c->metric = config->metric;
    c->type = config->type;
    c->keep_host_copy = config->keep_host_copy != 0;
    c->screen = config->screen;
    c->rows = config->rows;
    return WW_OK;
}

void collection_release(ww_collection *c)
{
    ww_device_close(c->device);
    memory_free(c->name);
}

static void memory_destroy(ww_collection *c)
{
    memory_free(c->map.points);
    ivf_destroy(c->index);
    store_destroy(&c->store);
    id_table_destroy(&c->moved);
    id_table_destroy(&c->ids);
    c->device->backend->stream_destroy(c->device, c->stream);
    pthread_mutex_destroy(&c->cursors_lock);
    pthread_rwlock_destroy(&c->lock);
    collection_release(c);
    memory_free(c);
}

static const collection_operations MEMORY_OPERATIONS;

ww_status ww_collection_create(ww_device *device, const ww_collection_config *config, ww_collection **collection)
{
    FLOAT_GUARD();
    if (!device || !config || !collection)
        return fail_null("ww_collection_create", !device ? "device" : !config ? "config" : "collection");
    ww_collection_config checked;
    ww_status status = device_check(device);
    if (status == WW_OK)
        status = config_check(config, &checked);
    if (status != WW_OK)
        return status;
    ww_collection *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a collection", sizeof *made);
    status = collection_init(made, device, &checked, &MEMORY_OPERATIONS);
    if (status == WW_OK) {
        status = collection_lock_create(&made->lock);
        if (status != WW_OK)
            collection_release(made);
    }
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    pthread_mutex_init(&made->cursors_lock, NULL);
    id_table_create(&made->ids);
    id_table_create(&made->moved);
    made->highest_number = -1;
    status = device->backend->stream_create(device, &made->stream);
    if (status == WW_OK)
        status = store_create(&made->store, device, made->stream, collection_shape(made, device));
    if (status == WW_OK)
        *collection = made;
    else
        memory_destroy(made);
    return status;
}

void ww_collection_destroy(ww_collection *collection)
{
    if (collection && process_is_ours(collection->made_in))
        collection->operations->destroy(collection);
}

void collection_empty(ww_collection *collection)
{
    ivf_empty(collection);
    collection->epoch++;
    memory_free(collection->map.points);
    collection->map = (kept_map){0};
    id_table_destroy(&collection->moved);
    id_table_destroy(&collection->ids);
    collection->ids_are_stored = false;
    store_clear(&collection->store);
}

static int64_t memory_count(ww_collection *c)
{
    collection_lock_read(c);
    const int64_t count = c->store.rows_live;
    collection_unlock(c);
    return count;
}

int64_t ww_collection_count(ww_collection *collection)
{
    if (!collection || collection_check(collection, "ww_collection_count") != WW_OK)
        return 0;
    return collection->operations->count(collection);
}

static ww_device *memory_device(ww_collection *c)
{
    collection_lock_read(c);
    ww_device *device = device_retain(c->device);
    collection_unlock(c);
    return device;
}

/* "cuda:0 750016, cpu 249984" */
static void describe_members(const row_store *store, char *text, size_t capacity)
{
    ww_device *device = store->device;
    int64_t rows[MEMBERS_MAX] = {0};
    bool full = false;
    text_copy(text, capacity, "");
    for (int64_t s = 0; s < store->segment_count; s++)
        rows[store->segments[s].member] += store->segments[s].count;
    for (int32_t m = 0; device->backend->member_id && m < MEMBERS_MAX && !full; m++) {
        char one[64];
        if (rows[m] == 0)
            continue;
        snprintf(one, sizeof one, "%s%s %lld", *text ? ", " : "", device->backend->member_id(device, m), (long long)rows[m]);
        full = strlen(text) + strlen(one) + sizeof ", ..." > capacity;
        text_append(text, capacity, full ? ", ..." : one);
    }
}

static void store_describe(const row_store *store, ww_collection_info *info)
{
    info->rows_live = store->rows_live;
    info->rows_removed = store->rows_count - store->rows_live;
    info->rows_capacity = store->rows_capacity;
    info->segments = store->segment_count;
    info->bytes_ids = store->bytes_ids + store->rows_capacity / PAGE_ROWS * (int64_t)sizeof(row_page);
    info->bytes_payloads = store->bytes_payloads;
    info->bytes_handles = store->bytes_handles;
    info->mask_rows = store->rows_count;
    info->bytes_host_copy = store->keep_copy ? store->rows_capacity * (int64_t)store_element_bytes(store) : 0;
    for (int64_t s = 0; s < store->segment_count; s++) {
        const segment *part = &store->segments[s];
        const int64_t rows_bytes = (int64_t)part->rows.bytes;
        info->bytes_rows += (int64_t)(part->norms.bytes + part->live.bytes) + (part->rows_on_host ? 0 : rows_bytes);
        info->bytes_rows_host += part->rows_on_host ? rows_bytes : 0;
        info->bytes_screen += (int64_t)(part->codes.bytes + part->scales.bytes + part->residuals.bytes + part->highs.bytes +
                                        part->high_residuals.bytes);
    }
}

static ww_status memory_describe(ww_collection *c, ww_collection_info *info)
{
    collection_lock_read(c);
    text_copy(info->device, sizeof info->device, c->device->info.id);
    store_describe(&c->store, info);
    describe_members(&c->store, info->members, sizeof info->members);
    info->bytes_ids += id_table_bytes(&c->ids);
    info->bytes_handles += id_table_bytes(&c->moved);
    collection_unlock(c);
    return WW_OK;
}

ww_status ww_collection_describe(ww_collection *collection, ww_collection_info *info)
{
    FLOAT_GUARD();
    ww_status status = collection_check(collection, "ww_collection_describe");
    if (status != WW_OK)
        return status;
    if (!info)
        return fail_null("ww_collection_describe", "info");
    ww_collection_info found = {.dim = collection->dim,
                                .metric = collection->metric,
                                .screen = collection->screen,
                                .type = collection->type,
                                .rows = collection->rows};
    status = collection->operations->describe(collection, &found);
    return status == WW_OK ? struct_write(info, &found, sizeof found, "ww_collection_describe", "ww_collection_info") : status;
}

static const collection_operations MEMORY_OPERATIONS = {
    .write = memory_write,
    .remove = memory_remove,
    .select_remove = memory_select_remove,
    .set_payloads = memory_set_payloads,
    .clear = memory_clear,
    .compact = memory_compact,
    .reserve = memory_reserve,
    .move = memory_move,
    .check = memory_check,
    .build_ivf = memory_build_ivf,
    .calibrate = memory_calibrate,
    .drop_ivf = memory_drop_ivf,
    .describe_ivf = memory_describe_ivf,
    .query = collection_query,
    .search = collection_search,
    .get = memory_get,
    .select = memory_select,
    .select_count = memory_select_count,
    .cursor_open = memory_cursor_open,
    .cursor_read = memory_cursor_read,
    .cursor_close = memory_cursor_close,
    .find = memory_find,
    .find_handle = memory_find_handle,
    .row = memory_row,
    .next = memory_next,
    .count = memory_count,
    .digest = memory_digest,
    .describe = memory_describe,
    .device = memory_device,
    .map_read = memory_map_read,
    .map_write = memory_map_write,
    .destroy = memory_destroy,
};
