/* The CPU backend as a whole: rows in, out and gathered, and searches against a naive one that sorts all keys. */
#include "support/check.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "cpu/isa/isa.h"
#include "device/backend.h"
#include "support/data/random.h"
#include "support/memory.h"

enum { SEGMENTS_MAX = 3 };

typedef struct store {
    ww_device *device;
    segment segments[SEGMENTS_MAX];
    int32_t segment_count;
    int32_t dim;
    int64_t rows;
    float *vectors; /* rows x dim */
} store;

static void store_open(store *s, ww_device *device, int32_t dim, const int64_t *sizes, int32_t segments, test_random *random,
                       bool ties)
{
    const backend *b = device->backend;
    *s = (store){.device = device, .segment_count = segments, .dim = dim};
    for (int32_t i = 0; i < segments; i++)
        s->rows += sizes[i];
    s->vectors = malloc((size_t)(s->rows * dim + 1) * sizeof(float));
    for (int64_t i = 0; i < s->rows * dim; i++)
        s->vectors[i] = ties ? (float)random_below(random, 3) - 1.0f : random_normal(random);
    int64_t first = 0;
    for (int32_t i = 0; i < segments; i++) {
        segment *seg = &s->segments[i];
        seg->first_row = first;
        seg->count = sizes[i];
        seg->capacity = (sizes[i] + 63) / 64 * 64;
        CHECK_OK(b->buffer_create(device, (size_t)seg->capacity * (size_t)canon_padded(dim) * sizeof(float), &seg->rows));
        CHECK_OK(b->buffer_create(device, (size_t)seg->capacity * sizeof(float), &seg->norms));
        CHECK_OK(b->buffer_create(device, (size_t)seg->capacity / 8, &seg->live));
        int64_t refused = 7;
        CHECK_OK(b->rows_write(device, (row_range){seg, 0, sizes[i], dim}, s->vectors + first * dim, dim, &refused));
        assert_int_equal(refused, -1);
        uint64_t *live = seg->live.data;
        for (int64_t w = 0; w < seg->capacity / 64; w++)
            live[w] = (w + 1) * 64 <= sizes[i] ? UINT64_MAX : (UINT64_C(1) << (sizes[i] - w * 64)) - 1;
        first += seg->capacity;
    }
}

static void store_close(store *s)
{
    for (int32_t i = 0; i < s->segment_count; i++) {
        s->device->backend->buffer_destroy(s->device, &s->segments[i].norms);
        s->device->backend->buffer_destroy(s->device, &s->segments[i].rows);
        s->device->backend->buffer_destroy(s->device, &s->segments[i].live);
    }
    free(s->vectors);
}

static int by_key(const void *a, const void *b)
{
    const canon_key x = *(const canon_key *)a, y = *(const canon_key *)b;
    return x < y ? -1 : x > y;
}

static bool admits(const search_job *job, const segment *seg, int64_t row)
{
    const int64_t global = seg->first_row + row;
    if (!(((const uint64_t *)seg->live.data)[row / 64] >> (row % 64) & 1))
        return false;
    return !job->mask || (global < job->mask_rows && (job->mask[global / 64] >> (global % 64) & 1));
}

/* All keys of one query, sorted; returns how many. */
static int64_t naive(const store *s, const search_job *job, const float *query, canon_key *keys)
{
    int best = 0; /* pair by pair the sets are compared with the definition elsewhere: take the fastest */
    while (!instruction_sets[best]->present())
        best++;
    const instruction_set *pairs = instruction_sets[best];
    int64_t count = 0, vector = 0;
    const float query_norm = sqrtf(pairs->dot(query, query, s->dim));
    for (int32_t i = 0; i < s->segment_count; i++) {
        const segment *seg = &s->segments[i];
        for (int64_t r = 0; r < seg->count; r++, vector++) {
            const float *x = s->vectors + vector * s->dim;
            if (!admits(job, seg, r))
                continue;
            const float sum = job->metric == CANON_L2 ? pairs->squares(query, x, s->dim) : pairs->dot(query, x, s->dim);
            const float score = canon_score(job->metric, sum, query_norm, sqrtf(pairs->dot(x, x, s->dim)));
            keys[count++] = canon_make_key(job->metric, score, (uint32_t)(seg->first_row + r));
        }
    }
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    return count;
}

