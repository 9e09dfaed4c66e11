/* Maximal marginal relevance, and reordering by scores that the caller has computed.
 *
 * Each chosen hit costs one score for each remaining hit: candidates x chosen scores in all, which ww_score() computes with the
 * same bits as every device. Among equal values the earlier hit is chosen, so the order is the same everywhere.
 */
#include <math.h>
#include <stdlib.h>

#include <warpwave/multi.h>
#include <warpwave/ranking.h>
#include <warpwave/sparse.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/ranking/pick.h"

STRUCT_INIT(ww_diversity, {.lambda = 0.5})

static double similarity(ww_metric metric, float score)
{
    return metric == WW_L2 ? -(double)score : (double)score;
}

typedef struct candidate {
    int64_t hit;
    double relevance;
    double nearest; /* the largest similarity to a chosen hit */
    bool chosen;
} candidate;

typedef struct choosing {
    const ww_results *results;
    const ww_diversity *how;
    candidate *candidates;
} choosing;

static const float *vector_of(const choosing *c, int64_t hit)
{
    return c->results->vectors + hit * c->results->dim;
}

/* The similarity of two hits. */
static ww_status compare_hits(const choosing *c, int64_t a, int64_t b, double *alike)
{
    const ww_results *r = c->results;
    float score = 0.0f;
    ww_status status = WW_OK;
    if (c->how->similarity == WW_FETCH_SPARSE) {
        status = ww_sparse_score(&r->sparse[a], &r->sparse[b], &score, NULL);
    } else if (c->how->similarity == WW_FETCH_MULTI) {
        if (r->multi[a].count > 0 && r->multi[b].count > 0)
            status = ww_multi_score(c->how->metric, &r->multi[a], &r->multi[b], &score);
    } else {
        status = ww_score(c->how->metric, vector_of(c, a), vector_of(c, b), r->dim, &score);
        *alike = similarity(c->how->metric, score);
        return status;
    }
    *alike = (double)score;
    return status;
}

static ww_status candidates_read(const choosing *c, int64_t query, int64_t count)
{
    const ww_results *r = c->results;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const int64_t hit = r->starts[query] + i;
        float score = r->scores[hit];
        if (c->how->queries)
            status = ww_score(c->how->metric, c->how->queries + query * r->dim, vector_of(c, hit), r->dim, &score);
        const double relevance = c->how->similarity == WW_FETCH_SPARSE ? (double)score : similarity(c->how->metric, score);
        c->candidates[i] = (candidate){.hit = hit, .relevance = relevance, .nearest = -INFINITY, .chosen = false};
    }
    return status;
}

static double value_of(const candidate *one, double lambda, bool first)
{
    return lambda * one->relevance - (first ? 0.0 : (1.0 - lambda) * one->nearest);
}

static ww_status choose(const choosing *c, int64_t count, int64_t wanted, picked_hit *picked)
{
    ww_status status = WW_OK;
    for (int64_t n = 0; status == WW_OK && n < wanted; n++) {
        candidate *best = NULL;
        for (int64_t i = 0; i < count; i++) {
            candidate *one = &c->candidates[i];
            if (!one->chosen && (!best || value_of(one, c->how->lambda, n == 0) > value_of(best, c->how->lambda, n == 0)))
                best = one;
        }
        if (!best)
            break;
        best->chosen = true;
        picked[n] = (picked_hit){c->results, best->hit, c->results->scores[best->hit]};
        for (int64_t i = 0; status == WW_OK && n + 1 < wanted && i < count; i++) {
            double alike = 0.0;
            if (c->candidates[i].chosen)
                continue;
            status = compare_hits(c, best->hit, c->candidates[i].hit, &alike);
            c->candidates[i].nearest = fmax(c->candidates[i].nearest, alike);
        }
    }
    return status;
}

