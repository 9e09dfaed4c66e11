/* The parts of the screen: codes, scales and residuals to the bit in every instruction set; exact products of codes; and the
 * bound, which no canonical score may exceed, and which is not much larger than necessary. */
#include "support/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/row_types.h"
#include "cpu/isa/scalar/scalar.h"
#include "support/data/datasets.h"
#include "support/devices.h"

static const instruction_set *reference(void)
{
    const instruction_set *const *set = instruction_sets;
    while (set[1])
        set++;
    return *set;
}

/* `count` vectors of a dataset, padded, with their codes by the reference. */
typedef struct coded {
    int32_t dim, padded;
    int64_t count;
    float *vectors;
    int8_t *codes;
    screen_vector *screens;
} coded;

static coded coded_make(const float *vectors, int64_t count, int32_t dim)
{
    const instruction_set *scalar = reference();
    coded c = {.dim = dim, .padded = canon_padded(dim), .count = count};
    c.vectors = malloc((size_t)(count * c.padded) * sizeof *c.vectors);
    c.codes = malloc((size_t)(count * c.padded));
    c.screens = malloc((size_t)count * sizeof *c.screens);
    for (int64_t i = 0; i < count; i++) {
        const float square = scalar->store(c.vectors + i * c.padded, vectors + i * dim, dim);
        c.screens[i] = scalar->encode(c.vectors + i * c.padded, c.padded, c.codes + i * c.padded);
        c.screens[i].norm = sqrtf(square);
    }
    return c;
}

static void coded_free(coded *c)
{
    free(c->vectors);
    free(c->codes);
    free(c->screens);
}

static void make(const dataset *d, uint64_t seed, int32_t dim, int64_t rows, int64_t queries, coded *x, coded *q)
{
    test_random random = {seed};
    float *memory = malloc((size_t)((rows + queries) * dim) * sizeof *memory);
    d->make(&random, dim, memory, rows, memory + rows * dim, queries);
    *x = coded_make(memory, rows, dim);
    *q = coded_make(memory + rows * dim, queries, dim);
    free(memory);
}

static int32_t product_of(const coded *q, int64_t i, const coded *x, int64_t j)
{
    int32_t sum = 0;
    for (int32_t e = 0; e < q->padded; e++)
        sum += q->codes[i * q->padded + e] * x->codes[j * x->padded + e];
    return sum;
}

static float score_of(int32_t metric, const coded *q, int64_t i, const coded *x, int64_t j)
{
    const instruction_set *scalar = reference();
    const float *a = q->vectors + i * q->padded, *b = x->vectors + j * x->padded;
    const float sum = metric == CANON_L2 ? scalar->squares(a, b, q->padded) : scalar->dot(a, b, q->padded);
    return canon_score(metric, sum, q->screens[i].norm, x->screens[j].norm);
}

/* ---- codes --------------------------------------------------------------------------------------------------------------- */

static void residuals_bound_the_error_of_coding(void **state)
{
    (void)state;
    static const int32_t dims[] = {1, 2, 64, 100, 1000, 4096};
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
            coded x, q;
            make(d, n, dims[n], 40, 5, &x, &q);
            for (int64_t r = 0; r < x.count; r++) {
                long double squares = 0.0L;
                for (int32_t i = 0; i < x.padded; i++) {
                    const int32_t code = (int32_t)x.codes[r * x.padded + i];
                    assert_in_range(code + SCREEN_CODE_MAX, 0, 2 * SCREEN_CODE_MAX);
                    const long double rest = (long double)x.vectors[r * x.padded + i] - (long double)x.screens[r].scale * code;
                    squares += rest * rest;
                }
                const long double rest = sqrtl(squares), bound = x.screens[r].residual;
                if (!(bound >= rest && bound <= rest * 1.001L + 0x1p-63L))
                    fail_msg("%s, dim %d, row %d: residual %La, bound %La", d->name, dims[n], (int)r, rest, bound);
            }
            coded_free(&x);
            coded_free(&q);
        }
    }
}

static void check_codes(const coded *x, int64_t r, screen_vector made, const int8_t *codes)
{
    assert_memory_equal(codes, x->codes + r * x->padded, (size_t)x->padded);
    assert_int_equal(canon_float_bits(made.scale), canon_float_bits(x->screens[r].scale));
    assert_int_equal(canon_float_bits(made.residual), canon_float_bits(x->screens[r].residual));
}

