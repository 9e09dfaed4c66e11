/* Copies the data of results: ids and payloads from the host's pages, vectors from wherever the rows are.
 *
 * Reading rows one by one from a GPU would take a transfer for each. Instead the GPU gathers the rows into one buffer, which is
 * read at once.
 */
#include "vectors/query/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_values.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/ids/handles.h"
#include "vectors/write/payloads.h"

enum {
    ROWS_ONE_BY_ONE = 8,             /* fewer rows are read one by one: gathering takes buffers and a transfer of row numbers */
    GATHER_BYTES = 64 * 1024 * 1024, /* of rows that are gathered at a time */
    PREFETCHED = 32,                 /* hits whose ids and payloads are prefetched together */
    HANDLES_TOGETHER = 1024,         /* hits that one thread handles at a time */
    HANDLE_ITEMS_MIN = 4             /* minimum number of such pieces for waking threads */
};

/* After a search, nothing of a row's page is in the cache, and an id takes three dependent loads, each a miss. So each of these
 * loads is done for many hits before the next one. */
static void prefetch_pages(const ww_collection *c, const int64_t *rows, int64_t count, uint32_t fetch)
{
    const row_page *pages[PREFETCHED];
    for (int64_t i = 0; i < count; i++) {
        pages[i] = rows[i] >= 0 ? store_page(&c->store, rows[i]) : NULL;
        __builtin_prefetch(pages[i]);
    }
    if (!(fetch & (WW_FETCH_IDS | WW_FETCH_PAYLOADS)))
        return;
    for (int64_t i = 0; i < count; i++) {
        if (pages[i] && fetch & WW_FETCH_IDS && pages[i]->ids)
            __builtin_prefetch(&pages[i]->ids->ends[rows[i] % PAGE_ROWS]);
        if (pages[i] && fetch & WW_FETCH_PAYLOADS && pages[i]->payloads)
            __builtin_prefetch(&pages[i]->payloads[rows[i] % PAGE_ROWS]);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t slot = rows[i] % PAGE_ROWS;
        if (pages[i] && fetch & WW_FETCH_IDS && pages[i]->ids)
            __builtin_prefetch(pages[i]->ids->bytes + (slot > 0 ? pages[i]->ids->ends[slot - 1] : 0));
        if (pages[i] && fetch & WW_FETCH_PAYLOADS && pages[i]->payloads)
            __builtin_prefetch(pages[i]->payloads[slot]);
    }
}

typedef struct handle_job {
    const ww_collection *collection;
    ww_results *results;
} handle_job;

static void find_some_handles(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const handle_job *job = context;
    ww_results *results = job->results;
    const int64_t end = min_i64((item + 1) * HANDLES_TOGETHER, results_hits(results));
    for (int64_t i = item * HANDLES_TOGETHER; i < end; i++) {
        if (i % PREFETCHED == 0)
            prefetch_pages(job->collection, results->rows + i, min_i64(PREFETCHED, end - i), 0);
        results->handles[i] = results->rows[i] >= 0 ? store_handle(&job->collection->store, results->rows[i]) : -1;
    }
}

/* Finds the handles of many hits with the device's threads, because the search has evicted this memory from the caches. */
static void find_handles(ww_results *results, const ww_collection *c)
{
    handle_job job = {.collection = c, .results = results};
    const int64_t items = divide_up_i64(results_hits(results), HANDLES_TOGETHER);
    pool *threads = items >= HANDLE_ITEMS_MIN ? c->device->backend->threads(c->device) : NULL;
    if (threads)
        (void)pool_run(threads, items, find_some_handles, NULL, &job);
    else
        pool_run_here(items, find_some_handles, &job);
}

