/* A failure on one rank is reported on all ranks, without a hang; after a permanent failure the cluster can still be destroyed.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mpi/ranks.h"

/* The rank that does it otherwise. */
static int odd_one(const ranks *r)
{
    return r->count - 1;
}

static bool is_odd(const ranks *r)
{
    return r->rank == odd_one(r);
}

#define EXPECT_ALL(expected, text, call)                                                                                       \
    do {                                                                                                                       \
        const ww_status got_ = (call);                                                                                         \
        EXPECT(got_ == (expected));                                                                                            \
        EXPECT(strstr(ww_error_message(), text));                                                                              \
        expect_same(got_);                                                                                                     \
    } while (0)

static ww_query search_of_scene(int32_t k)
{
    ww_query search = ww_query_default();
    search.queries = scene_make()->queries[0];
    search.query_count = QUERIES;
    search.dim = DIM;
    search.k = k;
    return search;
}

static void disagree_at_create(const ranks *r)
{
    ww_cluster *cluster = NULL;
    ww_cluster_config config = config_of_scene(WW_L2);
    config.dim = is_odd(r) ? DIM + 1 : DIM;
    EXPECT_ALL(WW_DIMENSION_MISMATCH, "disagree in the dimension: rank 0 has 24",
               ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster));
    EXPECT(!cluster);
    config = config_of_scene(is_odd(r) ? WW_DOT : WW_L2);
    EXPECT_ALL(WW_INVALID_ARGUMENT, "disagree in the metric: rank 0 has l2",
               ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster));
    config = config_of_scene(WW_L2);
    config.root = is_odd(r) ? 1 : 0;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "disagree in the root", ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster));
    config = config_of_scene(WW_L2);
    config.dim = is_odd(r) ? -3 : DIM; /* only one rank can detect this error */
    EXPECT_ALL(WW_OUT_OF_RANGE, "dim is -3", ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster));
    config = config_of_scene(WW_L2);
    config.root = r->count;
    EXPECT_ALL(WW_OUT_OF_RANGE, "root is", ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster));
    config = config_of_scene(WW_L2);
    EXPECT_ALL(WW_INVALID_ARGUMENT, "rank", ww_cluster_create(MPI_COMM_WORLD, r->device, is_odd(r) ? NULL : &config, &cluster));
    EXPECT_ALL(WW_INVALID_ARGUMENT, "device is NULL",
               ww_cluster_create(MPI_COMM_WORLD, is_odd(r) ? NULL : r->device, &config, &cluster));
}

