/* Combines two lists of hits into one, by their ranks or by their scores.
 *
 * The hits of both lists are sorted by handle, so that those of the same row are adjacent, and then by the fused score. Sums
 * have two doubles in a fixed order, so the scores are the same everywhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/ranking/pick.h"

enum { RANK_CONSTANT = 60 };

STRUCT_INIT(ww_fuse, {.constant = RANK_CONSTANT, .weights = {1.0, 1.0}})

/* A row that is in one list or in both. */
typedef struct fused_hit {
    int64_t handle;
    int64_t hits[2]; /* its number in each list, -1 if it is not in that list */
    double score;
    ww_hit_parts parts;
} fused_hit;

static ww_status how_read(const ww_fuse *callers, ww_fuse *how)
{
    static const char function[] = "ww_results_fuse";
    ww_status status = ww_fuse_init(how, sizeof *how);
    if (status == WW_OK && callers)
        status = struct_read(how, sizeof *how, callers, function, "ww_fuse");
    if (status != WW_OK)
        return status;
    if (how->fusion != WW_FUSION_RANKS && how->fusion != WW_FUSION_SCORES)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: fusion is %d; it must be WW_FUSION_RANKS or WW_FUSION_SCORES", function,
                       (int)how->fusion);
    if (!(how->constant > 0.0) || !isfinite(how->constant))
        return ww_fail(WW_OUT_OF_RANGE, "%s: constant is %g; it must be more than 0 and finite", function, how->constant);
    for (int i = 0; i < 2; i++)
        if (!(how->weights[i] >= 0.0) || !isfinite(how->weights[i]))
            return ww_fail(WW_OUT_OF_RANGE, "%s: weight %d is %g; it must be 0 or more and finite", function, i,
                           how->weights[i]);
    return how->limit >= 0
               ? WW_OK
               : ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must not be negative", function, (long long)how->limit);
}

/* Returns the contribution of a list's hit number `i` to the fused score. */
static double share(const ww_fuse *how, int which, const float *scores, int64_t i, int64_t count)
{
    if (how->fusion == WW_FUSION_RANKS)
        return how->weights[which] / (how->constant + (double)(i + 1));
    const double best = (double)scores[0], worst = (double)scores[count - 1];
    return how->weights[which] * (best == worst ? 1.0 : ((double)scores[i] - worst) / (best - worst));
}

static int by_handle(const void *a, const void *b)
{
    const fused_hit *x = a, *y = b;
    return (x->handle > y->handle) - (x->handle < y->handle);
}

static int by_score(const void *a, const void *b)
{
    const fused_hit *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : by_handle(a, b);
}

/* Combines hits with the same handle. Returns the new number of hits. */
static int64_t unite(fused_hit *hits, int64_t count)
{
    int64_t kept = 0;
    qsort(hits, (size_t)count, sizeof *hits, by_handle);
    for (int64_t i = 0; i < count; i++) {
        if (kept == 0 || hits[kept - 1].handle != hits[i].handle) {
            hits[kept++] = hits[i];
            continue;
        }
        fused_hit *into = &hits[kept - 1];
        into->score += hits[i].score; /* a sum of two numbers does not depend on their order */
        for (int part = 0; part < 2; part++)
            if (hits[i].hits[part] >= 0) {
                into->hits[part] = hits[i].hits[part];
                into->parts.ranks[part] = hits[i].parts.ranks[part];
                into->parts.scores[part] = hits[i].parts.scores[part];
            }
    }
    return kept;
}

/* Fuses and sorts the hits of one query. */
static int64_t fuse_query(const ww_results *const lists[2], int64_t query, const ww_fuse *how, fused_hit *hits)
{
    int64_t count = 0;
    for (int part = 0; part < 2; part++) {
        const int64_t found = ww_results_count(lists[part], query), first = lists[part]->starts[query];
        for (int64_t i = 0; i < found; i++) {
            fused_hit *hit = &hits[count++];
            *hit = (fused_hit){.handle = lists[part]->handles[first + i],
                               .hits = {-1, -1},
                               .score = share(how, part, lists[part]->scores + first, i, found),
                               .parts = {.scores = {NAN, NAN}}};
            hit->hits[part] = first + i;
            hit->parts.ranks[part] = i + 1;
            hit->parts.scores[part] = lists[part]->scores[first + i];
        }
    }
    count = unite(hits, count);
    qsort(hits, (size_t)count, sizeof *hits, by_score);
    return how->limit > 0 && count > how->limit ? how->limit : count;
}

static ww_status fuse(const ww_results *const lists[2], const ww_fuse *how, ww_results **fused)
{
    const int64_t queries = lists[0]->query_count, room = results_hits(lists[0]) + results_hits(lists[1]);
    int64_t *starts = NULL;
    picked_hit *picked = NULL;
    ww_results *made = NULL;
    fused_hit *hits = memory_alloc(((size_t)room + 1) * sizeof *hits);
    ww_status status = hits ? picked_create(queries, room, &starts, &picked) : memory_failed("hits to fuse", (size_t)room);
    for (int64_t q = 0; status == WW_OK && q < queries; q++) {
        fused_hit *own = hits + starts[q];
        starts[q + 1] = starts[q] + fuse_query(lists, q, how, own);
        for (int64_t i = starts[q]; i < starts[q + 1]; i++) {
            const int part = hits[i].hits[0] >= 0 ? 0 : 1;
            picked[i] = (picked_hit){lists[part], hits[i].hits[part], (float)hits[i].score};
        }
    }
    if (status == WW_OK)
        status = results_pick(&(picked_hits){queries, starts, picked}, &made);
    if (status == WW_OK && !made->parts)
        status = results_parts(made);
    if (status == WW_OK && !made->proven && (lists[0]->proven || lists[1]->proven))
        status = results_proven(made);
    for (int64_t i = 0; status == WW_OK && i < results_hits(made); i++)
        made->parts[i] = hits[i].parts;
    memory_free(hits);
    memory_free(starts);
    memory_free(picked);
    if (status == WW_OK)
        *fused = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status ww_results_fuse(const ww_results *first, const ww_results *second, const ww_fuse *how, ww_results **fused)
{
    FLOAT_GUARD();
    const ww_results *const lists[2] = {first, second};
    ww_fuse read;
    if (!first || !second || !fused)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_results_fuse: %s is NULL", !first ? "first" : !second ? "second" : "fused");
    const ww_status status = how_read(how, &read);
    if (status != WW_OK)
        return status;
    if (first->query_count != second->query_count)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_results_fuse: the first results are of %lld queries, the second of %lld",
                       (long long)first->query_count, (long long)second->query_count);
    return fuse(lists, &read, fused);
}
