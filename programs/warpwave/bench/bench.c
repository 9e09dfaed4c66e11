/* `warpwave bench`: how fast a device adds and searches rows, compared with how fast this machine's cores read the same bytes.
 *
 * Rows are random vectors of length 1 made in memory, clustered if there is an index, so only the device is measured. Bytes are
 * counted without padding. A search with many queries counts as one read of all rows.
 */
#include "warpwave/bench/bench.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "warpwave/bench/parity.h"
#include "warpwave/command.h"
#include "warpwave/json.h"
#include "warpwave/memory_read.h"
#include "warpwave/terminal.h"

enum { REPEAT_MAX = 10000, QUERIES_MAX = 1 << 20 };

/* Clustered rows, for an index: mixtures of CENTERS centers. Each center has its own directions, so the nearest center alone
 * does not determine the neighbours. */
enum { CENTERS = 1000, DIRECTIONS = 12, VECTORS_OF_CENTER = 1 + DIRECTIONS };

/* ---- making rows ----------------------------------------------------------------------------------------------------------
 */

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Approximately normal: the sum of four uniform numbers from one draw. All operations are exact, so the rows are the same
 * everywhere. */
static float random_normal(uint64_t *state)
{
    const uint64_t bits = random_bits(state);
    const int32_t sum = (int32_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)) - 2 * 0xffff;
    return (float)sum / 65536.0f;
}

/* Scales a row of length 1 to integers that fit in a byte: four standard deviations to either side. */
static void make_integers(float *x, int64_t dim, ww_vector_type type)
{
    const float scale = 32.0f * sqrtf((float)dim), middle = type == WW_VECTOR_U8 ? 128.0f : 0.0f;
    for (int64_t i = 0; i < dim; i++)
        x[i] = fmaxf(fminf(rintf(x[i] * scale), 127.0f), -128.0f) + middle;
}

/* Rows to be made. */
typedef struct rows_made {
    float *rows;
    int64_t count, dim;
    uint64_t seed;
    const float *centers; /* CENTERS x VECTORS_OF_CENTER x dim, or NULL: not clustered */
    progress *bar;
} rows_made;

static void make_row(const rows_made *m, uint64_t *state, float *x)
{
    const float noise = m->centers ? 0.15f : 1.0f, spread = 0.35f;
    const float *center = m->centers ? m->centers + random_bits(state) % CENTERS * VECTORS_OF_CENTER * (uint64_t)m->dim : NULL;
    for (int64_t i = 0; i < m->dim; i++)
        x[i] = random_normal(state) * noise + (center ? center[i] : 0.0f);
    for (int64_t d = 1; center && d < VECTORS_OF_CENTER; d++) {
        const float weight = random_normal(state) * spread;
        for (int64_t i = 0; i < m->dim; i++)
            x[i] += weight * center[d * m->dim + i];
    }
    double squares = 0.0;
    for (int64_t i = 0; i < m->dim; i++)
        squares += (double)x[i] * (double)x[i];
    const float scale = squares > 0.0 ? (float)(1.0 / sqrt(squares)) : 1.0f;
    for (int64_t i = 0; i < m->dim; i++)
        x[i] *= scale;
}

static ww_status make_rows(const rows_made *m)
{
    uint64_t state = m->seed;
    for (int64_t row = 0; row < m->count; row++) {
        make_row(m, &state, m->rows + row * m->dim);
        if (row % 1024 == 0 && progress_report(row, m->count, m->bar))
            return interrupt_check();
    }
    return WW_OK;
}

/* ---- setting up -----------------------------------------------------------------------------------------------------------
 */

