/* ww_cluster_calibrate(): recall on request over ranks.
 *
 * The queries are the ones that one collection with all rows would draw, or the caller's. All ranks find their true neighbours
 * together, the rank that holds a neighbour says which list it is in, and every rank learns the same rules from that.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/hash.h"
#include "mpi/lists.h"
#include "mpi/search.h"

typedef struct learning {
    cluster_call *call;
    ww_calibrate_config config;
    int64_t total, first;       /* as in ivf.c */
    collecting vectors, rows;   /* rows that were drawn; empty if the caller gave queries */
    rank_key *mine, *truth;     /* k + 1 for each query */
    int64_t *found_rows;        /* the results of this rank's search: rows ... */
    float *found_scores;        /* ... and scores */
    int64_t *lists, *all_lists; /* of the true neighbours, k per query: list number + 1; 0: none */
    uint32_t *numbers;
} learning;

static ww_status take_memory(learning *m)
{
    static const char what[] = "calibrating an index over ranks";
    const int64_t places = m->config.query_count * (m->config.k + 1);
    ww_status status = call_array(m->call, places, sizeof *m->mine, what, &m->mine);
    if (status == WW_OK)
        status = call_array(m->call, places, sizeof *m->truth, what, &m->truth);
    if (status == WW_OK)
        status = call_array(m->call, places, sizeof *m->found_rows, what, &m->found_rows);
    if (status == WW_OK)
        status = call_array(m->call, places, sizeof *m->found_scores, what, &m->found_scores);
    if (status == WW_OK)
        status = call_array(m->call, places, sizeof *m->lists, what, &m->lists);
    if (status == WW_OK)
        status = call_array(m->call, places, sizeof *m->all_lists, what, &m->all_lists);
    if (status == WW_OK)
        status = call_array(m->call, places, sizeof *m->numbers, what, &m->numbers);
    return status;
}

/* Queries from the rows of all ranks. */
static ww_status draw(learning *m)
{
    const part_draw drawn = {m->config.seed, m->total, m->first, m->config.query_count};
    part_rows own = {0};
    const ww_status status = cluster_draw(m->call, &drawn, &own, &m->vectors, &m->rows);
    memory_free(own.rows);
    memory_free(own.vectors);
    m->config.queries = (const float *)(const void *)m->vectors.all;
    m->config.query_stride = m->call->cluster->dim;
    return status;
}

/* The k + 1 nearest rows of all ranks. */
static ww_status find_truth(learning *m)
{
    ww_cluster *c = m->call->cluster;
    const int32_t k = m->config.k + 1;
    ww_query query = ww_query_default();
    query.queries = m->config.queries;
    query.query_count = m->config.query_count;
    query.query_stride = m->config.query_stride;
    query.dim = c->dim;
    query.k = k;
    ww_status status = ww_collection_search(c->shard, &query, m->found_rows, m->found_scores);
    for (int64_t i = 0; status == WW_OK && i < query.query_count * k; i++)
        m->mine[i] =
            m->found_rows[i] >= 0 ? rank_key_make(c->metric, m->found_scores[i], c->rank, m->found_rows[i]) : RANK_KEY_NONE;
    status = call_agree(m->call, status);
    return status == WW_OK ? cluster_reduce(c, &(reduction){m->mine, m->truth, query.query_count, k}) : status;
}

/* Returns true if this key is the row that query q was drawn from. */
static bool is_itself(const learning *m, int64_t q, rank_key key)
{
    const int64_t at = q * (int64_t)sizeof(int64_t);
    int32_t rank = 0;
    int64_t row;
    if (!m->rows.all)
        return false;
    while (m->rows.starts[rank + 1] <= at)
        rank++;
    memcpy(&row, m->rows.all + at, sizeof row);
    return rank_key_rank(key) == rank && key.row == (uint64_t)row;
}

