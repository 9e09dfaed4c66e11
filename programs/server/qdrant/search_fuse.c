/* Fusion: the hits of several searches become one list, in which a point is what its id says. */
#include <warpwave/ranking.h>

#include "base/memory.h"
#include "server/qdrant/search.h"

/* Makes results of what a search has found. */
static ww_status results_of(entry *e, search *s, kept_results *kept, ww_results **results)
{
    ww_picked_hit *hits = memory_alloc((size_t)(s->found_count + 1) * sizeof *hits);
    ww_status status = hits ? WW_OK : memory_failed("hits", (size_t)s->found_count * sizeof *hits);
    if (status == WW_OK && s->found_count > 0 && !s->found[0].results)
        status = search_complete(e, s, kept);
    for (int64_t i = 0; status == WW_OK && i < s->found_count; i++) {
        const found_point *f = &s->found[i];
        hits[i] = (ww_picked_hit){f->results, f->query, f->hit, (float)f->score};
    }
    if (status == WW_OK)
        status = ww_results_pick(hits, s->found_count, results);
    memory_free(hits);
    return status;
}

ww_status search_fuse(entry *e, search *s, kept_results *kept)
{
    ww_results **lists = memory_alloc_zeroed(s->child_count, sizeof *lists), *fused = NULL;
    ww_status status = lists ? WW_OK : memory_failed("lists", s->child_count * sizeof *lists);
    ww_fuse how = ww_fuse_default();
    how.fusion = s->kind == SEARCH_RRF ? WW_FUSION_SCALED_RANKS : WW_FUSION_DISTRIBUTIONS;
    how.constant = s->rank_constant - 1; /* ranks count from 0 in Qdrant's formula */
    how.weights = s->weights;
    how.limit = s->offset + s->limit;
    how.by_id = true;
    how.cancel = job_cancel();
    for (size_t c = 0; status == WW_OK && c < s->child_count; c++)
        status = results_of(e, &s->children[c], kept, &lists[c]);
    if (status == WW_OK)
        status = ww_results_fuse((const ww_results *const *)lists, (int64_t)s->child_count, &how, &fused);
    for (size_t c = 0; lists && c < s->child_count; c++)
        ww_results_destroy(lists[c]);
    memory_free(lists);
    return status == WW_OK ? search_keep(s, kept, fused) : status;
}