static void check_results(const store *s, const search_job *job)
{
    canon_key *keys = malloc((size_t)(s->rows + 1) * sizeof *keys);
    for (int64_t q = 0; q < job->query_count; q++) {
        const int64_t count = naive(s, job, job->queries + q * job->query_stride, keys);
        for (int64_t i = 0; i < job->k; i++) {
            const int64_t row = job->rows[q * job->k + i];
            const float score = job->scores[q * job->k + i];
            const float expected = i < count                 ? canon_key_score(job->metric, keys[i])
                                   : job->metric == CANON_L2 ? INFINITY
                                                             : -INFINITY;
            if (row != (i < count ? (int64_t)canon_key_row(keys[i]) : -1) ||
                canon_float_bits(score) != canon_float_bits(expected))
                fail_msg("metric %d dim %d rows %d query %d place %d: row %d score %a, expected row %d score %a", job->metric,
                         s->dim, (int)s->rows, (int)q, (int)i, (int)row, (double)score,
                         i < count ? (int)canon_key_row(keys[i]) : -1, (double)expected);
        }
    }
    free(keys);
}

static void search_and_check(const store *s, int32_t metric, int64_t queries, int32_t k, const uint64_t *mask,
                             int64_t mask_rows, test_random *random, bool ties)
{
    const int64_t stride = s->dim + 3;
    float *q = malloc((size_t)(queries * stride) * sizeof *q);
    for (int64_t i = 0; i < queries * stride; i++)
        q[i] = ties ? (float)random_below(random, 3) - 1.0f : random_normal(random);
    search_job job = {.metric = metric,
                      .dim = s->dim,
                      .segments = s->segments,
                      .segment_count = s->segment_count,
                      .queries = q,
                      .query_count = queries,
                      .query_stride = stride,
                      .k = k,
                      .mask = mask,
                      .mask_rows = mask_rows,
                      .rows = malloc((size_t)(queries * k) * sizeof(int64_t)),
                      .scores = malloc((size_t)(queries * k) * sizeof(float))};
    CHECK_OK(s->device->backend->rows_search(s->device, &job));
    check_results(s, &job);
    free(job.rows);
    free(job.scores);
    free(q);
}

/* Removes rows from the live masks; with `one_in` 0 none. */
static void remove_some(store *s, uint64_t one_in, test_random *random)
{
    for (int32_t i = 0; i < s->segment_count && one_in > 0; i++)
        for (int64_t r = 0; r < s->segments[i].count; r++)
            if (random_below(random, one_in) == 0)
                ((uint64_t *)s->segments[i].live.data)[r / 64] &= ~(UINT64_C(1) << (r % 64));
}

static void searches_equal_the_naive_ones(ww_device *device, int rounds, test_random *random)
{
    static const int32_t dims[] = {1, 3, 63, 64, 65, 128, 200, 784};
    static const int64_t sizes[][SEGMENTS_MAX] = {{0}, {1}, {63}, {64}, {65}, {128, 64, 1}, {640, 64, 300}, {1100}};
    static const int32_t ks[] = {1, 2, 10, 100, 2048};
    uint64_t mask[40];
    for (int round = 0; round < rounds; round++) {
        store s;
        const bool ties = round % 3 == 0;
        const int64_t *size = sizes[round % 8];
        store_open(&s, device, dims[random_below(random, 8)], size, size[1] ? 3 : 1, random, ties);
        remove_some(&s, (uint64_t[]){0, 0, 40, 2}[round % 4], random);
        for (int w = 0; w < 40; w++)
            mask[w] = round % 5 == 0 ? random_bits(random) & random_bits(random) & random_bits(random)
                                     : random_bits(random) | random_bits(random) | random_bits(random);
        const int64_t queries = (int64_t[]){1, 2, 3, 16, 40}[random_below(random, 5)];
        for (int32_t metric = 0; metric < 3; metric++)
            search_and_check(&s, metric, queries, ks[random_below(random, 5)], round % 2 ? mask : NULL,
                             (int64_t)random_below(random, 1300), random, ties);
        store_close(&s);
    }
}

