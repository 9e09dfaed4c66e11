/* Ranking: new results from results. The functions fuse lists into one, thin out similar hits, group hits by a field of their
 * payloads, order them by scores that the caller has computed, or take those that the caller has picked.
 *
 * Everything here depends only on the results, for collections in memory and in stores. The order is the same on
 * every machine: equal values are ordered by handle when lists are fused, and otherwise stay in the order in which they came.
 * New results are copies with everything that was fetched for the hits that stay; the given results stay as they are. Functions
 * refuse NULL and fail without memory; none waits, except ww_collection_rank(), which searches.
 */
#ifndef WARPWAVE_RANKING_H
#define WARPWAVE_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/results.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_DIVERSITY_MAX 2048 /* hits that are compared with each other */

/* What the score of a fused hit is: the sum, over the lists that have it, of */
typedef enum ww_fusion {
    WW_FUSION_RANKS = 0, /* weight / (constant + rank), ranks from 1: reciprocal rank fusion */
    WW_FUSION_SCORES =
        1, /* weight * the hit's score, scaled so that the list's best is 1 and its worst is 0; 1 if they are equal */
    WW_FUSION_SCALED_RANKS = 2, /* 1 / (constant + rank / weight); 0 if the weight is 0 */
    /* weight * (0.5 + (score - mean) / (6 * deviation)) with the list's mean and its sample standard deviation, negated if
     * smaller scores are better; weight * 0.5 if all scores are equal: distribution-based score fusion */
    WW_FUSION_DISTRIBUTIONS = 3
} ww_fusion;

/* How lists become one. */
typedef struct ww_fuse {
    size_t struct_size;
    ww_fusion fusion;
    double constant;       /* of WW_FUSION_RANKS and WW_FUSION_SCALED_RANKS: 60 by default; 0 or more */
    const double *weights; /* one per list, finite, not negative; NULL: 1 each */
    int64_t limit;         /* at most this many hits per query; 0: all */
    bool by_id;            /* hits with the same id are one hit, for results of different collections; else those with the same
                              handle */
    const ww_cancel *cancel; /* as in ww_query */
} ww_fuse;

/* A hit of other results, and the score that it gets. */
typedef struct ww_picked_hit {
    const ww_results *results;
    int64_t query, hit;
    float score;
} ww_picked_hit;

/* Maximal marginal relevance: of the remaining hits, the next is the one with the largest
 *     lambda * relevance - (1 - lambda) * (the largest similarity to a hit that was chosen before)
 * where relevance and similarity are scores of the metric, for l2 the negative distance. */
typedef struct ww_diversity {
    size_t struct_size;
    ww_metric metric;     /* of the collection */
    double lambda;        /* 0 to 1; 1 orders by relevance only. 0.5 by default */
    int64_t limit;        /* hits of each query at most; 0: all */
    const float *queries; /* one vector of the results' dimension per query, one after the other: relevance is the score
                             with it. NULL: relevance is the hit's own score */
    uint32_t similarity;  /* which vectors are compared: WW_FETCH_VECTORS, or 0; WW_FETCH_SPARSE or WW_FETCH_MULTI, of which a
                             hit may have none: its similarity is 0 then. Without `queries` */
} ww_diversity;

/* Groups by a field of the payloads. */
typedef struct ww_grouping {
    size_t struct_size;
    const char *field; /* "source", or "author.name" for a field of an object */
    int64_t groups;    /* at most this many groups per query; 10 by default */
    int64_t size;      /* at most this many hits per group; 1 by default */
} ww_grouping;

/* device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_fuse_init(void *value, size_t struct_size);
WW_API ww_status ww_diversity_init(void *value, size_t struct_size);
WW_API ww_status ww_grouping_init(void *value, size_t struct_size);

static inline ww_fuse ww_fuse_default(void)
{
    ww_fuse value;
    ww_fuse_init(&value, sizeof value);
    return value;
}
static inline ww_diversity ww_diversity_default(void)
{
    ww_diversity value;
    ww_diversity_init(&value, sizeof value);
    return value;
}
static inline ww_grouping ww_grouping_default(void)
{
    ww_grouping value;
    ww_grouping_init(&value, sizeof value);
    return value;
}

/* Fuses lists query by query. Scores are those of the fusion, best first; equal ones are ordered by handle, or with `by_id` in
 * the order of the lists. What was fetched for a hit comes from the first list that has it. If there are two lists,
 * ww_results_parts() has the rank and the score in each. `how` may be NULL. Refuses results of different numbers of queries, or
 * with vectors of different dimensions, and with `by_id` results without ids (WW_FETCH_IDS), unless there are no hits. */
WW_API ww_status ww_results_fuse(const ww_results *const *lists, int64_t list_count, const ww_fuse *how, ww_results **fused);

/* Makes results of one query from hits of any results, in this order, with everything that was fetched for them. Refuses hits
 * that do not exist, and vectors of different dimensions. */
WW_API ww_status ww_results_pick(const ww_picked_hit *hits, int64_t count, ww_results **picked);

/* Orders the hits of each query by maximal marginal relevance; scores stay as they are. Refuses results without the vectors
 * that are compared, unless there are no hits. */
WW_API ww_status ww_results_diversify(const ww_results *results, const ww_diversity *how, ww_results **diverse);

/* Orders the hits of each query by groups: those whose payloads have the same value in the field come together, the group with
 * the best hit first, the best hit of a group first. A hit without the field, and one whose field is null, a list or an object,
 * is left out. Refuses results without payloads (WW_FETCH_PAYLOADS), unless there are no hits. */
WW_API ww_status ww_results_group(const ww_results *results, const ww_grouping *how, ww_results **grouped);

/* Gives each hit a new score, one query after the other, and orders each query by them, larger first; equal ones keep their
 * order. `limit` is how many hits of each query stay; 0: all. Refuses scores that are not finite. */
WW_API ww_status ww_results_rerank(const ww_results *results, const float *scores, int64_t limit, ww_results **reranked);

/* Searches as ww_collection_query() does and thins out or groups what it finds; give one of `diversity` and `grouping`, and
 * NULL for the other. With a diversity, it finds `candidates` hits per query (0: 100, or four times k if that is more; at most
 * WW_DIVERSITY_MAX) and chooses k of them; the diversity's limit and metric are ignored. With a grouping, it examines as many
 * hits as are needed to fill the groups, up to all rows, or up to 2,048 hits of a search by words; k is ignored. Only for
 * WW_QUERY_NEAREST. May wait for a writer. */
WW_API ww_status ww_collection_rank(ww_collection *collection, const ww_query *query, const ww_diversity *diversity,
                                    const ww_grouping *grouping, int64_t candidates, ww_results **results);

#ifdef __cplusplus
}
#endif

#endif
