/* Lists of keys: grown by doubling, cut by selection, sorted by insertion, quicksort or radix sort, whichever is fastest. */
#include "base/tables/key_list.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"

enum {
    CAPACITY_MIN = 16,
    CUT_MIN = 64,      /* shorter lists are not cut, because each cut reads the whole list */
    INSERTED_MAX = 24, /* up to this many keys are sorted by insertion ... */
    DIGITS_MIN = 2048, /* ... and at least this many by radix sort */
    DIGIT_BITS = 8,
    DIGIT_VALUES = 1 << DIGIT_BITS,
    DIGITS = 64 / DIGIT_BITS
};

/* ---- order --------------------------------------------------------------------------------------------------------------- */

static void exchange(uint64_t *a, uint64_t *b)
{
    const uint64_t key = *a;
    *a = *b;
    *b = key;
}

static void insertion_sort(uint64_t *keys, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const uint64_t key = keys[i];
        int64_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Moves keys[at] down to its place in the heap of `count` keys, with the largest on top. */
static void sink(uint64_t *keys, int64_t at, int64_t count)
{
    const uint64_t key = keys[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && keys[child + 1] > keys[child];
        if (keys[child] <= key)
            break;
        keys[at] = keys[child];
        at = child;
    }
    keys[at] = key;
}

static void heap_sort(uint64_t *keys, int64_t count)
{
    for (int64_t at = count / 2 - 1; at >= 0; at--)
        sink(keys, at, count);
    for (int64_t last = count - 1; last > 0; last--) {
        exchange(&keys[0], &keys[last]);
        sink(keys, 0, last);
    }
}

/* Partitions at least three keys around one of them, and returns its final place: smaller keys are before it, larger ones after
 * it. Every key is moved, because an unpredictable branch costs more than that. */
static int64_t part(uint64_t *keys, int64_t count)
{
    uint64_t *first = &keys[0], *middle = &keys[count / 2], *last = &keys[count - 1];
    if (*middle < *first)
        exchange(middle, first);
    if (*last < *middle)
        exchange(last, middle);
    if (*middle < *first)
        exchange(middle, first);
    const uint64_t pivot = *middle;
    exchange(middle, &keys[count - 2]);
    int64_t low = 0;
    for (int64_t i = 0; i < count - 2; i++) {
        const uint64_t key = keys[i];
        keys[i] = keys[low];
        keys[low] = key;
        low += key < pivot;
    }
    exchange(&keys[low], &keys[count - 2]);
    return low;
}

/* Quicksort, the smaller part first, so that few parts wait. If `tries` levels do not suffice, it uses heap sort. */
static void part_sort(uint64_t *keys, int64_t count)
{
    int32_t tries = 2 * (64 - __builtin_clzll((uint64_t)count | 1));
    while (count > INSERTED_MAX && tries-- > 0) {
        const int64_t at = part(keys, count), behind = count - at - 1;
        if (at < behind) {
            part_sort(keys, at);
            keys += at + 1;
            count = behind;
        } else {
            part_sort(keys + at + 1, behind);
            count = at;
        }
    }
    if (count > INSERTED_MAX)
        heap_sort(keys, count);
    else
        insertion_sort(keys, count);
}

/* Radix sort from the last digit to the first, alternating between two arrays. A digit that is the same in all keys is skipped:
 * the scores of one query often have the same first digits. */
static void digit_sort(uint64_t *keys, int64_t count, uint64_t *spare)
{
    uint64_t *from = keys, *to = spare;
    for (int32_t digit = 0; digit < DIGITS; digit++) {
        const int32_t shift = digit * DIGIT_BITS;
        int64_t begins[DIGIT_VALUES] = {0}, at = 0;
        for (int64_t i = 0; i < count; i++)
            begins[from[i] >> shift & (DIGIT_VALUES - 1)]++;
        if (begins[from[0] >> shift & (DIGIT_VALUES - 1)] == count)
            continue;
        for (int32_t value = 0; value < DIGIT_VALUES; value++) {
            const int64_t here = begins[value];
            begins[value] = at;
            at += here;
        }
        for (int64_t i = 0; i < count; i++)
            to[begins[from[i] >> shift & (DIGIT_VALUES - 1)]++] = from[i];
        uint64_t *const other = from;
        from = to;
        to = other;
    }
    if (from != keys)
        memcpy(keys, from, (size_t)count * sizeof *keys);
}

void keys_sort(uint64_t *keys, int64_t count)
{
    if (count <= INSERTED_MAX) {
        insertion_sort(keys, count);
        return;
    }
    uint64_t *spare = count >= DIGITS_MIN ? memory_alloc((size_t)count * sizeof *spare) : NULL;
    if (spare)
        digit_sort(keys, count, spare);
    else
        part_sort(keys, count);
    memory_free(spare);
}

/* Quickselect: partitions only the part that contains the last wanted key. If that does not get shorter, it sorts the part. */
uint64_t keys_select(uint64_t *keys, int64_t count, int64_t wanted)
{
    int64_t begin = 0, end = count;
    for (int32_t tries = 0; end - begin > INSERTED_MAX && tries < 64; tries++) {
        const int64_t at = begin + part(keys + begin, end - begin);
        if (at == wanted - 1)
            return keys[at];
        if (at < wanted - 1)
            begin = at + 1;
        else
            end = at;
    }
    if (end - begin > INSERTED_MAX)
        heap_sort(keys + begin, end - begin);
    else
        insertion_sort(keys + begin, end - begin);
    return keys[wanted - 1];
}

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

bool key_list_reserve(key_list *list, int64_t count)
{
    if (count <= list->capacity)
        return true;
    uint64_t *keys = memory_resize(list->keys, (size_t)count * sizeof *keys);
    if (!keys)
        return false;
    list->keys = keys;
    list->capacity = count;
    return true;
}

static bool grow(key_list *list)
{
    return key_list_reserve(list, max_i64(2 * list->capacity, CAPACITY_MIN));
}

/* Cuts the list to the limit, if it has that many keys. */
static void cut(key_list *list, int64_t limit)
{
    if (list->count < limit)
        return;
    list->key_max = keys_select(list->keys, list->count, limit);
    list->cut = true;
    list->count = limit;
}

bool key_list_add(key_list *list, int64_t limit, uint64_t key)
{
    if (limit == 0 || (list->cut && key > list->key_max))
        return true;
    if (list->count == list->capacity && list->count >= CUT_MIN && list->count / 2 >= limit)
        cut(list, limit);
    if (list->count == list->capacity && !grow(list))
        return false;
    list->keys[list->count++] = key;
    return true;
}

uint64_t key_list_cut(key_list *list, int64_t limit)
{
    if (limit == 0)
        return 0;
    if (list->count >= limit)
        cut(list, limit);
    return list->cut ? list->key_max : UINT64_MAX;
}

bool key_list_add_all(key_list *list, int64_t limit, const key_list *other)
{
    if (!key_list_reserve(list, list->count + other->count))
        return false;
    if (other->count > 0)
        memcpy(list->keys + list->count, other->keys, (size_t)other->count * sizeof *list->keys);
    list->count += other->count;
    list->total += other->total;
    if (limit > 0)
        cut(list, limit);
    return true;
}

void key_list_finish(key_list *list, int64_t limit)
{
    if (limit > 0)
        cut(list, limit);
    if (list->count == 0) {
        memory_free(list->keys);
        list->keys = NULL;
        list->capacity = 0;
        return;
    }
    keys_sort(list->keys, list->count);
    if (list->capacity > 2 * list->count) {
        uint64_t *keys = memory_resize(list->keys, (size_t)list->count * sizeof *keys);
        if (keys) { /* otherwise the array stays longer than necessary */
            list->keys = keys;
            list->capacity = list->count;
        }
    }
}

void key_list_free(key_list *list)
{
    memory_free(list->keys);
    *list = (key_list){0};
}
