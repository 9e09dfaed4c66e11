/* One answer: the same vectors and queries give the same rows with the same score bits on every available backend.
 *
 * Backends: the CPU with each of its instruction sets, the emulated GPUs, the stand-in for ROCm if it was built, and the real
 * GPUs that WARPWAVE_TEST_DEVICES names ("cuda:0"). The first one, the CPU without vector instructions, is the reference for
 * the others. The table of results is written to the file that WARPWAVE_PARITY_FILE names (`make check-parity` writes
 * docs/evidence/parity.md).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/isa/isa.h"
#include "device/backend.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/standin.h"

enum { BACKENDS_MAX = 16, CASES_MAX = 96 };

/* 1000, except in builds that take ten times as long per query. */
enum { MANY_QUERIES = TEST_INSTRUMENTED ? 150 : 1000 };

typedef struct cross_backend {
    char label[40];
    char what[160]; /* for the table: the case, and how it was run */
    ww_device *device;
} cross_backend;

static cross_backend backends_here[BACKENDS_MAX];
static int backend_count;
static char absent[1024];

typedef struct cross_case {
    const char *name;
    void (*fill)(test_random *random, float *values, int64_t count, int32_t dim);
    int32_t dim;
    int64_t rows;
    int64_t queries;
    int32_t k;
    bool masked; /* every third row and the last ten rows are not admitted */
} cross_case;

typedef struct outcome {
    const cross_case *of;
    ww_metric metric;
    int64_t results;
    int64_t different[BACKENDS_MAX];
} outcome;

static outcome outcomes[CASES_MAX];
static int outcome_count;

/* ---- the vectors --------------------------------------------------------------------------------------------------------- */

static void fill_normals(test_random *random, float *values, int64_t count, int32_t dim)
{
    random_normals(random, values, count * dim);
}

/* Sums of products of small integers are exact: many scores are equal, and the order is the rows'. */
static void fill_ties(test_random *random, float *values, int64_t count, int32_t dim)
{
    for (int64_t i = 0; i < count * dim; i++)
        values[i] = (float)((int)random_below(random, 3) - 1);
}

static void fill_integers(test_random *random, float *values, int64_t count, int32_t dim)
{
    for (int64_t i = 0; i < count * dim; i++)
        values[i] = (float)((int)random_below(random, 2001) - 1000);
}

static void fill_duplicates(test_random *random, float *values, int64_t count, int32_t dim)
{
    random_normals(random, values, count * dim);
    for (int64_t row = 1; row < count; row++)
        if (row % 4 != 0)
            memcpy(values + row * dim, values + row / 16 * 16 % count * dim, (size_t)dim * sizeof *values);
}

static void fill_denormals(test_random *random, float *values, int64_t count, int32_t dim)
{
    for (int64_t i = 0; i < count * dim; i++)
        values[i] = ldexpf(random_uniform(random), -126 - (int)random_below(random, 24));
}

/* Squares underflow in part: the products are denormal or zero, the sums of some are not. */
static void fill_tiny(test_random *random, float *values, int64_t count, int32_t dim)
{
    for (int64_t i = 0; i < count * dim; i++)
        values[i] = ldexpf(random_uniform(random), -60 - (int)random_below(random, 16));
}

/* Norms up to a quarter of sqrt(FLT_MAX), so that distances stay finite, too. */
static void fill_huge(test_random *random, float *values, int64_t count, int32_t dim)
{
    const float size = 4e18f / sqrtf((float)dim);
    for (int64_t i = 0; i < count * dim; i++)
        values[i] = random_uniform(random) * size;
}

static void fill_mixed(test_random *random, float *values, int64_t count, int32_t dim)
{
    for (int64_t i = 0; i < count * dim; i++)
        values[i] = ldexpf(random_uniform(random), (int)random_below(random, 100) - 60);
}

/* Zeros of both signs, whole rows of them, and here and there a one. */
static void fill_zeros(test_random *random, float *values, int64_t count, int32_t dim)
{
    for (int64_t i = 0; i < count * dim; i++) {
        const bool whole = i / dim % 3 == 0;
        values[i] = random_below(random, 2) ? -0.0f : 0.0f;
        if (!whole && random_below(random, 16) == 0)
            values[i] = random_below(random, 2) ? -1.0f : 1.0f;
    }
}

