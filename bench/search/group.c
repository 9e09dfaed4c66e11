/* Groups of devices, and rows on the host: the same answers, and how long they take.
 *
 *   group_figures compare ALONE GROUP [ROWS [DIM [QUERIES]]]   f32 rows, 1000000 x 128 and 1000 queries by default: one query
 *                                                              and all of them by ALONE, by GROUP, by GROUP with members
 *                                                              that are one device asked apart, and whether the bits agree
 *   group_figures host DEVICE [ROWS [DIM [QUERIES]]]           f16 rows on the host, codes on the device: the same, and the
 *                                                              answers of four queries beside a full scan by this program
 *
 * Rows are made where they are needed, by all cores, from their numbers, so that 51 GB of them take seconds, and the full scan
 * makes them again. k is 10, the metric l2. The figures are medians in milliseconds. Ends with 1 if a bit differs.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <warpwave.h>

#include "device/backend.h"
#include "measure.h"
#include "search/phases.h"

enum { K = 10, CHUNK_ROWS = 1 << 20, THREADS_MAX = 64, TIMES = 9, SCANNED = 4, DIM_MAX = 1024 };

typedef enum job { JOB_PLAIN, JOB_APART, JOB_HOST } job;

typedef struct sizes {
    int64_t rows;
    int32_t dim;
    int64_t queries;
} sizes;

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Sums of four bytes, about normal: 0 to 1020. Two from each random word. */
static void sums_of_row(int64_t row, int32_t dim, uint16_t *sums)
{
    for (int32_t d = 0; d < dim; d += 2) {
        const uint64_t x = mix((uint64_t)row * DIM_MAX + (uint64_t)d);
        const uint64_t pairs = (x & UINT64_C(0x00ff00ff00ff00ff)) + (x >> 8 & UINT64_C(0x00ff00ff00ff00ff));
        sums[d] = (uint16_t)((pairs & 0xffff) + (pairs >> 16 & 0xffff));
        if (d + 1 < dim)
            sums[d + 1] = (uint16_t)((pairs >> 32 & 0xffff) + (pairs >> 48));
    }
}

/* Converts a sum to a number from -4 to 4 in steps of 1/128, which f16 holds exactly. */
static float value_of(uint16_t sum)
{
    return (float)((int32_t)sum - 510) / 128.0f;
}

static uint16_t halves[1021];

/* f16 of such a value: at most ten bits. */
static void make_halves(void)
{
    for (int32_t s = 0; s <= 1020; s++) {
        int32_t n = s - 510, exponent = 15 - 7;
        const uint16_t sign = n < 0 ? 0x8000 : 0;
        n = n < 0 ? -n : n;
        if (n == 0)
            continue;
        int32_t top = 31 - __builtin_clz((unsigned)n);
        exponent += top;
        halves[s] = (uint16_t)(sign | exponent << 10 | ((n << (10 - top)) & 0x3ff));
    }
}

typedef struct making {
    int64_t first, count;
    int32_t dim;
    bool half;
    void *to;
    int32_t number, threads;
} making;

static void *make_some(void *argument)
{
    const making *m = argument;
    uint16_t sums[DIM_MAX];
    const int64_t end = m->count * (m->number + 1) / m->threads;
    for (int64_t r = m->count * m->number / m->threads; r < end; r++) {
        sums_of_row(m->first + r, m->dim, sums);
        for (int32_t d = 0; d < m->dim; d++) {
            if (m->half)
                ((uint16_t *)m->to)[r * m->dim + d] = halves[sums[d]];
            else
                ((float *)m->to)[r * m->dim + d] = value_of(sums[d]);
        }
    }
    return NULL;
}

static int32_t thread_count(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (int32_t)cores;
}

static void make_rows(making what)
{
    pthread_t threads[THREADS_MAX];
    making parts[THREADS_MAX];
    what.threads = thread_count();
    for (int32_t t = 0; t < what.threads; t++) {
        parts[t] = what;
        parts[t].number = t;
        if (pthread_create(&threads[t], NULL, make_some, &parts[t]) != 0)
            exit(1);
    }
    for (int32_t t = 0; t < what.threads; t++)
        (void)pthread_join(threads[t], NULL);
}

/* Queries are rows of their own, with numbers past all others. */
static float *make_queries(const sizes *s)
{
    float *queries = malloc((size_t)(s->queries * s->dim) * sizeof *queries);
    if (!queries)
        exit(1);
    make_rows((making){.first = INT64_C(1) << 40, .count = s->queries, .dim = s->dim, .to = queries});
    return queries;
}

