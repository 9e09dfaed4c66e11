/* Searches by Manhattan distance. */
#include "server/qdrant/manhattan.h"

#include <math.h>

#include <warpwave/ranking.h>
#include <warpwave/selection.h>

#include "base/memory.h"
#include "server/qdrant/select.h"

double manhattan_distance(const float *a, const float *b, int64_t dim)
{
    double sum = 0;
    for (int64_t i = 0; i < dim; i++)
        sum += fabs((double)a[i] - (double)b[i]);
    return sum;
}

ww_status manhattan_each(const entry *e, const ww_filter *filter, ww_status (*tell)(void *user, const ww_results *rows),
                         void *user)
{
    enum { ROWS_AT_ONCE = 4096 };
    ww_selection all = ww_selection_default();
    ww_cursor *cursor = NULL;
    all.filter = filter;
    all.cancel = job_cancel();
    ww_status status = ww_cursor_create(e->collection, &all, WW_FETCH_VECTORS, &cursor);
    for (int64_t count = 1; status == WW_OK && count > 0;) {
        ww_results *rows = NULL;
        status = ww_cursor_next(cursor, ROWS_AT_ONCE, &rows);
        count = status == WW_OK ? ww_results_count(rows, 0) : 0;
        if (status == WW_OK)
            status = job_check();
        if (status == WW_OK && count > 0)
            status = tell(user, rows);
        ww_results_destroy(rows);
    }
    ww_cursor_destroy(cursor);
    return status;
}

/* ---- the nearest --------------------------------------------------------------------------------------------------------- */

typedef struct near {
    double distance;
    int64_t handle;
} near;

/* The nearest so far: a heap with the farthest at its top. */
typedef struct nearest {
    const entry *entry;
    const manhattan_query *query;
    near *heap;
    int64_t count, capacity, rows;
} nearest;

static int compare_near(const void *first, const void *second)
{
    const near *a = first, *b = second;
    if (a->distance != b->distance)
        return (a->distance > b->distance) - (a->distance < b->distance);
    return (a->handle > b->handle) - (a->handle < b->handle);
}

/* Moves the element at `at` down to where it belongs. */
static void sink(nearest *n, int64_t at)
{
    const near moved = n->heap[at];
    for (int64_t child; (child = 2 * at + 1) < n->count; at = child) {
        if (child + 1 < n->count && compare_near(&n->heap[child + 1], &n->heap[child]) > 0)
            child++;
        if (compare_near(&n->heap[child], &moved) <= 0)
            break;
        n->heap[at] = n->heap[child];
    }
    n->heap[at] = moved;
}

/* Makes room for one more; there are fewer than wanted. */
static ww_status reserve(nearest *n)
{
    if (n->count < n->capacity)
        return WW_OK;
    const int64_t larger = n->capacity > 0 ? 2 * n->capacity : 64;
    near *moved = memory_resize(n->heap, (size_t)larger * sizeof *moved);
    if (!moved)
        return memory_failed("hits", (size_t)larger * sizeof *moved);
    n->heap = moved;
    n->capacity = larger;
    return WW_OK;
}

static ww_status take_rows(void *user, const ww_results *rows)
{
    nearest *n = user;
    const int64_t count = ww_results_count(rows, 0), *handles = ww_results_handles(rows, 0);
    ww_status status = WW_OK;
    n->rows += count;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const near one = {manhattan_distance(n->query->vector, ww_results_vector(rows, 0, i), n->entry->dim), handles[i]};
        if (n->count < n->query->count) {
            status = reserve(n);
            if (status == WW_OK)
                n->heap[n->count++] = one;
            if (status == WW_OK && n->count == n->query->count)
                for (int64_t at = n->count / 2; at-- > 0;)
                    sink(n, at);
        } else if (n->count > 0 && compare_near(&one, n->heap) < 0) {
            n->heap[0] = one;
            sink(n, 0);
        }
    }
    return status;
}

/* Fetches the rows that were found, and makes results of them. */
static ww_status fetch(const nearest *n, ww_results **results)
{
    ww_results *rows = NULL;
    ww_get get = ww_get_default();
    int64_t *handles = memory_alloc((size_t)(n->count + 1) * sizeof *handles), there = 0;
    ww_picked_hit *hits = memory_alloc((size_t)(n->count + 1) * sizeof *hits);
    ww_status status = handles && hits ? WW_OK : memory_failed("hits", (size_t)n->count * (sizeof *handles + sizeof *hits));
    for (int64_t i = 0; status == WW_OK && i < n->count; i++)
        handles[i] = n->heap[i].handle;
    get.handles = handles;
    get.count = n->count;
    get.fetch = n->query->fetch | WW_FETCH_IDS;
    get.cancel = job_cancel();
    if (status == WW_OK)
        status = ww_collection_get(n->entry->collection, &get, &rows);
    for (int64_t i = 0; status == WW_OK && i < n->count; i++)
        if (ww_results_id(rows, 0, i)) /* otherwise it was removed in the meantime */
            hits[there++] = (ww_picked_hit){rows, 0, i, (float)n->heap[i].distance};
    if (status == WW_OK)
        status = ww_results_pick(hits, there, results);
    ww_results_destroy(rows);
    memory_free(handles);
    memory_free(hits);
    return status;
}

ww_status manhattan_search(const entry *e, const manhattan_query *q, ww_results **results, int64_t *rows)
{
    nearest n = {.entry = e, .query = q};
    ww_status status = manhattan_each(e, q->filter, take_rows, &n);
    if (status == WW_OK)
        status = job_sort(n.heap, (size_t)n.count, sizeof *n.heap, compare_near);
    if (status == WW_OK)
        status = fetch(&n, results);
    *rows = n.rows;
    memory_free(n.heap);
    return status;
}
