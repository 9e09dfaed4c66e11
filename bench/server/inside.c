/* What the server does, in one process and without HTTP: the measure of what HTTP adds.
 *
 *     server_inside search STORE COLLECTION QUERIES DIM SECONDS    QUERIES: f32 numbers, one query after the other
 *     server_inside embed MODEL TEXTS BATCH SECONDS                TEXTS: a text a line
 *
 * Prints a JSON object: a single query's median in milliseconds and queries a second, 32 at once; or texts a second. Times of
 * the processor, too.
 */
#include <string.h>

#include <warpwave/model.h>
#include <warpwave/store.h>

#include "measure.h"

enum { K = 10, MANY = 32, TIMES_MAX = 1 << 20, TEXTS_MAX = 4096 };

static double times[TIMES_MAX];

/* Returns the processor time of all threads so far. */
static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static float *read_floats(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rbe");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file) / sizeof(float);
    rewind(file);
    float *numbers = malloc(*count * sizeof *numbers);
    if (!numbers || fread(numbers, sizeof *numbers, *count, file) != *count)
        exit(1);
    fclose(file);
    return numbers;
}

/* Queries for some seconds, `at_once` in each call; returns how many calls. */
static size_t search(ww_collection *collection, ww_query query, size_t total, size_t at_once, double seconds)
{
    const float *all = query.queries;
    size_t count = 0;
    const double begun = seconds_now();
    for (size_t i = 0; seconds_now() < begun + seconds && count < TIMES_MAX; i = (i + at_once) % (total - at_once)) {
        ww_results *results = NULL;
        const double start = seconds_now();
        query.queries = all + i * (size_t)query.dim;
        query.query_count = (int64_t)at_once;
        check(ww_collection_query(collection, &query, &results), "a query");
        ww_results_destroy(results);
        times[count++] = seconds_now() - start;
    }
    return count;
}

static void measure_search(char **argv)
{
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    size_t numbers = 0;
    ww_query query = ww_query_default();
    query.dim = atoi(argv[5]);
    query.queries = read_floats(argv[4], &numbers);
    query.k = K;
    query.fetch = WW_FETCH_IDS;
    const size_t total = numbers / (size_t)query.dim;
    check(ww_device_open("cpu", &device), "the device");
    check(ww_store_open(argv[2], device, NULL, &store), "the store");
    check(ww_store_collection(store, argv[3], &collection), "the collection");
    search(collection, query, total, 1, 0.5); /* warm */
    const double cpu = cpu_seconds();
    const size_t single = search(collection, query, total, 1, atof(argv[6]));
    const double cpu_single = cpu_seconds(), median = median_of(times, single);
    const size_t calls = search(collection, query, total, MANY, atof(argv[6]));
    const double cpu_many = cpu_seconds(), many = median_of(times, calls);
    printf("{\"median_ms\": %.4f, \"cpu_ms\": %.4f, \"rate_32\": %.1f, \"cpu_32_ms\": %.4f}\n", 1e3 * median,
           1e3 * (cpu_single - cpu) / (double)single, MANY / many, 1e3 * (cpu_many - cpu_single) / (double)(MANY * calls));
    ww_collection_destroy(collection);
    ww_store_close(store);
    ww_device_close(device);
}

static void measure_embed(char **argv)
{
    static char *texts[TEXTS_MAX];
    static size_t bytes[TEXTS_MAX];
    ww_device *device = NULL;
    ww_model *model = NULL;
    ww_model_info info = ww_model_info_default();
    size_t total = 0, capacity = 0, done = 0;
    const size_t batch = (size_t)atoi(argv[4]);
    FILE *file = fopen(argv[3], "re");
    for (ssize_t length; file && total < TEXTS_MAX && (length = getline(&texts[total], &capacity, file)) > 1; capacity = 0)
        bytes[total++] = (size_t)length - 1;
    check(ww_device_open("cpu", &device), "the device");
    check(ww_model_open(argv[2], device, NULL, &model), "the model");
    check(ww_model_describe(model, &info), "the model");
    float *vectors = malloc(batch * (size_t)info.width * sizeof *vectors);
    const double begun = seconds_now(), cpu = cpu_seconds();
    for (size_t i = 0; seconds_now() < begun + atof(argv[5]); i = (i + batch) % (total - batch + 1), done += batch)
        check(ww_model_embed(model, (const char *const *)texts + i, bytes + i, batch, NULL, vectors), "embedding");
    printf("{\"rate\": %.2f, \"cpu_ms\": %.4f}\n", (double)done / (seconds_now() - begun),
           1e3 * (cpu_seconds() - cpu) / (double)done);
    free(vectors);
    ww_model_close(model);
    ww_device_close(device);
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "search") == 0) {
        measure_search(argv);
    } else if (argc == 6 && strcmp(argv[1], "embed") == 0) {
        measure_embed(argv);
    } else {
        fprintf(stderr, "usage: server_inside search STORE COLLECTION QUERIES DIM SECONDS | embed MODEL TEXTS BATCH SECONDS\n");
        return 2;
    }
    return 0;
}