static void every_set_makes_the_codes_of_the_reference(void **state)
{
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if (!(*set)->present())
            continue;
        for (const dataset *d = datasets; d->name; d++) {
            for (int32_t dim = 1; dim < 300; dim += dim < 4 ? 1 : 31) {
                coded x, q;
                make(d, 5, dim, 30, 3, &x, &q);
                int8_t *codes = malloc((size_t)x.padded);
                float *stored = malloc((size_t)x.padded * sizeof *stored);
                for (int64_t r = 0; r < x.count; r++) {
                    const float *row = x.vectors + r * x.padded;
                    check_codes(&x, r, (*set)->encode(row, x.padded, codes), codes);
                    screen_vector made;
                    memset(codes, 1, (size_t)x.padded);
                    memset(stored, 1, (size_t)x.padded * sizeof *stored);
                    const float square = (*set)->store_encoded(stored, row, dim, codes, &made);
                    assert_int_equal(canon_float_bits(square), canon_float_bits((*set)->dot(row, row, x.padded)));
                    assert_memory_equal(stored, row, (size_t)x.padded * sizeof *stored);
                    check_codes(&x, r, made, codes);
                }
                free(stored);
                free(codes);
                coded_free(&x);
                coded_free(&q);
            }
        }
    }
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

/* Random codes, and all of the largest magnitude with both signs. */
static void random_codes(test_random *random, int8_t *codes, int64_t count, bool extreme)
{
    for (int64_t i = 0; i < count; i++)
        codes[i] = (int8_t)(extreme ? (random_below(random, 8) ? 127 : -127) : (int32_t)random_below(random, 255) - 127);
}

static void check_products(const screen_products *p, int32_t padded, bool extreme)
{
    test_random random = {(uint64_t)padded};
    const size_t rows_bytes = (size_t)UNIT_ROWS * (size_t)padded, group_bytes = (size_t)packed_group_bytes(p, padded);
    int8_t *rows = aligned_alloc(64, rows_bytes), *prepared = aligned_alloc(64, rows_bytes * 2);
    int8_t *queries = aligned_alloc(64, (size_t)(GROUPS_MAX * GROUP) * (size_t)padded);
    int8_t *packed = aligned_alloc(64, GROUPS_MAX * group_bytes);
    int32_t *out = aligned_alloc(64, sizeof(int32_t) * GROUPS_MAX * UNIT_ROWS * GROUP), one[UNIT_ROWS];
    static int32_t expected[GROUPS_MAX * GROUP][UNIT_ROWS];
    random_codes(&random, rows, UNIT_ROWS * padded, extreme);
    random_codes(&random, queries, (int64_t)GROUPS_MAX * GROUP * padded, extreme);
    for (int32_t g = 0; g < GROUPS_MAX; g++)
        p->pack(queries + (int64_t)g * GROUP * padded, padded, packed + g * (int64_t)group_bytes);
    for (int32_t q = 0; q < GROUPS_MAX * GROUP; q++)
        products_scalar.one(queries + (int64_t)q * padded, rows, UNIT_ROWS, padded, expected[q]);
    if (p->begin)
        p->begin();
    for (int32_t count = 16; count <= UNIT_ROWS; count *= 2) {
        for (int32_t groups = 1; groups <= GROUPS_MAX; groups++) {
            if (p->prepare)
                p->prepare(rows, count, padded, prepared);
            p->groups(packed, groups, p->prepare ? prepared : rows, count, padded, out);
            for (int32_t q = 0; q < groups * GROUP; q++) {
                for (int32_t r = 0; r < count; r++)
                    assert_int_equal(out[(q / GROUP * UNIT_ROWS + r) * GROUP + q % GROUP], expected[q][r]);
                if (groups < GROUPS_MAX)
                    continue;
                p->one(queries + (int64_t)q * padded, rows, count, padded, one);
                assert_memory_equal(one, expected[q], (size_t)count * sizeof *one);
            }
        }
    }
    if (p->end)
        p->end();
    free(rows);
    free(prepared);
    free(queries);
    free(packed);
    free(out);
}

