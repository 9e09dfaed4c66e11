/* Combines lists of hits into one, by their ranks or by their scores.
 *
 * The hits of all lists are sorted by handle or id, so that those of the same row are adjacent, and then by the fused score. A
 * row's doubles are added in the order of the lists, so the scores are the same everywhere.
 */
#include <math.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/cancel.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/sort.h"
#include "vectors/collection.h"
#include "vectors/ranking/pick.h"

enum { RANK_CONSTANT = 60 };

STRUCT_INIT(ww_fuse, {.constant = RANK_CONSTANT})

/* A hit of one list, and after unite() a row of one or more lists. */
typedef struct fused_hit {
    int64_t handle;
    const char *id; /* NULL: rows are compared by handle */
    int64_t order;  /* in all lists, one after the other */
    int64_t list;   /* the first list that has it */
    int64_t hit;    /* its number in that list */
    int64_t again;  /* its number in the second list, if it was in the first, too; -1: it is not there */
    double score;
} fused_hit;

typedef struct fusing {
    const ww_results *const *lists;
    int64_t list_count;
    ww_fuse how;
} fusing;

static double weight_of(const fusing *f, int64_t list)
{
    return f->how.weights ? f->how.weights[list] : 1.0;
}

static ww_status how_check(const fusing *f)
{
    static const char function[] = "ww_results_fuse";
    const ww_fuse *how = &f->how;
    if (how->fusion < WW_FUSION_RANKS || how->fusion > WW_FUSION_DISTRIBUTIONS)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: fusion is %d; it must be a ww_fusion", function, (int)how->fusion);
    if (!(how->constant >= 0.0) || !isfinite(how->constant))
        return ww_fail(WW_OUT_OF_RANGE, "%s: constant is %g; it must be 0 or more and finite", function, how->constant);
    for (int64_t i = 0; i < f->list_count; i++)
        if (!(weight_of(f, i) >= 0.0) || !isfinite(weight_of(f, i)))
            return ww_fail(WW_OUT_OF_RANGE, "%s: weight %lld is %g; it must be 0 or more and finite", function, (long long)i,
                           weight_of(f, i));
    return how->limit >= 0
               ? WW_OK
               : ww_fail(WW_OUT_OF_RANGE, "%s: limit is %lld; it must not be negative", function, (long long)how->limit);
}

static ww_status lists_check(const fusing *f)
{
    static const char function[] = "ww_results_fuse";
    for (int64_t i = 0; i < f->list_count; i++) {
        const ww_results *list = f->lists[i];
        if (!list)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: list %lld is NULL", function, (long long)i);
        if (list->query_count != f->lists[0]->query_count)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: the first results are of %lld queries, list %lld of %lld", function,
                           (long long)f->lists[0]->query_count, (long long)i, (long long)list->query_count);
        if (f->how.by_id && results_hits(list) > 0 && !list->ids)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: list %lld has no ids; the query must fetch them", function, (long long)i);
    }
    return WW_OK;
}

/* A list's hits of one query, and what their shares need. */
typedef struct ranked_list {
    const float *scores;
    int64_t count;
    double weight, mean, deviation; /* of WW_FUSION_DISTRIBUTIONS; 0: all scores are equal, or there is only one */
} ranked_list;

static ranked_list list_of(const fusing *f, int64_t number, int64_t query)
{
    const ww_results *list = f->lists[number];
    ranked_list l = {
        .scores = list->scores + list->starts[query], .count = ww_results_count(list, query), .weight = weight_of(f, number)};
    double sum = 0.0, squares = 0.0;
    if (f->how.fusion != WW_FUSION_DISTRIBUTIONS || l.count < 2)
        return l;
    for (int64_t i = 0; i < l.count; i++)
        sum += (double)l.scores[i];
    l.mean = sum / (double)l.count;
    for (int64_t i = 0; i < l.count; i++)
        squares += ((double)l.scores[i] - l.mean) * ((double)l.scores[i] - l.mean);
    l.deviation = sqrt(squares / (double)(l.count - 1));
    if (l.scores[0] < l.scores[l.count - 1])
        l.deviation = -l.deviation; /* smaller scores are better */
    return l;
}