/* Refuses a run that does not fit in host memory, before it starts. Rows count twice if the collection is on the host too. */
static ww_status check_memory(const bench *b, size_t other_bytes)
{
    const double copies = b->device_info.wave_size == 1 ? 2.0 : 1.0;
    const double given_bytes = (double)b->settings.rows * (double)b->settings.dim * (double)sizeof *b->rows;
    const double need_bytes = given_bytes + (double)b->row_bytes * (copies - 1.0) + (double)other_bytes;
    const int64_t available = memory_available_bytes();
    char need[32], have[32];
    if (available == 0 || need_bytes < (double)available)
        return WW_OK;
    return ww_fail(WW_OUT_OF_MEMORY,
                   "%lld rows and %lld queries of dimension %lld need %s of memory, %s are free; use fewer or shorter ones",
                   (long long)b->settings.rows, (long long)b->settings.queries, (long long)b->settings.dim,
                   human_bytes(need, (int64_t)need_bytes), human_bytes(have, available));
}

static size_t element_bytes(ww_vector_type type)
{
    return type == WW_VECTOR_F32 ? 4 : type == WW_VECTOR_F16 || type == WW_VECTOR_BF16 ? 2 : 1;
}

/* No product overflows: the options allow 2^32 rows, 2^20 queries, 2^16 numbers in each and 2^11 neighbours. */
static ww_status take_memory(bench *b)
{
    const bench_settings *s = &b->settings;
    const size_t found = (size_t)s->queries * (size_t)s->k, query_bytes = (size_t)(s->queries * s->dim) * sizeof(float);
    const size_t given_bytes = (size_t)(s->rows * s->dim) * sizeof *b->rows;
    b->row_bytes = (size_t)(s->rows * s->dim) * element_bytes((ww_vector_type)s->type);
    const ww_status status = check_memory(b, query_bytes + found * (sizeof *b->found + sizeof *b->scores));
    if (status != WW_OK)
        return status;
    b->rows = memory_alloc_aligned(given_bytes);
    b->queries = memory_alloc_aligned(query_bytes);
    b->found = memory_alloc(found * sizeof *b->found);
    b->scores = memory_alloc(found * sizeof *b->scores);
    b->seconds = memory_alloc((size_t)s->repeat * sizeof *b->seconds);
    if (!b->rows || !b->queries || !b->found || !b->scores || !b->seconds)
        return memory_failed("the rows, queries and results", given_bytes + query_bytes);
    return WW_OK;
}

static ww_status make_centers(int64_t dim, float **centers)
{
    const size_t count = (size_t)(CENTERS * VECTORS_OF_CENTER) * (size_t)dim;
    uint64_t state = 3;
    *centers = memory_alloc(count * sizeof **centers);
    if (!*centers)
        return memory_failed("the centers of rows", count * sizeof **centers);
    for (size_t i = 0; i < count; i++)
        (*centers)[i] = random_normal(&state);
    return WW_OK;
}

static ww_status fill(const bench *b, const char *what, rows_made made)
{
    const ww_vector_type type = (ww_vector_type)b->settings.type;
    progress bar;
    made.dim = b->settings.dim;
    made.bar = &bar;
    progress_begin(&bar, what, made.count);
    const ww_status status = make_rows(&made);
    for (int64_t r = 0; element_bytes(type) == 1 && r < made.count; r++)
        make_integers(made.rows + r * made.dim, made.dim, type);
    progress_end(&bar);
    return status;
}

static ww_status bench_open(bench *b)
{
    const bench_settings *s = &b->settings;
    float *centers = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "bench";
    config.dim = (int32_t)s->dim;
    config.metric = (ww_metric)s->metric;
    config.screen = (ww_screen)s->screen;
    config.type = (ww_vector_type)s->type;
    config.rows = (ww_row_place)s->place;
    b->device_info = ww_device_info_default();
    ww_status status = command_open_device(s->device, &b->device);
    if (status == WW_OK)
        status = ww_device_describe(b->device, &b->device_info);
    if (status == WW_OK)
        status = take_memory(b);
    if (status == WW_OK)
        status = ww_collection_create(b->device, &config, &b->collection);
    if (status == WW_OK && s->ivf)
        status = make_centers(s->dim, &centers);
    if (status == WW_OK)
        status = fill(b, "making rows", (rows_made){.rows = b->rows, .count = s->rows, .seed = 1, .centers = centers});
    if (status == WW_OK)
        status = fill(b, "making queries", (rows_made){.rows = b->queries, .count = s->queries, .seed = 2, .centers = centers});
    memory_free(centers);
    return status;
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------
 */

static ww_status measure_read(bench *b)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; i < b->settings.repeat && status == WW_OK; i++) {
        status = memory_read_measure(b->rows, b->row_bytes, &b->seconds[i], &b->read_threads);
        if (status == WW_OK)
            status = interrupt_check();
    }
    if (status == WW_OK)
        b->read_seconds = median(b->seconds, b->settings.repeat);
    return status;
}