static void products_of_codes_are_exact_in_every_way_there_is(void **state)
{
    (void)state;
    int ways = 0;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        for (const screen_products *const *p = (*set)->products; (*set)->present() && *p; p++) {
            if (!(*p)->present())
                continue;
            for (int32_t padded = 64; padded <= 256; padded += 64)
                check_products(*p, padded, padded % 128 != 0);
            check_products(*p, 1088, true);
            check_products(*p, 8192, true);
            ways++;
        }
    }
    printf("%d ways to make products\n", ways);
    assert_true(ways > 0);
}

/* ---- the bound ----------------------------------------------------------------------------------------------------------- */

/* Is the row discarded by the bound as matrix units have it? */
static bool gate_discards(int32_t metric, int32_t padded, screen_limit limit, screen_vector query, screen_vector row,
                          int32_t product)
{
    const screen_measure measure = screen_measure_of(metric, padded, row, screen_rho(metric, padded, query), true);
    return product < screen_product_min(screen_gate_for(metric, limit), measure, metric == CANON_L2);
}

/* No score, by any metric, is discarded by a threshold that equals it. */
static void check_bound(const char *name, const coded *q, int64_t i, const coded *x, int64_t j)
{
    const int32_t product = product_of(q, i, x, j);
    for (int32_t metric = 0; metric < 3; metric++) {
        const float score = score_of(metric, q, i, x, j);
        const screen_limit limit = screen_limit_for(metric, q->padded, q->screens[i], score);
        if (screen_discards(limit, x->screens[j], product))
            fail_msg("%s, dim %d, metric %d: query %d discards row %d, whose score is the threshold %a", name, q->dim, metric,
                     (int)i, (int)j, (double)score);
        if (gate_discards(metric, q->padded, limit, q->screens[i], x->screens[j], product))
            fail_msg("%s, dim %d, metric %d: the gate of query %d discards row %d, whose score is the threshold %a", name,
                     q->dim, metric, (int)i, (int)j, (double)score);
    }
}

static void no_row_is_discarded_by_its_own_score(void **state)
{
    (void)state;
    static const int32_t dims[] = {1, 2, 5, 64, 65, 128, 300, 1024, 4096};
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
            if (TEST_INSTRUMENTED && ((size_t)(d - datasets) + n) % 4 != 0)
                continue;
            coded x, q;
            make(d, 70 + n, dims[n], 60, 8, &x, &q);
            for (int64_t i = 0; i < q.count; i++)
                for (int64_t j = 0; j < x.count; j++)
                    check_bound(d->name, &q, i, &x, j);
            for (int64_t i = 0; i < x.count; i++) /* rows as queries: scores at the end of their range */
                check_bound(d->name, &x, i, &x, i);
            coded_free(&x);
            coded_free(&q);
        }
    }
}

/* Rows of u8, as devices keep them: codes that are 128 less, of scale 1. Near 0, near 255 and in between. */
static coded bytes_make(int32_t dim, int64_t count, test_random *random)
{
    float *rows = malloc((size_t)(count * dim) * sizeof *rows);
    for (int64_t i = 0; i < count * dim; i++) {
        const int64_t kind = i / dim % 4;
        rows[i] = (float)(kind == 0   ? random_below(random, 256)
                          : kind == 1 ? random_below(random, 3)
                                      : 255 - random_below(random, 3));
    }
    coded x = coded_make(rows, count, dim);
    for (int64_t i = 0; i < count * x.padded; i++)
        x.codes[i] = (int8_t)((int32_t)x.vectors[i] - ROW_U8_OFFSET);
    for (int64_t i = 0; i < count; i++)
        x.screens[i].scale = 1.0f, x.screens[i].residual = 0.0f;
    free(rows);
    return x;
}

static screen_limit bytes_limit(int32_t metric, const coded *q, int64_t i, float threshold)
{
    const screen_vector query = q->screens[i];
    int32_t sum = 0;
    for (int32_t e = 0; e < q->padded; e++)
        sum += q->codes[i * q->padded + e];
    return screen_limit_offset(screen_limit_for(metric, q->padded, query, threshold), q->padded, query, ROW_U8_OFFSET,
                               query.scale * (float)(ROW_U8_OFFSET * sum));
}

