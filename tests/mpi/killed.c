/* A rank is killed or stopped while all ranks build an index or compact. The others get a status within the timeout, keep their
 * old index, and can continue with their shards. check-killed starts this program in such a way that the launcher does not end
 * the other ranks, and ends them itself. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/cluster.h"
#include "mpi/ranks.h"
#include "vectors/ivf/ivf.h"

enum { LISTS = 8, SECONDS_MAX = 120 };

/* How long the others wait for the victim. A rank that gets no processor for twice this time counts as missing too. */
static const double timeout_seconds = 2.0;

static int number_of(const char *name)
{
    const char *text = getenv(name);
    EXPECT(text);
    return atoi(text);
}

/* Sends the victim the signal when this percentage is done. */
static int end_here(long long done, long long total, void *user)
{
    const ranks *r = user;
    if (r->rank == number_of("WARPWAVE_TEST_VICTIM") && done * 100 >= total * number_of("WARPWAVE_TEST_PERCENT"))
        kill(getpid(), number_of("WARPWAVE_TEST_SIGNAL"));
    return 0;
}

/* The index is the one before, and the shard can be searched by it. */
static void expect_old_index(ww_collection *shard, const ivf *before, const float *centroids)
{
    int64_t rows[4];
    float scores[4];
    ww_query query = ww_query_default();
    query.queries = scene_make()->queries[0], query.query_count = 1, query.dim = DIM, query.k = 4, query.nprobe = 2;
    EXPECT(shard->index == before && before->nlist == LISTS);
    EXPECT(memcmp(before->centroids, centroids, LISTS * DIM * sizeof *centroids) == 0);
    EXPECT(ww_collection_search(shard, &query, rows, scores) == WW_OK);
    EXPECT(rows[0] >= 0 || ww_collection_count(shard) == 0);
}

void case_killed(const ranks *r)
{
    const char *gone[] = {"row-1", "row-120", "row-290"}; /* one of each rank */
    ww_ivf_config config = ww_ivf_config_default();
    ww_cluster *cluster = empty_cluster(r, DIM, WW_L2);
    float centroids[LISTS * DIM];
    char name[64];
    ww_collection *shard = ww_cluster_collection(cluster);
    add_rows(shard, r->rank * 100, r->rank * 100 + 100);
    config.nlist = LISTS;
    EXPECT(ww_cluster_build_ivf(cluster, &config) == WW_OK);
    EXPECT(ww_collection_remove(shard, &gone[r->rank], 1) == WW_OK);
    const ivf *before = shard->index;
    memcpy(centroids, before->centroids, sizeof centroids);
    cluster->timeout_seconds = timeout_seconds; /* only from here on, because no rank is late while the index is built */
    MPI_Barrier(MPI_COMM_WORLD);
    config.seed = 9;
    config.progress = end_here;
    config.progress_user = (void *)(uintptr_t)r;
    const ww_status status = number_of("WARPWAVE_TEST_COMPACT") > 0
                                 ? ww_cluster_compact(cluster, end_here, (void *)(uintptr_t)r)
                                 : ww_cluster_build_ivf(cluster, &config);
    EXPECT(status == WW_TIMEOUT || status == WW_DRIVER_ERROR);
    snprintf(name, sizeof name, "rank %d of %d did not report", number_of("WARPWAVE_TEST_VICTIM"), r->count);
    EXPECT(status == WW_DRIVER_ERROR || strstr(ww_error_message(), name));
    expect_old_index(shard, before, centroids);
    EXPECT(ww_cluster_drop_ivf(cluster) == status);
    EXPECT(strstr(ww_error_message(), "can only be destroyed"));
    ww_cluster_destroy(cluster);
    printf("rank %d goes on\n", r->rank);
    fflush(stdout);
    sleep(SECONDS_MAX); /* a launcher may end all ranks when one ends, and the others have not said it yet */
    _exit(1);
}