static ww_status measure_add(bench *b)
{
    progress bar;
    ww_rows rows = ww_rows_default();
    rows.count = b->settings.rows;
    rows.dim = (int32_t)b->settings.dim;
    rows.vectors = b->rows;
    rows.progress = progress_report;
    rows.progress_user = &bar;
    progress_begin(&bar, "adding rows", b->settings.rows);
    const double start = seconds_now();
    const ww_status status = ww_collection_add(b->collection, &rows);
    b->add_seconds = seconds_now() - start;
    progress_end(&bar);
    return status == WW_OK ? interrupt_check() : status;
}

/* Searches once as a warm-up, which may allocate. Then takes the median of the other searches. */
static ww_status measure_search(bench *b, int64_t queries, double *seconds, ww_search_stats *stats)
{
    progress bar;
    ww_status status = WW_OK;
    ww_query search = ww_query_default();
    search.queries = b->queries;
    search.query_count = queries;
    search.dim = (int32_t)b->settings.dim;
    search.k = (int32_t)b->settings.k;
    search.progress = progress_report;
    search.progress_user = &bar;
    *stats = ww_search_stats_default();
    search.stats = stats;
    progress_begin(&bar, "searching", queries * (b->settings.repeat + 1));
    for (int64_t i = -1; i < b->settings.repeat && status == WW_OK; i++) {
        bar.before = (i + 1) * queries;
        const double start = seconds_now();
        status = ww_collection_search(b->collection, &search, b->found, b->scores);
        if (i >= 0)
            b->seconds[i] = seconds_now() - start;
        if (status == WW_OK)
            status = interrupt_check();
    }
    progress_end(&bar);
    if (status == WW_OK)
        *seconds = median(b->seconds, b->settings.repeat);
    return status;
}

/* Measures 1 query, 16, and as many as were asked for; skips a size that is not smaller than that. */
static ww_status measure_searches(bench *b)
{
    const int64_t wanted[BENCH_BATCHES] = {1, 16, b->settings.queries};
    ww_status status = WW_OK;
    for (int i = 0; i < BENCH_BATCHES && status == WW_OK; i++) {
        if (i + 1 < BENCH_BATCHES && wanted[i] >= b->settings.queries)
            continue;
        b->batches[b->batch_count] = wanted[i];
        status = measure_search(b, wanted[i], &b->search_seconds[b->batch_count], &b->stats[b->batch_count]);
        b->batch_count++;
    }
    return status;
}

/* ---- reporting ------------------------------------------------------------------------------------------------------------
 */

static double gigabytes_per_second(const bench *b, double seconds)
{
    return (double)b->row_bytes / seconds * 1e-9;
}

/* One multiplication and one addition per element of each row and query. */
static double gigaflops(const bench *b, int batch)
{
    return 2.0 * (double)b->settings.rows * (double)b->settings.dim * (double)b->batches[batch] / b->search_seconds[batch] *
           1e-9;
}