static ww_collection *fill(ww_device *device, const sizes *s, bool host)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = s->dim;
    config.metric = WW_L2;
    config.type = host ? WW_VECTOR_F16 : WW_VECTOR_F32;
    config.rows = host ? WW_ROWS_HOST : WW_ROWS_DEVICE;
    ww_collection *c = NULL;
    check(ww_collection_create(device, &config, &c), "the collection");
    check(ww_collection_reserve(c, s->rows), "reserving");
    void *chunk = malloc((size_t)CHUNK_ROWS * (size_t)s->dim * (host ? sizeof(uint16_t) : sizeof(float)));
    if (!chunk)
        exit(1);
    for (int64_t done = 0; done < s->rows; done += CHUNK_ROWS) {
        ww_rows rows = ww_rows_default();
        rows.count = s->rows - done < CHUNK_ROWS ? s->rows - done : CHUNK_ROWS;
        rows.dim = s->dim;
        rows.type = config.type;
        rows.vectors = host ? NULL : chunk;
        rows.elements = host ? chunk : NULL;
        make_rows((making){.first = done, .count = rows.count, .dim = s->dim, .half = host, .to = chunk});
        check(ww_collection_add(c, &rows), "adding");
    }
    free(chunk);
    return c;
}

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

typedef struct figures {
    int64_t *rows;
    float *scores;
    double one_ms, all_ms;
    ww_search_stats stats; /* over all queries */
} figures;

static double search_ms(ww_collection *c, const sizes *s, const float *queries, int64_t count, figures *to)
{
    ww_query asked = ww_query_default();
    asked.queries = queries;
    asked.query_count = count;
    asked.dim = s->dim;
    asked.k = K;
    asked.stats = &to->stats;
    const double begin = seconds_now();
    check(ww_collection_search(c, &asked, to->rows, to->scores), "searching");
    return 1e3 * (seconds_now() - begin);
}

static figures measure(ww_collection *c, const sizes *s, const float *queries)
{
    double times[TIMES];
    const size_t places = (size_t)s->queries * K;
    figures f = {.rows = malloc(places * sizeof *f.rows), .scores = malloc(places * sizeof *f.scores)};
    if (!f.rows || !f.scores)
        exit(1);
    f.stats = ww_search_stats_default();
    (void)search_ms(c, s, queries, 1, &f);
    for (int32_t i = 0; i < TIMES; i++)
        times[i] = search_ms(c, s, queries + i % s->queries * s->dim, 1, &f);
    f.one_ms = median_of(times, TIMES);
    (void)search_ms(c, s, queries, s->queries, &f);
    for (int32_t i = 0; i < TIMES; i++)
        times[i] = search_ms(c, s, queries, s->queries, &f);
    f.all_ms = median_of(times, TIMES);
    return f;
}

static void print_figures(const char *name, const sizes *s, const figures *f)
{
    printf("%s: one query %.3f ms, %lld queries %.3f ms, %.0f rows kept a query, %lld queries fell back\n", name, f->one_ms,
           (long long)s->queries, f->all_ms, (double)f->stats.rows_kept / (double)s->queries,
           (long long)f->stats.fallback_queries);
    fflush(stdout);
}

static void print_collection(ww_collection *c)
{
    ww_collection_info info = ww_collection_info_default();
    check(ww_collection_describe(c, &info), "describing");
    printf("%lld rows in %lld segments on %s (%s): %.2f GB on the device, %.2f GB of rows on the host\n",
           (long long)info.rows_live, (long long)info.segments, info.device, *info.members ? info.members : "one device",
           1e-9 * (double)(info.bytes_rows + info.bytes_screen), 1e-9 * (double)info.bytes_rows_host);
    fflush(stdout);
}

/* Prints where the time of all queries goes. */
static void phases_of(ww_device *device, ww_collection *c, const sizes *s, const float *queries, figures *f)
{
    enum { SEARCHES = 3 };
    search_marks marks = {0};
    device->tuning.marks = &marks;
    for (int i = 0; i < SEARCHES; i++)
        (void)search_ms(c, s, queries, s->queries, f);
    device->tuning.marks = NULL;
    print_phases(&marks, SEARCHES);
}

static figures run(const char *name, const sizes *s, job what, const float *queries)
{
    const bool on_host = what == JOB_HOST;
    ww_device *device = NULL;
    check(ww_device_open(name, &device), name);
    device->tuning.group_apart = what == JOB_APART;
    const double begin = seconds_now();
    ww_collection *c = fill(device, s, on_host);
    printf("%s: filled in %.1f s\n", name, seconds_now() - begin);
    print_collection(c);
    figures f = measure(c, s, queries);
    print_figures(name, s, &f);
    if (on_host)
        phases_of(device, c, s, queries, &f);
    ww_collection_destroy(c);
    ww_device_close(device);
    return f;
}

static void figures_free(const figures *f)
{
    free(f->rows);
    free(f->scores);
}

/* ---- the two jobs -------------------------------------------------------------------------------------------------------- */