/* Counts the bytes of ids and payloads with their NULs. */
static size_t text_bytes(const ww_results *results, const ww_collection *c, uint32_t fetch)
{
    char digits[HANDLE_DIGITS];
    size_t bytes = 0;
    for (int64_t i = 0; i < results_hits(results); i++) {
        if (i % PREFETCHED == 0)
            prefetch_pages(c, results->rows + i, min_i64(PREFETCHED, results_hits(results) - i), fetch);
        if (results->rows[i] < 0)
            continue;
        if (fetch & WW_FETCH_IDS)
            bytes += collection_row_id(c, results->rows[i], digits).length + 1;
        const char *payload = fetch & WW_FETCH_PAYLOADS ? payload_get(&c->store, results->rows[i]) : NULL;
        bytes += payload ? strlen(payload) + 1 : 0;
    }
    return bytes;
}

static ww_status put_texts(ww_results *results, const ww_collection *c)
{
    char digits[HANDLE_DIGITS];
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < results_hits(results); i++) {
        if (results->rows[i] < 0)
            continue;
        if (results->ids) {
            const id_text id = collection_row_id(c, results->rows[i], digits);
            status = results_put(results, &results->ids[i], id.bytes, id.length);
        }
        const char *payload = status == WW_OK && results->payloads ? payload_get(&c->store, results->rows[i]) : NULL;
        if (payload)
            status = results_put(results, &results->payloads[i], payload, strlen(payload));
    }
    return status;
}

/* Reads each vector separately: from the host's copy, or from a device where that is fast. */
static ww_status read_one_by_one(ww_results *results, const ww_collection *c)
{
    const row_store *store = &c->store;
    const size_t bytes = store_element_bytes(store);
    const bool typed = c->type != WW_VECTOR_F32;
    void *elements = typed ? memory_alloc(bytes) : NULL; /* the elements of one row before they become floats */
    ww_status status = !typed || elements ? WW_OK : memory_failed("a row's elements", bytes);
    for (int64_t i = 0; status == WW_OK && i < results_hits(results); i++) {
        const int64_t row = results->rows[i];
        float *to = results->vectors + i * c->dim;
        const char *copy = row >= 0 ? store_copy_of(store, row) : NULL;
        if (copy) {
            row_widen((int32_t)c->type, copy, c->dim, to);
        } else if (row >= 0) {
            const segment *part = &store->segments[store_segment_of(store, row)];
            status = c->device->backend->rows_read(c->device, (row_range){part, row - part->first_row, 1, c->dim},
                                                   typed ? elements : to);
            if (status == WW_OK && typed)
                row_widen((int32_t)c->type, elements, c->dim, to);
        }
    }
    memory_free(elements);
    return status;
}

typedef struct wanted_row {
    int64_t row;
    int64_t hit;
} wanted_row;

static int by_row(const void *a, const void *b)
{
    const int64_t x = ((const wanted_row *)a)->row, y = ((const wanted_row *)b)->row;
    return (x > y) - (x < y);
}

typedef struct gathering {
    const ww_collection *collection;
    ww_results *results;
    wanted_row *wanted; /* sorted by row */
    int64_t wanted_count;
    int64_t *sources; /* up to rows_max row numbers in one segment */
    char *vectors;    /* up to rows_max vectors, in host memory, in the collection's type */
    int64_t rows_max;
    segment *gathered; /* on the device, one for each member of a group that has requested rows */
} gathering;

static ww_status gathering_create(gathering *g)
{
    const ww_collection *c = g->collection;
    const int64_t hits = results_hits(g->results);
    const int64_t row_bytes = (int64_t)canon_padded(c->dim) * (int64_t)row_type_bytes((int32_t)c->type);
    g->rows_max = min_i64(hits, GATHER_BYTES / row_bytes); /* at least 256, because a row has at most 256 KiB */
    const size_t bytes = (size_t)g->rows_max * store_element_bytes(&c->store);
    g->wanted = memory_alloc((size_t)hits * sizeof *g->wanted);
    g->sources = memory_alloc((size_t)g->rows_max * sizeof *g->sources);
    g->vectors = memory_alloc(bytes);
    g->gathered = memory_alloc_zeroed(MEMBERS_MAX, sizeof *g->gathered);
    if (!g->wanted || !g->sources || !g->vectors || !g->gathered)
        return memory_failed("vectors of results", bytes);
    for (int64_t i = 0; i < hits; i++)
        if (g->results->rows[i] >= 0)
            g->wanted[g->wanted_count++] = (wanted_row){g->results->rows[i], i};
    qsort(g->wanted, (size_t)g->wanted_count, sizeof *g->wanted, by_row);
    return WW_OK;
}

