/* `test_ranks_MPI CASE`: one case of the tests of ranks, under mpiexec. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/ranks.h"
#include "support/data/random.h"

static scene the_scene;

const scene *scene_make(void)
{
    test_random random = {.state = 2022};
    if (the_scene.id_list[0])
        return &the_scene;
    for (int i = 0; i < ROWS; i++) {
        for (int d = 0; d < DIM; d++)
            the_scene.rows[i][d] = (float)random_below(&random, 3) - 1.0f;
        if (i % 3 == 0 && i > 0) /* once more a row of another shard */
            memcpy(the_scene.rows[i], the_scene.rows[random_below(&random, (uint64_t)i)], sizeof the_scene.rows[i]);
        snprintf(the_scene.ids[i], sizeof the_scene.ids[i], "row-%d", i);
        if (i % 5 != 0)
            snprintf(the_scene.payloads[i], sizeof the_scene.payloads[i], "{\"n\":%d,\"q\":[%d]}", i, i % 11);
        the_scene.id_list[i] = the_scene.ids[i];
        the_scene.payload_list[i] = the_scene.payloads[i][0] ? the_scene.payloads[i] : NULL;
    }
    for (int q = 0; q < QUERIES; q++)
        for (int d = 0; d < DIM; d++)
            the_scene.queries[q][d] = q % 2 ? random_normal(&random) : (float)random_below(&random, 3) - 1.0f;
    return &the_scene;
}

int64_t share_first(const ranks *r, int rank)
{
    if (r->count <= 2)
        return rank == 0 ? 0 : rank == r->count ? ROWS : ROWS / 3;
    if (rank >= r->count)
        return ROWS;
    const int empty_joined = rank % 5 == 1 ? rank - 1 : rank; /* ranks 0, 5, 10, ... have no rows */
    return (int64_t)ROWS * empty_joined * empty_joined / (r->count * r->count);
}

ww_cluster_config config_of_scene(ww_metric metric)
{
    ww_cluster_config config = ww_cluster_config_default();
    config.name = "scene";
    config.dim = DIM;
    config.metric = metric;
    config.timeout_ms = 60000;
    return config;
}

ww_collection *empty_collection(const ranks *r, int32_t dim, ww_metric metric)
{
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    config.metric = metric;
    EXPECT(ww_collection_create(r->device, &config, &collection) == WW_OK);
    return collection;
}

void add_rows(ww_collection *collection, int64_t first, int64_t end)
{
    const scene *s = scene_make();
    ww_rows rows = ww_rows_default();
    rows.count = end - first;
    rows.dim = DIM;
    rows.vectors = s->rows[first];
    rows.ids = s->id_list + first;
    rows.payloads = s->payload_list + first;
    EXPECT(end == first || ww_collection_add(collection, &rows) == WW_OK);
}

ww_cluster *cluster_of_scene(const ranks *r, ww_metric metric)
{
    ww_cluster *cluster = NULL;
    ww_cluster_config config = config_of_scene(metric);
    config.screen = r->rank % 2 ? WW_SCREEN_NONE : WW_SCREEN_INT8;
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
    add_rows(ww_cluster_collection(cluster), share_first(r, r->rank), share_first(r, r->rank + 1));
    return cluster;
}

ww_collection *collection_of_scene(const ranks *r, ww_metric metric)
{
    ww_collection *collection = empty_collection(r, DIM, metric);
    add_rows(collection, 0, ROWS);
    return collection;
}

void expect_same(long long number)
{
    long long least, most;
    MPI_Allreduce(&number, &least, 1, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&number, &most, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(least == most);
}

static const struct {
    const char *name;
    void (*run)(const ranks *r);
} cases[] = {
    {"bits", case_bits},     {"masks", case_masks},     {"file", case_file},         {"rows", case_rows},
    {"store", case_store},   {"large", case_large},     {"disagree", case_disagree}, {"memory", case_memory},
    {"misuse", case_misuse}, {"timeout", case_timeout}, {"mpi", case_mpi},           {"killed", case_killed},
};

/* Devices that differ from rank to rank, as WARPWAVE_TEST_RANK_DEVICES lists them. */
static void open_device(ranks *r)
{
    const char *listed = getenv("WARPWAVE_TEST_RANK_DEVICES");
    char names[256];
    snprintf(names, sizeof names, "%s", listed ? listed : "cpu");
    const char *all[16];
    int count = 0;
    char *rest = names;
    for (char *name; count < 16 && (name = strsep(&rest, ",")) != NULL;)
        all[count++] = name;
    EXPECT(ww_device_open(all[r->rank % count], &r->device) == WW_OK);
}

int main(int argc, char **argv)
{
    ranks r = {0};
    int given;
    EXPECT(argc > 1);
    if (strcmp(argv[1], "misuse") == 0) { /* initialises MPI itself */
        case_misuse(&r);
        return 0;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.count);
    open_device(&r);
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            if (strcmp(cases[c].name, argv[i]) == 0) {
                cases[c].run(&r);
                known = true;
            }
        EXPECT(known);
    }
    ww_device_close(r.device);
    MPI_Finalize();
    if (r.rank == 0)
        printf("%d ranks: %s\n", r.count, argv[1]);
    return 0;
}
