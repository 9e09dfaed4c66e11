/* The limits of the screen, computed from the worst of the k best known scores of a query.
 *
 * Every worker has its own limits. A worker that finds a better k-th score publishes it, and the others use it from their next
 * item on. Tests link wrong thresholds in here, to check that they are detected.
 */
#include "cpu/search/range.h"
#include "cpu/search/screen_state.h"

/* The limits are divided by the query's scale, which saves a multiplication per tested pair. With a scale of 0 they are NaN,
 * and keep every row. */
void screen_limits_set(screen_limits *to, int32_t q, const search_job *job, screen_vector v, uint32_t threshold)
{
    const float score = canon_key_score(job->metric, (canon_key)threshold << 32);
    const screen_limit limit = screen_limit_for(job->metric, canon_padded(job->dim), v, score);
    to->a[q] = limit.a / v.scale;
    to->b_above[q] = limit.b < 0.0f ? 0.0f : limit.b / v.scale;
    to->b_below[q] = limit.b < 0.0f ? limit.b / v.scale : 0.0f;
    to->g[q] = limit.g / v.scale;
    to->h[q] = limit.h / v.scale;
}

static void set_limit(const scan *s, screen_worker *w, int32_t query, uint32_t threshold)
{
    screen_limits_set(&w->limits[query / GROUP], query % GROUP, s->job, s->screen->vectors[query], threshold);
    w->without_threshold[query / GROUP] -= w->thresholds[query] == NO_THRESHOLD;
    w->thresholds[query] = threshold;
}

void screen_learn(const scan *s, int32_t worker, int32_t query, canon_key key)
{
    screen_worker *w = &s->screen->workers[worker];
    const uint32_t threshold = (uint32_t)(key >> 32);
    if (threshold < atomic_load_explicit(&s->screen->shared_thresholds[query], memory_order_relaxed))
        atomic_store_explicit(&s->screen->shared_thresholds[query], threshold, memory_order_relaxed);
    if (threshold < w->thresholds[query])
        set_limit(s, w, query, threshold);
}

void screen_learn_from_others(const scan *s, int32_t worker, int32_t begin, int32_t end)
{
    screen_worker *w = &s->screen->workers[worker];
    for (int32_t q = begin; q < end; q++) {
        const uint32_t shared = atomic_load_explicit(&s->screen->shared_thresholds[q], memory_order_relaxed);
        if (shared < w->thresholds[q])
            set_limit(s, w, q, shared);
    }
}

void set_range_limits(const scan *s, int32_t begin, int32_t end)
{
    for (int32_t w = 0; w < s->workers; w++)
        for (int32_t q = begin; q < end; q++) {
            s->limits[(int64_t)w * s->query_count + q] = s->range->limit;
            if (s->screen)
                set_limit(s, &s->screen->workers[w], q, (uint32_t)(s->range->last >> 32));
        }
}
