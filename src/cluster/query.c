/* ww_cluster_query() and ww_cluster_range(): a search of every shard, of which the hits that count travel to who asked.
 *
 * Ids, payloads and vectors are copied by the shard's own query, under its lock, and only those of hits that are among the
 * results of all ranks are sent: of a query the keys are merged on every rank first. Hits of a range search are all sent.
 */
#include "cluster/records.h"
#include "cluster/search.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/results.h"

typedef struct own_hits {
    ww_results *results;
    ww_search_stats stats;
    int64_t *counts; /* of a query: the hits to send */
    int64_t rows_found;
} own_hits;

static int64_t rows_above(const ww_results *results)
{
    int64_t end = 0;
    for (int64_t q = 0; q < ww_results_query_count(results); q++)
        for (int64_t i = 0; i < ww_results_count(results, q); i++)
            end = max_i64(end, ww_results_rows(results, q)[i] + 1);
    return end;
}

/* ---- sending what counts --------------------------------------------------------------------------------------------------
 */

/* Where each rank's bytes will be, and memory for them where they are wanted. */
static ww_status take_room(cluster_call *call, const rank_search *s, int64_t *starts, unsigned char **room)
{
    const ww_cluster *c = call->cluster;
    starts[0] = 0;
    for (int32_t r = 0; r < c->ranks; r++)
        starts[r + 1] = starts[r] + c->reports[r].bytes;
    return answers_here(c, s->answer) ? call_array(call, starts[c->ranks], 1, "the results of all ranks", room) : WW_OK;
}

static ww_status exchange(cluster_call *call, const rank_search *s, const own_hits *own, ww_results **results)
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
    status = call_agree(call, take_room(call, s, starts, &room));
    if (status == WW_OK)
        status = cluster_gather(c, &(gathering){packed, starts, room, s->answer == WW_ANSWER_ALL});
    if (status != WW_OK)
        return status;
    const bool ranged = call->report.call == CALL_RANGE;
    const records_all all = {room, starts, s->query_count, ranged ? s->limit : s->k, s->fetch, ranged};
    if (answers_here(c, s->answer))
        status = records_merge(call, &all, results);
    status = call_agree(call, status);
    if (status != WW_OK) {
        ww_results_destroy(*results);
        *results = NULL;
    }
    return status;
}

/* ---- query ----------------------------------------------------------------------------------------------------------------
 */

typedef struct key_lists {
    rank_key *mine, *merged;
} key_lists;

static ww_status take_lists(cluster_call *call, const rank_search *s, key_lists *lists, own_hits *own)
{
    const int64_t places = s->query_count * s->k;
    if (s->query_count > INT64_MAX / WW_K_MAX / (int64_t)sizeof(rank_key))
        return memory_failed("the keys of a query over ranks", SIZE_MAX / 2);
    ww_status status = call_array(call, places, sizeof *lists->mine, "the keys of a query over ranks", &lists->mine);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *lists->merged, "the keys of a query over ranks", &lists->merged);
    if (status == WW_OK)
        status = call_array(call, s->query_count, sizeof *own->counts, "the keys of a query over ranks", &own->counts);
    return status;
}

static void make_keys(const ww_cluster *c, const rank_search *s, const ww_results *results, rank_key *keys)
{
    for (int64_t q = 0; q < s->query_count; q++) {
        const int64_t count = ww_results_count(results, q);
        for (int64_t i = 0; i < s->k; i++)
            keys[q * s->k + i] =
                i < count ? rank_key_make(c->metric, ww_results_scores(results, q)[i], c->rank, ww_results_rows(results, q)[i])
                          : RANK_KEY_NONE;
    }
}

/* A rank's hits among the best of all are the first of its own. */
static void count_winners(const ww_cluster *c, const rank_search *s, const rank_key *merged, int64_t *counts)
{
    for (int64_t q = 0; q < s->query_count; q++) {
        counts[q] = 0;
        for (int64_t i = q * s->k; i < (q + 1) * s->k; i++)
            counts[q] += !rank_key_is_none(merged[i]) && rank_key_rank(merged[i]) == c->rank;
    }
}

