/* MPI calls fail, in turn, on one rank: it returns MPI's message, the others name that rank, and no rank hangs. This file
 * replaces the MPI calls of the library; they call the real ones (PMPI_...) except for the one that must fail. */
#include <string.h>

#include "mpi/ranks.h"

static long calls_left; /* until one fails; 0: never */

/* Returns true once, for the call that must fail. */
static bool fails(void)
{
    return calls_left > 0 && --calls_left == 0;
}

#define TAKEN_OVER(name, parameters, arguments)                                                                                \
    int name parameters;                                                                                                       \
    int name parameters                                                                                                        \
    {                                                                                                                          \
        return fails() ? MPI_ERR_OTHER : P##name arguments;                                                                    \
    }

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): each MPI calls them otherwise */
TAKEN_OVER(MPI_Iallgather,
           (const void *from, int count, MPI_Datatype type, void *to, int to_count, MPI_Datatype to_type, MPI_Comm comm,
            MPI_Request *request),
           (from, count, type, to, to_count, to_type, comm, request))
TAKEN_OVER(MPI_Iallreduce,
           (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),
           (from, to, count, type, op, comm, request))
TAKEN_OVER(MPI_Ibcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
           (data, count, type, root, comm, request))
TAKEN_OVER(MPI_Isend, (const void *from, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request),
           (from, count, type, rank, tag, comm, request))
TAKEN_OVER(MPI_Irecv, (void *to, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request),
           (to, count, type, rank, tag, comm, request))
TAKEN_OVER(MPI_Type_contiguous, (int count, MPI_Datatype type, MPI_Datatype *made), (count, type, made))
TAKEN_OVER(MPI_Type_commit, (MPI_Datatype * type), (type))
TAKEN_OVER(MPI_Type_free, (MPI_Datatype * type), (type))
TAKEN_OVER(MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
TAKEN_OVER(MPI_Op_create, (MPI_User_function * function, int commutes, MPI_Op *op), (function, commutes, op))

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* A cluster, from making it to a search whose queries are sent and whose answer all ranks get, and bytes collected at the
 * root, as `warpwave-mpi dedup` does. */
static ww_status work(const ranks *r, int32_t timeout_ms)
{
    ww_cluster *cluster = NULL;
    ww_cluster_config config = config_of_scene(WW_L2);
    int64_t rows[6];
    float scores[6];
    config.timeout_ms = timeout_ms;
    ww_status status = ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster);
    if (status == WW_OK) {
        ww_query query = ww_query_default();
        add_rows(ww_cluster_collection(cluster), 0, 20);
        query.queries = r->rank == 0 ? scene_make()->queries[0] : NULL;
        query.query_count = 2;
        query.dim = DIM;
        query.k = 3;
        status = ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores);
        if (status == WW_OK)
            status = collect_numbers(r, cluster, 5);
    }
    ww_cluster_destroy(cluster);
    return status;
}

static void check_status(bool victim, ww_status status)
{
    if (!victim) {
        EXPECT(status == WW_OK || status == WW_TIMEOUT);
        return;
    }
    /* without a fault it succeeds, but on a machine so busy that the short time was over */
    EXPECT(status == WW_DRIVER_ERROR || (calls_left > 0 && (status == WW_OK || status == WW_TIMEOUT)));
    EXPECT(status != WW_DRIVER_ERROR || strstr(ww_error_message(), "MPI_"));
}

/* The n-th call fails on one rank. Returns false if there are fewer calls; a busy machine needs enough time for that. */
static bool fail_at(const ranks *r, int victim, long n)
{
    enum { WRONG, FAILED, FACTS };
    int any[FACTS] = {0};
    for (int32_t timeout_ms = 100; timeout_ms < 100000; timeout_ms *= 2) {
        calls_left = r->rank == victim ? n : 0;
        const ww_status status = work(r, timeout_ms);
        check_status(r->rank == victim, status);
        /* The last exchange may fail only on the victim. */
        const int facts[FACTS] = {status != WW_OK, r->rank == victim && calls_left == 0};
        calls_left = 0;
        PMPI_Allreduce(facts, any, FACTS, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any[FAILED] || !any[WRONG])
            break;
    }
    EXPECT(any[FAILED] || !any[WRONG]);
    return any[FAILED];
}

void case_mpi(const ranks *r)
{
    for (int victim = 0; victim < r->count; victim++) {
        long n = 1;
        while (fail_at(r, victim, n))
            n++;
        EXPECT(n > 5);
    }
}