static void disagree_in_searches(const ranks *r, ww_cluster *cluster)
{
    static int64_t rows[QUERIES * WW_K_MAX];
    static float scores[QUERIES * WW_K_MAX], other[QUERIES * DIM];
    ww_query search = search_of_scene(is_odd(r) ? 9 : 10);
    EXPECT_ALL(WW_INVALID_ARGUMENT, "disagree in the k: rank 0 has 10",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(is_odd(r) ? WW_K_MAX + 1 : 10);
    EXPECT_ALL(WW_OUT_OF_RANGE, "k is 16385", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    search.query_count = is_odd(r) ? 3 : 4;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "number of queries", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(0);
    search.mode = is_odd(r) ? WW_QUERY_RANGE : WW_QUERY_NEAREST;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "finds the nearest k, not ranges",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    search.nprobe = is_odd(r) ? 3 : 0;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "ranks search exactly", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search.nprobe = 0;
    search.recall = is_odd(r) ? 1.0f : 0.0f;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "ranks search exactly", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    search.query_count = INT64_MAX / 4;
    EXPECT_ALL(WW_OUT_OF_RANGE, "query_count is", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    search.query_tensor = is_odd(r) ? (const struct ww_tensor *)&search : NULL; /* is not looked at */
    EXPECT_ALL(WW_INVALID_ARGUMENT, "ranks take queries in host memory",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    EXPECT_ALL(WW_INVALID_ARGUMENT, "rank to answer on",
               ww_cluster_search(cluster, &search, is_odd(r) ? WW_ANSWER_ALL : WW_ANSWER_ROOT, rows, scores));
    search.queries = is_odd(r) ? other : search.queries;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "has other queries than the root",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search.queries = r->rank == 0 ? NULL : scene_make()->queries[0];
    EXPECT_ALL(WW_INVALID_ARGUMENT, "queries is NULL on the root",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    search.dim = is_odd(r) ? DIM - 1 : DIM;
    EXPECT_ALL(WW_DIMENSION_MISMATCH, "the queries have dimension 23",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search = search_of_scene(10);
    EXPECT_ALL(WW_INVALID_ARGUMENT, "rows or scores is NULL",
               ww_cluster_search(cluster, &search, WW_ANSWER_ALL, is_odd(r) ? NULL : rows, scores));
    memcpy(other, search.queries, sizeof other);
    other[3] = NAN;
    search.queries = other; /* found by the shards themselves, after the first agreement */
    EXPECT_ALL(WW_INVALID_ARGUMENT, "rank 0: ", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
}

static void disagree_in_calls_and_fetch(const ranks *r, ww_cluster *cluster)
{
    static int64_t rows[QUERIES * WW_K_MAX];
    static float scores[QUERIES * WW_K_MAX];
    ww_cluster_info info = ww_cluster_info_default();
    ww_query search = search_of_scene(10);
    if (is_odd(r)) /* another call altogether */
        EXPECT(ww_cluster_describe(cluster, &info) == WW_INVALID_ARGUMENT);
    else
        EXPECT(ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores) == WW_INVALID_ARGUMENT);
    EXPECT(strstr(ww_error_message(), "disagree in the call"));
    search.fetch = is_odd(r) ? WW_FETCH_IDS : 0;
    EXPECT_ALL(WW_INVALID_ARGUMENT, "fetch is", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    search.fetch = 0;
    search.where = is_odd(r) ? "1" : NULL; /* no store: refused by the shard of one rank */
    EXPECT_ALL(WW_INVALID_ARGUMENT, "not in a store", ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores));
    /* Afterwards everything works again. */
    search = search_of_scene(10);
    EXPECT(ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores) == WW_OK);
    EXPECT(rows[0] >= 0);
}

void case_disagree(const ranks *r)
{
    EXPECT(r->count > 1);
    disagree_at_create(r);
    ww_cluster *cluster = cluster_of_scene(r, WW_L2);
    disagree_in_searches(r, cluster);
    disagree_in_calls_and_fetch(r, cluster);
    ww_cluster_destroy(cluster);
}

/* ---- every allocation failing in turn, on one rank ----------------------------------------------------------------------- */

typedef ww_status (*attempt)(const ranks *r, ww_cluster *cluster);

static ww_status attempt_create(const ranks *r, ww_cluster *cluster)
{
    ww_cluster *made = NULL;
    const ww_cluster_config config = config_of_scene(WW_L2);
    (void)cluster;
    const ww_status status = ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &made);
    EXPECT((made != NULL) == (status == WW_OK));
    ww_cluster_destroy(made);
    return status;
}

static ww_status attempt_search(const ranks *r, ww_cluster *cluster)
{
    int64_t rows[QUERIES * 5];
    float scores[QUERIES * 5];
    ww_query search = search_of_scene(5);
    if (r->rank != 0)
        search.queries = NULL;
    return ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores);
}

static ww_status attempt_collect(const ranks *r, ww_cluster *cluster)
{
    return collect_numbers(r, cluster, 5);
}

/* A struct that could not be allocated cannot tell the other ranks, so the first allocation of create is left out. At least
 * `least` allocations must fail on each rank. */
static void fail_each(const ranks *r, ww_cluster *cluster, attempt call, int64_t first, int64_t least)
{
    for (int victim = 0; victim < r->count; victim += r->count > 1 ? r->count - 1 : 1) {
        ww_status status = WW_OUT_OF_MEMORY;
        EXPECT(call(r, cluster) == WW_OK); /* so that everything that is allocated only once exists */
        const int64_t held = memory_blocks_held();
        int64_t failed = 0;
        for (int64_t n = first; status != WW_OK; n++) {
            if (r->rank == victim)
                memory_fail_at(n);
            status = call(r, cluster);
            memory_fail_at(0);
            EXPECT(status == WW_OK || status == WW_OUT_OF_MEMORY);
            expect_same(status);
            EXPECT(memory_blocks_held() == held);
            failed += status != WW_OK;
        }
        EXPECT(failed >= least);
    }
}

void case_memory(const ranks *r)
{
    ww_cluster *cluster = cluster_of_scene(r, WW_L2);
    fail_each(r, cluster, attempt_create, 2, 3);
    fail_each(r, cluster, attempt_search, 1, 4);
    fail_each(r, cluster, attempt_collect, 1, 2);
    ww_cluster_destroy(cluster);
}

/* ---- MPI as it is -------------------------------------------------------------------------------------------------------- */

static void *create_elsewhere(void *argument)
{
    const ranks *r = argument;
    ww_cluster *cluster = NULL;
    const ww_cluster_config config = config_of_scene(WW_L2);
    EXPECT(ww_cluster_create(MPI_COMM_SELF, r->device, &config, &cluster) == WW_UNSUPPORTED);
    EXPECT(strstr(ww_error_message(), "main thread"));
    return NULL;
}

/* One process, which initialises MPI when it likes. */
void case_misuse(const ranks *r_given)
{
    ranks r = *r_given;
    int level;
    pthread_t thread;
    ww_cluster *cluster = NULL;
    const ww_cluster_config config = config_of_scene(WW_L2);
    int32_t rank;
    int64_t row;
    EXPECT(ww_device_open("cpu", &r.device) == WW_OK);
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r.device, &config, &cluster) == WW_INVALID_ARGUMENT);
    EXPECT(strstr(ww_error_message(), "MPI is not initialised"));
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) {
        EXPECT(pthread_create(&thread, NULL, create_elsewhere, &r) == 0);
        pthread_join(thread, NULL);
    } else {
        printf("SKIP: this MPI gives every thread the right to call\n");
    }
    EXPECT(ww_cluster_create(MPI_COMM_SELF, r.device, &config, NULL) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_create(MPI_COMM_SELF, r.device, &config, &cluster) == WW_OK);
    EXPECT(ww_cluster_describe(cluster, NULL) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_describe(NULL, NULL) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_search(NULL, NULL, WW_ANSWER_ALL, NULL, NULL) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_search(cluster, NULL, WW_ANSWER_ALL, NULL, NULL) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_locate(cluster, 0, &rank, &row) == WW_NOT_FOUND);
    EXPECT(ww_cluster_locate(cluster, 0, NULL, &row) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_add_file(cluster, NULL, NULL, NULL, NULL) == WW_INVALID_ARGUMENT);
    EXPECT(ww_cluster_collection(NULL) == NULL);
    ww_cluster_destroy(NULL);
    ww_cluster_destroy(cluster);
    ww_device_close(r.device);
    MPI_Finalize();
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, NULL, &config, &cluster) == WW_INVALID_ARGUMENT);
    EXPECT(strstr(ww_error_message(), "finalised"));
}

