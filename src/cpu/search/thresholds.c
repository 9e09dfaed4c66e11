/* The k best rows of each query so far, and the score that a row must beat. Every worker has its own heaps;
 * limits.c derives the screen's limits from them. */
#include "cpu/search/range.h"
#include "cpu/search/screen_state.h"

bool has_limit(const scan *s, int32_t worker, int32_t query)
{
    return s->range ? s->range->bounded : topk_worst(heap_of(s, worker, query)) != CANON_KEY_WORST;
}

/* Workers read rows in ascending order, so a score that only equals the worst in the heap loses: the filter excludes it. */
void offer(const scan *s, int32_t worker, int32_t query, const float *sums, const float *norms, uint32_t first_row,
           uint64_t candidates)
{
    if (s->range) {
        range_offer(s, worker, query, sums, norms, first_row, candidates);
        return;
    }
    const int32_t metric = s->job->metric, k = s->job->k;
    canon_key *heap = heap_of(s, worker, query);
    bool changed = false;
    for (; candidates != 0; candidates &= candidates - 1) {
        const int32_t r = __builtin_ctzll(candidates);
        const float score = canon_score(metric, sums[r], s->query_norms[query], norms[r]);
        const canon_key key = canon_make_key(metric, score, first_row + (uint32_t)r);
        if (key < topk_worst(heap)) {
            topk_replace_worst(heap, k, key);
            changed = true;
        }
    }
    if (changed && topk_worst(heap) != CANON_KEY_WORST) {
        s->limits[(int64_t)worker * s->query_count + query] = filter_limit(metric, canon_key_score(metric, topk_worst(heap)));
        if (s->screen)
            screen_learn(s, worker, query, topk_worst(heap));
    }
}
