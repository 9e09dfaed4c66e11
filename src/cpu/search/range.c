/* Lists all rows within a bound. */
#include "cpu/search/range.h"

#include <math.h>

#include "base/memory.h"
#include "base/status.h"

/* Every cosine is larger than this, even after rounding. */
#define COSINE_ALL (-4.0f)

/* Filters admit scores strictly better than a limit: here the limit is the next score worse than the bound. */
range_scan range_of(const range_job *job)
{
    const int32_t metric = job->search.metric;
    range_scan made = {.job = job, .last = canon_make_key(metric, job->bound, UINT32_MAX)};
    if (metric == CANON_L2)
        made.bounded = job->bound < INFINITY;
    else
        made.bounded = job->bound > (metric == CANON_COSINE ? COSINE_ALL : -INFINITY);
    if (made.bounded)
        made.limit = filter_limit(metric, nextafterf(job->bound, metric == CANON_L2 ? INFINITY : -INFINITY));
    return made;
}

ww_status range_create(range_scan *range, const scan *s)
{
    const size_t count = (size_t)(s->workers - 1) * (size_t)s->round_queries;
    range->lists = memory_alloc_zeroed(count + 1, sizeof *range->lists);
    return range->lists ? WW_OK : memory_failed("a range search on cpu", (count + 1) * sizeof *range->lists);
}

void range_destroy(range_scan *range, const scan *s)
{
    const int64_t count = (int64_t)(s->workers - 1) * s->round_queries;
    for (int64_t i = 0; range->lists && i < count; i++)
        key_list_free(&range->lists[i]);
    memory_free(range->lists);
}

static key_list *list_of(const scan *s, int32_t worker, int32_t query)
{
    if (worker == 0)
        return &s->range->job->found[s->first_query + query];
    return &s->range->lists[(int64_t)(worker - 1) * s->round_queries + query];
}

void range_offer(const scan *s, int32_t worker, int32_t query, const float *sums, const float *norms, uint32_t first_row,
                 uint64_t candidates)
{
    const range_scan *range = s->range;
    key_list *list = list_of(s, worker, query);
    for (; candidates != 0; candidates &= candidates - 1) {
        const int32_t r = __builtin_ctzll(candidates);
        const float score = canon_score(s->job->metric, sums[r], s->query_norms[query], norms[r]);
        const canon_key key = canon_make_key(s->job->metric, score, first_row + (uint32_t)r);
        if (key > range->last)
            continue;
        list->total++;
        if (!key_list_add(list, range->job->limit, key))
            s->counts[worker].lost_bytes = (list->count + 1) * (int64_t)sizeof key;
    }
}

void range_finish(const scan *s, int32_t worker, int32_t query)
{
    const int64_t limit = s->range->job->limit;
    key_list *all = list_of(s, 0, query);
    for (int32_t w = 1; w < s->workers; w++) {
        key_list *some = list_of(s, w, query);
        if (!key_list_add_all(all, limit, some))
            s->counts[worker].lost_bytes = (all->count + some->count) * (int64_t)sizeof *all->keys;
        key_list_free(some);
    }
    key_list_finish(all, limit);
}

ww_status range_check(const scan *s)
{
    for (int32_t w = 0; w < s->workers; w++)
        if (s->counts[w].lost_bytes > 0)
            return memory_failed("the results of a range search", (size_t)s->counts[w].lost_bytes);
    return WW_OK;
}