static ww_status query(cluster_call *call, const ww_query *given, ww_answer answer, ww_results **results)
{
    ww_cluster *c = call->cluster;
    ww_query asked = {0};
    own_hits own = {.stats = ww_search_stats_default()};
    key_lists lists = {0};
    ww_status status = struct_read(&asked, sizeof asked, given, call->function, "ww_query");
    if (status == WW_OK && !results)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: results is NULL", call->function);
    rank_search s = {.queries = asked.queries,
                     .query_count = asked.query_count,
                     .dim = asked.dim,
                     .query_stride = asked.query_stride,
                     .k = asked.k,
                     .fetch = asked.fetch,
                     .answer = answer,
                     .stats = asked.stats};
    status = search_open(call, &s, status);
    if (status != WW_OK || !results)
        return status;
    status = take_lists(call, &s, &lists, &own);
    if (status == WW_OK) {
        ww_query local = asked;
        local.struct_size = sizeof local;
        local.queries = s.queries;
        local.query_stride = s.query_stride;
        local.stats = &own.stats;
        status = ww_collection_query(c->shard, &local, &own.results);
    }
    if (status == WW_OK) {
        make_keys(c, &s, own.results, lists.mine);
        own.rows_found = rows_above(own.results);
    }
    status = search_agree(call, status, &own.stats, own.rows_found);
    if (status == WW_OK)
        status = cluster_reduce(c, &(reduction){lists.mine, lists.merged, s.query_count, s.k});
    if (status == WW_OK && own.counts) {
        count_winners(c, &s, lists.merged, own.counts);
        status = exchange(call, &s, &own, results);
    }
    ww_results_destroy(own.results);
    if (status == WW_OK)
        search_stats_write(call, asked.stats);
    return status;
}

/* ---- range ----------------------------------------------------------------------------------------------------------------
 */

static ww_status range_own(cluster_call *call, const ww_range *asked, const rank_search *s, own_hits *own)
{
    ww_range local = *asked;
    local.struct_size = sizeof local;
    local.queries = s->queries;
    local.query_stride = s->query_stride;
    local.stats = &own->stats;
    ww_status status = call_array(call, s->query_count, sizeof *own->counts, "the counts of a range search", &own->counts);
    if (status == WW_OK)
        status = ww_collection_range(call->cluster->shard, &local, &own->results);
    if (status != WW_OK)
        return status;
    for (int64_t q = 0; q < s->query_count; q++)
        own->counts[q] = ww_results_count(own->results, q);
    own->rows_found = rows_above(own->results);
    return WW_OK;
}

static ww_status range(cluster_call *call, const ww_range *given, ww_answer answer, ww_results **results)
{
    ww_range asked = {0};
    own_hits own = {.stats = ww_search_stats_default()};
    ww_status status = struct_read(&asked, sizeof asked, given, call->function, "ww_range");
    if (status == WW_OK && !results)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: results is NULL", call->function);
    rank_search s = {.queries = asked.queries,
                     .query_count = asked.query_count,
                     .dim = asked.dim,
                     .query_stride = asked.query_stride,
                     .fetch = asked.fetch,
                     .limit = asked.limit,
                     .bound = asked.bound,
                     .answer = answer,
                     .stats = asked.stats};
    status = search_open(call, &s, status);
    if (status != WW_OK || !results)
        return status;
    status = range_own(call, &asked, &s, &own);
    status = search_agree(call, status, &own.stats, own.rows_found);
    if (status == WW_OK)
        status = exchange(call, &s, &own, results);
    ww_results_destroy(own.results);
    if (status == WW_OK)
        search_stats_write(call, asked.stats);
    return status;
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------
 */

/* One of the two is asked for; `range` says which. */
typedef struct hits_asked {
    bool range;
    const ww_query *query;
    const ww_range *within;
    ww_answer answer;
} hits_asked;

static ww_status find_hits(ww_cluster *cluster, const hits_asked *asked, ww_results **results)
{
    cluster_call call;
    if (results)
        *results = NULL;
    ww_status status = call_begin(&call, cluster, asked->range ? CALL_RANGE : CALL_QUERY,
                                  asked->range ? "ww_cluster_range" : "ww_cluster_query");
    if (status != WW_OK)
        return status;
    status =
        asked->range ? range(&call, asked->within, asked->answer, results) : query(&call, asked->query, asked->answer, results);
    call_end(&call);
    return status;
}

ww_status ww_cluster_query(ww_cluster *cluster, const ww_query *query_asked, ww_answer answer, ww_results **results)
{
    FLOAT_GUARD();
    return find_hits(cluster, &(hits_asked){.query = query_asked, .answer = answer}, results);
}

ww_status ww_cluster_range(ww_cluster *cluster, const ww_range *range_asked, ww_answer answer, ww_results **results)
{
    FLOAT_GUARD();
    return find_hits(cluster, &(hits_asked){.range = true, .within = range_asked, .answer = answer}, results);
}
