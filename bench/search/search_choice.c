/* Which way searches take, and whether it was the better one: every shape of a grid by scoring every row, by the screen, and as
 * the device chooses. Also what a range search takes beside a search for as many results.
 *
 *     build/search_choice [--device NAME] [--quick] [--metric dot|l2|cosine] [--k K] [--clustered] [--shape
 * ROWSxDIMxQUERIES]...
 *                         [--range] [--phases]
 *
 * --phases says where the time of a screened search, or range search, goes on a GPU. Times are medians of a few runs, end to
 * end, in microseconds. `chosen` is the median of runs behind those in which the device may have tried both ways; `ratio` is
 * that over the better of the two. Shapes that take too much memory or time are left out, and said to be.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave.h>

#include "arithmetic/canon.h"
#include "device/backend.h"
#include "measure.h"
#include "search/phases.h"

enum {
    RUNS_MAX = 9,
    RUNS_MIN = 3,
    SETTLING_RUNS = 7, /* runs in which a device may try both ways */
    SHAPES_MAX = 64,
    CLUSTERS = 1000
};

static const double ROUND_SECONDS = 0.25;      /* that the runs of one figure take, about */
static const double FLOATS_MAX = 1.6e9;        /* maximum size of the rows: 6.4 GB */
static const double PLAIN_PRODUCTS_MAX = 8e12; /* of a run: most of a second on an H200 */

typedef struct options {
    const char *device;
    bool quick, clustered, range, phases;
    ww_metric metric;
    int32_t k;
    double products_max;
    int64_t shapes[SHAPES_MAX][3];
    int shape_count;
} options;

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