static void print_json(const bench *b)
{
    const bench_settings *s = &b->settings;
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_text(&w, "device", b->device_info.id);
    json_put_text(&w, "device_name", b->device_info.name);
    json_put_integer(&w, "rows", s->rows);
    json_put_integer(&w, "dim", s->dim);
    json_put_text(&w, "type", ww_vector_type_name((ww_vector_type)s->type));
    json_put_integer(&w, "k", s->k);
    json_put_text(&w, "metric", ww_metric_name((ww_metric)s->metric));
    json_put_integer(&w, "repeat", s->repeat);
    json_put_integer(&w, "bytes", b->row_bytes);
    json_put_real(&w, "add_seconds", b->add_seconds);
    json_put_real(&w, "add_gigabytes_per_second", gigabytes_per_second(b, b->add_seconds));
    json_put_integer(&w, "read_threads", b->read_threads);
    json_put_real(&w, "read_seconds", b->read_seconds);
    json_put_real(&w, "read_gigabytes_per_second", gigabytes_per_second(b, b->read_seconds));
    json_open(&w, "searches", '[');
    for (int i = 0; i < b->batch_count; i++) {
        const double seconds = b->search_seconds[i];
        json_open(&w, NULL, '{');
        json_put_integer(&w, "queries", b->batches[i]);
        json_put_real(&w, "seconds", seconds);
        json_put_real(&w, "queries_per_second", (double)b->batches[i] / seconds);
        json_put_real(&w, "gigabytes_per_second", gigabytes_per_second(b, seconds));
        json_put_real(&w, "gigaflops", gigaflops(b, i));
        json_put_statistics(&w, "statistics", (ww_screen)s->screen, &b->stats[i]);
        json_close(&w);
    }
    json_close(&w);
    json_close(&w);
}

static void print_text(const bench *b)
{
    const bench_settings *s = &b->settings;
    char size[32];
    printf("device  ");
    command_print_device(stdout, &b->device_info);
    printf("rows    %lld of %lld %s, %s, %s%s; %lld nearest by %s; median of %lld\n%s", (long long)s->rows, (long long)s->dim,
           ww_vector_type_name((ww_vector_type)s->type), human_bytes(size, (int64_t)b->row_bytes),
           s->ivf ? "clustered" : "random", element_bytes((ww_vector_type)s->type) == 1 ? "" : ", of length 1", (long long)s->k,
           ww_metric_name((ww_metric)s->metric), (long long)s->repeat, s->ivf ? "" : "\n");
    if (s->ivf) {
        bench_ivf_print(b);
        return;
    }
    printf("%-22s %12s %12s %12s %12s %10s %12s\n", "", "time", "queries/s", "GB/s", "GFLOP/s", "of a read", "scored");
    printf("%-22s %9.3f ms %12s %12.2f %12s %10s\n", "add", b->add_seconds * 1e3, "", gigabytes_per_second(b, b->add_seconds),
           "", "");
    for (int i = 0; i < b->batch_count; i++) {
        char what[32];
        const double seconds = b->search_seconds[i];
        snprintf(what, sizeof what, "search, %lld quer%s", (long long)b->batches[i], b->batches[i] == 1 ? "y" : "ies");
        printf("%-22s %9.3f ms %12.1f %12.2f %12.2f %9.0f%% %11.3g%%\n", what, seconds * 1e3, (double)b->batches[i] / seconds,
               gigabytes_per_second(b, seconds), gigaflops(b, i), 100.0 * b->read_seconds / seconds,
               100.0 * (double)b->stats[i].rows_scored / ((double)s->rows * (double)b->batches[i]));
    }
    printf("%-22s %9.3f ms %12s %12.2f %12s\n", "plain read", b->read_seconds * 1e3, "",
           gigabytes_per_second(b, b->read_seconds), "");
    printf("\nThe plain read is %d thread%s of this machine's CPU, each pinned to a core, reading the rows once.\n",
           b->read_threads, b->read_threads == 1 ? "" : "s");
}

static ww_status measure(const bench_settings *settings)
{
    bench b = {.settings = *settings};
    ww_status status = bench_open(&b);
    if (status == WW_OK && !settings->ivf)
        status = measure_read(&b);
    if (status == WW_OK)
        status = measure_add(&b);
    if (status == WW_OK)
        status = settings->ivf ? bench_ivf_measure(&b) : measure_searches(&b);
    if (status == WW_OK && settings->json && settings->ivf)
        bench_ivf_print_json(&b);
    else if (status == WW_OK && settings->json)
        print_json(&b);
    else if (status == WW_OK)
        print_text(&b);
    ww_collection_destroy(b.collection);
    ww_device_close(b.device);
    memory_free(b.seconds);
    memory_free(b.scores);
    memory_free(b.found);
    memory_free(b.queries);
    memory_free(b.rows);
    return status;
}