/* The bound for u8 keeps rows that are as good as the threshold, and discards those that the errors of coding cannot make as
 * good. */
static void codes_with_an_offset_are_bounded_as_tightly(void **state)
{
    (void)state;
    static const int32_t dims[] = {1, 3, 64, 100, 784, 4096};
    test_random random = {21};
    for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
        coded x = bytes_make(dims[n], 40, &random);
        for (int round = 0; round < 6; round++) {
            float queries[4096];
            for (int32_t e = 0; e < dims[n]; e++)
                queries[e] = round == 0   ? 255.0f
                             : round == 1 ? x.vectors[e] + 0.25f
                             : round == 2 ? -1.0f - (float)(e % 7)
                                          : random_normal(&random) * (round == 3 ? 1e-6f : 90.0f) + (round == 5 ? 1e6f : 0.0f);
            coded q = coded_make(queries, 1, dims[n]);
            for (int64_t j = 0; j < x.count; j++) {
                const screen_vector a = q.screens[0];
                const int32_t product = product_of(&q, 0, &x, j);
                const float lost = 1.01f * a.residual * x.screens[j].norm,
                            change = lost + 1e-3f * a.norm * (x.screens[j].norm + 128.0f * sqrtf((float)x.padded));
                const float dot = score_of(CANON_DOT, &q, 0, &x, j), l2 = score_of(CANON_L2, &q, 0, &x, j);
                for (int32_t metric = 0; metric < 3; metric++)
                    assert_false(
                        screen_discards(bytes_limit(metric, &q, 0, score_of(metric, &q, 0, &x, j)), x.screens[j], product));
                assert_true(screen_discards(bytes_limit(CANON_DOT, &q, 0, dot + 2.0f * change), x.screens[j], product));
                const float nearer =
                    l2 * l2 - 4.0f * change - 1e-4f * (a.norm * a.norm + x.screens[j].norm * x.screens[j].norm);
                if (nearer > 0.0f)
                    assert_true(screen_discards(bytes_limit(CANON_L2, &q, 0, sqrtf(nearer)), x.screens[j], product));
            }
            coded_free(&q);
        }
        coded_free(&x);
    }
}

/* Values at the ends of the range of floats, where something underflows, overflows or both. */
static void no_row_is_discarded_by_its_own_score_at_any_size(void **state)
{
    (void)state;
    enum { DIM = 70, COUNT = 40 };
    test_random random = {4};
    static float rows[COUNT * DIM], queries[COUNT * DIM];
    for (int round = 0; round < (TEST_INSTRUMENTED ? 10 : 40); round++) {
        for (int v = 0; v < COUNT; v++) {
            const float row_size = ldexpf(1.0f, (int)random_below(&random, 180) - 120);
            const float query_size = ldexpf(1.0f, (int)random_below(&random, 180) - 120);
            for (int i = 0; i < DIM; i++) {
                rows[v * DIM + i] = random_uniform(&random) * row_size;
                queries[v * DIM + i] =
                    round % 2 ? rows[v * DIM + i] * query_size / row_size : random_uniform(&random) * query_size;
            }
        }
        coded x = coded_make(rows, COUNT, DIM), q = coded_make(queries, COUNT, DIM);
        for (int64_t i = 0; i < COUNT; i++)
            for (int64_t j = 0; j < COUNT; j++)
                check_bound("any size", &q, i, &x, j);
        coded_free(&x);
        coded_free(&q);
    }
}

