/* ww_cluster_query(): searches every shard and sends the hits among the results to the ranks that get the answer.
 *
 * Ids, payloads and vectors are copied by the shard's own query, under its lock, and sent only for hits that are among the
 * results of all ranks: the keys of the nearest are merged on every rank first. All hits of a range are sent.
 */
#include "mpi/lists.h"
#include "mpi/records.h"
#include "mpi/search.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"

typedef struct own_hits {
    ww_results *results;
    ww_search_stats stats;
    int64_t *counts;         /* for each query: how many of its first hits to send */
    rank_key *mine, *merged; /* keys of the nearest: k per query */
    int64_t rows_found;
    lists_plan plan;
} own_hits;

static int64_t rows_above(const ww_results *results)
{
    int64_t end = 0;
    for (int64_t q = 0; q < ww_results_query_count(results); q++)
        for (int64_t i = 0; i < ww_results_count(results, q); i++)
            end = max_i64(end, ww_results_rows(results, q)[i] + 1);
    return end;
}

/* ---- sending
   ---------------------------------------------------------------------------------------------------------------- */

/* Computes where each rank's bytes will be, and allocates memory for them on ranks that need them. */
static ww_status take_room(cluster_call *call, int64_t *starts, unsigned char **room)
{
    const ww_cluster *c = call->cluster;
    starts[0] = 0;
    for (int32_t r = 0; r < c->ranks; r++)
        starts[r + 1] = starts[r] + c->reports[r].bytes;
    return answers_here(c, (ww_answer)call->report.answer)
               ? call_array(call, starts[c->ranks], 1, "the results of all ranks", room)
               : WW_OK;
}

static ww_status exchange(cluster_call *call, const ww_query *s, const own_hits *own, ww_results **results)
{
    ww_cluster *c = call->cluster;
    const records_own sent = {own->results, own->counts, s->fetch};
    unsigned char *packed = NULL, *room = NULL;
    int64_t *starts = NULL;
    ww_status status = records_pack(call, &sent, &packed, &call->report.bytes);
    if (status == WW_OK)
        status = call_array(call, (int64_t)c->ranks + 1, sizeof *starts, "the results of all ranks", &starts);
    status = call_agree(call, status);
    if (status != WW_OK || !starts)
        return status;
    status = call_agree(call, take_room(call, starts, &room));
    if (status == WW_OK)
        status = cluster_gather(c, &(gathering){packed, starts, room, call->report.answer == WW_ANSWER_ALL});
    if (status != WW_OK)
        return status;
    const bool range = s->mode == WW_QUERY_RANGE;
    const records_all all = {room, starts, s->query_count, range ? s->limit : s->k, s->fetch, range};
    if (answers_here(c, (ww_answer)call->report.answer))
        status = records_merge(call, &all, results);
    if (status == WW_OK && *results)
        status = lists_prove(call, &own->plan, s, *results);
    status = call_agree(call, status);
    if (status != WW_OK) {
        ww_results_destroy(*results);
        *results = NULL;
    }
    return status;
}

/* ---- choosing hits
   ---------------------------------------------------------------------------------------------------------- */

/* Allocates everything that is needed until the hits are packed, so that nothing can fail between exchanges. */
static ww_status take_lists(cluster_call *call, const ww_query *s, own_hits *own)
{
    const int64_t places = s->mode == WW_QUERY_NEAREST ? s->query_count * s->k : 0;
    if (s->query_count > INT64_MAX / WW_K_MAX / (int64_t)sizeof(rank_key))
        return memory_failed("the keys of a query over ranks", SIZE_MAX / 2);
    ww_status status = call_array(call, places, sizeof *own->mine, "the keys of a query over ranks", &own->mine);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *own->merged, "the keys of a query over ranks", &own->merged);
    if (status == WW_OK)
        status = call_array(call, s->query_count, sizeof *own->counts, "the keys of a query over ranks", &own->counts);
    return status;
}

static void make_keys(const ww_cluster *c, const ww_query *s, const ww_results *results, rank_key *keys)
{
    for (int64_t q = 0; q < s->query_count; q++) {
        const int64_t count = ww_results_count(results, q);
        for (int64_t i = 0; i < s->k; i++)
            keys[q * s->k + i] =
                i < count ? rank_key_make(c->metric, ww_results_scores(results, q)[i], c->rank, ww_results_rows(results, q)[i])
                          : RANK_KEY_NONE;
    }
}

/* A rank's hits among the best of all ranks are its own first hits. */
static void count_winners(const ww_cluster *c, const ww_query *s, const own_hits *own)
{
    for (int64_t q = 0; q < s->query_count; q++) {
        own->counts[q] = 0;
        for (int64_t i = q * s->k; i < (q + 1) * s->k; i++)
            own->counts[q] += !rank_key_is_none(own->merged[i]) && rank_key_rank(own->merged[i]) == c->rank;
    }
}

static ww_status search_own(cluster_call *call, ww_query *query, own_hits *own)
{
    query->stats = &own->stats;
    ww_status status = take_lists(call, query, own);
    if (status == WW_OK)
        status = lists_query(call, &own->plan, query, &own->results);
    if (status != WW_OK)
        return status;
    own->rows_found = rows_above(own->results);
    if (query->mode == WW_QUERY_NEAREST)
        make_keys(call->cluster, query, own->results, own->mine);
    for (int64_t q = 0; q < query->query_count; q++)
        own->counts[q] = ww_results_count(own->results, q);
    return WW_OK;
}

static ww_status find_hits(cluster_call *call, const ww_query *given, ww_answer answer, ww_results **results)
{
    ww_cluster *c = call->cluster;
    ww_query query = {0};
    own_hits own = {.stats = ww_search_stats_default()};
    ww_status status = struct_read(&query, sizeof query, given, call->function, "ww_query");
    ww_search_stats *callers_stats = query.stats;
    if (status == WW_OK && !results)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: results is NULL", call->function);
    status = search_open(call, &query, answer, status);
    if (status == WW_OK)
        status = lists_plan_make(call, &query, &own.plan);
    if (status != WW_OK || !results)
        return status;
    status = search_own(call, &query, &own);
    status = search_agree(call, status, &own.stats, own.rows_found);
    if (status == WW_OK && query.mode == WW_QUERY_NEAREST) {
        status = cluster_reduce(c, &(reduction){own.mine, own.merged, query.query_count, query.k});
        if (status == WW_OK && own.counts)
            count_winners(c, &query, &own);
    }
    if (status == WW_OK && own.counts)
        status = exchange(call, &query, &own, results);
    ww_results_destroy(own.results);
    if (status == WW_OK)
        search_stats_write(call, callers_stats);
    return status;
}

ww_status ww_cluster_query(ww_cluster *cluster, const ww_query *query, ww_answer answer, ww_results **results)
{
    FLOAT_GUARD();
    cluster_call call;
    if (results)
        *results = NULL;
    ww_status status = call_begin(&call, cluster, CALL_QUERY);
    if (status != WW_OK)
        return status;
    status = find_hits(&call, query, answer, results);
    call_end(&call);
    return status;
}