static uint64_t next_bits(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Nearly normal: the sum of four uniform numbers. */
static float next_normal(uint64_t *state)
{
    const uint64_t bits = next_bits(state);
    const double sum = (double)(bits & 0xffff) + (double)(bits >> 16 & 0xffff) + (double)(bits >> 32 & 0xffff) +
                       (double)(bits >> 48) - 2.0 * 65535;
    return (float)(sum * (1.7320508 / 65536.0));
}

/* Rows of normal numbers; clustered ones are 10% away from one of a thousand centres. */
static void fill(const options *o, float *rows, int64_t count, int32_t dim, uint64_t seed)
{
    uint64_t state = seed;
    for (int64_t r = 0; r < count; r++) {
        uint64_t centre = 7777 + (uint64_t)(o->clustered ? next_bits(&state) % CLUSTERS : 0) * 1000003;
        for (int32_t i = 0; i < dim; i++) {
            const float x = next_normal(&state);
            rows[r * dim + i] = o->clustered ? next_normal(&centre) + 0.1f * x : x;
        }
    }
}

static ww_collection *collection_of(const options *o, ww_device *device, int64_t count, int32_t dim)
{
    const int64_t block = count < 200000 ? count : 200000;
    float *rows = malloc((size_t)block * (size_t)dim * sizeof *rows);
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.dim = dim;
    config.metric = o->metric;
    if (!rows)
        exit(1);
    check(ww_collection_create(device, &config, &collection), "a collection");
    check(ww_collection_reserve(collection, count), "room");
    for (int64_t done = 0; done < count; done += block) {
        ww_rows some = ww_rows_default();
        some.count = count - done < block ? count - done : block;
        some.dim = dim;
        some.vectors = rows;
        fill(o, rows, some.count, dim, (uint64_t)done + 1);
        check(ww_collection_add(collection, &some), "adding rows");
    }
    free(rows);
    return collection;
}

/* ---- times --------------------------------------------------------------------------------------------------------------- */

typedef struct searching {
    ww_collection *collection;
    ww_query search;
    float *vectors;
    int64_t *rows;
    float *scores;
    ww_search_stats stats;
} searching;

static void search_once(void *context)
{
    searching *s = context;
    s->stats = ww_search_stats_default();
    s->search.stats = &s->stats;
    check(ww_collection_search(s->collection, &s->search, s->rows, s->scores), "a search");
}

static searching searching_make(const options *o, ww_collection *collection, int32_t dim, int64_t queries)
{
    searching s = {.collection = collection, .search = ww_query_default()};
    s.vectors = malloc((size_t)queries * (size_t)dim * sizeof *s.vectors);
    s.rows = malloc((size_t)(queries * o->k) * sizeof *s.rows);
    s.scores = malloc((size_t)(queries * o->k) * sizeof *s.scores);
    if (!s.vectors || !s.rows || !s.scores)
        exit(1);
    fill(o, s.vectors, queries, dim, UINT64_C(0x5555555555));
    s.search.queries = s.vectors;
    s.search.query_count = queries;
    s.search.dim = dim;
    s.search.k = o->k;
    return s;
}

static void searching_free(searching *s)
{
    free(s->vectors);
    free(s->rows);
    free(s->scores);
}

/* Returns the median time of runs in microseconds, after `before` runs that are not timed. */
static double median_run(void (*run)(void *), void *context, int before)
{
    double times[RUNS_MAX];
    const double begin = seconds_now();
    int count = 0;
    for (int i = 0; i < before; i++)
        run(context);
    const double started = seconds_now();
    for (; count < RUNS_MAX && (count < RUNS_MIN || seconds_now() - started < ROUND_SECONDS); count++) {
        const double one = seconds_now();
        run(context);
        times[count] = (seconds_now() - one) * 1e6;
        if (seconds_now() - begin > 20 * ROUND_SECONDS && count >= 1)
            return times[count];
    }
    return median_of(times, (size_t)count);
}

/* `shape` is rows, dimension and queries. */
static void try_shape(const options *o, ww_device *device, ww_collection *collection, const int64_t shape[3], double *worst)
{
    const int64_t rows = shape[0], queries = shape[2];
    const int32_t dim = (int32_t)shape[1];
    searching s = searching_make(o, collection, dim, queries);
    const double products = (double)rows * (double)queries * (double)dim;
    double plain = INFINITY;
    if (products <= o->products_max) {
        device->tuning.screen = TUNING_NEVER;
        plain = median_run(search_once, &s, 2);
    }
    device->tuning.screen = TUNING_ALWAYS;
    const double screened = median_run(search_once, &s, 2);
    const bool could = s.stats.rows_screened > 0;
    const double kept = (double)s.stats.rows_kept / (double)queries, fallbacks = (double)s.stats.fallback_queries;
    device->tuning.screen = TUNING_AUTO;
    const double chosen = median_run(search_once, &s, products <= o->products_max ? SETTLING_RUNS : 1);
    const double better = could && screened < plain ? screened : plain, ratio = chosen / better;
    if (ratio > *worst)
        *worst = ratio;
    printf("| %9lld | %5d | %6lld | %11.1f | %11.1f | %11.1f | %-8s | %6.2f | %8.0f | %6.0f |\n", (long long)rows, dim,
           (long long)queries, plain, could ? screened : NAN, chosen, s.stats.rows_screened > 0 ? "screen" : "plain", ratio,
           kept, fallbacks);
    fflush(stdout);
    searching_free(&s);
}

/* ---- phases -------------------------------------------------------------------------------------------------------------- */

/* Prints where the time of a screened search goes, on average: checking the queries, then the times between marks, and the
 * total. */
static void try_phases(const options *o, ww_device *device, const int64_t shape[3])
{
    enum { TIMES = 10 };
    searching s = searching_make(o, collection_of(o, device, shape[0], (int32_t)shape[1]), (int32_t)shape[1], shape[2]);
    search_marks marks = {0};
    device->tuning.screen = TUNING_ALWAYS;
    const double whole = median_run(search_once, &s, 3);
    s.search.k = 0;
    const double checks = median_run(search_once, &s, 3);
    s.search.k = o->k;
    device->tuning.marks = &marks;
    search_once(&s);
    marks.count = 0;
    for (int i = 0; i < TIMES; i++)
        search_once(&s);
    device->tuning.marks = NULL;
    printf("%lld x %lld, %lld queries: %.0f us, of which on the host before anything else %.0f\n", (long long)shape[0],
           (long long)shape[1], (long long)shape[2], whole, checks);
    print_phases(&marks, TIMES);
    printf("    kept a query %.0f\n", (double)s.stats.rows_kept / (double)shape[2]);
    ww_collection_destroy(s.collection);
    searching_free(&s);
}

/* ---- a range ------------------------------------------------------------------------------------------------------------- */

typedef struct ranging {
    ww_collection *collection;
    ww_query range;
    ww_results *results;
} ranging;

static void range_once(void *context)
{
    ranging *r = context;
    ww_results_destroy(r->results);
    r->results = NULL;
    check(ww_collection_query(r->collection, &r->range, &r->results), "a range search");
}

static void try_range_phases(ww_device *device, ranging *r)
{
    enum { TIMES = 10 };
    search_marks marks = {0};
    device->tuning.marks = &marks;
    for (int i = 0; i < TIMES; i++)
        range_once(r);
    device->tuning.marks = NULL;
    print_phases(&marks, TIMES);
}

/* Compares a range that has about k rows for each query with a search for k. */
static void try_range(const options *o, ww_device *device, const int64_t shape[3])
{
    const int64_t queries = shape[2];
    searching s = searching_make(o, collection_of(o, device, shape[0], (int32_t)shape[1]), (int32_t)shape[1], queries);
    const double search = median_run(search_once, &s, SETTLING_RUNS);
    double bound = 0;
    for (int64_t q = 0; q < queries; q++)
        bound += s.scores[(q + 1) * o->k - 1] / (double)queries;
    ranging r = {.collection = s.collection, .range = ww_query_default()};
    r.range.mode = WW_QUERY_RANGE;
    r.range.queries = s.vectors;
    r.range.query_count = queries;
    r.range.dim = (int32_t)shape[1];
    r.range.bound = queries == 1 ? s.scores[o->k - 1] : (float)bound;
    r.range.limit = 10000;
    ww_search_stats stats = ww_search_stats_default();
    r.range.stats = &stats;
    const double range = median_run(range_once, &r, SETTLING_RUNS);
    double mean = 0;
    for (int64_t q = 0; q < queries; q++)
        mean += (double)ww_results_total(r.results, q) / (double)queries;
    printf("| %9lld | %5lld | %6lld | %11.1f | %11.1f | %6.2f | %8.1f | %8.0f | %6lld |\n", (long long)shape[0],
           (long long)shape[1], (long long)queries, search, range, range / search, mean,
           (double)stats.rows_kept / (double)queries, (long long)stats.fallback_queries);
    if (o->phases)
        try_range_phases(device, &r);
    fflush(stdout);
    ww_results_destroy(r.results);
    ww_collection_destroy(s.collection);
    searching_free(&s);
}

/* ---- the grid ------------------------------------------------------------------------------------------------------------ */

static void try_grid(const options *o, ww_device *device, double *worst)
{
    static const int64_t all_rows[] = {1000, 3000, 10000, 30000, 60000, 100000, 300000, 1000000, 10000000};
    static const int64_t quick_rows[] = {1000, 10000, 60000, 300000, 1000000};
    static const int32_t all_dims[] = {16, 64, 128, 384, 784, 1536, 4096}, quick_dims[] = {16, 128, 784};
    static const int64_t all_queries[] = {1, 2, 4, 8, 16, 64, 256, 1000, 10000}, quick_queries[] = {1, 8, 100, 1000, 10000};
    const int row_counts = o->quick ? 5 : 9, dims = o->quick ? 3 : 7, query_counts = o->quick ? 5 : 9;
    for (int d = 0; d < dims; d++)
        for (int r = 0; r < row_counts; r++) {
            const int64_t rows = o->quick ? quick_rows[r] : all_rows[r];
            const int32_t dim = o->quick ? quick_dims[d] : all_dims[d];
            if ((double)rows * canon_padded(dim) > FLOATS_MAX) {
                printf("| %9lld | %5d | left out: too much memory |\n", (long long)rows, dim);
                continue;
            }
            ww_collection *collection = collection_of(o, device, rows, dim);
            for (int q = 0; q < query_counts; q++)
                try_shape(o, device, collection, (int64_t[]){rows, dim, o->quick ? quick_queries[q] : all_queries[q]}, worst);
            ww_collection_destroy(collection);
        }
}

static int read_options(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0)
            o->quick = true;
        else if (strcmp(argv[i], "--clustered") == 0)
            o->clustered = true;
        else if (strcmp(argv[i], "--range") == 0)
            o->range = true;
        else if (strcmp(argv[i], "--phases") == 0)
            o->phases = true;
        else if (strcmp(argv[i], "--device") == 0 && more)
            o->device = argv[++i];
        else if (strcmp(argv[i], "--k") == 0 && more)
            o->k = atoi(argv[++i]);
        else if (strcmp(argv[i], "--metric") == 0 && more) {
            i++;
            o->metric = strcmp(argv[i], "l2") == 0 ? WW_L2 : strcmp(argv[i], "cosine") == 0 ? WW_COSINE : WW_DOT;
        } else if (strcmp(argv[i], "--shape") == 0 && more && o->shape_count < SHAPES_MAX) {
            long long a = 0, b = 0, c = 0;
            if (sscanf(argv[++i], "%lldx%lldx%lld", &a, &b, &c) != 3 || a < 1 || b < 1 || c < 1)
                return 0;
            o->shapes[o->shape_count][0] = a;
            o->shapes[o->shape_count][1] = b;
            o->shapes[o->shape_count++][2] = c;
        } else
            return 0;
    }
    return o->k > 0 && o->k <= WW_K_MAX;
}

