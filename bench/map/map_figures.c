/* How long a map takes, its neighbours and its layout apart: build/map_figures [DEVICE [ROWS [DIM | FILE.npy]]].
 *
 * Without a file the rows are 117,659 of 384 numbers around 1,000 centers. Seconds are those of the clock and of all threads of
 * the process. */
#include <stdint.h>
#include <string.h>
#include <warpwave.h>

#include "base/tables/hash.h"
#include "measure.h"

enum { CENTERS = 1000 };

/* The callback is called with half of the total when the neighbours are found. */
typedef struct phases {
    double begun, begun_cpu, found, found_cpu;
} phases;

static double cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int look(int64_t done, int64_t total, void *user)
{
    phases *p = user;
    if (2 * done <= total) {
        p->found = seconds_now();
        p->found_cpu = cpu_seconds();
    }
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Sums of four uniform numbers. */
static float next_number(uint64_t *state)
{
    const uint64_t bits = next_random(state);
    int32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int32_t)(bits >> (16 * i) & 0xffff) - 32768;
    return (float)sum / 32768.0f;
}

static float *clustered(int64_t rows, int32_t dim)
{
    uint64_t state = 1;
    float *centers = malloc((size_t)CENTERS * (size_t)dim * sizeof *centers);
    float *made = malloc((size_t)rows * (size_t)dim * sizeof *made);
    for (int64_t i = 0; i < (int64_t)CENTERS * dim; i++)
        centers[i] = next_number(&state);
    for (int64_t r = 0; r < rows; r++) {
        const float *center = centers + (int64_t)(next_random(&state) % CENTERS) * dim;
        for (int32_t i = 0; i < dim; i++)
            made[r * dim + i] = center[i] + 0.7f * next_number(&state);
    }
    free(centers);
    return made;
}

static float *read_file(const char *path, int64_t *rows, int32_t *dim)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    check(ww_matrix_open(path, &matrix), path);
    check(ww_matrix_describe(matrix, &info), path);
    *rows = info.rows < *rows ? info.rows : *rows;
    *dim = (int32_t)info.dim;
    float *values = malloc((size_t)*rows * (size_t)*dim * sizeof *values);
    check(ww_matrix_read_f32(matrix, 0, *rows, values), path);
    ww_matrix_close(matrix);
    return values;
}

static uint64_t hash_of(const ww_map *map)
{
    return fnv_bytes(FNV_BEGIN, ww_map_points(map), (size_t)ww_map_count(map) * 8);
}

static void measure(ww_collection *collection)
{
    phases p = {.begun = seconds_now(), .begun_cpu = cpu_seconds()};
    ww_map_config config = ww_map_config_default();
    ww_map *map = NULL;
    config.remake = 1;
    config.progress = look;
    config.progress_user = &p;
    check(ww_collection_map(collection, &config, &map), "ww_collection_map");
    printf("neighbours %7.2f s (%7.2f s of threads), layout %7.2f s (%7.2f s), together %7.2f s (%7.2f s); hash %016llx\n",
           p.found - p.begun, p.found_cpu - p.begun_cpu, seconds_now() - p.found, cpu_seconds() - p.found_cpu,
           seconds_now() - p.begun, cpu_seconds() - p.begun_cpu, (unsigned long long)hash_of(map));
    fflush(stdout);
    ww_map_destroy(map);
}

int main(int count, char **arguments)
{
    const char *device_id = count > 1 ? arguments[1] : "auto";
    int64_t rows = count > 2 ? atoll(arguments[2]) : 117659;
    int32_t dim = 384;
    const bool file = count > 3 && strchr(arguments[3], '.');
    if (count > 3 && !file)
        dim = atoi(arguments[3]);
    float *vectors = file ? read_file(arguments[3], &rows, &dim) : clustered(rows, dim);
    ww_device *device = NULL;
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    ww_rows added = ww_rows_default();
    config.dim = dim;
    added.count = rows;
    added.dim = dim;
    added.vectors = vectors;
    check(ww_device_open(device_id, &device), device_id);
    check(ww_collection_create(device, &config, &collection), "a collection");
    check(ww_collection_add(collection, &added), "adding rows");
    free(vectors);
    printf("%lld x %d, cosine, on %s\n", (long long)rows, dim, device_id);
    const int runs = getenv("RUNS") ? atoi(getenv("RUNS")) : 2; /* the first has the start of the device in it */
    for (int i = 0; i < runs; i++)
        measure(collection);
    ww_collection_destroy(collection);
    ww_device_close(device);
    return 0;
}
