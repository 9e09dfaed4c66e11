/* What the start of a process costs on a GPU, in milliseconds of wall-clock time, step by step.
 *
 *   startup [DEVICE [ROWS [DIM]]]     DEVICE is cuda:0 by default, ROWS 1500, DIM 128
 *
 * For CUDA a context is made and released first with nothing but the driver, by hand: that is what any CUDA program pays. Since
 * it also warms up the driver, it is done in a process of its own (a fork that has not touched CUDA), and ours begins cold. The
 * last line is what this library adds. Driver's compilations are cached in ~/.nv/ComputeCache: CUDA_CACHE_DISABLE=1 shows a
 * start that finds nothing there.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <warpwave.h>

#include "measure.h"

/* Prints the time of a step and starts the next. */
static double lap(const char *step, double *since)
{
    const double now = seconds_now() * 1e3;
    const double took = now - *since;
    printf("  %-44s %9.2f ms\n", step, took);
    fflush(stdout);
    *since = now;
    return took;
}

/* ---- an empty CUDA context ----------------------------------------------------------------------------------------------- */

static void find(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    if (*(void **)function == NULL) {
        fprintf(stderr, "libcuda.so.1 has no %s\n", name);
        _exit(1);
    }
}

static void empty_context(int index)
{
    double since = seconds_now() * 1e3;
    const double begin = since;
    void *context = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    lap("dlopen of libcuda.so.1", &since);
    int (*init)(unsigned) = NULL;
    int (*retain)(void **, int) = NULL;
    int (*release)(int) = NULL;
    find(library, "cuInit", (void *)&init);
    find(library, "cuDevicePrimaryCtxRetain", (void *)&retain);
    find(library, "cuDevicePrimaryCtxRelease_v2", (void *)&release);
    int number = init(0);
    lap("cuInit", &since);
    if (number == 0)
        number = retain(&context, index);
    lap("cuDevicePrimaryCtxRetain", &since);
    if (number == 0)
        number = release(index);
    lap("cuDevicePrimaryCtxRelease", &since);
    if (number != 0) {
        fprintf(stderr, "CUDA says %d\n", number);
        _exit(1);
    }
    printf("  %-44s %9.2f ms\n", "together: an empty context", since - begin);
    fflush(stdout);
}

/* Runs in a separate process. Returns how long it took, or a negative number. */
static double empty_process(int index)
{
    const double begin = seconds_now() * 1e3;
    const pid_t child = fork();
    if (child == 0) {
        empty_context(index);
        exit(0); // NOLINT(concurrency-mt-unsafe): libraries' own clean-up belongs to what is measured
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return -1;
    const double took = seconds_now() * 1e3 - begin;
    printf("  %-44s %9.2f ms\n", "the process with an empty context", took);
    return took;
}

/* ---- a search ------------------------------------------------------------------------------------------------------------ */

static float *random_vectors(int64_t rows, int32_t dim)
{
    float *vectors = malloc((size_t)rows * (size_t)dim * sizeof *vectors);
    uint32_t state = 12345;
    for (int64_t i = 0; vectors != NULL && i < rows * dim; i++) {
        state = state * 1664525u + 1013904223u;
        vectors[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return vectors;
}

static void first_steps(const char *name, int64_t rows_count, int32_t dim)
{
    enum { K = 10 };
    ww_device *device = NULL;
    ww_collection *collection = NULL;
    int64_t found[K];
    float scores[K];
    float *vectors = random_vectors(rows_count, dim);
    double since = seconds_now() * 1e3;
    const double begin = since;
    check(ww_device_open(name, &device), "ww_device_open");
    const double opened = lap("ww_device_open", &since);
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    check(ww_collection_create(device, &config, &collection), "ww_collection_create");
    ww_rows rows = ww_rows_default();
    rows.count = rows_count;
    rows.dim = dim;
    rows.vectors = vectors;
    check(ww_collection_add(collection, &rows), "ww_collection_add");
    lap("collection created, rows added", &since);
    ww_query search = ww_query_default();
    search.queries = vectors;
    search.query_count = 1;
    search.dim = dim;
    search.k = K;
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"first search", "second search", "third search"};
        check(ww_collection_search(collection, &search, found, scores), "ww_collection_search");
        lap(names[i], &since);
    }
    const double used = since - begin;
    ww_device_info info = ww_device_info_default();
    check(ww_device_describe(device, &info), "ww_device_describe");
    ww_collection_destroy(collection);
    ww_device_close(device);
    lap("collection and device closed", &since);
    printf("  %-44s %9.2f ms\n", "together", since - begin);
    printf("  device opened in %.2f ms; ready and searched after %.2f ms; kernels: %s\n", opened, used, info.kernels);
    fflush(stdout);
    free(vectors);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cuda:0";
    const int64_t rows = argc > 2 ? strtoll(argv[2], NULL, 10) : 1500;
    const int32_t dim = argc > 3 ? (int32_t)strtol(argv[3], NULL, 10) : 128;
    const char *colon = strchr(name, ':');
    double empty = 0;
    if (strncmp(name, "cuda", 4) == 0) {
        printf("An empty CUDA context:\n");
        empty = empty_process(colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0);
        if (empty < 0)
            return 1;
    }
    printf("A search in %lld rows of %d on %s:\n", (long long)rows, dim, name);
    fflush(stdout);
    const double begin = seconds_now() * 1e3;
    const pid_t child = fork();
    if (child == 0) {
        first_steps(name, rows, dim);
        exit(0); // NOLINT(concurrency-mt-unsafe): as above
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 1;
    const double took = seconds_now() * 1e3 - begin;
    printf("  %-44s %9.2f ms\n", "the process with a search", took);
    if (empty > 0)
        printf("Above an empty CUDA context: %.2f ms\n", took - empty);
    return 0;
}