static exit_code bench_run(const char *const *arguments, size_t count)
{
    bench_settings settings = {.rows = 200000, .dim = 128, .queries = 100, .k = 10, .repeat = 5, .metric = WW_COSINE};
    const exit_code code = command_parse(&command_bench, arguments, count, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (settings.nlist > 0 && !settings.ivf)
        return command_misused(&command_bench, "--nlist needs --ivf");
    if (settings.parity && settings.ivf)
        return command_misused(&command_bench, "--parity measures nothing, so it does not go with --ivf");
    if (settings.quiet)
        terminal_be_quiet();
    return command_end(&command_bench, settings.parity ? parity_run(settings.device, settings.json) : measure(&settings));
}

#define INTEGER(...) OPTION_IS_INTEGER(bench_settings, __VA_ARGS__)

static const option options[] = {
    INTEGER(rows, false, "--rows", "N", 1, WW_ROWS_MAX, "rows in the collection; default: 200000"),
    INTEGER(dim, false, "--dim", "N", 1, WW_DIM_MAX, "numbers per row; default: 128"),
    INTEGER(queries, false, "--queries", "N", 1, QUERIES_MAX, "queries in the largest search; default: 100"),
    INTEGER(k, false, "-k", "N", 1, WW_K_MAX, "neighbours per query; default: 10"),
    OPTION_IS_CHOICE(bench_settings, metric, false, "--metric", "cosine|l2|dot",
                     "the distance or similarity to rank by; default: cosine"),
    INTEGER(repeat, false, "--repeat", "N", 1, REPEAT_MAX, "measure N times and report the median; default: 5"),
    OPTION_IS_CHOICE(bench_settings, screen, false, "--screen", "int8|none",
                     "how rows are screened before exact scoring; default: int8"),
    OPTION_IS_CHOICE(bench_settings, type, false, "--type", "f32|f16|bf16|i8|u8",
                     "type of the stored rows; i8 and u8 hold integers only; default: f32"),
    OPTION_IS_CHOICE(bench_settings, place, false, "--rows-on", "device|host",
                     "where rows are stored; host: the GPU keeps only their codes; default: device"),
    OPTION_IS_FLAG(bench_settings, ivf, "--ivf", "measure an index of clustered rows, for 1, 2, 4, ... lists per query"),
    INTEGER(nlist, false, "--nlist", "N", 0, WW_IVF_LISTS_MAX,
            "lists of the index; 0: 4 times the square root of the rows; default: 0"),
    OPTION_IS_FLAG(bench_settings, parity, "--parity",
                   "measure nothing; print digests of fixed answers, to compare with other machines"),
    OPTION_IS_TEXT(bench_settings, device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: auto"),
    OPTION_IS_FLAG(bench_settings, quiet, "--quiet", "show no progress bar and no notes"),
    OPTION_IS_FLAG(bench_settings, json, "--json", "print one JSON object"),
};

const command command_bench = {
    .name = "bench",
    .summary = "Measure adding and searching on a device, next to a plain read of memory",
    .notes =
        "Searches with batches of 1, 16 and --queries queries. GB/s counts the rows once per search, whatever the batch;\n"
        "GFLOP/s counts one multiplication and one addition for each number of each row and query. With a screen most of\n"
        "them are never computed: the last column is the share of scores that were computed exactly. Adding is measured\n"
        "once, the rest --repeat times.\n"
        "With --parity fixed searches, tensors, products and a model are computed, and a line of hex is printed for each:\n"
        "the same on every machine and device, docs/evidence/parity.md has them. Only --device and --json go with it.\n"
        "With --ivf the rows are clustered, and 1, 2, 4, ... lists are read until 0.999 of the nearest are found.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = bench_run,
};