/* Finds the lists of those true neighbours that are on this rank. */
static void find_lists(const learning *m, const uint32_t *row_lists)
{
    const ww_cluster *c = m->call->cluster;
    const int32_t k = m->config.k;
    memset(m->lists, 0, (size_t)(m->config.query_count * k) * sizeof *m->lists);
    for (int64_t q = 0; q < m->config.query_count; q++) {
        const rank_key *truth = m->truth + q * (k + 1);
        for (int32_t i = 0, found = 0; i <= k && found < k; i++) {
            if (rank_key_is_none(truth[i]) || is_itself(m, q, truth[i]))
                continue;
            if (rank_key_rank(truth[i]) == c->rank)
                m->lists[q * k + found] = (int64_t)row_lists[truth[i].row] + 1;
            found++;
        }
    }
}

static ww_status learn(learning *m)
{
    ww_cluster *c = m->call->cluster;
    const int64_t places = m->config.query_count * m->config.k;
    uint32_t *row_lists = NULL;
    ww_status status = find_truth(m);
    if (status != WW_OK)
        return status;
    status = ww_core()->part_row_lists(c->shard, &row_lists);
    if (status == WW_OK)
        find_lists(m, row_lists);
    memory_free(row_lists);
    status = call_agree(m->call, status);
    if (status == WW_OK)
        status = cluster_sum(c, m->lists, m->all_lists, places);
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; i < places; i++)
        m->numbers[i] = (uint32_t)(m->all_lists[i] - 1); /* 0 becomes a number larger than all lists */
    ivf_calibration learnt = {0};
    status = call_agree(m->call, ww_core()->part_learn(c->shard, &m->config, m->numbers, &learnt));
    if (status == WW_OK)
        ww_core()->part_keep(c->shard, &learnt);
    memory_free(learnt.rules);
    return status;
}

static ww_status check(const learning *m)
{
    if (ww_core()->part_of(m->call->cluster->shard) == 0)
        return ww_fail(WW_NOT_FOUND, "%s: there is no index over ranks; build one first", m->call->function);
    for (int64_t q = 0; m->config.queries && q < m->config.query_count; q++)
        if (!ww_core()->is_finite(m->config.queries + q * m->config.query_stride, m->call->cluster->dim))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: query %lld is not finite", m->call->function, (long long)q);
    return WW_OK;
}

/* Sets the numbers that must be the same on all ranks, and the queries, if there are any. */
static int64_t hash_config(const learning *m)
{
    const int64_t dim = m->call->cluster->dim;
    uint64_t hash = m->config.seed ^ (uint64_t)m->config.query_count << 20 ^ (uint64_t)m->config.k << 44;
    hash = fnv_word(hash, canon_float_bits(m->config.recall));
    for (int64_t q = 0; m->config.queries && q < m->config.query_count; q++)
        for (int64_t i = 0; i < dim; i++)
            hash = fnv_word(hash, canon_float_bits(m->config.queries[q * m->config.query_stride + i]));
    return (int64_t)(hash ^ ww_core()->part_of(m->call->cluster->shard));
}

/* Lists that are too large are split before the rules are learnt. */
static ww_status calibrate(cluster_call *call, void *given)
{
    const ww_cluster *c = call->cluster;
    learning m = {.call = call};
    part_counts counts = {0};
    ww_status status = given ? struct_read(&m.config, sizeof m.config, given, call->function, "ww_calibrate_config") : WW_OK;
    call->report.rows_live = ww_collection_count(c->shard);
    status = call_agree(call, status);
    if (status != WW_OK)
        return status;
    cluster_count_rows(c, &m.total, &m.first);
    status = ww_core()->ivf_calibrate_check(call->function, c->dim, m.total, &m.config);
    if (status == WW_OK)
        status = check(&m);
    if (status == WW_OK)
        call->report.index = hash_config(&m);
    if (status == WW_OK)
        status = take_memory(&m);
    status = call_agree(call, status);
    if (status == WW_OK)
        status = lists_count(call, NULL, &counts);
    if (status == WW_OK && !m.config.queries)
        status = draw(&m);
    return status == WW_OK ? learn(&m) : status;
}

ww_status ww_cluster_calibrate(ww_cluster *cluster, const ww_calibrate_config *config)
{
    FLOAT_GUARD();
    return call_run(cluster, CALL_CALIBRATE, calibrate, (void *)(uintptr_t)config);
}
