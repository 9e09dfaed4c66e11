/* Copies hits from results to new results. */
#include "vectors/ranking/pick.h"

#include <math.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/collection.h"

ww_status picked_create(int64_t query_count, int64_t room, int64_t **starts, picked_hit **hits)
{
    *starts = memory_alloc_zeroed((size_t)query_count + 1, sizeof **starts);
    *hits = memory_alloc_zeroed((size_t)room + 1, sizeof **hits);
    return *starts && *hits ? WW_OK : memory_failed("hits to rank", (size_t)room * sizeof **hits);
}

static uint32_t fetched_of(const ww_results *r)
{
    return (r->ids ? WW_FETCH_IDS : 0u) | (r->payloads ? WW_FETCH_PAYLOADS : 0u) | (r->texts ? WW_FETCH_TEXTS : 0u) |
           (r->vectors ? WW_FETCH_VECTORS : 0u) | (r->sparse ? WW_FETCH_SPARSE : 0u) | (r->multi ? WW_FETCH_MULTI : 0u);
}

/* Copies a text of a hit, if it has one. */
static ww_status copy_text(ww_results *to, int64_t *place, const ww_results *from, const int64_t *places, int64_t hit)
{
    if (!places || places[hit] < 0)
        return WW_OK;
    const char *text = from->text + places[hit];
    return results_put(to, place, text, strlen(text));
}

static ww_status copy_hit(ww_results *to, int64_t at, const picked_hit *picked)
{
    const ww_results *from = picked->from;
    ww_status status = to->ids ? copy_text(to, &to->ids[at], from, from->ids, picked->hit) : WW_OK;
    if (status == WW_OK && to->payloads)
        status = copy_text(to, &to->payloads[at], from, from->payloads, picked->hit);
    if (status == WW_OK && to->texts)
        status = copy_text(to, &to->texts[at], from, from->texts, picked->hit);
    if (status == WW_OK && to->sparse && from->sparse)
        status = results_put_sparse(to, at, &from->sparse[picked->hit]);
    if (status == WW_OK && to->multi && from->multi)
        status = results_put_multi(to, at, &from->multi[picked->hit]);
    if (to->vectors && from->vectors)
        memcpy(to->vectors + at * to->dim, from->vectors + picked->hit * to->dim, (size_t)to->dim * sizeof *to->vectors);
    else if (to->vectors)
        memset(to->vectors + at * to->dim, 0, (size_t)to->dim * sizeof *to->vectors);
    if (to->parts)
        to->parts[at] = from->parts ? from->parts[picked->hit] : (ww_hit_parts){.scores = {NAN, NAN}};
    return status;
}

ww_status results_pick(const picked_hits *picked, ww_results **results)
{
    const int64_t count = picked->starts[picked->query_count];
    ww_results *made = NULL;
    uint32_t fetch = 0;
    int32_t dim = 0;
    bool parts = false, by_lists = false;
    ww_status status = results_create(picked->query_count, count, &made);
    if (status != WW_OK)
        return status;
    memcpy(made->starts, picked->starts, (size_t)(picked->query_count + 1) * sizeof *made->starts);
    for (int64_t i = 0; i < count; i++) {
        const picked_hit *p = &picked->hits[i];
        made->rows[i] = p->from->rows[p->hit];
        made->handles[i] = p->from->handles[p->hit];
        made->scores[i] = p->score;
        fetch |= fetched_of(p->from);
        if (p->from->vectors && dim > 0 && dim != p->from->dim && status == WW_OK)
            status = ww_fail(WW_DIMENSION_MISMATCH, "the results have vectors of %d and of %d dimensions", dim, p->from->dim);
        dim = p->from->vectors ? p->from->dim : dim;
        parts = parts || p->from->parts;
        by_lists = by_lists || p->from->proven;
    }
    if (status == WW_OK)
        status = results_prepare(made, fetch, dim, 0);
    if (status == WW_OK && parts)
        status = results_parts(made);
    if (status == WW_OK && by_lists)
        status = results_proven(made); /* in another order no hit is proven */
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = copy_hit(made, i, &picked->hits[i]);
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status ww_results_pick(const ww_picked_hit *hits, int64_t count, ww_results **picked)
{
    FLOAT_GUARD();
    static const char function[] = "ww_results_pick";
    int64_t *starts = NULL;
    picked_hit *own = NULL;
    if (!picked || (!hits && count > 0))
        return fail_null(function, picked ? "hits" : "picked");
    ww_status status = count < 0
                           ? ww_fail(WW_OUT_OF_RANGE, "%s: count is %lld; it must not be negative", function, (long long)count)
                           : picked_create(1, count, &starts, &own);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const ww_picked_hit *p = &hits[i];
        if (p->hit < 0 || p->hit >= ww_results_count(p->results, p->query))
            status = ww_fail(WW_OUT_OF_RANGE, "%s: hit %lld does not exist", function, (long long)i);
        else
            own[i] = (picked_hit){p->results, p->results->starts[p->query] + p->hit, p->score};
    }
    if (status == WW_OK) {
        starts[1] = count;
        status = results_pick(&(picked_hits){1, starts, own}, picked);
    }
    memory_free(starts);
    memory_free(own);
    return status;
}