static const cross_case cases[] = {
    {"random, many queries", fill_normals, 48, 130, MANY_QUERIES, 10, false},
    {"random, one query", fill_normals, 100, 900, 1, 10, false},
    {"random, 3 queries", fill_normals, 65, 500, 3, 7, true},
    {"random, 7 queries", fill_normals, 130, 400, 7, 33, false},
    {"random, 20 queries", fill_normals, 64, 700, 20, 5, true},
    {"random, 70 queries", fill_normals, 129, 333, 70, 12, true},
    {"dimension 1", fill_normals, 1, 400, 9, 400, false},
    {"dimension 1000", fill_normals, 1000, 80, 5, 3, false},
    {"more asked than there are", fill_normals, 17, 30, 12, 100, true},
    {"k of 1500", fill_normals, 8, 1800, 2, 1500, false},
    {"ties", fill_ties, 7, 400, 70, 50, false},
    {"duplicates", fill_duplicates, 31, 400, 20, 40, true},
    {"integers", fill_integers, 63, 300, 70, 20, false},
    {"denormals", fill_denormals, 66, 200, 20, 20, false},
    {"tiny", fill_tiny, 64, 200, 20, 20, false},
    {"huge", fill_huge, 200, 150, 9, 20, false},
    {"sizes from 2^-60 to 2^40", fill_mixed, 90, 300, 70, 20, false},
    {"zeros of both signs", fill_zeros, 33, 300, 20, 60, false},
};

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

static void add_rows(ww_collection *c, const float *vectors, int64_t count, int32_t dim)
{
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = dim;
    rows.vectors = vectors;
    CHECK_OK(ww_collection_add(c, &rows));
}