int main(int argc, char **argv)
{
    options o = {.device = "auto", .metric = WW_DOT, .k = 10, .products_max = PLAIN_PRODUCTS_MAX};
    ww_device *device = NULL;
    double worst = 0;
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: search_choice [--device NAME] [--quick] [--metric dot|l2|cosine] [--k K] [--clustered]\n"
                        "                     [--shape ROWSxDIMxQUERIES]... [--range] [--phases]\n");
        return 2;
    }
    check(ww_device_open(o.device, &device), "the device");
    if (strcmp(device->backend->name, "cpu") == 0)
        o.products_max = 2e11;
    printf("%s: %s, %s, k = %d, %s rows; microseconds, medians\n\n", device->info.id, device->info.name,
           ww_metric_name(o.metric), o.k, o.clustered ? "clustered" : "normal");
    if (o.range) {
        static const int64_t shapes[][3] = {{1000000, 128, 1}, {1000000, 128, 16}, {1000000, 128, 1000}, {60000, 784, 1000}};
        const int64_t(*some)[3] = o.shape_count > 0 ? (const int64_t(*)[3])o.shapes : shapes;
        printf("| rows      | dim   | queries | search for k | range | ratio | rows in range | kept | fallbacks "
               "|\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
        for (int i = 0; i < (o.shape_count > 0 ? o.shape_count : 4); i++)
            try_range(&o, device, some[i]);
    } else if (o.phases) {
        for (int i = 0; i < o.shape_count; i++)
            try_phases(&o, device, o.shapes[i]);
    } else {
        printf("| rows      | dim   | queries | every row | screen | chosen | which | ratio | kept | fallbacks |\n"
               "|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|\n");
        for (int i = 0; i < o.shape_count; i++) {
            ww_collection *collection = collection_of(&o, device, o.shapes[i][0], (int32_t)o.shapes[i][1]);
            try_shape(&o, device, collection, o.shapes[i], &worst);
            ww_collection_destroy(collection);
        }
        if (o.shape_count == 0)
            try_grid(&o, device, &worst);
        printf("\nworst ratio: %.2f\n", worst);
    }
    ww_device_close(device);
    return 0;
}
