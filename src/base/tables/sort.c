/* Sorting that can be stopped: qsort() for runs of some thousands of elements, which are then merged in pairs. Between steps it
 * looks at the token of the call. */
#include "base/tables/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/status.h"

enum { SORTED_AT_ONCE = 8192, LOOKED_EVERY = 1 << 18 };

static ww_status look(void)
{
    return cancel_asked() ? ww_fail(WW_CANCELLED, "sorting was cancelled") : WW_OK;
}

/* How elements are sorted. */
typedef struct sorting {
    size_t bytes;
    int (*compare)(const void *first, const void *second);
} sorting;

/* Merges two sorted neighbours of `from` into `to`; on a tie the first one's element comes first. */
static ww_status merge(sorting by, const char *from, size_t middle, size_t end, char *to)
{
    size_t a = 0, b = middle;
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && i < end; i++) {
        const bool first = b == end || (a < middle && by.compare(from + a * by.bytes, from + b * by.bytes) <= 0);
        memcpy(to + i * by.bytes, from + (first ? a++ : b++) * by.bytes, by.bytes);
        if (i % LOOKED_EVERY == 0)
            status = look();
    }
    return status;
}

/* Merges runs of `run` elements in pairs. */
static ww_status merge_all(sorting by, const char *from, char *to, size_t count, size_t run)
{
    ww_status status = WW_OK;
    for (size_t first = 0; status == WW_OK && first < count; first += 2 * run) {
        const size_t rest = count - first, end = rest < 2 * run ? rest : 2 * run;
        status = merge(by, from + first * by.bytes, run < end ? run : end, end, to + first * by.bytes);
    }
    return status;
}

ww_status sort_elements(void *elements, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
    ww_status status = WW_OK;
    for (size_t first = 0; status == WW_OK && first < count; first += SORTED_AT_ONCE) {
        const size_t rest = count - first;
        qsort((char *)elements + first * bytes, rest < SORTED_AT_ONCE ? rest : SORTED_AT_ONCE, bytes, compare);
        status = look();
    }
    if (status != WW_OK || count <= SORTED_AT_ONCE)
        return status;
    char *other = memory_alloc(count * bytes), *from = elements, *to = other;
    if (!other)
        return memory_failed("a sort", count * bytes);
    for (size_t run = SORTED_AT_ONCE; status == WW_OK && run < count; run *= 2) {
        status = merge_all((sorting){bytes, compare}, from, to, count, run);
        char *const merged = to;
        to = from;
        from = merged;
    }
    if (status == WW_OK && from != elements)
        memcpy(elements, from, count * bytes);
    memory_free(other);
    return status;
}