static void every_set_finds_the_same_as_sorting_all_keys(void **state)
{
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if (!(*set)->present())
            continue;
        setenv("WARPWAVE_ISA", (*set)->name, 1);
        ww_device *device;
        CHECK_OK(ww_device_open("cpu", &device));
        assert_string_equal(device->info.instruction_sets, (*set)->name);
        test_random random = {5};
        searches_equal_the_naive_ones(device, set[1] ? 48 : 16, &random); /* the last set is the slow reference */
        ww_device_close(device);
    }
    unsetenv("WARPWAVE_ISA");
}

static void many_queries_with_many_results_take_several_rounds(void **state)
{
    (void)state;
    ww_device *device;
    store s;
    test_random random = {6};
    CHECK_OK(ww_device_open("cpu", &device));
    store_open(&s, device, 2, (int64_t[]){70}, 1, &random, false);
    search_and_check(&s, CANON_DOT, 4500, 2048, NULL, 0, &random, false);
    store_close(&s);
    ww_device_close(device);
}

/* Sums of squares that overflow, and the results of a program that flushes denormals to zero. */
static void infinite_distances_and_flushed_denormals_are_the_callers_own(void **state)
{
    (void)state;
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    test_random random = {7};
    store s;
    store_open(&s, device, 4, (int64_t[]){100}, 1, &random, false);
    int64_t refused;
    for (int64_t i = 0; i < 400; i++)
        s.vectors[i] = (i / 4 % 2 ? 0x1p62f : -0x1p62f) * (1.0f + (float)i * 0.001f);
    CHECK_OK(device->backend->rows_write(device, (row_range){&s.segments[0], 0, 100, 4}, s.vectors, 4, &refused));
    assert_int_equal(refused, -1);
    int64_t rows[100];
    float scores[100], query[4] = {0x1.2p63f, 0x1p62f, 0x1p62f, 0x1p62f};
    search_job job = {.metric = CANON_L2,
                      .dim = 4,
                      .segments = s.segments,
                      .segment_count = 1,
                      .queries = query,
                      .query_count = 1,
                      .query_stride = 4,
                      .k = 100,
                      .rows = rows,
                      .scores = scores};
    CHECK_OK(device->backend->rows_search(device, &job));
    check_results(&s, &job);
    assert_true(isinf(scores[99]) && rows[99] >= 0);

    for (int64_t i = 0; i < 400; i++)
        s.vectors[i] = canon_bits_float((uint32_t)random_below(&random, 1 << 20));
    fenv_t callers;
    fegetenv(&callers);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    CHECK_OK(device->backend->rows_write(device, (row_range){&s.segments[0], 0, 100, 4}, s.vectors, 4, &refused));
    for (int i = 0; i < 4; i++)
        query[i] = 0x1p80f;
    job.metric = CANON_DOT;
    CHECK_OK(device->backend->rows_search(device, &job));
    fesetenv(&callers);
    check_results(&s, &job);
    assert_true(scores[0] > 0.0f);
    store_close(&s);
    ww_device_close(device);
}

static void rows_are_read_back_bit_for_bit_and_bad_ones_are_named(void **state)
{
    (void)state;
    enum { DIM = 70, ROWS = 2000 };
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    const backend *b = device->backend;
    test_random random = {8};
    store s;
    store_open(&s, device, DIM, (int64_t[]){ROWS}, 1, &random, false);
    float out[DIM];
    for (int64_t r = 0; r < ROWS; r += 37) {
        CHECK_OK(b->rows_read(device, (row_range){&s.segments[0], r, 1, DIM}, out));
        assert_memory_equal(out, s.vectors + r * DIM, sizeof out);
    }
    int64_t refused;
    s.vectors[1500 * DIM + 3] = NAN;
    s.vectors[700 * DIM + DIM - 1] = INFINITY;
    s.vectors[900 * DIM] = 0x1p100f; /* finite, but its square is not */
    CHECK_OK(b->rows_write(device, (row_range){&s.segments[0], 0, ROWS, DIM}, s.vectors, DIM, &refused));
    assert_int_equal(refused, 700);
    CHECK_OK(b->rows_write(device, (row_range){&s.segments[0], 0, 300, DIM}, s.vectors + 701 * DIM, DIM, &refused));
    assert_int_equal(refused, 199);

    segment to = {.capacity = 704, .count = 0};
    CHECK_OK(b->buffer_create(device, 704 * 128 * sizeof(float), &to.rows));
    CHECK_OK(b->buffer_create(device, 704 * sizeof(float), &to.norms));
    int64_t sources[700];
    for (int64_t i = 0; i < 700; i++)
        sources[i] = i * 2;
    s.vectors[700 * DIM + DIM - 1] = s.vectors[900 * DIM] = s.vectors[1500 * DIM + 3] = 1.0f;
    CHECK_OK(b->rows_write(device, (row_range){&s.segments[0], 0, ROWS, DIM}, s.vectors, DIM, &refused));
    assert_int_equal(refused, -1);
    CHECK_OK(b->rows_gather(device, (row_range){&to, 4, 700, DIM}, &s.segments[0], sources));
    for (int64_t i = 0; i < 700; i++) {
        CHECK_OK(b->rows_read(device, (row_range){&to, 4 + i, 1, DIM}, out));
        assert_memory_equal(out, s.vectors + sources[i] * DIM, sizeof out);
        assert_true(((float *)to.norms.data)[4 + i] == ((float *)s.segments[0].norms.data)[sources[i]]);
    }
    b->buffer_destroy(device, &to.rows);
    b->buffer_destroy(device, &to.norms);
    store_close(&s);
    ww_device_close(device);
}