/* A threshold that is better than a score by slightly more than the errors of coding discards the row. */
static void a_threshold_that_is_better_by_the_errors_of_coding_discards(void **state)
{
    (void)state;
    static const int32_t dims[] = {64, 128, 1024, 4096};
    for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
        coded x, q;
        make(dataset_named("random normal"), n, dims[n], 50, 10, &x, &q);
        for (int64_t i = 0; i < q.count; i++) {
            for (int64_t j = 0; j < x.count; j++) {
                const screen_vector a = q.screens[i], b = x.screens[j];
                /* the bound at most, and the products' own error as much again */
                const float change = 2.02f * (a.norm * b.residual + a.residual * b.norm) + 1e-3f * a.norm * b.norm;
                const float dot = score_of(CANON_DOT, &q, i, &x, j), l2 = score_of(CANON_L2, &q, i, &x, j);
                const float thresholds[] = {
                    [CANON_COSINE] = (dot + change) / (a.norm * b.norm),
                    [CANON_L2] = sqrtf(l2 * l2 - 2.0f * change),
                    [CANON_DOT] = dot + change,
                };
                for (int32_t metric = 0; metric < 3; metric++) {
                    const screen_limit limit = screen_limit_for(metric, q.padded, a, thresholds[metric]);
                    assert_true(screen_discards(limit, b, product_of(&q, i, &x, j)));
                    if (dot > 2.0f * change) /* a gate keeps all where products would have to be negative */
                        assert_true(gate_discards(metric, q.padded, limit, a, b, product_of(&q, i, &x, j)));
                }
            }
        }
        coded_free(&x);
        coded_free(&q);
    }
}

static void without_a_threshold_nothing_is_discarded(void **state)
{
    (void)state;
    coded x, q;
    make(dataset_named("random normal"), 1, 100, 30, 5, &x, &q);
    q.screens[0].norm = 0x1p-41f;
    q.screens[1].norm = 0x1p60f;
    for (int64_t i = 0; i < q.count; i++) {
        for (int64_t j = 0; j < x.count; j++) {
            for (int32_t metric = 0; metric < 3; metric++) {
                const float none = metric == CANON_L2 ? INFINITY : -INFINITY, best = metric == CANON_L2 ? 0.0f : 1e30f;
                const screen_limit limit = screen_limit_for(metric, q.padded, q.screens[i], i < 2 ? best : none);
                assert_false(screen_discards(limit, x.screens[j], INT32_MIN / 2));
                assert_false(gate_discards(metric, q.padded, limit, q.screens[i], x.screens[j], -(1 << 29)));
            }
        }
    }
    coded_free(&x);
    coded_free(&q);
}

/* Rows that do not count pass no gate but the widest, and nothing passes a closed one. */
static void gates_are_closed_to_rows_that_do_not_count(void **state)
{
    (void)state;
    coded x, q;
    make(dataset_named("random normal"), 1, 100, 30, 5, &x, &q);
    for (int64_t i = 0; i < q.count; i++) {
        for (int64_t j = 0; j < x.count; j++) {
            for (int32_t metric = 0; metric < 3; metric++) {
                const screen_limit limit = screen_limit_for(metric, q.padded, q.screens[i], metric == CANON_L2 ? 9.0f : 0.1f);
                const float rho = screen_rho(metric, q.padded, q.screens[i]);
                const screen_measure none = screen_measure_of(metric, q.padded, x.screens[j], rho, false);
                const screen_measure one = screen_measure_of(metric, q.padded, x.screens[j], rho, true);
                assert_true(screen_product_min(screen_gate_for(metric, limit), none, metric == CANON_L2) > 1 << 28);
                assert_true(screen_product_min(screen_gate_closed(), one, metric == CANON_L2) > 1 << 27);
                assert_true(screen_product_min(screen_gate_closed(), none, metric == CANON_L2) > 1 << 27);
            }
        }
    }
    coded_free(&x);
    coded_free(&q);
}

/* ---- the test as the sets make it ---------------------------------------------------------------------------------------- */

typedef struct filtered {
    coded x, q;
    int32_t products[UNIT_ROWS * GROUP];
    float scales[UNIT_ROWS], residuals[UNIT_ROWS], norms[UNIT_ROWS];
    screen_rows rows;
    screen_limits limits;
    float thresholds[GROUP];
} filtered;

