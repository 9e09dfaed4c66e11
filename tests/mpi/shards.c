/* Where shards come from: slices of a file, stores; and numbers beyond 32 bits, messages beyond one piece. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/cluster.h"
#include "mpi/ranks.h"
#ifdef WARPWAVE_TEST_STORE
#include <warpwave/store.h>
#endif

/* A path of this run, the same on all ranks. */
static void path_of(const ranks *r, const char *name, char *path, size_t capacity)
{
    long long run = getpid();
    MPI_Bcast(&run, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    const char *folder = getenv("TMPDIR");
    snprintf(path, capacity, "%s/warpwave-ranks-%lld-%d-%s", folder ? folder : "/tmp", run, r->count, name);
}

static void expect_nearest(ww_cluster *cluster, int64_t query_row, int64_t expected_row)
{
    ww_query search = ww_query_default();
    int64_t row = -2;
    float score = -1.0f;
    search.queries = scene_make()->rows[query_row];
    search.query_count = 1;
    search.dim = DIM;
    search.k = 1;
    EXPECT(ww_cluster_search(cluster, &search, WW_ANSWER_ALL, &row, &score) == WW_OK);
    EXPECT(score == 0.0f);
    EXPECT(row == expected_row);
}

/* Returns the first row with the same vector, which a search for it must find. */
static int64_t first_like(int64_t row)
{
    const scene *s = scene_make();
    int64_t first = 0;
    while (memcmp(s->rows[first], s->rows[row], sizeof s->rows[row]) != 0)
        first++;
    return first;
}

static void slices_of(const ranks *r, int64_t rows)
{
    char path[512];
    ww_cluster *cluster = NULL;
    ww_cluster_info info = ww_cluster_info_default();
    ww_cluster_config config = config_of_scene(WW_L2);
    path_of(r, "slices.fbin", path, sizeof path);
    if (r->rank == 0)
        EXPECT(ww_matrix_write_f32(path, scene_make()->rows[0], rows, DIM) == WW_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
    EXPECT(ww_cluster_add_file(cluster, path, NULL, NULL, NULL) == WW_OK);
    EXPECT(ww_cluster_describe(cluster, &info) == WW_OK);
    EXPECT(info.rows_live == rows && info.rows_end == rows && info.rank == r->rank && info.ranks == r->count);
    EXPECT(info.rank_rows_live >= rows / r->count && info.rank_rows_live <= rows / r->count + 1);
    for (int64_t row = 0; row < rows; row += 1 + rows / 3)
        expect_nearest(cluster, row, first_like(row));
    /* A second call is refused where there are rows, and changes nothing. */
    EXPECT(ww_cluster_add_file(cluster, path, NULL, NULL, NULL) == (info.rank_rows_live > 0 ? WW_INVALID_ARGUMENT : WW_OK));
    EXPECT(ww_cluster_add_file(cluster, "/nowhere.fbin", NULL, NULL, NULL) != WW_OK);
    EXPECT(ww_cluster_describe(cluster, &info) == WW_OK && info.rows_live == rows);
    ww_cluster_destroy(cluster);
    MPI_Barrier(MPI_COMM_WORLD);
    if (r->rank == 0)
        unlink(path);
}

static int stop_at_once(int64_t done, int64_t total, void *user)
{
    (void)done, (void)total, (void)user;
    return 1;
}

/* A slice with a number that is not finite, or that is cancelled, leaves the shard empty, and later calls work. */
static void bad_slice(const ranks *r)
{
    static float rows[64][DIM];
    char path[512];
    ww_cluster *cluster = NULL;
    ww_cluster_config config = config_of_scene(WW_L2);
    path_of(r, "bad.fbin", path, sizeof path);
    const uint32_t nan_bits = 0x7fc00000u;
    memcpy(&rows[0][3], &nan_bits, sizeof nan_bits);
    if (r->rank == 0)
        EXPECT(ww_matrix_write_f32(path, rows[0], 64, DIM) == WW_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
    const ww_status status = ww_cluster_add_file(cluster, path, NULL, NULL, NULL);
    EXPECT(status == (r->rank == 0 ? WW_INVALID_ARGUMENT : WW_OK));
    if (r->rank == 0) {
        EXPECT(strstr(ww_error_message(), "bad.fbin"));
        EXPECT(ww_collection_count(ww_cluster_collection(cluster)) == 0);
    } else {
        EXPECT(ww_collection_clear(ww_cluster_collection(cluster)) == WW_OK);
        EXPECT(ww_cluster_add_file(cluster, path, NULL, stop_at_once, NULL) == WW_CANCELLED);
        EXPECT(ww_collection_count(ww_cluster_collection(cluster)) == 0);
    }
    ww_cluster_destroy(cluster);
    MPI_Barrier(MPI_COMM_WORLD);
    if (r->rank == 0)
        unlink(path);
}

void case_file(const ranks *r)
{
    slices_of(r, ROWS);
    slices_of(r, 1); /* fewer rows than ranks */
    bad_slice(r);
}

/* Shards with f16 rows on the host, from a file of f16: they have the config's settings, and searches find the same. */
void case_rows(const ranks *r)
{
    char path[512];
    ww_cluster *cluster = NULL;
    ww_collection_info info = ww_collection_info_default();
    ww_cluster_config config = config_of_scene(WW_L2);
    config.type = WW_VECTOR_F16;
    config.rows = WW_ROWS_HOST;
    config.screen = WW_SCREEN_NONE;
    path_of(r, "rows.f16bin", path, sizeof path);
    if (r->rank == 0) {
        const uint32_t counts[2] = {ROWS, DIM};
        FILE *file = fopen(path, "wb");
        EXPECT(file && fwrite(counts, sizeof counts, 1, file) == 1);
        for (int64_t i = 0; i < (int64_t)ROWS * DIM; i++) {
            const float value = scene_make()->rows[i / DIM][i % DIM];
            const uint16_t half = value < 0.0f ? 0xbc00 : value > 0.0f ? 0x3c00 : 0; /* -1, 1 or 0 */
            EXPECT(fwrite(&half, sizeof half, 1, file) == 1);
        }
        EXPECT(fclose(file) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_INVALID_ARGUMENT);
    EXPECT(strstr(ww_error_message(), "rows on the host need codes"));
    config.screen = WW_SCREEN_INT8;
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
    EXPECT(ww_cluster_add_file(cluster, path, NULL, NULL, NULL) == WW_OK);
    EXPECT(ww_collection_describe(ww_cluster_collection(cluster), &info) == WW_OK);
    EXPECT(info.rows == WW_ROWS_HOST && info.type == WW_VECTOR_F16);
    for (int64_t row = 0; row < ROWS; row += 37)
        expect_nearest(cluster, row, first_like(row));
    ww_cluster_destroy(cluster);
    MPI_Barrier(MPI_COMM_WORLD);
    if (r->rank == 0)
        unlink(path);
}

#ifdef WARPWAVE_TEST_STORE
static void remove_store(const char *path)
{
    const char *const endings[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        char file[600];
        snprintf(file, sizeof file, "%s%s", path, endings[i]);
        unlink(file);
    }
}
#endif

#ifdef WARPWAVE_TEST_STORE
/* Hits that are in this rank's shard have the ids of the rows that one collection finds. */
static void expect_in_shards(const ranks *r, ww_cluster *cluster, const int64_t *rows, const int64_t *expected)
{
    for (int64_t i = 0; i < QUERIES * 20; i++) {
        int32_t rank;
        int64_t place;
        char id[32];
        EXPECT((rows[i] < 0) == (expected[i] < 0));
        if (rows[i] < 0)
            continue;
        EXPECT(ww_cluster_locate(cluster, rows[i], &rank, &place) == WW_OK);
        if (rank == r->rank) {
            EXPECT(ww_collection_id(ww_cluster_collection(cluster), place, id, sizeof id, NULL) == WW_OK);
            EXPECT(strcmp(id, scene_make()->ids[expected[i]]) == 0);
        }
    }
}
#endif

/* Every rank opens its own store; row numbers are places there. */
void case_store(const ranks *r)
{
#ifdef WARPWAVE_TEST_STORE
    char path[512], name[32];
    ww_store *store = NULL;
    ww_collection *shard = NULL;
    ww_cluster *cluster = NULL;
    int64_t rows[QUERIES * 20], expected_rows[QUERIES * 20];
    float scores[QUERIES * 20], expected[QUERIES * 20];
    snprintf(name, sizeof name, "store-%d.db", r->rank);
    path_of(r, name, path, sizeof path);
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs";
    config.dim = DIM;
    config.metric = WW_DOT;
    EXPECT(ww_store_open(path, r->device, NULL, &store) == WW_OK);
    EXPECT(ww_store_create(store, &config, &shard) == WW_OK);
    add_rows(shard, share_first(r, r->rank), share_first(r, r->rank + 1));
    ww_cluster_config over = ww_cluster_config_default();
    over.collection = shard;
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, NULL, &over, &cluster) == WW_OK);
    ww_query query = ww_query_default();
    query.queries = scene_make()->queries[0];
    query.query_count = QUERIES;
    query.dim = DIM;
    query.k = 20;
    ww_collection *whole = collection_of_scene(r, WW_DOT);
    EXPECT(ww_collection_search(whole, &query, expected_rows, expected) == WW_OK);
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    EXPECT(memcmp(scores, expected, sizeof scores) == 0);
    expect_in_shards(r, cluster, rows, expected_rows);
    query.where = "payload->>'$.n' < 40"; /* every rank's own */
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    query.where = NULL;
    ww_filter *filter = NULL;
    EXPECT(ww_filter_read("{\"n\": {\"$lt\": 40}}", &filter) == WW_OK);
    query.filter = filter;
    EXPECT(ww_collection_search(whole, &query, expected_rows, expected) == WW_OK);
    EXPECT(memcmp(scores, expected, sizeof scores) == 0);
    expect_in_shards(r, cluster, rows, expected_rows);
    ww_filter_destroy(filter);
    ww_collection_destroy(whole);
    ww_cluster_destroy(cluster);
    /* It still belongs to the caller. */
    EXPECT(ww_collection_count(shard) == share_first(r, r->rank + 1) - share_first(r, r->rank));
    ww_collection_destroy(shard);
    ww_store_close(store);
    remove_store(path);
#else
    if (r->rank == 0)
        printf("SKIP: SQLite is missing or too old, so there is no store in this build\n");
#endif
}

ww_status collect_numbers(const ranks *r, ww_cluster *cluster, int64_t count)
{
    cluster_call call;
    int64_t *mine = calloc((size_t)((r->rank + 1) * count + 1), sizeof *mine), at = 0;
    for (int64_t i = 0; i < (r->rank + 1) * count; i++)
        mine[i] = r->rank * INT64_C(1000000) + i;
    collecting numbers = {.mine = mine, .bytes = (r->rank + 1) * count * (int64_t)sizeof *mine};
    ww_status status = call_begin(&call, cluster, CALL_COLLECT);
    if (status == WW_OK) {
        status = cluster_collect(&call, &numbers);
        EXPECT(status != WW_OK || (numbers.all != NULL) == (r->rank == 0));
        for (int rank = 0; status == WW_OK && r->rank == 0 && rank < r->count; rank++)
            for (int64_t i = 0; i < (rank + 1) * count; i++, at++) {
                const int64_t expected = rank * INT64_C(1000000) + i;
                EXPECT(memcmp(numbers.all + at * (int64_t)sizeof expected, &expected, sizeof expected) == 0);
            }
        call_end(&call);
    }
    free(mine);
    return status;
}

void case_large(const ranks *r)
{
    ww_cluster *cluster = NULL;
    ww_cluster_info info = ww_cluster_info_default();
    ww_cluster_config config = config_of_scene(WW_L2);
    config.first_row = (r->rank + 1) * INT64_C(5000000000); /* row numbers that no 32-bit integer holds */
    EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
    const int64_t first = share_first(r, r->rank), end = share_first(r, r->rank + 1);
    add_rows(ww_cluster_collection(cluster), first, end);
    EXPECT(ww_cluster_describe(cluster, &info) == WW_OK);
    EXPECT(info.rank_first_row == config.first_row && info.rows_live == ROWS);
    for (int64_t row = 0; row < ROWS; row += 41) {
        const int64_t like = first_like(row);
        int owner = 0;
        while (share_first(r, owner + 1) <= like)
            owner++;
        const int64_t number = (owner + 1) * INT64_C(5000000000) + like - share_first(r, owner);
        int32_t rank;
        int64_t rank_row;
        cluster->piece_bytes = row % 2 ? 7 : 1024; /* messages of many pieces; a list is never cut */
        expect_nearest(cluster, row, number);
        EXPECT(ww_cluster_locate(cluster, number, &rank, &rank_row) == WW_OK);
        EXPECT(rank == owner && rank_row == like - share_first(r, owner));
        EXPECT(ww_cluster_locate(cluster, number + 4000000000, &rank, &rank_row) == WW_NOT_FOUND);
    }
    for (int64_t count = 0; count < 400; count += 133) {
        cluster->piece_bytes = count % 2 ? 1000 : PIECE_BYTES_DEFAULT;
        EXPECT(collect_numbers(r, cluster, count) == WW_OK);
    }
    ww_cluster_destroy(cluster);
    if (r->count > 1) { /* numbers that run into the rows of the next rank, or backwards */
        config.first_row = r->rank == 1 ? 5 : -1;
        EXPECT(ww_cluster_create(MPI_COMM_WORLD, r->device, &config, &cluster) == WW_OK);
        add_rows(ww_cluster_collection(cluster), 0, 10);
        EXPECT(ww_cluster_describe(cluster, &info) == WW_INVALID_ARGUMENT);
        EXPECT(strstr(ww_error_message(), "rank 1: first_row is 5"));
        ww_cluster_destroy(cluster);
    }
}