/* Returns the segment where rows of `from` are gathered: on the member that has them. */
static ww_status gathered_on(gathering *g, const segment *from, const segment **to)
{
    const ww_collection *c = g->collection;
    segment *made = &g->gathered[from->member];
    *to = made;
    if (made->capacity > 0)
        return WW_OK;
    const segment_plan plan = {
        .dim = c->dim, .type = (int32_t)c->type, .member = from->member, .capacity = round_up_i64(g->rows_max, PAGE_ROWS)};
    return c->device->backend->segment_create(c->device, &plan, made);
}

static void gathering_destroy(gathering *g)
{
    ww_device *device = g->collection->device;
    for (int32_t i = 0; g->gathered && i < MEMBERS_MAX; i++)
        device->backend->segment_destroy(device, &g->gathered[i]);
    memory_free(g->gathered);
    memory_free(g->vectors);
    memory_free(g->sources);
    memory_free(g->wanted);
}

/* Gathers rows, starting at `*next`, that are in one segment and fit; a row of several hits is gathered once. */
static ww_status gather_some(gathering *g, int64_t *next)
{
    const ww_collection *c = g->collection;
    const row_store *store = &c->store;
    const backend *api = c->device->backend;
    const segment *from = &store->segments[store_segment_of(store, g->wanted[*next].row)];
    const int64_t begin = *next;
    int64_t count = 0, end = begin;
    for (; end < g->wanted_count && g->wanted[end].row < from->first_row + from->capacity; end++) {
        const bool again = end > begin && g->wanted[end].row == g->wanted[end - 1].row;
        if (!again && count == g->rows_max)
            break;
        if (!again)
            g->sources[count++] = g->wanted[end].row - from->first_row;
    }
    const segment *to = NULL;
    ww_status status = gathered_on(g, from, &to);
    if (status == WW_OK)
        status = api->rows_gather(c->device, (row_range){to, 0, count, c->dim}, from, g->sources);
    if (status == WW_OK)
        status = api->rows_read(c->device, (row_range){to, 0, count, c->dim}, g->vectors);
    int64_t at = 0;
    for (int64_t i = begin; status == WW_OK && i < end; i++) {
        at += i > begin && g->wanted[i].row != g->wanted[i - 1].row;
        row_widen((int32_t)c->type, g->vectors + (size_t)at * store_element_bytes(store), c->dim,
                  g->results->vectors + g->wanted[i].hit * c->dim);
    }
    *next = end;
    return status;
}

static ww_status read_gathered(ww_results *results, const ww_collection *c)
{
    gathering g = {.collection = c, .results = results};
    ww_status status = gathering_create(&g);
    for (int64_t next = 0; status == WW_OK && next < g.wanted_count;)
        status = gather_some(&g, &next);
    gathering_destroy(&g);
    return status;
}

ww_status results_read_vectors(ww_results *results, const ww_collection *c)
{
    const bool quick = c->store.keep_copy || c->store.rows_on_host || c->device->backend->on_host;
    return quick || results_hits(results) <= ROWS_ONE_BY_ONE ? read_one_by_one(results, c) : read_gathered(results, c);
}

ww_status results_fetch(ww_results *results, const ww_collection *collection, uint32_t fetch)
{
    const bool texts = (fetch & (WW_FETCH_IDS | WW_FETCH_PAYLOADS)) != 0;
    const size_t bytes = texts ? text_bytes(results, collection, fetch) : 0;
    find_handles(results, collection);
    ww_status status = results_prepare(results, fetch, collection->dim, bytes);
    if (status == WW_OK && texts)
        status = put_texts(results, collection);
    if (status == WW_OK && results->vectors)
        status = results_read_vectors(results, collection);
    return status;
}