static int compare(const char *alone, const char *group, const sizes *s)
{
    float *queries = make_queries(s);
    const size_t places = (size_t)s->queries * K;
    const figures a = run(alone, s, JOB_PLAIN, queries);
    bool all_same = true;
    for (job what = JOB_PLAIN; what <= JOB_APART; what++) {
        const figures b = run(group, s, what, queries);
        const bool same =
            memcmp(a.rows, b.rows, places * sizeof *a.rows) == 0 && memcmp(a.scores, b.scores, places * sizeof *a.scores) == 0;
        printf("%s%s beside %s: one query %.3f times, %lld queries %.3f times, the bits are %s\n", group,
               what == JOB_APART ? ", each member apart," : "", alone, b.one_ms / a.one_ms, (long long)s->queries,
               b.all_ms / a.all_ms, same ? "the same" : "NOT THE SAME");
        all_same = all_same && same;
        figures_free(&b);
    }
    figures_free(&a);
    free(queries);
    return all_same ? 0 : 1;
}

typedef struct scanning {
    const sizes *sizes;
    const float *query;
    int32_t number, threads;
    int64_t rows[K];
    float scores[K];
    int32_t found;
} scanning;

/* Inserts a row in its place. Rows are offered in order, so an equal score goes after the others. */
static void offer(scanning *s, int64_t row, float score)
{
    if (s->found == K && score >= s->scores[K - 1])
        return;
    int32_t at = s->found < K ? s->found++ : K - 1;
    for (; at > 0 && s->scores[at - 1] > score; at--) {
        s->scores[at] = s->scores[at - 1];
        s->rows[at] = s->rows[at - 1];
    }
    s->scores[at] = score;
    s->rows[at] = row;
}

static void *scan_some(void *argument)
{
    scanning *s = argument;
    uint16_t sums[DIM_MAX];
    float row[DIM_MAX];
    const int64_t end = s->sizes->rows * (s->number + 1) / s->threads;
    for (int64_t r = s->sizes->rows * s->number / s->threads; r < end; r++) {
        float score = 0;
        sums_of_row(r, s->sizes->dim, sums);
        for (int32_t d = 0; d < s->sizes->dim; d++)
            row[d] = value_of(sums[d]);
        check(ww_score(WW_L2, s->query, row, s->sizes->dim, &score), "scoring");
        offer(s, r, score);
    }
    return NULL;
}

static bool scan_agrees(const sizes *size, const float *query, const int64_t *rows, const float *scores)
{
    static scanning parts[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    const int32_t count = thread_count();
    for (int32_t t = 0; t < count; t++) {
        parts[t] = (scanning){.sizes = size, .query = query, .number = t, .threads = count};
        if (pthread_create(&threads[t], NULL, scan_some, &parts[t]) != 0)
            exit(1);
    }
    scanning all = {.found = 0};
    for (int32_t t = 0; t < count; t++) {
        (void)pthread_join(threads[t], NULL);
        for (int32_t i = 0; i < parts[t].found; i++)
            offer(&all, parts[t].rows[i], parts[t].scores[i]);
    }
    return memcmp(all.rows, rows, (size_t)all.found * sizeof *rows) == 0 &&
           memcmp(all.scores, scores, (size_t)all.found * sizeof *scores) == 0;
}

static int host(const char *name, const sizes *s)
{
    float *queries = make_queries(s);
    const figures f = run(name, s, JOB_HOST, queries);
    int32_t right = 0;
    const int32_t scanned = s->queries < SCANNED ? (int32_t)s->queries : SCANNED;
    const double begin = seconds_now();
    for (int32_t q = 0; q < scanned; q++) {
        const int64_t number = q * (s->queries / scanned);
        right += scan_agrees(s, queries + number * s->dim, f.rows + number * K, f.scores + number * K);
    }
    printf("%s: %d of %d queries have the rows and bits of a full scan (%.1f s)\n", name, right, scanned,
           seconds_now() - begin);
    figures_free(&f);
    free(queries);
    return right == scanned ? 0 : 1;
}

int main(int argc, char **argv)
{
    const bool comparing = argc > 3 && strcmp(argv[1], "compare") == 0, hosting = argc > 2 && strcmp(argv[1], "host") == 0;
    const int at = comparing ? 4 : 3;
    if (!comparing && !hosting) {
        fprintf(stderr, "group_figures compare ALONE GROUP [ROWS [DIM [QUERIES]]]\n"
                        "group_figures host DEVICE [ROWS [DIM [QUERIES]]]\n");
        return 2;
    }
    const sizes s = {.rows = argc > at ? strtoll(argv[at], NULL, 10) : 1000000,
                     .dim = argc > at + 1 ? (int32_t)strtol(argv[at + 1], NULL, 10) : 128,
                     .queries = argc > at + 2 ? strtoll(argv[at + 2], NULL, 10) : 1000};
    if (s.rows < 1 || s.dim < 1 || s.dim > DIM_MAX || s.queries < 1) {
        fprintf(stderr, "rows and queries are at least 1, dim is 1 to %d\n", DIM_MAX);
        return 2;
    }
    make_halves();
    return comparing ? compare(argv[2], argv[3], &s) : host(argv[2], &s);
}