/* In two adds, with some rows removed, so that there are several segments with holes. */
static ww_collection *store(ww_device *device, const cross_case *of, ww_metric metric, const float *vectors)
{
    ww_collection *c = collection_make(device, of->dim, metric);
    const int64_t first = of->rows / 3;
    add_rows(c, vectors, first, of->dim);
    add_rows(c, vectors + first * of->dim, of->rows - first, of->dim);
    char text[24];
    for (int64_t row = 5; row < of->rows; row += 41) {
        const char *id = text;
        snprintf(text, sizeof text, "%lld", (long long)row);
        CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    return c;
}

static void search(ww_collection *c, const cross_case *of, const float *queries, int64_t *rows, float *scores)
{
    uint64_t mask[64];
    for (int i = 0; i < 64; i++)
        mask[i] = UINT64_C(0x6db6db6db6db6db6);
    ww_query asked = ww_query_default();
    asked.queries = queries;
    asked.query_count = of->queries;
    asked.dim = of->dim;
    asked.k = of->k;
    asked.mask = of->masked ? mask : NULL;
    asked.mask_rows = of->masked ? of->rows - 10 : 0;
    CHECK_OK(ww_collection_search(c, &asked, rows, scores));
}

static int64_t count_differences(const int64_t *rows, const float *scores, const int64_t *other_rows, const float *other_scores,
                                 int64_t count)
{
    int64_t different = 0;
    for (int64_t i = 0; i < count; i++)
        different += rows[i] != other_rows[i] || memcmp(&scores[i], &other_scores[i], sizeof *scores) != 0;
    return different;
}

static void compare(const cross_case *of, ww_metric metric)
{
    outcome *out = &outcomes[outcome_count++];
    *out = (outcome){.of = of, .metric = metric, .results = of->queries * of->k};
    test_random random = {(uint64_t)(of - cases) + 1};
    float *vectors = malloc((size_t)(of->rows * of->dim) * sizeof *vectors);
    float *queries = malloc((size_t)(of->queries * of->dim) * sizeof *queries);
    int64_t *rows = malloc((size_t)out->results * 2 * sizeof *rows);
    float *scores = malloc((size_t)out->results * 2 * sizeof *scores);
    of->fill(&random, vectors, of->rows, of->dim);
    of->fill(&random, queries, of->queries, of->dim);
    for (int b = 0; b < backend_count; b++) {
        const int64_t at = b == 0 ? 0 : out->results;
        ww_collection *c = store(backends_here[b].device, of, metric, vectors);
        search(c, of, queries, rows + at, scores + at);
        if (b == 0) /* the first of the backends against single scores and a sort */
            check_search(c, queries, of->queries < 3 ? of->queries : 3, 0, of->k, NULL, 0);
        ww_collection_destroy(c);
        out->different[b] = count_differences(rows, scores, rows + at, scores + at, out->results);
        if (out->different[b] != 0)
            print_error("%s, %s on %s: %lld of %lld results differ from %s\n", of->name, ww_metric_name(metric),
                        backends_here[b].label, (long long)out->different[b], (long long)out->results, backends_here[0].label);
    }
    free(vectors);
    free(queries);
    free(rows);
    free(scores);
}

static void every_backend_gives_the_same_rows_and_bits(void **state)
{
    (void)state;
    assert_true(backend_count > 1);
    int64_t different = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (ww_metric metric = WW_COSINE; metric <= WW_DOT; metric++) {
            if ((TEST_INSTRUMENTED || !test_is_long()) && (size_t)metric % 3 != i % 3)
                continue;
            compare(&cases[i], metric);
            for (int b = 0; b < backend_count; b++)
                different += outcomes[outcome_count - 1].different[b];
        }
    assert_int_equal(different, 0);
}

/* ---- who takes part ------------------------------------------------------------------------------------------------------ */

static void take(const char *label, const char *what, ww_device *device)
{
    if (backend_count == BACKENDS_MAX) {
        ww_device_close(device);
        return;
    }
    cross_backend *b = &backends_here[backend_count++];
    snprintf(b->label, sizeof b->label, "%s", label);
    snprintf(b->what, sizeof b->what, "%s", what);
    b->device = device;
}

static void leave_out(const char *label, const char *why)
{
    printf("SKIP: %s takes no part: %s\n", label, why);
    const size_t length = strlen(absent);
    snprintf(absent + length, sizeof absent - length, "- `%s`: %s\n", label, why);
}

/* Slowest first, so that the reference is the plain C. */
static void take_instruction_sets(void)
{
    int count = 0;
    while (instruction_sets[count])
        count++;
    while (count-- > 0) {
        const char *name = instruction_sets[count]->name;
        char label[40];
        ww_device *device = NULL;
        snprintf(label, sizeof label, "cpu %s", name);
        setenv("WARPWAVE_ISA", name, 1);
        if (ww_device_open("cpu", &device) == WW_OK)
            take(label, device->info.name, device);
        else
            leave_out(label, ww_error_message());
    }
    unsetenv("WARPWAVE_ISA");
}

static void take_device(const char *id, const char *how)
{
    ww_device *device = NULL;
    char what[160];
    if (ww_device_open(id, &device) != WW_OK) {
        print_error("%s: %s\n", id, ww_error_message());
        exit(1); /* a device that exists, or was named, and cannot be opened is a failure */
    }
    snprintf(what, sizeof what, "%s: %.80s, %.31s, waves of %d", how, device->info.name, device->info.arch,
             device->info.wave_size);
    take(id, what, device);
}

static void take_all_of(const char *kind, const char *how)
{
    ww_device_info infos[BACKENDS_MAX];
    size_t found = 0;
    bool any = false;
    for (int i = 0; i < BACKENDS_MAX; i++)
        infos[i] = ww_device_info_default();
    if (ww_devices(infos, BACKENDS_MAX, &found) != WW_OK)
        found = 0;
    for (size_t i = 0; i < found && i < BACKENDS_MAX; i++)
        if (strcmp(infos[i].backend, kind) == 0) {
            take_device(infos[i].id, how);
            any = true;
        }
    if (!any)
        leave_out(kind, ww_backend_absence(kind));
}

/* Adds the stand-in, unless a real AMD GPU was named, which it would hide. */
static void take_everybody(void)
{
    const char *named = getenv("WARPWAVE_TEST_DEVICES");
    const bool stood_in = (!named || !strstr(named, "rocm")) && access(BUILD_DIR "/standin/libamdhip64.so", R_OK) == 0;
    if (stood_in) {
        setenv("WARPWAVE_HIP_LIBRARY", BUILD_DIR "/standin/libamdhip64.so", 0);
        /* Two chips have both wave sizes; the table is made with all chips of the stand-in. */
        setenv("WARPWAVE_STANDIN",
               getenv("WARPWAVE_PARITY_FILE") ? "chips=gfx90a,gfx942,gfx1030,gfx1100" : "chips=gfx90a,gfx1100", 0);
    }
    take_instruction_sets();
    take_all_of("emulator", "emulated");
    char list[256];
    snprintf(list, sizeof list, "%s", named ? named : "");
    char *rest = NULL;
    for (char *id = strtok_r(list, ",", &rest); id; id = strtok_r(NULL, ",", &rest))
        if (strncmp(id, "cpu", 3) != 0 && strncmp(id, "emulator", 8) != 0)
            take_device(id, "run on hardware");
    if (stood_in && !standin_has_kernels())
        leave_out("rocm", STANDIN_WITHOUT_KERNELS);
    else if (!named || !strstr(named, "rocm"))
        take_all_of("rocm", stood_in ? "kernels compiled for the host, behind a stand-in for ROCm" : "run on hardware");
    if (!named || !strstr(named, "cuda"))
        take_all_of("cuda", "run on hardware");
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static void write_legend(FILE *out)
{
    fprintf(
        out,
        "# Parity\n\nThe same vectors and queries, searched on every backend of the machine "
        "(tests/device/test_cross_backend.c). *Same*\nmeans that every row number and every bit of every score equals those of "
        "`%s`. The test fails if one differs.\n\n",
        backends_here[0].label);
    for (int b = 0; b < backend_count; b++)
        fprintf(out, "- `%s`: %s\n", backends_here[b].label, backends_here[b].what);
    if (*absent)
        fprintf(out, "\nNot available on the machine:\n\n%s", absent);
}

/* Each set of vectors once, whatever metrics it was searched with. */
static void write_cases(FILE *out)
{
    int64_t results = 0;
    int same = 0;
    for (int i = 0; i < outcome_count; i++) {
        bool equal = true;
        for (int b = 1; b < backend_count; b++)
            equal = equal && outcomes[i].different[b] == 0;
        same += equal;
        results += outcomes[i].results;
    }
    fprintf(out,
            "\n**%d of %d cases are the same on all %d backends**, %lld results on each. A case is a metric and one of these "
            "sets of vectors:\n",
            same, outcome_count, backend_count, (long long)results);
    const char *before = "";
    for (int i = 0; i < outcome_count; i++) {
        const cross_case *of = outcomes[i].of;
        if (i > 0 && outcomes[i - 1].of == of)
            continue;
        fprintf(out, "%s%s (%lldx%d%s)", before, of->name, (long long)of->rows, of->dim, of->masked ? ", masked" : "");
        before = ",\n";
    }
    fprintf(out, ".\n");
}

static void write_exceptions(FILE *out)
{
    bool first = true;
    for (int i = 0; i < outcome_count; i++) {
        for (int b = 1; b < backend_count; b++) {
            if (outcomes[i].different[b] == 0)
                continue;
            if (first)
                fprintf(out, "\n| case that differs | metric | backend | results that differ |\n|---|---|---|--:|\n");
            first = false;
            fprintf(out, "| %s | %s | %s | %lld of %lld |\n", outcomes[i].of->name, ww_metric_name(outcomes[i].metric),
                    backends_here[b].label, (long long)outcomes[i].different[b], (long long)outcomes[i].results);
        }
    }
}

static void write_parity(const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out) {
        perror(path);
        exit(1);
    }
    write_legend(out);
    write_cases(out);
    write_exceptions(out);
    fclose(out);
}

int main(void)
{
    take_everybody();
    for (int b = 0; b < backend_count; b++)
        printf("%s: %s\n", backends_here[b].label, backends_here[b].what);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_backend_gives_the_same_rows_and_bits)};
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    const char *path = getenv("WARPWAVE_PARITY_FILE");
    if (path && *path)
        write_parity(path);
    for (int b = 0; b < backend_count; b++)
        ww_device_close(backends_here[b].device);
    return failures;
}
