/* Searching: everything is checked here, the device does the rest. */
#include "vectors/search.h"

#include <math.h>
#include <stdatomic.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/structs.h"
#include "device/results.h"

enum {
    ITEM_NUMBERS = 1 << 16, /* of queries, that a thread looks at in one piece; */
    ITEMS_LEAST = 4         /* fewer pieces are not worth waking threads */
};

STRUCT_INIT(ww_search, {0})
STRUCT_INIT(ww_search_stats, {0})

/* ---- checks ---------------------------------------------------------------------------------------------------------------
 */

typedef struct finite_job {
    const ww_search *search;
    int64_t item_queries;
    atomic_int_least64_t first_bad; /* query_count if there is none */
} finite_job;

static void find_not_finite(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    finite_job *job = context;
    const ww_search *search = job->search;
    const int64_t end = min_i64((item + 1) * job->item_queries, search->query_count);
    for (int64_t q = item * job->item_queries; q < end; q++) {
        if (vector_is_finite(search->queries + q * search->query_stride, search->dim))
            continue;
        int64_t first = atomic_load(&job->first_bad);
        while (q < first && !atomic_compare_exchange_weak(&job->first_bad, &first, q))
            continue;
        return;
    }
}

/* The first query that is not finite, query_count if all are. Many are looked at by the device's threads: a search may take no
 * longer than one thread reads its queries. */
static int64_t first_not_finite(ww_collection *c, const ww_search *search)
{
    finite_job job = {.search = search, .item_queries = ITEM_NUMBERS / search->dim + 1};
    atomic_init(&job.first_bad, search->query_count);
    const int64_t items = divide_up_i64(search->query_count, job.item_queries);
    if (items < ITEMS_LEAST) {
        pool_run_here(items, find_not_finite, &job);
        return atomic_load(&job.first_bad);
    }
    collection_lock_read(c); /* for the device */
    pool *threads = c->device->backend->threads(c->device);
    if (threads)
        (void)pool_run(threads, items, find_not_finite, NULL, &job);
    else
        pool_run_here(items, find_not_finite, &job);
    collection_unlock(c);
    return atomic_load(&job.first_bad);
}

/* The tensor as f32, where it is; the host reads it there if it can. What is kept elsewhere is searched by its owner. */
static ww_status take_queries(const ww_collection *c, const char *function, ww_search *search, tensor_rows *held)
{
    static const ww_dtype types[] = {WW_F32, WW_F16, WW_BF16, WW_I8, WW_U8};
    const tensor_asked asked = {function, "query_tensor", search->query_tensor};
    if (search->queries)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: queries and query_tensor are both given; give one of them", function);
    ww_status status = tensor_rows_check(&asked, c, &search->query_count, &search->dim);
    if (status != WW_OK)
        return status;
    bool known = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        known = known || ww_tensor_dtype(search->query_tensor) == types[i];
    if (!known)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_tensor is of %s; give f32, f16, bf16, i8 or u8", function,
                       ww_dtype_name(ww_tensor_dtype(search->query_tensor)));
    search->query_stride = c->dim;
    if (c->durable || search->query_count == 0)
        return WW_OK;
    status = tensor_rows_make(search->query_tensor, WW_F32, held);
    if (status == WW_OK && tensor_rows_on_host(held))
        search->queries = tensor_rows_data(held);
    return status;
}

static ww_status fail_query(const ww_collection *c, int64_t number, const float *query)
{
    char fault[VECTOR_FAULT_BYTES];
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': query %lld: %s", c->name, (long long)number,
                   vector_fault(query, c->dim, fault));
}

