/* Sorts rows on the CPU. Every element becomes a key that sorts in the requested order (arithmetic/reduce.h), with its index.
 * Which way when:
 *
 *   insertion sort  up to 32 elements
 *   heap            the first k of a row, for k up to an eighth of it
 *   radix sort      all others: by digits of eight bits; it is stable and skips digits that are equal in all keys
 */
#include "cpu/tensor/tensor.h"

#include <stdatomic.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

enum { DIGITS = 8, VALUES = 256, INSERTION_MAX = 32, GRAIN_ELEMENTS = 1 << 14 };

typedef struct item {
    uint64_t key;
    uint32_t index;
} item;

typedef struct sort_work {
    const sort_job *job;
    const element_loops *loops;
    atomic_int failed;
} sort_work;

/* Makes the keys of a block of elements, before they are inverted for a descending order. */
static void make_keys(const sort_work *w, const char *x, int64_t count, uint64_t *keys)
{
    const int32_t type = w->job->type;
    float reals[LOOP_BLOCK];
    int64_t wholes[LOOP_BLOCK];
    switch (type_kind(type)) {
    case KIND_F32:
        w->loops->widen_f32(type, reals, x, count);
        for (int64_t i = 0; i < count; i++)
            keys[i] = sort_key_f64(reals[i]);
        break;
    case KIND_F64:
        for (int64_t i = 0; i < count; i++)
            keys[i] = sort_key_f64(((const double *)x)[i]);
        break;
    default:
        w->loops->widen_i64(type, wholes, x, count);
        for (int64_t i = 0; i < count; i++)
            keys[i] = sort_key_i64(wholes[i]);
        break;
    }
}

static void make_items(const sort_work *w, const char *row, item *items)
{
    const sort_job *job = w->job;
    const uint64_t flip = job->descending ? ~(uint64_t)0 : 0;
    uint64_t keys[LOOP_BLOCK];
    for (int64_t first = 0; first < job->n; first += LOOP_BLOCK) {
        const int64_t count = min_i64(job->n - first, LOOP_BLOCK);
        make_keys(w, row + first * type_size(job->type), count, keys);
        for (int64_t i = 0; i < count; i++)
            items[first + i] = (item){.key = keys[i] ^ flip, .index = (uint32_t)(first + i)};
    }
}

static bool comes_before(const item *a, const item *b)
{
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

static void insertion_sort(item *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const item moved = items[i];
        int64_t j = i;
        for (; j > 0 && comes_before(&moved, &items[j - 1]); j--)
            items[j] = items[j - 1];
        items[j] = moved;
    }
}

/* Returns the array with the result: `items` or `other`. */
static item *radix_sort(item *items, item *other, int64_t n)
{
    uint32_t counts[DIGITS][VALUES];
    memset(counts, 0, sizeof counts);
    for (int64_t i = 0; i < n; i++)
        for (int32_t d = 0; d < DIGITS; d++)
            counts[d][items[i].key >> (8 * d) & 255]++;
    for (int32_t d = 0; d < DIGITS; d++) {
        if (counts[d][items[0].key >> (8 * d) & 255] == n)
            continue;
        uint32_t place = 0;
        for (int32_t v = 0; v < VALUES; v++) {
            const uint32_t count = counts[d][v];
            counts[d][v] = place;
            place += count;
        }
        for (int64_t i = 0; i < n; i++)
            other[counts[d][items[i].key >> (8 * d) & 255]++] = items[i];
        item *swapped = items;
        items = other;
        other = swapped;
    }
    return items;
}

/* ---- the first k: a heap whose top is the last of them ------------------------------------------------------------------- */

static void sink(item *heap, int64_t n, int64_t at)
{
    const item moved = heap[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && comes_before(&heap[child], &heap[child + 1]);
        if (!comes_before(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void keep_first(item *items, int64_t n, int64_t k)
{
    for (int64_t at = k / 2 - 1; at >= 0; at--)
        sink(items, k, at);
    for (int64_t i = k; i < n; i++)
        if (comes_before(&items[i], &items[0])) {
            items[0] = items[i];
            sink(items, k, 0);
        }
    /* Moves the top to the end, again and again with one element less. */
    for (int64_t left = k - 1; left > 0; left--) {
        const item last = items[0];
        items[0] = items[left];
        items[left] = last;
        sink(items, left, 0);
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static void put_row(const sort_job *job, int64_t row, const char *x, const item *items)
{
    const int32_t size = type_size(job->type);
    for (int64_t i = 0; i < job->k; i++) {
        if (job->values)
            memcpy((char *)job->values + (row * job->k + i) * size, x + (int64_t)items[i].index * size, (size_t)size);
        if (job->indices)
            job->indices[row * job->k + i] = items[i].index;
    }
}

static void sort_range(void *context, int64_t begin, int64_t end)
{
    sort_work *w = context;
    const sort_job *job = w->job;
    item *items = memory_alloc((size_t)job->n * 2 * sizeof *items);
    if (!items) {
        atomic_store(&w->failed, 1);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        const char *x = (const char *)job->x + row * job->n * type_size(job->type);
        item *sorted = items;
        make_items(w, x, items);
        if (job->n <= INSERTION_MAX)
            insertion_sort(items, job->n);
        else if (job->k <= job->n / 8)
            keep_first(items, job->n, job->k);
        else
            sorted = radix_sort(items, items + job->n, job->n);
        put_row(job, row, x, sorted);
    }
    memory_free(items);
}

ww_status cpu_sort(ww_device *device, const sort_job *job)
{
    sort_work w = {.job = job, .loops = cpu_loops(device)};
    const int64_t grain = GRAIN_ELEMENTS / job->n;
    cpu_run_ranges(device, job->rows, grain, sort_range, &w);
    if (atomic_load(&w.failed))
        return memory_failed("a row's keys", (size_t)job->n * 2 * sizeof(item));
    return WW_OK;
}
