/* A round of the screen on the CPU: encodes the queries first, and proves at the end that no discarded row is a result. */
#include <math.h>
#include <string.h>

#include "base/integers.h"
#include "cpu/search/screen_state.h"
#include "device/certificate.h"

/* 65536 * 127 * 255 < 2^31: the sum times any factor it gets here fits, and so does a product that it is added to. */
static int32_t sum_of_codes(const int8_t *codes, int32_t count)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += codes[i];
    return sum;
}

void screen_code_group(const scan *s, int32_t group)
{
    const screen *sc = s->screen;
    int8_t *codes = sc->codes + (int64_t)group * GROUP * s->padded;
    for (int32_t q = 0; q < GROUP; q++) {
        const int32_t query = group * GROUP + q;
        if (query >= s->query_count) { /* a slot without a query keeps nothing */
            memset(codes + q * s->padded, 0, (size_t)s->padded);
            for (int32_t w = 0; w < s->workers; w++) {
                screen_limits *limits = &sc->workers[w].limits[group];
                limits->a[q] = limits->b_above[q] = limits->b_below[q] = limits->g[q] = 0.0f;
                limits->h[q] = INFINITY;
            }
            sc->rests[query] = 0.0f;
            if (sc->offsets)
                sc->offsets[query] = 0;
            continue;
        }
        sc->vectors[query] = s->isa->encode(s->queries + (int64_t)query * s->padded, s->padded, codes + q * s->padded);
        sc->vectors[query].norm = s->query_norms[query];
        sc->rests[query] = lead_rest(codes + q * s->padded, s->padded);
        if (sc->offsets)
            sc->offsets[query] = row_type_offset(s->job->type) * sum_of_codes(codes + q * s->padded, s->padded);
        atomic_init(&sc->shared_thresholds[query], NO_THRESHOLD);
        for (int32_t w = 0; w < s->workers; w++) {
            sc->workers[w].thresholds[query] = NO_THRESHOLD;
            sc->workers[w].fallback[query] = false;
        }
    }
    for (int32_t w = 0; w < s->workers; w++) {
        sc->workers[w].pause[group] = sc->workers[w].wait[group] = 0;
        sc->workers[w].without_threshold[group] = (uint8_t)min_i64(GROUP, s->query_count - group * GROUP);
    }
    sc->products->pack(codes, s->padded, sc->packed + group * sc->group_bytes);
    if (sc->lead_packed) {
        int8_t leading[GROUP * LEAD_CODES];
        lead_of_group(codes, s->padded, leading);
        sc->products->pack(leading, LEAD_CODES, sc->lead_packed + group * packed_group_bytes(sc->products, LEAD_CODES));
    }
}

/* Returns the best threshold that any worker had for this query, as the worst key with that score. */
static canon_key best_threshold(const scan *s, int32_t query)
{
    uint32_t best = NO_THRESHOLD;
    for (int32_t w = 0; w < s->workers; w++)
        if (s->screen->workers[w].thresholds[query] < best)
            best = s->screen->workers[w].thresholds[query];
    return (canon_key)best << 32 | UINT32_MAX;
}

void screen_prove(const scan *s, int32_t worker, int32_t query, canon_key last)
{
    const canon_key threshold = best_threshold(s, query);
    float *certificate = &s->counts[worker].certificate;
    s->screen->failed[query] = certificate_fails(threshold, last);
    if (!s->screen->failed[query])
        *certificate = fminf(*certificate, certificate_margin(s->job->metric, threshold, last));
}

bool screen_failed(const scan *s, int32_t query)
{
    return s->screen && s->screen->failed[query];
}

void screen_end_round(const scan *s)
{
    search_stats *stats = s->job->stats;
    bool discarded = false;
    if (!stats)
        return;
    for (int32_t w = 0; w < s->workers; w++)
        discarded |= s->counts[w].screened > s->counts[w].kept;
    for (int32_t w = 0; discarded && w < s->workers; w++)
        stats->certificate = fminf(stats->certificate, s->counts[w].certificate);
    for (int32_t q = 0; q < s->query_count; q++) {
        bool fallback = false;
        for (int32_t w = 0; w < s->workers; w++)
            fallback |= s->screen->workers[w].fallback[q];
        stats->fallback_queries += fallback;
        stats->repeated_queries += s->screen->failed[q];
        if (s->job->marks)
            s->job->marks[s->first_query + q] |=
                (uint8_t)((fallback ? MARK_FALLBACK : 0) | (s->screen->failed[q] ? MARK_REPEATED : 0));
    }
}
