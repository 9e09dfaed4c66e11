/* Searches by the lists of an index over ranks (lists.h). */
#include "mpi/lists.h"

#include <math.h>

#include "base/integers.h"
#include "base/memory.h"
#include "mpi/index_change.h"

/* ---- numbers of all ranks ------------------------------------------------------------------------------------------------ */

/* Numbers of 8 bytes that MPI reduces. */
typedef struct numbers {
    const void *from;
    void *to;
    MPI_Datatype type;
    MPI_Op op;
} numbers;

static ww_status reduce_pieces(ww_cluster *c, const numbers *n, int64_t count)
{
    const int64_t piece = max_i64((int64_t)(c->piece_bytes / sizeof(int64_t)), 1);
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < count; first += piece) {
        const int64_t start = first * (int64_t)sizeof(int64_t);
        const int some = (int)min_i64(piece, count - first);
        status = cluster_mpi(c,
                             MPI_Iallreduce((const char *)n->from + start, (char *)n->to + start, some, n->type, n->op,
                                            c->communicator, &c->requests[0]),
                             "MPI_Iallreduce");
        if (status == WW_OK)
            status = cluster_wait(c, 1, "counting the lists of all ranks");
    }
    return status;
}

ww_status cluster_sum(ww_cluster *c, const int64_t *from, int64_t *to, int64_t count)
{
    return reduce_pieces(c, &(numbers){from, to, MPI_INT64_T, MPI_SUM}, count);
}

ww_status cluster_max(ww_cluster *c, const double *from, double *to, int64_t count)
{
    return reduce_pieces(c, &(numbers){from, to, MPI_DOUBLE, MPI_MAX}, count);
}

/* Which numbers of a list are added up, and which are maxima over all ranks, as rows that MPI can reduce. */
enum { SUM_ADMITTED, SUM_ROWS, SUMS, ALL_ADMITTED = 0, ALL_ROWS, ALL_MASKED, ALL_FRESH, ALL_TRAINED, ALLS };
enum { MAX_FARTHEST, MAX_NEAREST, MAX_UNBOUNDED, MAX_SPLIT, MAX_EQUAL, MAXES };

typedef struct reducing {
    int64_t *sums, *all_sums;  /* ALLS, then SUMS of each list */
    double *maxes, *all_maxes; /* MAXES of each list */
} reducing;

static ww_status take_memory(cluster_call *call, int64_t nlist, reducing *r)
{
    static const char what[] = "the lists of an index over ranks";
    const int64_t sums = ALLS + SUMS * nlist, maxes = MAXES * nlist;
    ww_status status = call_array(call, sums, sizeof *r->sums, what, &r->sums);
    if (status == WW_OK)
        status = call_array(call, sums, sizeof *r->sums, what, &r->all_sums);
    if (status == WW_OK)
        status = call_array(call, maxes, sizeof *r->maxes, what, &r->maxes);
    if (status == WW_OK)
        status = call_array(call, maxes, sizeof *r->maxes, what, &r->all_maxes);
    return status;
}

/* A list without rows has no bounds. For cosine, a lower score means a farther row. */
static void pack(const ww_cluster *c, const part_counts *counts, const reducing *r)
{
    const double sign = c->metric == WW_COSINE ? -1.0 : 1.0;
    r->sums[ALL_ADMITTED] = counts->all;
    r->sums[ALL_ROWS] = counts->rows;
    r->sums[ALL_MASKED] = counts->masked;
    r->sums[ALL_FRESH] = counts->fresh;
    r->sums[ALL_TRAINED] = counts->trained;
    for (int64_t l = 0; l < counts->nlist; l++) {
        const list_record *list = &counts->records[l];
        double *maxes = r->maxes + l * MAXES;
        r->sums[ALLS + l * SUMS + SUM_ADMITTED] = counts->admitted ? counts->admitted[l] : 0;
        r->sums[ALLS + l * SUMS + SUM_ROWS] = list->rows;
        maxes[MAX_FARTHEST] = list->rows > 0 ? sign * (double)list->farthest : -INFINITY;
        maxes[MAX_NEAREST] = list->rows > 0 ? -sign * (double)list->nearest : -INFINITY;
        maxes[MAX_UNBOUNDED] = list->rows > 0 && list->unbounded;
        maxes[MAX_SPLIT] = list->was_split;
        maxes[MAX_EQUAL] = (double)list->equal_rows;
    }
}