static void filtered_make(filtered *s, const dataset *d, int32_t metric, int place)
{
    make(d, 3, 96, UNIT_ROWS, GROUP, &s->x, &s->q);
    s->rows = (screen_rows){s->scales, s->residuals, s->norms};
    for (int32_t r = 0; r < UNIT_ROWS; r++) {
        s->scales[r] = s->x.screens[r].scale;
        s->residuals[r] = s->x.screens[r].residual;
        s->norms[r] = s->x.screens[r].norm;
    }
    for (int32_t q = 0; q < GROUP; q++) {
        for (int32_t r = 0; r < UNIT_ROWS; r++)
            s->products[r * GROUP + q] = product_of(&s->q, q, &s->x, r);
        const screen_vector v = s->q.screens[q];
        s->thresholds[q] = score_of(metric, &s->q, q, &s->x, (place + q) % UNIT_ROWS);
        const screen_limit limit = screen_limit_for(metric, s->q.padded, v, s->thresholds[q]);
        s->limits.a[q] = limit.a / v.scale;
        s->limits.b_above[q] = limit.b < 0.0f ? 0.0f : limit.b / v.scale;
        s->limits.b_below[q] = limit.b < 0.0f ? limit.b / v.scale : 0.0f;
        s->limits.g[q] = limit.g / v.scale;
        s->limits.h[q] = limit.h / v.scale;
    }
}

/* Nothing that scores as well as the threshold is discarded, and hardly more is kept than by the reference. */
static void filtered_check(const filtered *s, const instruction_set *set, const char *name, int32_t metric)
{
    uint64_t keep[GROUP], by_reference[GROUP];
    strip_bounds runs;
    set->bound_strips(&s->rows, UNIT_ROWS, &runs);
    uint16_t candidates[SCREEN_STRIPS], all[SCREEN_STRIPS];
    memset(all, 0xff, sizeof all);
    set->filter_strips(s->products, &runs, UNIT_ROWS, &s->limits, candidates);
    const uint32_t any = set->filter_rows(s->products, &s->rows, UNIT_ROWS, &s->limits, candidates, keep);
    for (int32_t q = 0; q < GROUP; q++)
        if (!(any >> q & 1))
            keep[q] = 0;
    reference()->filter_rows(s->products, &s->rows, UNIT_ROWS, &s->limits, all, by_reference);
    int different = 0;
    for (int32_t q = 0; q < GROUP; q++) {
        int32_t column[UNIT_ROWS];
        for (int32_t r = 0; r < UNIT_ROWS; r++)
            column[r] = s->products[r * GROUP + q];
        const uint64_t alone = set->filter_one(column, &s->rows, UNIT_ROWS, &s->limits, q);
        different += __builtin_popcountll(alone ^ by_reference[q]) + __builtin_popcountll(keep[q] ^ by_reference[q]);
        for (int32_t r = 0; r < UNIT_ROWS; r++) {
            const float score = score_of(metric, &s->q, q, &s->x, r);
            const bool needed = metric == CANON_L2 ? score <= s->thresholds[q] : score >= s->thresholds[q];
            if (needed && !(keep[q] >> r & alone >> r & 1))
                fail_msg("%s: %s, metric %d, query %d: row %d is discarded", set->name, name, metric, q, r);
        }
    }
    if (different > 2) /* roundings that fall the other way */
        fail_msg("%s: %s, metric %d: %d decisions are not those of the reference", set->name, name, metric, different);
}

static void every_set_keeps_rows_that_score_as_well_as_the_threshold(void **state)
{
    (void)state;
    for (const dataset *d = datasets; d->name; d++) {
        for (int32_t metric = 0; metric < 3; metric++) {
            for (int place = 0; place < (TEST_INSTRUMENTED ? 1 : 3); place++) {
                filtered s;
                filtered_make(&s, d, metric, place * 17);
                for (const instruction_set *const *set = instruction_sets; *set; set++)
                    if ((*set)->present())
                        filtered_check(&s, *set, d->name, metric);
                coded_free(&s.x);
                coded_free(&s.q);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residuals_bound_the_error_of_coding),
        cmocka_unit_test(every_set_makes_the_codes_of_the_reference),
        cmocka_unit_test(products_of_codes_are_exact_in_every_way_there_is),
        cmocka_unit_test(no_row_is_discarded_by_its_own_score),
        cmocka_unit_test(codes_with_an_offset_are_bounded_as_tightly),
        cmocka_unit_test(no_row_is_discarded_by_its_own_score_at_any_size),
        cmocka_unit_test(a_threshold_that_is_better_by_the_errors_of_coding_discards),
        cmocka_unit_test(without_a_threshold_nothing_is_discarded),
        cmocka_unit_test(gates_are_closed_to_rows_that_do_not_count),
        cmocka_unit_test(every_set_keeps_rows_that_score_as_well_as_the_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
