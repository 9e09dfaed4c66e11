/* Counts the hits of queries that are better than everything in the lists that were not read, by the bounds of proof.c.
 *
 *   ivf_count_proven()   a round of queries, each with the lists that are ordered already
 *   prove()              goes through a query's lists after those that were read, nearest first, and stops when one bound
 *                        covers all that follow
 *   prove_open()         queries whose ordered lists did not decide: more lists are ordered, for many queries at once, as far
 *                        as they can make a difference
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

enum { OPEN_KEYS = 1 << 22 }; /* ordered lists of open queries at a time, at most: 32 MiB of keys */

/* The hits of a query, while they are compared with the unread lists. */
typedef struct proving {
    int64_t number; /* of the query in its round */
    proof_query query;
    const float *scores;
    int64_t hits;
    int64_t proven; /* hits that are proven so far */
    float reach;    /* of an open query: farther lists make no difference */
} proving;

static proof_list list_of_key(const ivf *index, canon_key key)
{
    return (proof_list){canon_key_row(key), canon_key_score(index->metric, key)};
}

static double better_bound(const ivf *index, double a, double b)
{
    return index->metric == CANON_L2 ? fmax(a, b) : fmin(a, b);
}

/* Compares with the query's ordered lists from number `i` on. Returns true if the other lists make no difference: no hit is
 * proven, or the worst proven hit is better than every row of farther lists. If a list's own bound excludes it, the other
 * bounds are not computed. */
static bool prove(const ivf_proofs *p, const key_list *order, int64_t i, proving *v)
{
    const ivf *index = p->index;
    for (; v->proven > 0 && i < order->count; i++) {
        const proof_list near = list_of_key(index, order->keys[0]);
        const proof_list list = list_of_key(index, order->keys[i]);
        if (proof_holds(index->metric, v->scores[v->proven - 1], proof_rest_bound(index, &v->query, p->extremes, list.score)))
            return true;
        double bound = proof_bound(index, &v->query, list.list, list.score);
        if (!proof_holds(index->metric, v->scores[v->proven - 1], bound))
            bound = better_bound(index, bound, proof_plane_bound(index, &v->query, near, list, v->scores[v->hits - 1]));
        while (v->proven > 0 && !proof_holds(index->metric, v->scores[v->proven - 1], bound))
            v->proven--;
    }
    return v->proven == 0 || order->count == index->nlist;
}

static proving begin_proving(const ivf_proofs *p, int64_t q)
{
    const search_job *round = p->round;
    const int64_t *rows = round->rows + q * round->k;
    proving v = {.number = q,
                 .query = proof_query_of(p->index, round->queries + q * round->query_stride),
                 .scores = round->scores + q * round->k};
    while (v.hits < round->k && rows[v.hits] >= 0)
        v.hits++;
    v.proven = v.hits;
    return v;
}

/* ---- open queries -------------------------------------------------------------------------------------------------------- */

static int by_reach(const void *a, const void *b)
{
    const float one = ((const proving *)a)->reach, other = ((const proving *)b)->reach;
    return (one > other) - (one < other);
}

/* Room for the open queries that are searched for at a time, and for their lists. */
typedef struct open_room {
    int64_t each;
    float *queries;
    key_list *order;
} open_room;

/* Orders the lists within reach of `count` open queries, and goes on with their proofs. */
static ww_status prove_some(const ivf_proofs *p, const open_room *room, proving *open, int64_t count, int64_t *proven)
{
    const search_job *round = p->round;
    float *queries = room->queries;
    key_list *order = room->order;
    search_job some = *round;
    some.queries = queries;
    some.query_stride = round->dim;
    some.query_count = count;
    for (int64_t i = 0; i < count; i++)
        memcpy(queries + i * round->dim, round->queries + open[i].number * round->query_stride,
               (size_t)round->dim * sizeof *queries);
    /* They are sorted: the first or the last has the widest reach. */
    const float widest = open[p->index->metric == CANON_L2 ? count - 1 : 0].reach;
    const ww_status status = ivf_order_lists(p->index, &some, widest, order);
    for (int64_t i = 0; i < count; i++) {
        if (status == WW_OK)
            (void)prove(p, &order[i], p->order[open[i].number].count, &open[i]);
        proven[open[i].number] = open[i].proven;
        key_list_free(&order[i]);
        order[i] = (key_list){0};
    }
    return status;
}

static ww_status prove_open(const ivf_proofs *p, proving *open, int64_t count, int64_t *proven)
{
    open_room room = {.each = min_i64(max_i64(OPEN_KEYS / p->index->nlist, 1), count)};
    const size_t bytes = (size_t)room.each * ((size_t)p->round->dim * sizeof *room.queries + sizeof *room.order);
    room.order = memory_alloc_zeroed(1, bytes);
    if (!room.order)
        return memory_failed("queries whose hits are proven", bytes);
    room.queries = (float *)(void *)(room.order + room.each);
    ww_status status = WW_OK;
    qsort(open, (size_t)count, sizeof *open, by_reach);
    for (int64_t i = 0; status == WW_OK && i < count; i += room.each)
        status = prove_some(p, &room, open + i, min_i64(room.each, count - i), proven);
    memory_free(room.order);
    return status;
}

/* ---- a round ------------------------------------------------------------------------------------------------------------- */

ww_status ivf_count_proven(const ivf_proofs *p, int64_t *proven)
{
    const int64_t count = p->round->query_count;
    int64_t open_count = 0;
    proving *open = memory_alloc((size_t)count * sizeof *open);
    if (!open)
        return memory_failed("the hits that are proven", (size_t)count * sizeof *open);
    for (int64_t q = 0; q < count; q++) {
        proving v = begin_proving(p, q);
        if (!prove(p, &p->order[q], p->starts[q + 1] - p->starts[q], &v)) {
            v.reach = proof_reach(p->index, &v.query, p->extremes, v.scores[v.proven - 1]);
            open[open_count++] = v;
        }
        proven[q] = v.proven;
    }
    const ww_status status = open_count > 0 ? prove_open(p, open, open_count, proven) : WW_OK;
    memory_free(open);
    return status;
}
