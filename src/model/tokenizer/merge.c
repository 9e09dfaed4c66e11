/* Merging adjacent symbols, best pair first. */
#include "model/tokenizer/merge.h"

#include "base/array.h"
#include "base/memory.h"

ww_status merge_add(merge_work *work, int32_t id, uint32_t start, uint32_t bytes)
{
    if (work->count == work->capacity) {
        const size_t capacity = 2 * (size_t)work->capacity + 64;
        merge_symbol *larger = memory_resize(work->symbols, capacity * sizeof *larger);
        if (!larger)
            return memory_failed("symbols of a text", capacity * sizeof *larger);
        work->symbols = larger;
        work->capacity = (int32_t)capacity;
    }
    work->symbols[work->count] =
        (merge_symbol){.previous = work->count - 1, .next = -1, .id = id, .start = start, .bytes = bytes};
    if (work->count > 0)
        work->symbols[work->count - 1].next = work->count;
    work->count++;
    return WW_OK;
}

/* ---- the heap ------------------------------------------------------------------------------------------------------------ */

static ww_status heap_push(merge_work *work, merge_entry entry)
{
    const ww_status grown =
        array_reserve(&work->heap, &work->heap_capacity, work->heap_count + 1, sizeof *work->heap, "pairs of a text");
    if (grown != WW_OK)
        return grown;
    int64_t at = work->heap_count++;
    while (at > 0 && work->heap[(at - 1) / 2].key > entry.key) {
        work->heap[at] = work->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    work->heap[at] = entry;
    return WW_OK;
}

static merge_entry heap_pop(merge_work *work)
{
    const merge_entry first = work->heap[0], last = work->heap[--work->heap_count];
    int64_t at = 0;
    for (int64_t child = 1; child < work->heap_count; child = 2 * at + 1) {
        if (child + 1 < work->heap_count && work->heap[child + 1].key < work->heap[child].key)
            child++;
        if (work->heap[child].key >= last.key)
            break;
        work->heap[at] = work->heap[child];
        at = child;
    }
    work->heap[at] = last;
    return first;
}

/* ---- merging ------------------------------------------------------------------------------------------------------------- */

static ww_status push_pair(merge_work *work, const merge_rule *rule, int32_t left)
{
    merge_found found;
    if (left < 0 || work->symbols[left].next < 0)
        return WW_OK;
    if (!rule->find(rule->context, &work->symbols[left], &work->symbols[work->symbols[left].next], &found))
        return WW_OK;
    if (rule->waits)
        rule->waits(rule->context, &work->symbols[left], found.id);
    return heap_push(work, (merge_entry){.key = (uint64_t)found.order << 32 | (uint32_t)left, .id = found.id});
}

ww_status merge_run(merge_work *work, const merge_rule *rule)
{
    ww_status status = WW_OK;
    work->heap_count = 0;
    for (int32_t i = 0; status == WW_OK && i + 1 < work->count; i++)
        status = push_pair(work, rule, i);
    while (status == WW_OK && work->heap_count > 0) {
        const merge_entry entry = heap_pop(work);
        const int32_t at = (int32_t)(uint32_t)entry.key;
        merge_symbol *left = &work->symbols[at];
        merge_found found;
        if (left->bytes == 0 || left->next < 0)
            continue;
        merge_symbol *right = &work->symbols[left->next];
        if (!rule->find(rule->context, left, right, &found) || found.id != entry.id)
            continue; /* one of the two has changed */
        left->id = found.id;
        left->bytes += right->bytes;
        left->next = right->next;
        right->bytes = 0;
        if (left->next >= 0)
            work->symbols[left->next].previous = at;
        status = push_pair(work, rule, left->previous);
        if (status == WW_OK)
            status = push_pair(work, rule, at);
    }
    return status;
}

void merge_clear(merge_work *work)
{
    work->count = 0;
    work->heap_count = 0;
}

void merge_free(merge_work *work)
{
    memory_free(work->symbols);
    memory_free(work->heap);
    *work = (merge_work){0};
}