/* ---- a rank that does not come ------------------------------------------------------------------------------------------- */

/* Each rank in turn, including the root, is too late: the others name it, and it learns that they have given up. */
void case_timeout(const ranks *r)
{
    for (int late = 0; late < r->count; late++) {
        ww_cluster *cluster = NULL;
        ww_cluster_config config = config_of_scene(WW_L2);
        int64_t rows[QUERIES * 5];
        float scores[QUERIES * 5];
        char name[32];
        config.timeout_ms = 1500;
        EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
        add_rows(ww_cluster_collection(cluster), 0, 20);
        ww_query search = search_of_scene(5);
        MPI_Barrier(MPI_COMM_WORLD);
        /* The late rank starts when the others have given up, which may take long on a busy machine. */
        for (int other = 0; r->rank == late && other < r->count - 1; other++)
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores) == WW_TIMEOUT);
        snprintf(name, sizeof name, ": rank %d of %d did not", late, r->count);
        if (r->rank != late)
            EXPECT(strstr(ww_error_message(), name));
        /* The cluster is lost, and says so without contacting the other ranks. */
        EXPECT(ww_cluster_search(cluster, &search, WW_ANSWER_ALL, rows, scores) == WW_TIMEOUT);
        EXPECT(strstr(ww_error_message(), "can only be destroyed"));
        EXPECT(ww_collection_count(ww_cluster_collection(cluster)) == 20);
        ww_cluster_destroy(cluster);
        if (r->rank != late)
            MPI_Send(NULL, 0, MPI_BYTE, late, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
