/* A rank is killed or stopped before or while all ranks search. The others get a status within the timeout and can continue
 * with their shards. check-killed starts this program in such a way that the launcher does not end the other ranks, and ends
 * them itself. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/cluster.h"
#include "mpi/ranks.h"

enum { SECONDS_MAX = 120 };

/* How long the others wait for the victim. A rank that gets no processor for twice this time counts as missing too. */
static const double timeout_seconds = 2.0;

static int number_of(const char *name)
{
    const char *text = getenv(name);
    EXPECT(text);
    return atoi(text);
}

/* Sends the victim the signal. */
static int end_here(int64_t done, int64_t total, void *user)
{
    const ranks *r = user;
    (void)done, (void)total;
    if (r->rank == number_of("WARPWAVE_TEST_VICTIM"))
        kill(getpid(), number_of("WARPWAVE_TEST_SIGNAL"));
    return 0;
}

void case_killed(const ranks *r)
{
    ww_cluster *cluster = NULL;
    ww_cluster_config config = config_of_scene(WW_L2);
    int64_t rows[QUERIES * 4];
    float scores[QUERIES * 4];
    char name[64];
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
    ww_collection *shard = ww_cluster_collection(cluster);
    add_rows(shard, r->rank * 100, r->rank * 100 + 100);
    ww_query query = ww_query_default();
    query.queries = scene_make()->queries[0], query.query_count = QUERIES, query.dim = DIM, query.k = 4;
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    cluster->timeout_seconds = timeout_seconds; /* only from here on, because no rank is late before */
    MPI_Barrier(MPI_COMM_WORLD);
    if (number_of("WARPWAVE_TEST_DURING") == 0)
        end_here(0, 0, (void *)(uintptr_t)r);
    query.progress = end_here;
    query.progress_user = (void *)(uintptr_t)r;
    const ww_status status = ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores);
    EXPECT(status == WW_TIMEOUT || status == WW_DRIVER_ERROR);
    snprintf(name, sizeof name, "rank %d of %d did not report", number_of("WARPWAVE_TEST_VICTIM"), r->count);
    EXPECT(status == WW_DRIVER_ERROR || strstr(ww_error_message(), name));
    EXPECT(ww_collection_search(shard, &query, rows, scores) == WW_OK && rows[0] >= 0);
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores) == status);
    EXPECT(strstr(ww_error_message(), "can only be destroyed"));
    ww_cluster_destroy(cluster);
    printf("rank %d goes on\n", r->rank);
    fflush(stdout);
    sleep(SECONDS_MAX); /* a launcher may end all ranks when one ends, and the others have not said it yet */
    _exit(1);
}
