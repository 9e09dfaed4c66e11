/* ww_cluster_search(), and the start of every search over ranks. */
#include "mpi/search.h"
#include "mpi/lists.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/hash.h"

/* ---- queries ------------------------------------------------------------------------------------------------------------- */

/* This only has to detect a program that mixed up its queries. */
static int64_t hash_queries(const ww_query *query)
{
    uint64_t hash = FNV_BEGIN;
    for (int64_t q = 0; q < query->query_count; q++) {
        const float *row = query->queries + q * query->query_stride;
        for (int32_t i = 0; i < query->dim; i++)
            hash = fnv_word(hash, canon_float_bits(row[i]));
    }
    return (int64_t)hash;
}

static ww_status check_query(const cluster_call *call, const ww_query *query, ww_answer answer)
{
    const ww_cluster *c = call->cluster;
    if (answer != WW_ANSWER_ROOT && answer != WW_ANSWER_ALL)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: answer is %d; it is WW_ANSWER_ROOT or WW_ANSWER_ALL", call->function,
                       (int)answer);
    if (query->query_tensor)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_tensor is given; ranks take queries in host memory", call->function);
    if (query->match)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: match is given; ranks search by vectors only", call->function);
    if (query->query_count < 0)
        return ww_fail(WW_OUT_OF_RANGE, "%s: query_count is %" PRId64 "; it must not be negative", call->function,
                       query->query_count);
    if (query->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the queries have dimension %d, the cluster has %d", call->function,
                       query->dim, c->dim);
    if (query->k < 0 || query->k > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; the maximum is %d", call->function, query->k, WW_K_MAX);
    if (query->query_stride != 0 && query->query_stride < query->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_stride is %" PRId64 ", below the dimension %d", call->function,
                       query->query_stride, query->dim);
    if (query->stats && struct_check(query->stats, call->function, "ww_search_stats") != WW_OK)
        return WW_INVALID_ARGUMENT;
    if (!query->queries && query->query_count > 0 && c->rank == c->root)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: queries is NULL on the root, rank %d, which must have them", call->function,
                       c->root);
    return WW_OK;
}

/* Returns true if any rank has no queries, by the reports: the same on all ranks. */
static bool queries_are_sent(const ww_cluster *c)
{
    bool sent = false;
    for (int32_t r = 0; r < c->ranks; r++)
        sent = sent || !c->reports[r].queries_given;
    return sent;
}

static ww_status send_queries(cluster_call *call, ww_query *query)
{
    ww_cluster *c = call->cluster;
    const size_t query_bytes = (size_t)query->dim * sizeof(float);
    float *packed = NULL;
    ww_status status = call_array(call, query->query_count, query_bytes, "the queries", &packed);
    if (status == WW_OK && c->rank == c->root)
        for (int64_t q = 0; q < query->query_count; q++)
            memcpy(packed + q * query->dim, query->queries + q * query->query_stride, query_bytes);
    status = call_agree(call, status);
    if (status == WW_OK)
        status = cluster_broadcast(c, packed, (size_t)query->query_count * query_bytes);
    query->queries = packed;
    query->query_stride = query->dim;
    return status;
}

ww_status search_open(cluster_call *call, ww_query *query, ww_answer answer, ww_status first)
{
    ww_status status = first == WW_OK ? check_query(call, query, answer) : first;
    if (status == WW_OK) {
        query->struct_size = sizeof *query; /* all fields are set here */
        query->query_stride = query->query_stride == 0 ? query->dim : query->query_stride;
        call->report.answer = answer;
        call->report.mode = query->mode;
        call->report.k = query->k;
        call->report.query_count = query->query_count;
        call->report.fetch = query->fetch;
        call->report.limit = query->limit;
        call->report.bound = canon_float_bits(query->bound);
        call->report.nprobe = query->nprobe;
        call->report.recall = canon_float_bits(query->recall);
        if (query->nprobe > 0 || query->recall > 0.0f)
            call->report.index = (int64_t)ww_core()->part_of(call->cluster->shard);
        call->report.queries_given = query->queries != NULL || query->query_count == 0;
        call->report.queries_hash = query->queries ? hash_queries(query) : 0;
    }
    status = call_agree(call, status);
    return status == WW_OK && queries_are_sent(call->cluster) ? send_queries(call, query) : status;
}

/* ---- after the shard's own search ---------------------------------------------------------------------------------------- */

