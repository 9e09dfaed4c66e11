/* ww_cluster_search(): every rank searches its shard, then the ranks merge their keys. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/hash.h"
#include "mpi/cluster.h"

/* ---- queries ------------------------------------------------------------------------------------------------------------- */

/* This only has to detect a program that mixed up its queries. */
static int64_t hash_queries(const ww_query *query)
{
    uint64_t hash = FNV_BEGIN;
    for (int64_t q = 0; q < query->query_count; q++) {
        const float *row = query->queries + q * query->query_stride;
        for (int32_t i = 0; i < query->dim; i++) {
            uint32_t bits;
            memcpy(&bits, &row[i], sizeof bits);
            hash = fnv_word(hash, bits);
        }
    }
    return (int64_t)hash;
}

static ww_status check_numbers(const cluster_call *call, const ww_query *query)
{
    const ww_cluster *c = call->cluster;
    if (query->query_count < 0 || query->query_count > INT64_MAX / WW_K_MAX / (int64_t)sizeof(rank_key))
        return ww_fail(WW_OUT_OF_RANGE, "%s: query_count is %" PRId64 "; it must be a number of queries that memory can hold",
                       call->function, query->query_count);
    if (query->dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the queries have dimension %d, the cluster has %d", call->function,
                       query->dim, c->dim);
    if (query->k < 0 || query->k > WW_K_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; the maximum is %d", call->function, query->k, WW_K_MAX);
    if (query->query_stride != 0 && query->query_stride < query->dim)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_stride is %" PRId64 ", below the dimension %d", call->function,
                       query->query_stride, query->dim);
    return WW_OK;
}

/* What ww_collection_search() refuses, the shard's own search refuses before anything is merged. */
static ww_status check_query(const cluster_call *call, const ww_query *query, ww_answer answer)
{
    const ww_cluster *c = call->cluster;
    if (answer != WW_ANSWER_ROOT && answer != WW_ANSWER_ALL)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: answer is %d; it is WW_ANSWER_ROOT or WW_ANSWER_ALL", call->function,
                       (int)answer);
    if (query->query_tensor)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: query_tensor is given; ranks take queries in host memory", call->function);
    if (query->nprobe != 0 || query->recall != 0.0f)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: nprobe or recall is given; ranks search exactly", call->function);
    if (!query->queries && query->query_count > 0 && c->rank == c->root)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: queries is NULL on the root, rank %d, which must have them", call->function,
                       c->root);
    return check_numbers(call, query);
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

/* Agrees on the query and sends it to the ranks that have none: then query->queries is what this rank searches with. Returns
 * the same on all ranks. `first` is the status of the caller's own checks. */
static ww_status agree_on_query(cluster_call *call, ww_query *query, ww_answer answer, ww_status first)
{
    ww_status status = first == WW_OK ? check_query(call, query, answer) : first;
    if (status == WW_OK) {
        query->struct_size = sizeof *query; /* all fields are set here */
        query->query_stride = query->query_stride == 0 ? query->dim : query->query_stride;
        call->report.answer = answer;
        call->report.k = query->k;
        call->report.query_count = query->query_count;
        call->report.queries_given = query->queries != NULL || query->query_count == 0;
        call->report.queries_hash = query->queries ? hash_queries(query) : 0;
    }
    status = call_agree(call, status);
    return status == WW_OK && queries_are_sent(call->cluster) ? send_queries(call, query) : status;
}

/* ---- merging ------------------------------------------------------------------------------------------------------------- */

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

/* ---- the search ---------------------------------------------------------------------------------------------------------- */

typedef struct found {
    rank_key *mine, *merged;
    int64_t *rows; /* of this rank's search; unused afterwards */
    float *scores;
} found;

/* Allocates everything that is needed until the end, so that nothing can fail between exchanges. */
static ww_status take_lists(cluster_call *call, const ww_query *s, found *f)
{
    static const char what[] = "the keys of a search over ranks";
    const int64_t places = s->query_count * s->k;
    ww_status status = call_array(call, places, sizeof *f->mine, what, &f->mine);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *f->merged, what, &f->merged);
    if (status == WW_OK)
        status = call_array(call, places, sizeof *f->rows, what, &f->rows);
    return status == WW_OK ? call_array(call, places, sizeof *f->scores, what, &f->scores) : status;
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

/* Searches the shard, tells the others how that went, and numbers the rows of all ranks. */
static ww_status search_shard(cluster_call *call, const ww_query *query, found *f)
{
    ww_cluster *c = call->cluster;
    ww_collection_info shard = ww_collection_info_default();
    int64_t rows_found = 0;
    ww_status status = take_lists(call, query, f);
    if (status == WW_OK)
        status = ww_collection_search(c->shard, query, f->rows, f->scores);
    if (status == WW_OK) {
        rows_found = make_keys(c, f, query->query_count * query->k);
        status = ww_collection_describe(c->shard, &shard);
    }
    call->report.rows_live = shard.rows_live;
    call->report.rows_end = max_i64(shard.mask_rows, rows_found); /* rows may have been removed since */
    status = call_agree(call, status);
    return status == WW_OK ? cluster_number_rows(c) : status;
}

/* Returns true on a rank that gets the answer. */
static bool answers_here(const ww_cluster *c, ww_answer answer)
{
    return answer == WW_ANSWER_ALL || c->rank == c->root;
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

static ww_status search(cluster_call *call, const ww_query *given, ww_answer answer, int64_t *rows, float *scores)
{
    ww_cluster *c = call->cluster;
    ww_query query = {0};
    found f = {0};
    ww_status status = struct_read(&query, sizeof query, given, call->function, "ww_query");
    if (status == WW_OK && answers_here(c, answer) && query.k > 0 && query.query_count > 0 && (!rows || !scores))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: rows or scores is NULL on rank %d, which is to get the answer",
                         call->function, c->rank);
    status = agree_on_query(call, &query, answer, status);
    if (status == WW_OK)
        status = search_shard(call, &query, &f);
    if (status == WW_OK)
        status = cluster_reduce(c, &(reduction){f.mine, f.merged, query.query_count, query.k});
    if (status == WW_OK && answers_here(c, answer))
        write_answer(c, f.merged, query.query_count * query.k, rows, scores);
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