static ww_status how_check(const ww_results *results, const ww_diversity *how)
{
    static const char function[] = "ww_results_diversify";
    if (!ww_metric_name(how->metric))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: metric is %d; it must be WW_COSINE, WW_L2 or WW_DOT", function,
                       (int)how->metric);
    if (!(how->lambda >= 0.0 && how->lambda <= 1.0))
        return ww_fail(WW_OUT_OF_RANGE, "%s: lambda is %g; it must be 0 to 1", function, how->lambda);
    if (how->limit < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must not be negative", function, (long long)how->limit);
    const uint32_t what = how->similarity;
    if (what != 0 && what != WW_FETCH_VECTORS && what != WW_FETCH_SPARSE && what != WW_FETCH_MULTI)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: similarity is %u; it must be 0, WW_FETCH_VECTORS, _SPARSE or _MULTI", function,
                       what);
    if (how->queries && (what == WW_FETCH_SPARSE || what == WW_FETCH_MULTI))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: queries are dense vectors, which the similarity does not compare", function);
    const bool there = what == WW_FETCH_SPARSE  ? results->sparse != NULL
                       : what == WW_FETCH_MULTI ? results->multi != NULL
                                                : results->vectors != NULL;
    if (results_hits(results) > 0 && !there)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the results have no vectors to compare; the query must fetch them", function);
    for (int64_t i = 0; i < results_hits(results); i++)
        if (results->rows[i] < 0)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: hit %lld is an entry that was not found", function, (long long)i);
    return WW_OK;
}

ww_status ww_results_diversify(const ww_results *results, const ww_diversity *how, ww_results **diverse)
{
    FLOAT_GUARD();
    static const char function[] = "ww_results_diversify";
    ww_diversity read;
    int64_t *starts = NULL;
    picked_hit *picked = NULL;
    if (!results || !how || !diverse)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, !results ? "results" : !how ? "how" : "diverse");
    ww_status status = struct_read(&read, sizeof read, how, function, "ww_diversity");
    if (status == WW_OK)
        status = how_check(results, &read);
    if (status != WW_OK)
        return status;
    const int64_t room = results_hits(results);
    choosing c = {results, &read, memory_alloc(((size_t)room + 1) * sizeof *c.candidates)};
    status = c.candidates ? picked_create(results->query_count, room, &starts, &picked)
                          : memory_failed("hits to rank", (size_t)room * sizeof *c.candidates);
    for (int64_t q = 0; status == WW_OK && q < results->query_count; q++) {
        const int64_t count = ww_results_count(results, q);
        const int64_t wanted = read.limit > 0 ? min_i64(read.limit, count) : count;
        status = candidates_read(&c, q, count);
        if (status == WW_OK)
            status = choose(&c, count, wanted, picked + starts[q]);
        starts[q + 1] = starts[q] + wanted;
    }
    if (status == WW_OK)
        status = results_pick(&(picked_hits){results->query_count, starts, picked}, diverse);
    memory_free(c.candidates);
    memory_free(starts);
    memory_free(picked);
    return status;
}

/* ---- scores of the caller
   --------------------------------------------------------------------------------------------------- */

/* Larger scores first; equal ones keep their order. */
static int by_new_score(const void *a, const void *b)
{
    const picked_hit *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x->hit > y->hit) - (x->hit < y->hit);
}

ww_status ww_results_rerank(const ww_results *results, const float *scores, int64_t limit, ww_results **reranked)
{
    FLOAT_GUARD();
    static const char function[] = "ww_results_rerank";
    int64_t *starts = NULL;
    picked_hit *picked = NULL;
    if (!results || !scores || !reranked)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, !results ? "results" : !scores ? "scores" : "reranked");
    if (limit < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must not be negative", function, (long long)limit);
    for (int64_t i = 0; i < results_hits(results); i++)
        if (!isfinite(scores[i]))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: score %lld is not finite", function, (long long)i);
    ww_status status = picked_create(results->query_count, results_hits(results), &starts, &picked);
    for (int64_t q = 0; status == WW_OK && q < results->query_count; q++) {
        const int64_t count = ww_results_count(results, q);
        picked_hit *own = picked + starts[q];
        for (int64_t i = 0; i < count; i++)
            own[i] = (picked_hit){results, results->starts[q] + i, scores[results->starts[q] + i]};
        qsort(own, (size_t)count, sizeof *own, by_new_score);
        starts[q + 1] = starts[q] + (limit > 0 ? min_i64(limit, count) : count);
    }
    if (status == WW_OK)
        status = results_pick(&(picked_hits){results->query_count, starts, picked}, reranked);
    memory_free(starts);
    memory_free(picked);
    return status;
}