ww_status search_agree(cluster_call *call, ww_status mine, const ww_search_stats *stats, int64_t rows_found)
{
    ww_collection_info shard = ww_collection_info_default();
    if (mine == WW_OK)
        mine = ww_collection_describe(call->cluster->shard, &shard);
    call->report.rows_live = shard.rows_live;
    call->report.rows_end = max_i64(shard.mask_rows, rows_found);
    call->report.rows_screened = stats->rows_screened;
    call->report.rows_kept = stats->rows_kept;
    call->report.rows_scored = stats->rows_scored;
    call->report.fallback_queries = stats->fallback_queries;
    call->report.certificate = canon_float_bits(stats->certificate);
    call->report.repeated_queries = stats->repeated_queries;
    call->report.lists_read = stats->lists_read;
    call->report.list_rows_read = stats->list_rows_read;
    call->report.list_bytes_read = stats->list_bytes_read;
    const ww_status status = call_agree(call, mine);
    return status == WW_OK ? cluster_number_rows(call->cluster) : status;
}

void search_stats_write(const cluster_call *call, ww_search_stats *stats)
{
    ww_search_stats all = {.certificate = INFINITY};
    if (!stats)
        return;
    for (int32_t r = 0; r < call->cluster->ranks; r++) {
        const rank_report *report = &call->cluster->reports[r];
        const float certificate = canon_bits_float((uint32_t)report->certificate);
        all.rows_screened += report->rows_screened;
        all.rows_kept += report->rows_kept;
        all.rows_scored += report->rows_scored;
        all.fallback_queries += report->fallback_queries;
        all.repeated_queries += report->repeated_queries;
        all.lists_read = max_i64(all.lists_read, report->lists_read); /* all ranks read the same lists */
        all.list_rows_read += report->list_rows_read;
        all.list_bytes_read += report->list_bytes_read;
        all.certificate = certificate < all.certificate ? certificate : all.certificate;
    }
    (void)struct_write(stats, &all, sizeof all, call->function, "ww_search_stats"); /* checked by search_open() */
}

/* ---- the reduction ------------------------------------------------------------------------------------------------------- */

/* `list` is one query's whole list, because MPI may cut a message between elements, but never inside one. All ranks get the
 * result, even if only the root must answer: both MPIs reduce to all at least as fast as to one, because then every rank merges
 * a share, or all do the same at once, while OpenMPI's MPI_Ireduce() passes long messages down a chain. */
static ww_status reduce_piece(ww_cluster *c, const reduction *r, MPI_Datatype list, int64_t first, int count)
{
    const ww_status status = cluster_mpi(c,
                                         MPI_Iallreduce(r->mine + first * r->k, r->merged + first * r->k, count, list, c->merge,
                                                        c->communicator, &c->requests[0]),
                                         "MPI_Iallreduce");
    return status == WW_OK ? cluster_wait(c, 1, "merging the results of all ranks") : status;
}

ww_status cluster_reduce(ww_cluster *c, const reduction *r)
{
    MPI_Datatype list = MPI_DATATYPE_NULL;
    const size_t list_bytes = (size_t)r->k * sizeof(rank_key);
    if (r->k == 0 || r->query_count == 0)
        return WW_OK;
    const int64_t piece = max_i64(1, (int64_t)(c->piece_bytes / list_bytes));
    ww_status status = cluster_mpi(c, MPI_Type_contiguous((int)list_bytes, MPI_BYTE, &list), "MPI_Type_contiguous");
    if (status == WW_OK)
        status = cluster_mpi(c, MPI_Type_commit(&list), "MPI_Type_commit");
    for (int64_t first = 0; first < r->query_count && status == WW_OK; first += piece)
        status = reduce_piece(c, r, list, first, (int)min_i64(piece, r->query_count - first));
    if (status == WW_OK)
        status = cluster_mpi(c, MPI_Type_free(&list), "MPI_Type_free");
    return status;
}

/* ---- ww_cluster_search() ------------------------------------------------------------------------------------------------- */

typedef struct found {
    rank_key *mine, *merged;
    int64_t *rows; /* of this rank's search; unused afterwards */
    float *scores;
} found;

