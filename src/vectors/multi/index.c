/* An index of multivectors in memory: a set, numbers of rows, and a mask that hides removed rows. */
#include <pthread.h>
#include <string.h>

#include "base/array.h"
#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/backend.h"
#include "vectors/collection.h"
#include "vectors/multi/multi.h"
#include "vectors/query/query.h"
#include "vectors/sparse/sparse.h"

struct ww_multi_index {
    pthread_rwlock_t lock;
    ww_device *device; /* retained */
    multi_set set;
    uint64_t *live;
    int64_t live_room; /* words */
    int64_t rows, rows_live;
};

ww_status ww_multi_create(ww_device *device, int32_t dim, ww_metric metric, ww_multi_index **index)
{
    FLOAT_GUARD();
    static const char function[] = "ww_multi_create";
    if (!device || !index)
        return fail_null(function, device ? "index" : "device");
    ww_status status = multi_device_check(device);
    if (status == WW_OK)
        status = multi_check_metric(function, metric);
    if (status == WW_OK && (dim < 1 || dim > WW_DIM_MAX))
        status = ww_fail(WW_OUT_OF_RANGE, "%s: dim is %d; it must be 1 to %d", function, dim, WW_DIM_MAX);
    if (status != WW_OK)
        return status;
    ww_multi_index *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("an index of multivectors", sizeof *made);
    status = collection_lock_create(&made->lock);
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    made->device = device_retain(device);
    made->set = (multi_set){.device = device, .dim = dim, .metric = metric};
    *index = made;
    return WW_OK;
}

void ww_multi_destroy(ww_multi_index *index)
{
    if (!index)
        return;
    multi_set_free(&index->set);
    memory_free(index->live);
    pthread_rwlock_destroy(&index->lock);
    ww_device_close(index->device);
    memory_free(index);
}

int64_t ww_multi_count(ww_multi_index *index)
{
    if (!index)
        return 0;
    pthread_rwlock_rdlock(&index->lock);
    const int64_t count = index->rows_live;
    pthread_rwlock_unlock(&index->lock);
    return count;
}

/* Called with the writer's lock. */
static ww_status add(ww_multi_index *index, const ww_multivector *rows, int64_t count)
{
    const int64_t total = index->rows + count;
    if (total >= WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_multi_add: more than %lld rows", (long long)WW_ROWS_MAX);
    uint32_t *numbers = memory_alloc((size_t)count * sizeof *numbers);
    ww_status status = numbers ? WW_OK : memory_failed("the numbers of rows", (size_t)count * sizeof *numbers);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        numbers[i] = (uint32_t)(index->rows + i);
    if (status == WW_OK)
        status = array_reserve(&index->live, &index->live_room, total / 64 + 1, sizeof *index->live, "live rows");
    if (status == WW_OK)
        status = multi_set_add(&index->set, rows, numbers, count);
    memory_free(numbers);
    for (; status == WW_OK && index->rows < total; index->rows++, index->rows_live++) {
        if (index->rows % 64 == 0)
            index->live[index->rows / 64] = 0;
        index->live[index->rows / 64] |= UINT64_C(1) << (index->rows % 64);
    }
    return status;
}

ww_status ww_multi_add(ww_multi_index *index, const ww_multivector *rows, int64_t count)
{
    FLOAT_GUARD();
    static const char function[] = "ww_multi_add";
    if (!index || (!rows && count > 0))
        return fail_null(function, index ? "rows" : "index");
    if (count < 0 || count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: count is %lld; it must be 0 to %lld", function, (long long)count,
                       (long long)WW_ROWS_MAX);
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = multi_check("row", i, &rows[i]);
    if (status != WW_OK)
        return status;
    pthread_rwlock_wrlock(&index->lock);
    status = add(index, rows, count);
    pthread_rwlock_unlock(&index->lock);
    return status;
}

ww_status ww_multi_remove(ww_multi_index *index, int64_t row)
{
    FLOAT_GUARD();
    if (!index)
        return fail_null("ww_multi_remove", "index");
    pthread_rwlock_wrlock(&index->lock);
    const bool there = row >= 0 && row < index->rows && index->live[row / 64] >> (row % 64) & 1;
    if (there) {
        index->live[row / 64] &= ~(UINT64_C(1) << (row % 64));
        index->rows_live--;
    }
    pthread_rwlock_unlock(&index->lock);
    return there ? WW_OK : ww_fail(WW_NOT_FOUND, "ww_multi_remove: there is no row %lld", (long long)row);
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* Called with the reader's lock. */
static ww_status search(const ww_multi_index *index, const ww_query *query, key_list *lists)
{
    const int64_t words = divide_up_i64(index->rows, 64);
    uint64_t *admitted = memory_alloc((size_t)(words + 1) * sizeof *admitted);
    if (!admitted)
        return memory_failed("a mask", (size_t)(words + 1) * sizeof *admitted);
    for (int64_t i = 0; i < words; i++) {
        admitted[i] = index->live[i];
        for (int64_t row = 64 * i; query->mask && row < 64 * i + 64; row++)
            if (row >= query->mask_rows || !(query->mask[i] >> (row % 64) & 1))
                admitted[i] &= ~(UINT64_C(1) << (row % 64));
    }
    const ww_status status = multi_set_search(&index->set, query, (multi_admitted){admitted, index->rows}, lists);
    memory_free(admitted);
    return status;
}

ww_status ww_multi_search(ww_multi_index *index, const ww_query *query, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_multi_search";
    ww_query asked;
    ww_multi_query multi;
    key_list *lists = NULL;
    if (!index || !query || !results)
        return fail_null(function, !index ? "index" : query ? "results" : "query");
    ww_status status = query_read_rows_only(function, query, &asked);
    if (status == WW_OK && !asked.multi)
        status = fail_null(function, "query->multi");
    CANCEL_BY(status == WW_OK ? asked.cancel : NULL);
    if (status == WW_OK)
        status = multi_asked_read(function, &asked, &multi);
    asked.multi = &multi;
    if (status == WW_OK)
        status = sparse_lists_create(asked.query_count, &lists);
    if (status == WW_OK) {
        pthread_rwlock_rdlock(&index->lock);
        status = search(index, &asked, lists);
        pthread_rwlock_unlock(&index->lock);
    }
    if (status == WW_OK)
        status = sparse_results(&asked, lists, results);
    sparse_lists_free(lists, asked.query_count);
    return status;
}