/* Returns the contribution of a list's hit number `i` to the fused score. */
static double share(const ww_fuse *how, const ranked_list *l, int64_t i)
{
    const double best = (double)l->scores[0], worst = (double)l->scores[l->count - 1], score = (double)l->scores[i];
    const double rank = (double)(i + 1);
    switch (how->fusion) {
    case WW_FUSION_SCALED_RANKS:
        return l->weight > 0.0 ? 1.0 / (how->constant + rank / l->weight) : 0.0;
    case WW_FUSION_SCORES:
        return l->weight * (best == worst ? 1.0 : (score - worst) / (best - worst));
    case WW_FUSION_DISTRIBUTIONS:
        return l->weight * (l->deviation == 0.0 ? 0.5 : 0.5 + (score - l->mean) / (6.0 * l->deviation));
    default:
        return l->weight / (how->constant + rank);
    }
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_rows(const fused_hit *a, const fused_hit *b)
{
    return a->id ? strcmp(a->id, b->id) : compare_numbers(a->handle, b->handle);
}

static int by_row(const void *a, const void *b)
{
    const fused_hit *x = a, *y = b;
    const int rows = compare_rows(x, y);
    return rows != 0 ? rows : compare_numbers(x->order, y->order);
}

static int by_score(const void *a, const void *b)
{
    const fused_hit *x = a, *y = b;
    if (x->score != y->score)
        return (x->score < y->score) - (x->score > y->score);
    return x->id ? compare_numbers(x->order, y->order) : compare_numbers(x->handle, y->handle);
}

/* Combines hits of the same row. `count` becomes the number of rows. */
static ww_status unite(fused_hit *hits, int64_t *count)
{
    int64_t kept = 0;
    const ww_status status = sort_elements(hits, (size_t)*count, sizeof *hits, by_row);
    for (int64_t i = 0; status == WW_OK && i < *count; i++) {
        if (kept == 0 || compare_rows(&hits[kept - 1], &hits[i]) != 0) {
            hits[kept++] = hits[i];
            continue;
        }
        hits[kept - 1].score += hits[i].score;
        if (hits[kept - 1].list == 0 && hits[i].list == 1)
            hits[kept - 1].again = hits[i].hit;
    }
    *count = kept;
    return status;
}

/* Fuses and sorts the hits of one query. `count` becomes their number. */
static ww_status fuse_query(const fusing *f, int64_t query, fused_hit *hits, int64_t *count)
{
    int64_t order = 0;
    *count = 0;
    for (int64_t n = 0; n < f->list_count; n++) {
        const ww_results *list = f->lists[n];
        const ranked_list l = list_of(f, n, query);
        for (int64_t i = 0; i < l.count; i++, order++) {
            const int64_t hit = list->starts[query] + i;
            const char *id = f->how.by_id ? ww_results_id(list, query, i) : NULL;
            if (!f->how.by_id || id)
                hits[(*count)++] = (fused_hit){list->handles[hit], id, order, n, hit, -1, share(&f->how, &l, i)};
        }
    }
    ww_status status = unite(hits, count);
    if (status == WW_OK)
        status = sort_elements(hits, (size_t)*count, sizeof *hits, by_score);
    if (f->how.limit > 0 && *count > f->how.limit)
        *count = f->how.limit;
    return status;
}

/* Stores where each hit was in the two lists. */
static ww_status mark_parts(const fusing *f, const fused_hit *hits, ww_results *made)
{
    memory_free(made->parts); /* those of lists that were fused themselves */
    made->parts = NULL;
    const ww_status status = f->list_count == 2 ? results_parts(made) : WW_OK;
    for (int64_t q = 0; made->parts && q < made->query_count; q++)
        for (int64_t i = made->starts[q]; i < made->starts[q + 1]; i++) {
            ww_hit_parts *parts = &made->parts[i];
            const int64_t at[2] = {hits[i].list == 0 ? hits[i].hit : -1, hits[i].list == 1 ? hits[i].hit : hits[i].again};
            for (int part = 0; part < 2; part++) {
                const ww_results *list = f->lists[part];
                parts->ranks[part] = at[part] < 0 ? 0 : at[part] - list->starts[q] + 1;
                parts->scores[part] = at[part] < 0 ? NAN : list->scores[at[part]];
            }
        }
    return status;
}

static ww_status fuse(const fusing *f, ww_results **fused)
{
    const int64_t queries = f->lists[0]->query_count;
    int64_t *starts = NULL, room = 0, count = 0;
    picked_hit *picked = NULL;
    ww_results *made = NULL;
    bool by_lists = false;
    for (int64_t i = 0; i < f->list_count; i++) {
        room += results_hits(f->lists[i]);
        by_lists = by_lists || f->lists[i]->proven;
    }
    fused_hit *hits = memory_alloc(((size_t)room + 1) * sizeof *hits);
    ww_status status = hits ? picked_create(queries, room, &starts, &picked) : memory_failed("hits to fuse", (size_t)room);
    for (int64_t q = 0; status == WW_OK && q < queries; q++) {
        fused_hit *own = hits + starts[q];
        status = fuse_query(f, q, own, &count);
        for (int64_t i = 0; i < count; i++)
            picked[starts[q] + i] = (picked_hit){f->lists[own[i].list], own[i].hit, (float)own[i].score};
        starts[q + 1] = starts[q] + count;
    }
    if (status == WW_OK)
        status = results_pick(&(picked_hits){queries, starts, picked}, &made);
    if (status == WW_OK)
        status = mark_parts(f, hits, made);
    if (status == WW_OK && !made->proven && by_lists)
        status = results_proven(made);
    memory_free(hits);
    memory_free(starts);
    memory_free(picked);
    if (status == WW_OK)
        *fused = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status ww_results_fuse(const ww_results *const *lists, int64_t list_count, const ww_fuse *how, ww_results **fused)
{
    FLOAT_GUARD();
    fusing f = {lists, list_count, {0}};
    if (!lists || !fused)
        return fail_null("ww_results_fuse", lists ? "fused" : "lists");
    if (list_count < 1)
        return ww_fail(WW_OUT_OF_RANGE, "ww_results_fuse: list_count is %lld; it must be 1 or more", (long long)list_count);
    ww_status status = ww_fuse_init(&f.how, sizeof f.how);
    if (status == WW_OK && how)
        status = struct_read(&f.how, sizeof f.how, how, "ww_results_fuse", "ww_fuse");
    if (status == WW_OK)
        status = how_check(&f);
    if (status == WW_OK)
        status = lists_check(&f);
    CANCEL_BY(f.how.cancel);
    return status == WW_OK ? fuse(&f, fused) : status;
}