typedef struct watcher {
    int calls;
    int stop_at; /* call; 0 never */
    long long last, total;
} watcher;

static int watch(int64_t done, int64_t total, void *user)
{
    watcher *w = user;
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

static void progress_is_reported_and_can_cancel(void **state)
{
    (void)state;
    enum { ROWS = 20000, QUERIES = 200, DIM = 64 };
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    test_random random = {9};
    store s;
    store_open(&s, device, DIM, (int64_t[]){ROWS}, 1, &random, true);
    int64_t *rows = malloc(QUERIES * sizeof *rows);
    float *scores = malloc(QUERIES * sizeof *scores);
    watcher w = {0};
    search_job job = {.metric = CANON_L2,
                      .dim = DIM,
                      .segments = s.segments,
                      .segment_count = 1,
                      .queries = s.vectors,
                      .query_count = QUERIES,
                      .query_stride = DIM,
                      .k = 1,
                      .rows = rows,
                      .scores = scores,
                      .progress = watch,
                      .progress_user = &w};
    CHECK_OK(device->backend->rows_search(device, &job));
    assert_true(w.calls >= 2 && w.last == QUERIES && w.total == QUERIES);
    const int calls = w.calls;
    for (int stop = 1; stop <= calls && stop <= 4; stop++) {
        w = (watcher){.stop_at = stop};
        const ww_status status = device->backend->rows_search(device, &job);
        assert_true(status == WW_CANCELLED || (status == WW_OK && w.calls < stop));
        assert_true(w.calls <= stop);
    }
    w = (watcher){.stop_at = 1};
    job.query_count = 1;
    CHECK_FAILS(WW_CANCELLED, device->backend->rows_search(device, &job));
    free(rows);
    free(scores);
    store_close(&s);
    ww_device_close(device);
}

static void a_search_without_memory_is_a_status_and_leaks_nothing(void **state)
{
    (void)state;
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    test_random random = {10};
    store s;
    store_open(&s, device, 8, (int64_t[]){100}, 1, &random, false);
    int64_t rows[3];
    float scores[3];
    search_job job = {.metric = CANON_DOT,
                      .dim = 8,
                      .segments = s.segments,
                      .segment_count = 1,
                      .queries = s.vectors,
                      .query_count = 1,
                      .query_stride = 8,
                      .k = 3,
                      .rows = rows,
                      .scores = scores};
    const int64_t held = blocks_held();
    int failures = 0;
    for (int64_t n = 1;; n++) {
        fail_allocation_at(n);
        const ww_status status = device->backend->rows_search(device, &job);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        failures++;
    }
    assert_true(failures > 0);
    check_results(&s, &job);
    store_close(&s);
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_finds_the_same_as_sorting_all_keys),
        cmocka_unit_test(many_queries_with_many_results_take_several_rounds),
        cmocka_unit_test(infinite_distances_and_flushed_denormals_are_the_callers_own),
        cmocka_unit_test(rows_are_read_back_bit_for_bit_and_bad_ones_are_named),
        cmocka_unit_test(progress_is_reported_and_can_cancel),
        cmocka_unit_test(a_search_without_memory_is_a_status_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
