/* What merging over ranks costs: the pairwise merge of lists, a message, an agreement, the whole reduction, beside the search
 * of a shard and the model of docs/design/scale.md.
 *
 *   mpiexec -n 64 build/ranks [ROWS [DIM [QUERIES [K]]]]     rows of each rank; 0: no search
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/cluster.h>

#include "measure.h"
#include "mpi/cluster.h"

enum { REPEATS = 7 };

typedef struct figures {
    int rank, ranks;
    int64_t rows, queries;
    int32_t dim, k;
    ww_device *device;
    ww_cluster *cluster;
    rank_key *mine, *merged;
} figures;

/* A rank that fails ends all. */
static void succeed(ww_status status)
{
    if (status != WW_OK) {
        fprintf(stderr, "ranks: %s\n", ww_error_message());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int compare_keys(const void *a, const void *b)
{
    return rank_key_before(*(const rank_key *)a, *(const rank_key *)b) ? -1 : 1;
}

/* Lists as searches of equal shards give them: each rank has its share of the best. */
static void make_lists(const figures *f)
{
    uint64_t state = (uint64_t)f->rank + 1;
    for (int64_t q = 0; q < f->queries; q++) {
        for (int32_t i = 0; i < f->k; i++) {
            const float score = (float)(next_random(&state) >> 40) * 0x1p-24f;
            f->mine[q * f->k + i] = rank_key_make(WW_L2, score, f->rank, (int64_t)(next_random(&state) & 0xffffffff));
        }
        qsort(f->mine + q * f->k, (size_t)f->k, sizeof *f->mine, compare_keys);
    }
}

/* Waits for all ranks without taking the cores of those that work, as MPI_Barrier() would where ranks share cores. */
static void meet(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!done) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

/* Returns the median of all repetitions; all ranks start each of them together. */
static double time_of(const figures *f, void (*work)(const figures *f))
{
    double seconds[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        meet();
        const double begun = seconds_now();
        work(f);
        seconds[i] = seconds_now() - begun;
    }
    return median_of(seconds, REPEATS);
}

/* The middle one; `other` is another rank's list, and is whole again each time. */
static double time_of_merge(const figures *f, const rank_key *other)
{
    const int64_t places = f->queries * f->k;
    double seconds[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        memcpy(f->merged, other, (size_t)places * sizeof *other);
        const double begun = seconds_now();
        for (int64_t q = 0; q < f->queries; q++)
            rank_keys_merge(f->mine + q * f->k, f->merged + q * f->k, f->k);
        seconds[i] = seconds_now() - begun;
    }
    return median_of(seconds, REPEATS);
}

static void agree(const figures *f)
{
    ww_cluster_info info = ww_cluster_info_default();
    succeed(ww_cluster_describe(f->cluster, &info));
}

static void reduce(const figures *f)
{
    succeed(cluster_reduce(f->cluster, &(reduction){f->mine, f->merged, f->queries, f->k}));
}

/* There and back between ranks 0 and 1. */
static void exchange(const figures *f)
{
    const int bytes = (int)(f->queries * f->k * (int64_t)sizeof *f->mine);
    if (f->rank == 0) {
        MPI_Send(f->mine, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(f->merged, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (f->rank == 1) {
        MPI_Recv(f->merged, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(f->mine, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

/* ---- the search of a shard ----------------------------------------------------------------------------------------------- */

static void fill(float *values, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) { /* near enough to normal */
        uint64_t bits = next_random(&seed);
        float sum = 0.0f;
        for (int j = 0; j < 4; j++, bits >>= 16)
            sum += (float)(bits & 0xffff);
        values[i] = (sum - 131070.0f) * 0x1p-15f;
    }
}

static void add_rows(const figures *f)
{
    enum { PIECE = 10000 };
    float *piece = malloc((size_t)PIECE * (size_t)f->dim * sizeof *piece);
    for (int64_t done = 0; done < f->rows; done += PIECE) {
        ww_rows rows = ww_rows_default();
        rows.count = f->rows - done < PIECE ? f->rows - done : PIECE;
        rows.dim = f->dim;
        rows.vectors = piece;
        fill(piece, rows.count * f->dim, (uint64_t)(f->rank * f->rows + done));
        succeed(ww_collection_add(ww_cluster_collection(f->cluster), &rows));
    }
    free(piece);
}

/* Returns the processor time of this process: on a busy machine, the only meaningful figure. */
static double cpu_seconds(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static void measure_search(const figures *f)
{
    float *queries = malloc((size_t)(f->queries * f->dim) * sizeof *queries);
    int64_t *rows = malloc((size_t)(f->queries * f->k) * sizeof *rows);
    float *scores = malloc((size_t)(f->queries * f->k) * sizeof *scores);
    double shard[3], all[3], used[3], used_alone[3];
    add_rows(f);
    fill(queries, f->queries * f->dim, UINT64_C(77777777));
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = f->queries;
    search.dim = f->dim;
    search.k = f->k;
    for (int i = 0; i < 3; i++) {
        meet();
        double begun = seconds_now();
        used_alone[i] = cpu_seconds();
        succeed(ww_collection_search(ww_cluster_collection(f->cluster), &search, rows, scores));
        shard[i] = seconds_now() - begun;
        used_alone[i] = cpu_seconds() - used_alone[i];
        meet();
        begun = seconds_now();
        used[i] = cpu_seconds();
        succeed(ww_cluster_search(f->cluster, &search, WW_ANSWER_ROOT, rows, scores));
        all[i] = seconds_now() - begun;
        used[i] = cpu_seconds() - used[i];
        MPI_Allreduce(MPI_IN_PLACE, &used[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &used_alone[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (f->rank == 0)
        printf(
            "search of a shard of %lld x %d: %.3f ms, of all %d: %.3f ms; the longest rank had a core for %.3f and %.3f ms\n",
            (long long)f->rows, f->dim, median_of(shard, 3) * 1e3, f->ranks, median_of(all, 3) * 1e3,
            median_of(used_alone, 3) * 1e3, median_of(used, 3) * 1e3);
    free(scores);
    free(rows);
    free(queries);
}

static void report(const figures *f, const rank_key *other)
{
    const double merge = time_of_merge(f, other), agreement = time_of(f, agree);
    const double message = f->ranks > 1 ? time_of(f, exchange) * 0.5 : 0.0;
    const double reduced = time_of(f, reduce);
    int levels = 0;
    while (1 << levels < f->ranks)
        levels++;
    /* On one machine, all merges of a level share its cores, and so do the copies of messages. */
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN), work = f->ranks / cores;
    const double steps = work > levels ? work : levels;
    if (f->rank == 0)
        printf("%d ranks, %lld queries, k = %d: pairwise merge %.3f ms, message %.3f ms, agreement %.3f ms\n"
               "reduction %.3f ms; model: %d levels, %.3f ms on machines of their own, %.3f ms on these %g cores\n",
               f->ranks, (long long)f->queries, f->k, merge * 1e3, message * 1e3, agreement * 1e3, reduced * 1e3, levels,
               levels * (merge + message) * 1e3, steps * (merge + message) * 1e3, cores);
}

int main(int argc, char **argv)
{
    figures f = {.rows = argc > 1 ? atoll(argv[1]) : 0,
                 .dim = argc > 2 ? atoi(argv[2]) : 128,
                 .queries = argc > 3 ? atoll(argv[3]) : 1000,
                 .k = argc > 4 ? atoi(argv[4]) : 100};
    ww_cluster_config config = ww_cluster_config_default();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &f.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &f.ranks);
    config.dim = f.dim;
    config.metric = WW_L2;
    succeed(ww_device_open(getenv("WARPWAVE_DEVICE") ? NULL : "cpu", &f.device));
    succeed(ww_cluster_create(MPI_COMM_WORLD, f.device, &config, &f.cluster));
    f.mine = malloc((size_t)(f.queries * f.k) * sizeof *f.mine);
    f.merged = malloc((size_t)(f.queries * f.k) * sizeof *f.merged);
    make_lists(&f);
    figures another = f;
    another.rank = f.rank + f.ranks;
    another.mine = malloc((size_t)(f.queries * f.k) * sizeof *f.mine);
    make_lists(&another);
    report(&f, another.mine);
    free(another.mine);
    if (f.rows > 0)
        measure_search(&f);
    free(f.merged);
    free(f.mine);
    ww_cluster_destroy(f.cluster);
    ww_device_close(f.device);
    MPI_Finalize();
    return 0;
}