static void unpack(const ww_cluster *c, const reducing *r, part_counts *counts)
{
    const double sign = c->metric == WW_COSINE ? -1.0 : 1.0;
    counts->all = r->all_sums[ALL_ADMITTED];
    counts->rows = r->all_sums[ALL_ROWS];
    counts->masked = r->all_sums[ALL_MASKED] > 0;
    counts->fresh = r->all_sums[ALL_FRESH];
    counts->trained = r->all_sums[ALL_TRAINED];
    for (int64_t l = 0; l < counts->nlist; l++) {
        const double *maxes = r->all_maxes + l * MAXES;
        counts->admitted[l] = r->all_sums[ALLS + l * SUMS + SUM_ADMITTED];
        counts->records[l] = (list_record){.rows = r->all_sums[ALLS + l * SUMS + SUM_ROWS],
                                           .farthest = (float)(sign * maxes[MAX_FARTHEST]),
                                           .nearest = (float)(-sign * maxes[MAX_NEAREST]),
                                           .unbounded = maxes[MAX_UNBOUNDED] > 0.0,
                                           .was_split = maxes[MAX_SPLIT] > 0.0,
                                           .equal_rows = (int64_t)maxes[MAX_EQUAL]};
    }
}

ww_status lists_reduce(cluster_call *call, ww_status mine, part_counts *counts)
{
    ww_cluster *c = call->cluster;
    reducing r = {0};
    int64_t *admitted = NULL;
    list_record *records = NULL;
    ww_status status = mine == WW_OK ? take_memory(call, counts->nlist, &r) : mine;
    if (status == WW_OK)
        status = call_array(call, counts->nlist, sizeof *admitted, "the lists of an index over ranks", &admitted);
    if (status == WW_OK)
        status = call_array(call, counts->nlist, sizeof *records, "the lists of an index over ranks", &records);
    if (status == WW_OK)
        pack(c, counts, &r);
    memory_free(counts->admitted);
    memory_free(counts->records);
    counts->admitted = admitted;
    counts->records = records;
    status = call_agree(call, status);
    if (status == WW_OK)
        status = cluster_sum(c, r.sums, r.all_sums, ALLS + SUMS * counts->nlist);
    if (status == WW_OK)
        status = cluster_max(c, r.maxes, r.all_maxes, MAXES * counts->nlist);
    if (status == WW_OK)
        unpack(c, &r, counts);
    return status;
}

/* ---- counting ------------------------------------------------------------------------------------------------------------ */

static ww_status count(cluster_call *call, const ww_query *query, part_counts *counts)
{
    ww_collection *shard = call->cluster->shard;
    *counts = (part_counts){0};
    return lists_reduce(
        call, query ? ww_core()->part_count_lists(shard, query, counts) : ww_core()->part_count_all(shard, counts), counts);
}

/* If a rank has no memory to split a list, the list stays as it is, and splitting is tried again with the next rows, as in one
 * collection. */
ww_status lists_count(cluster_call *call, const ww_query *query, part_counts *counts)
{
    ww_status status = count(call, query, counts);
    if (status != WW_OK || counts->fresh == 0)
        return status;
    const bool large = ww_core()->part_has_large(counts);
    if (large)
        status = index_split_large(call, counts);
    if (call->cluster->lost)
        return status;
    ww_core()->part_settle(call->cluster->shard);
    return large ? count(call, query, counts) : WW_OK;
}

/* ---- a search ------------------------------------------------------------------------------------------------------------ */

ww_status lists_plan_make(cluster_call *call, const ww_query *query, lists_plan *plan)
{
    ww_collection *shard = call->cluster->shard;
    *plan = (lists_plan){.asked = query->nprobe > 0 || query->recall > 0.0f};
    if (!plan->asked)
        return WW_OK;
    const ww_status status = lists_count(call, query, &plan->counts);
    if (status != WW_OK)
        return status;
    plan->exact = ww_core()->part_reads_all(shard, &plan->counts);
    plan->whole = (ivf_whole){min_i64(query->k, plan->counts.all), plan->counts.admitted};
    return WW_OK;
}

ww_status lists_query(cluster_call *call, const lists_plan *plan, const ww_query *query, ww_results **results)
{
    ww_query asked = *query;
    if (plan->asked && !plan->exact)
        return ww_core()->part_query(call->cluster->shard, query, &plan->whole, results);
    asked.nprobe = 0;
    asked.recall = 0.0f;
    return ww_collection_query(call->cluster->shard, &asked, results);
}

ww_status lists_prove(cluster_call *call, const lists_plan *plan, const ww_query *query, ww_results *results)
{
    ww_status status = plan->asked ? ww_core()->results_proven(results) : WW_OK;
    for (int64_t q = 0; status == WW_OK && plan->asked && q < query->query_count; q++) {
        const ivf_hits hits = {query->queries + q * query->query_stride, ww_results_scores(results, q),
                               ww_results_count(results, q)};
        results->proven[q] = hits.count;
        if (!plan->exact && hits.count > 0)
            status = ww_core()->part_prove(call->cluster->shard, &hits, &plan->counts, plan->whole.wanted, &results->proven[q]);
    }
    return status;
}