ww_status search_check(ww_collection *c, const char *function, ww_search *search, tensor_rows *held)
{
    if (search->query_tensor) {
        const ww_status status = take_queries(c, function, search, held);
        if (status != WW_OK)
            return status;
    }
    if (search->query_count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_count is %lld; it must not be negative", function,
                       (long long)search->query_count);
    if (search->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "collection '%s' has dimension %d, the queries have %d", c->name, c->dim,
                       search->dim);
    if (search->k < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; it must not be negative", function, search->k);
    if (search->k > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; the maximum is %d", function, search->k, WW_K_MAX);
    if (search->query_stride == 0)
        search->query_stride = search->dim;
    if (search->query_stride < search->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_stride is %lld; it must be at least dim, %d", function,
                       (long long)search->query_stride, search->dim);
    if (search->mask_rows < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: mask_rows is %lld; it must not be negative", function,
                       (long long)search->mask_rows);
    if (search->stats && struct_check(search->stats, function, "ww_search_stats"))
        return WW_INVALID_ARGUMENT;
    if (search->query_tensor && !search->queries)
        return WW_OK;
    if (search->query_count > 0 && !search->queries)
        return fail_null(function, "queries");
    const int64_t bad = first_not_finite(c, search);
    return bad < search->query_count ? fail_query(c, bad, search->queries + bad * search->query_stride) : WW_OK;
}

void search_tell_stats(ww_search_stats *callers, const search_stats *found)
{
    const ww_search_stats stats = {.rows_screened = found->rows_screened,
                                   .rows_kept = found->rows_kept,
                                   .rows_scored = found->rows_scored,
                                   .fallback_queries = found->fallback_queries,
                                   .certificate = found->certificate,
                                   .repeated_queries = found->repeated_queries};
    if (callers)
        (void)struct_write(callers, &stats, sizeof stats, "search", "ww_search_stats"); /* search_check() saw it */
}

/* Queries on a GPU: checked there if it is the collection's, else brought to the host. With the lock. */
static ww_status place_queries(const ww_collection *c, ww_search *search, tensor_rows *held)
{
    int64_t refused = -1;
    ww_status status;
    if (tensor_rows_on(held, c->device)) {
        status = c->device->backend->rows_check_here(c->device, tensor_rows_data(held), search->query_count, c->dim, &refused);
        search->query_tensor = &held->dense;
        if (status != WW_OK || refused < 0)
            return status;
    }
    status = tensor_rows_to_host(held);
    if (status != WW_OK)
        return status;
    search->queries = held->host;
    for (int64_t q = refused < 0 ? 0 : refused; q < search->query_count; q++)
        if (!vector_is_finite(search->queries + q * c->dim, c->dim))
            return fail_query(c, q, search->queries + q * c->dim);
    return WW_OK;
}

void search_queries_to(const ww_search *search, search_job *job)
{
    const tensor_rows held = {.dense = search->query_tensor && !search->queries ? *search->query_tensor : (ww_tensor){0}};
    job->queries_on_device = held.dense.storage != NULL;
    job->queries = job->queries_on_device ? tensor_rows_data(&held) : search->queries;
    job->query_count = search->query_count;
    job->query_stride = search->query_stride;
}

ww_status search_lock(ww_collection *c)
{
    collection_lock_read(c);
    while (store_is_stale(&c->store)) {
        collection_unlock(c);
        collection_lock_write(c);
        const ww_status status = store_push_live(&c->store);
        collection_unlock(c);
        if (status != WW_OK)
            return status;
        collection_lock_read(c);
    }
    return WW_OK;
}

ww_status search_begin(ww_collection *c, ww_search *search, tensor_rows *held)
{
    ww_status status = search_lock(c);
    if (status != WW_OK || !held->dense.storage || search->queries)
        return status;
    status = place_queries(c, search, held);
    if (status != WW_OK)
        collection_unlock(c);
    return status;
}

/* A mask of no rows admits nothing: somebody forgot to say how many rows it covers. In a collection without rows it is right.
 */
ww_status search_check_mask(const ww_collection *c, const ww_search *search)
{
    if (!search->mask || search->mask_rows > 0 || c->store.rows_count == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': there is a mask, but mask_rows is 0; a mask over all rows has %lld",
                   c->name, (long long)c->store.rows_count);
}

ww_status search_run(const ww_collection *c, const ww_search *search, int64_t *rows, float *scores, search_stats *stats)
{
    const row_store *store = &c->store;
    const ww_status status = search_check_mask(c, search);
    if (status != WW_OK)
        return status;
    search_job job = {
        .metric = (int32_t)c->metric,
        .dim = c->dim,
        .type = (int32_t)c->type,
        .segments = store->segments,
        .segment_count = store_segments_used(store),
        .k = search->k,
        .mask = search->mask,
        .mask_rows = search->mask_rows,
        .rows = rows,
        .scores = scores,
        .screen = store->screen,
        .stats = stats,
        .progress = search->progress,
        .progress_user = search->progress_user,
    };
    search_queries_to(search, &job);
    if (store->rows_live > 0)
        return c->device->backend->rows_search(c->device, &job);
    results_pad(job.metric, job.query_count * job.k, rows, scores);
    return WW_OK;
}

/* A checked search that has something to find. */
static ww_status search_now(ww_collection *c, ww_search *search, tensor_rows *held, int64_t *rows, float *scores)
{
    if (c->durable)
        return c->durable->search(c->owner, search, rows, scores);
    search_stats stats = {.certificate = INFINITY};
    ww_status status = search_begin(c, search, held);
    if (status != WW_OK)
        return status;
    status = search_run(c, search, rows, scores, &stats);
    collection_unlock(c);
    if (status == WW_OK)
        search_tell_stats(search->stats, &stats);
    return status;
}

ww_status ww_collection_search(ww_collection *collection, const ww_search *search, int64_t *rows, float *scores)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_search";
    ww_search checked;
    tensor_rows held = {0};
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && !search)
        status = fail_null(function, "search");
    if (status == WW_OK)
        status = struct_read(&checked, sizeof checked, search, function, "ww_search");
    if (status == WW_OK)
        status = search_check(collection, function, &checked, &held);
    if (status == WW_OK && (checked.query_count == 0 || checked.k == 0)) {
        search_tell_stats(checked.stats, &(search_stats){.certificate = INFINITY});
    } else if (status == WW_OK) {
        status = rows && scores ? search_now(collection, &checked, &held, rows, scores)
                                : fail_null(function, rows ? "scores" : "rows");
    }
    tensor_rows_release(&held);
    return status;
}
