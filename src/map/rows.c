/* The rows of a map: their list, their vectors, and work on all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "map/map.h"

enum {
    VECTORS_BYTES = 32 * 1024 * 1024, /* vectors that are read at a time */
    VECTORS_MIN = 64,
    VECTORS_MAX = 16384, /* so that the callback is called often enough */
};

typedef struct handle_number {
    int64_t handle;
    uint32_t number;
} handle_number;

static int by_handle(const void *a, const void *b)
{
    const int64_t x = ((const handle_number *)a)->handle, y = ((const handle_number *)b)->handle;
    return (x > y) - (x < y);
}

/* Handles are in ascending order like the rows, unless some rows were replaced. */
static ww_status sort_handles(map_job *job)
{
    const size_t bytes = (size_t)job->count * sizeof(handle_number);
    handle_number *pairs = memory_alloc(bytes);
    if (!pairs)
        return memory_failed("the rows of a map", bytes);
    for (int64_t i = 0; i < job->count; i++)
        pairs[i] = (handle_number){job->handles[i], (uint32_t)i};
    qsort(pairs, (size_t)job->count, sizeof *pairs, by_handle);
    for (int64_t i = 0; i < job->count; i++)
        job->by_handle[i] = pairs[i].number;
    memory_free(pairs);
    return WW_OK;
}

static ww_status take_memory(map_job *job)
{
    const size_t count = (size_t)job->count, padded = (size_t)round_up_i64(job->count, LAYOUT_BLOCK);
    job->handles = memory_alloc(count * sizeof *job->handles);
    job->rows = memory_alloc(count * sizeof *job->rows);
    job->by_handle = memory_alloc(count * sizeof *job->by_handle);
    job->hashes = memory_alloc_zeroed(count, sizeof *job->hashes);
    job->gone = memory_alloc_zeroed(count, sizeof *job->gone);
    job->late = memory_alloc_zeroed(count, sizeof *job->late);
    job->x = memory_alloc_zeroed(padded, sizeof *job->x);
    job->y = memory_alloc_zeroed(padded, sizeof *job->y);
    if (job->handles && job->rows && job->by_handle && job->hashes && job->gone && job->late && job->x && job->y)
        return WW_OK;
    return memory_failed("the rows of a map", count * 40);
}

ww_status rows_read(map_job *job)
{
    ww_results *all = NULL;
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    ww_status status = ww_collection_get(job->collection, &get, &all);
    if (status != WW_OK)
        return status;
    job->count = ww_results_count(all, 0);
    status = take_memory(job);
    if (status == WW_OK && job->count > 0) {
        memcpy(job->handles, ww_results_handles(all, 0), (size_t)job->count * sizeof *job->handles);
        memcpy(job->rows, ww_results_rows(all, 0), (size_t)job->count * sizeof *job->rows);
    }
    ww_results_destroy(all);
    return status == WW_OK ? sort_handles(job) : status;
}

void rows_free(map_job *job)
{
    memory_free(job->y);
    memory_free(job->x);
    memory_free(job->late);
    memory_free(job->gone);
    memory_free(job->hashes);
    memory_free(job->by_handle);
    memory_free(job->rows);
    memory_free(job->handles);
}

uint32_t rows_find(const map_job *job, int64_t handle)
{
    int64_t low = 0, high = job->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (job->handles[job->by_handle[middle]] < handle)
            low = middle + 1;
        else
            high = middle;
    }
    return low < job->count && job->handles[job->by_handle[low]] == handle ? job->by_handle[low] : NO_ROW;
}

ww_status vectors_create(const map_job *job, row_vectors *vectors)
{
    const int64_t row_bytes = (int64_t)job->collection->dim * (int64_t)sizeof(float);
    *vectors = (row_vectors){.capacity = min_i64(max_i64(VECTORS_BYTES / row_bytes, VECTORS_MIN), VECTORS_MAX)};
    vectors->capacity = min_i64(vectors->capacity, job->count);
    const size_t capacity = (size_t)vectors->capacity, bytes = capacity * (size_t)row_bytes;
    vectors->numbers = memory_alloc(capacity * sizeof *vectors->numbers);
    vectors->places = memory_alloc(capacity * sizeof *vectors->places);
    vectors->values = memory_alloc(bytes);
    vectors->handles = memory_alloc(capacity * sizeof *vectors->handles);
    const bool has = vectors->numbers && vectors->places && vectors->values && vectors->handles;
    return has ? WW_OK : memory_failed("vectors of a map", bytes);
}

void vectors_free(row_vectors *vectors)
{
    memory_free(vectors->handles);
    memory_free(vectors->values);
    memory_free(vectors->places);
    memory_free(vectors->numbers);
}

static uint32_t number_of(const map_job *job, map_list list, int64_t i)
{
    return list.numbers ? list.numbers[i] : (uint32_t)(i * job->count / list.count);
}

/* The same in every process, because it is stored. */
static uint32_t hash_of(const float *vector, int32_t dim)
{
    static const hash_key key = {UINT64_C(0x2545f4914f6cdd1d), UINT64_C(0x9e3779b97f4a7c15)};
    return (uint32_t)hash_bytes(&key, (const char *)vector, (size_t)dim * sizeof *vector);
}

ww_status vectors_read(map_job *job, map_list list, int64_t first, row_vectors *vectors)
{
    const int32_t dim = job->collection->dim;
    ww_results *got = NULL;
    ww_get get = ww_get_default();
    get.count = min_i64(vectors->capacity, list.count - first);
    get.handles = vectors->handles;
    get.fetch = WW_FETCH_VECTORS;
    for (int64_t i = 0; i < get.count; i++)
        vectors->handles[i] = job->handles[number_of(job, list, first + i)];
    const ww_status status = ww_collection_get(job->collection, &get, &got);
    if (status != WW_OK)
        return status;
    const int64_t *rows = ww_results_rows(got, 0);
    vectors->count = 0;
    for (int64_t i = 0; i < get.count; i++) {
        const uint32_t number = number_of(job, list, first + i);
        job->gone[number] = rows[i] < 0;
        if (rows[i] < 0)
            continue;
        float *to = vectors->values + vectors->count * dim;
        memcpy(to, ww_results_vector(got, 0, i), (size_t)dim * sizeof *to);
        job->hashes[number] = hash_of(to, dim);
        vectors->places[vectors->count] = first + i;
        vectors->numbers[vectors->count++] = number;
    }
    ww_results_destroy(got);
    return WW_OK;
}

void map_run(const map_job *job, int64_t items, pool_work work, void *context)
{
    if (job->threads && items > 1)
        (void)pool_run(job->threads, items, work, NULL, context);
    else
        pool_run_here(items, work, context);
}

ww_status map_report_progress(const map_job *job, int64_t more)
{
    if (!progress_tell(job->config->progress, job->config->progress_user, min_i64(job->done + more, job->total), job->total))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "collection '%s': the map was cancelled by its progress callback; nothing was changed",
                   job->collection->name);
}
