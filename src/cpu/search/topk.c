/* The heap of the k best keys. */
#include "cpu/search/topk.h"

/* Moves `key` down from the top of the first `count` keys to its place. */
static void sink(canon_key *heap, int32_t count, canon_key key)
{
    int32_t at = 0;
    for (int32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

void topk_replace_worst(canon_key *heap, int32_t k, canon_key key)
{
    sink(heap, k, key);
}

void topk_merge(canon_key *heap, const canon_key *other, int32_t k)
{
    for (int32_t i = 0; i < k; i++)
        if (other[i] < heap[0])
            sink(heap, k, other[i]);
}

void topk_sort(canon_key *heap, int32_t k)
{
    for (int32_t last = k - 1; last > 0; last--) {
        const canon_key key = heap[last];
        heap[last] = heap[0];
        sink(heap, last, key);
    }
}