/* Allocates everything that is needed until the end, so that nothing can fail between exchanges. */
static ww_status take_lists(cluster_call *call, const ww_query *s, found *f)
{
    const int64_t places = s->query_count * s->k;
    ww_status status = WW_OK;
    if (s->query_count > INT64_MAX / WW_K_MAX / (int64_t)sizeof(rank_key))
        return memory_failed("the keys of a search over ranks", SIZE_MAX / 2);
    status = call_array(call, places, sizeof *f->mine, "the keys of a search over ranks", &f->mine);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *f->merged, "the keys of a search over ranks", &f->merged);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *f->rows, "the rows of a search over ranks", &f->rows);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *f->scores, "the scores of a search over ranks", &f->scores);
    return status;
}

/* Returns a number larger than every row. */
static int64_t make_keys(const ww_cluster *c, const found *f, int64_t places)
{
    int64_t end = 0;
    for (int64_t i = 0; i < places; i++) {
        const bool there = f->rows[i] >= 0;
        f->mine[i] = there ? rank_key_make(c->metric, f->scores[i], c->rank, f->rows[i]) : RANK_KEY_NONE;
        end = there ? max_i64(end, f->rows[i] + 1) : end;
    }
    return end;
}

static void write_answer(const ww_cluster *c, const rank_key *merged, int64_t places, int64_t *rows, float *scores)
{
    const float worst = c->metric == WW_L2 ? INFINITY : -INFINITY;
    for (int64_t i = 0; i < places; i++) {
        const bool there = !rank_key_is_none(merged[i]);
        rows[i] = there ? c->first_rows[rank_key_rank(merged[i])] + (int64_t)merged[i].row : -1;
        scores[i] = there ? rank_key_score(c->metric, merged[i]) : worst;
    }
}

/* Runs this rank's own search, which fills f->rows and f->scores. */
static ww_status search_own(cluster_call *call, const lists_plan *plan, const ww_query *query, const found *f)
{
    ww_results *results = NULL;
    if (!plan->asked)
        return ww_collection_search(call->cluster->shard, query, f->rows, f->scores);
    const ww_status status = lists_query(call, plan, query, &results);
    for (int64_t i = 0; status == WW_OK && i < query->query_count * query->k; i++) {
        const int64_t q = i / query->k, hit = i % query->k;
        const bool there = hit < ww_results_count(results, q);
        f->rows[i] = there ? ww_results_rows(results, q)[hit] : -1;
        f->scores[i] = there ? ww_results_scores(results, q)[hit] : 0.0f;
    }
    ww_results_destroy(results);
    return status;
}

static ww_status search(cluster_call *call, const ww_query *given, ww_answer answer, int64_t *rows, float *scores)
{
    ww_cluster *c = call->cluster;
    ww_query query = {0};
    found f = {0};
    ww_search_stats stats = ww_search_stats_default();
    int64_t rows_found = 0;
    ww_status status = struct_read(&query, sizeof query, given, call->function, "ww_query");
    ww_search_stats *callers_stats = query.stats;
    if (status == WW_OK && answers_here(c, answer) && query.k > 0 && query.query_count > 0 && (!rows || !scores))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: rows or scores is NULL on rank %d, which is to get the answer",
                         call->function, c->rank);
    status = search_open(call, &query, answer, status);
    if (status != WW_OK)
        return status;
    lists_plan plan;
    status = lists_plan_make(call, &query, &plan);
    if (status != WW_OK)
        return status;
    query.stats = &stats;
    status = take_lists(call, &query, &f);
    if (status == WW_OK)
        status = search_own(call, &plan, &query, &f);
    if (status == WW_OK)
        rows_found = make_keys(c, &f, query.query_count * query.k);
    status = search_agree(call, status, &stats, rows_found);
    if (status == WW_OK)
        status = cluster_reduce(c, &(reduction){f.mine, f.merged, query.query_count, query.k});
    if (status == WW_OK && answers_here(c, answer))
        write_answer(c, f.merged, query.query_count * query.k, rows, scores);
    if (status == WW_OK)
        search_stats_write(call, callers_stats);
    return status;
}

ww_status ww_cluster_search(ww_cluster *cluster, const ww_query *query, ww_answer answer, int64_t *rows, float *scores)
{
    FLOAT_GUARD();
    cluster_call call;
    ww_status status = call_begin(&call, cluster, CALL_SEARCH);
    if (status != WW_OK)
        return status;
    status = search(&call, query, answer, rows, scores);
    call_end(&call);
    return status;
}
