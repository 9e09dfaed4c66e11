/* Canonical arithmetic: every instruction set this machine has, against the definition written out below, bit for bit. */
#include "support/check.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "cpu/isa/isa.h"
#include "support/data/random.h"

enum { DIM_MAX = 1100, PADDED_MAX = 1152, ROWS_MAX = 64, QUERIES_MAX = 7 };

/* The definition, as canon.h words it: pad, 64 accumulators, fold. */
static float defined(bool l2, const float *a, const float *b, int64_t n)
{
    float acc[64] = {0};
    for (int64_t i = 0; i < (n + 63) / 64 * 64; i++) {
        const float x = i < n ? a[i] : 0.0f, y = i < n ? b[i] : 0.0f;
        const float t = x - y;
        acc[i % 64] = l2 ? fmaf(t, t, acc[i % 64]) : fmaf(x, y, acc[i % 64]);
    }
    for (int s = 32; s >= 1; s /= 2)
        for (int j = 0; j < s; j++)
            acc[j] = acc[j] + acc[j + s];
    return acc[0];
}

typedef struct values {
    const char *name;
    float (*make)(test_random *random);
} values;

static float normal(test_random *random)
{
    return random_normal(random);
}

static float denormal(test_random *random)
{
    return canon_bits_float((uint32_t)random_bits(random) & 0x807fffffu);
}

static float huge(test_random *random)
{
    return random_uniform(random) * 0x1p58f;
}

static float tiny(test_random *random) /* products underflow, to denormals, to +0 and to -0 */
{
    return random_uniform(random) * 0x1p-72f;
}

static float signed_zero(test_random *random)
{
    const uint64_t choice = random_below(random, 8);
    return choice < 4 ? 0.0f : choice < 7 ? -0.0f : random_uniform(random);
}

static float mixed(test_random *random) /* any exponent whose sums stay finite */
{
    return ldexpf(random_uniform(random), (int)random_below(random, 200) - 149);
}

static float negative_underflow(test_random *random) /* accumulators stay at -0 unless padding washes them */
{
    return random_below(random, 2) ? -0x1p-100f : 0x1p-100f;
}

static const values families[] = {
    {"normal", normal},
    {"denormal", denormal},
    {"huge", huge},
    {"tiny", tiny},
    {"signed zeros", signed_zero},
    {"mixed exponents", mixed},
    {"-0 accumulators", negative_underflow},
};
enum { FAMILIES = sizeof families / sizeof *families };

static void same_bits(const char *what, const char *set, const char *family, int64_t n, float got, float expected)
{
    if (canon_float_bits(got) != canon_float_bits(expected))
        fail_msg("%s of %s, %s, n = %d: %a, defined %a", what, set, family, (int)n, (double)got, (double)expected);
}

static void every_set_is_the_definition_for_all_dimensions(void **state)
{
    (void)state;
    static float a[DIM_MAX + 8], b[DIM_MAX + 8];
    test_random random = {1};
    for (int f = 0; f < FAMILIES; f++) {
        for (int i = 0; i < DIM_MAX + 8; i++) {
            a[i] = families[f].make(&random);
            b[i] = families[f].make(&random);
        }
        for (int64_t n = 0; n <= DIM_MAX; n++) {
            const float *x = a + n % 5, *y = b + n % 7; /* any alignment */
            const float dot = defined(false, x, y, n), squares = defined(true, x, y, n);
            for (const instruction_set *const *set = instruction_sets; *set; set++) {
                if (!(*set)->present())
                    continue;
                same_bits("dot", (*set)->name, families[f].name, n, (*set)->dot(x, y, n), dot);
                same_bits("squares", (*set)->name, families[f].name, n, (*set)->squares(x, y, n), squares);
            }
        }
    }
}

static void every_set_stores_rows_padded_with_their_norm(void **state)
{
    (void)state;
    static float from[DIM_MAX + 8], row[PADDED_MAX + 64];
    test_random random = {2};
    for (int i = 0; i < DIM_MAX + 8; i++)
        from[i] = mixed(&random);
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if (!(*set)->present())
            continue;
        for (int32_t n = 1; n <= DIM_MAX; n++) {
            const float *x = from + n % 5;
            memset(row, 0xff, sizeof row);
            same_bits("norm", (*set)->name, "stored", n, (*set)->store(row, x, n), defined(false, x, x, n));
            assert_memory_equal(row, x, (size_t)n * sizeof *row);
            for (int32_t i = n; i < canon_padded(n); i++)
                assert_int_equal(canon_float_bits(row[i]), 0);
            assert_int_equal(canon_float_bits(row[canon_padded(n)]), 0xffffffffu);
        }
    }
}

/* Tiles of every shape: their sums are the sums of the pairs. */
static void sums_of_blocks_are_the_sums_of_pairs(void **state)
{
    (void)state;
    static float rows[ROWS_MAX * PADDED_MAX], queries[QUERIES_MAX * PADDED_MAX], sums[QUERIES_MAX * SUMS_ROWS_MAX];
    static float expected[2][QUERIES_MAX][ROWS_MAX];
    static const int32_t dims[] = {64, 128, 192, 448};
    test_random random = {3};
    for (int f = 0; f < FAMILIES * 4; f++) {
        const int32_t padded = dims[f % 4];
        for (int32_t i = 0; i < QUERIES_MAX * padded; i++)
            queries[i] = families[f / 4].make(&random);
        for (int32_t i = 0; i < ROWS_MAX * padded; i++)
            rows[i] = families[f / 4].make(&random);
        for (int l2 = 0; l2 < 2; l2++)
            for (int q = 0; q < QUERIES_MAX; q++)
                for (int r = 0; r < ROWS_MAX; r++)
                    expected[l2][q][r] = defined(l2, queries + q * padded, rows + r * padded, padded);
        for (const instruction_set *const *set = instruction_sets; *set; set++) {
            if (!(*set)->present())
                continue;
            const int32_t shapes = set[1] ? 20 : 3; /* the reference, which is last and slow, has no tiles */
            for (int32_t shape = 0; shape < shapes; shape++) {
                const int32_t query_count = 1 + (int32_t)random_below(&random, QUERIES_MAX), l2 = shape % 2;
                const int32_t row_count = shape < 4 ? ROWS_MAX : 1 + (int32_t)random_below(&random, ROWS_MAX);
                (*set)->sums(&(sums_job){.metric = l2 ? CANON_L2 : CANON_DOT,
                                         .queries = queries,
                                         .rows = rows,
                                         .query_count = query_count,
                                         .row_count = row_count,
                                         .padded = padded,
                                         .sums = sums});
                for (int q = 0; q < query_count; q++)
                    for (int r = 0; r < row_count; r++)
                        same_bits("sums", (*set)->name, families[f / 4].name, padded, sums[q * SUMS_ROWS_MAX + r],
                                  expected[l2][q][r]);
            }
        }
    }
}

/* Every element of every type of rows, and sums of them, have the bits that the same f32 values have. */
static void rows_of_other_types_are_the_floats_that_they_are(void **state)
{
    (void)state;
    enum { PADDED = 192 };
    test_random random = {12};
    for (int32_t type = ROW_F16; type < ROW_TYPES; type++) {
        for (int32_t first = 0; first < 65536; first += PADDED) {
            uint16_t row[PADDED];
            float numbers[PADDED], query[PADDED], wide[PADDED];
            for (int32_t i = 0; i < PADDED; i++) {
                const uint16_t bits = (uint16_t)((uint32_t)(first + i) & 0xffffu);
                const bool finite = type == ROW_F16 ? (bits & 0x7c00u) != 0x7c00u : (bits & 0x7f80u) != 0x7f80u;
                query[i] = random_normal(&random);
                if (row_type_is_bytes(type)) {
                    ((int8_t *)row)[i] = (int8_t)(bits & 0xffu);
                    numbers[i] = (float)((int8_t)(bits & 0xffu) + (type == ROW_U8 ? 128 : 0));
                } else {
                    row[i] = finite ? bits : 0;
                    numbers[i] = type == ROW_F16 ? f32_from_f16(row[i]) : f32_from_bf16(row[i]);
                }
            }
            for (const instruction_set *const *set = instruction_sets; *set; set++) {
                if (!(*set)->present())
                    continue;
                (*set)->widen(type, row, wide, PADDED);
                assert_memory_equal(wide, numbers, sizeof wide);
                for (int l2 = 0; l2 < 2; l2++) {
                    float sums[SUMS_ROWS_MAX];
                    const sums_job job = {.metric = l2 ? CANON_L2 : CANON_DOT,
                                          .queries = query,
                                          .rows = row,
                                          .query_count = 1,
                                          .row_count = 3,
                                          .padded = PADDED / 3,
                                          .sums = sums};
                    (*set)->sums_typed(type, &job);
                    for (int r = 0; r < 3; r++)
                        same_bits("sums_typed", (*set)->name, l2 ? "l2" : "dot", type, sums[r],
                                  defined(l2, query, numbers + r * (PADDED / 3), PADDED / 3));
                    const typed_pair pair = {type, l2, PADDED, l2 ? 4096 : 0, query, row};
                    same_bits("pair_typed", (*set)->name, l2 ? "l2" : "dot", type, (*set)->pair_typed(&pair),
                              defined(l2, query, numbers, PADDED));
                }
            }
            if (row_type_is_bytes(type) && first >= 4 * PADDED)
                break;
        }
    }
}

/* Rows that the sift drops are never better than the limit's score; for dot and l2, rows that it keeps always are. */
static void sift_keeps_better_rows(void **state)
{
    (void)state;
    float sums[SUMS_ROWS_MAX], norms[SUMS_ROWS_MAX];
    test_random random = {4};
    for (int round = 0; round < 6000; round++) {
        const int32_t metric = round % 3, count = 1 + (int32_t)random_below(&random, SUMS_ROWS_MAX);
        const values *family = &families[random_below(&random, FAMILIES)];
        for (int r = 0; r < SUMS_ROWS_MAX; r++) {
            sums[r] = metric == CANON_L2 ? fabsf(family->make(&random)) : family->make(&random);
            norms[r] = random_below(&random, 16) ? fabsf(family->make(&random)) : 0.0f;
        }
        const float query_norm = fabsf(family->make(&random));
        const int pick = (int)random_below(&random, SUMS_ROWS_MAX);
        const float worst = canon_score(metric, sums[pick], query_norm, norms[pick]);
        if (!isfinite(worst))
            continue;
        const float limit = filter_limit(metric, worst);
        for (const instruction_set *const *set = instruction_sets; *set; set++) {
            if (!(*set)->present())
                continue;
            const uint64_t kept = (*set)->filter_sums(metric, sums, count, limit, query_norm, norms);
            assert_true(count == 64 || kept >> count == 0);
            for (int r = 0; r < count; r++) {
                const float score = canon_score(metric, sums[r], query_norm, norms[r]);
                const bool better = metric == CANON_L2 ? score < worst : score > worst;
                if (better && !(kept >> r & 1))
                    fail_msg("%s: metric %d loses %a, limit %a", (*set)->name, metric, (double)score, (double)worst);
                if (!better && metric != CANON_COSINE && (kept >> r & 1))
                    fail_msg("%s: metric %d keeps %a, limit %a", (*set)->name, metric, (double)score, (double)worst);
            }
        }
    }
}

/* Rows at any distance from a query, from equal to far, at any scale: rows that the screen rejects are beyond the limit. */
static void the_screen_loses_no_row_and_rejects_most(void **state)
{
    (void)state;
    static float rows[SUMS_ROWS_MAX * PADDED_MAX], query[PADDED_MAX];
    float dots[SUMS_ROWS_MAX], squares[SUMS_ROWS_MAX], norms[SUMS_ROWS_MAX];
    test_random random = {6};
    int64_t beyond = 0, rejected = 0;
    for (int round = 0; round < 500; round++) {
        const int32_t padded = 64 * (1 + (int32_t)random_below(&random, round % 20 ? 4 : 18));
        const int32_t count = 1 + (int32_t)random_below(&random, SUMS_ROWS_MAX);
        const int family = (int)random_below(&random, FAMILIES), spread = (int)random_below(&random, 26);
        for (int32_t i = 0; i < padded; i++)
            query[i] = families[family].make(&random);
        for (int32_t r = 0; r < count; r++)
            for (int32_t i = 0; i < padded; i++)
                rows[r * padded + i] = spread == 0 ? families[family].make(&random)
                                                   : query[i] + query[i] * ldexpf(random_uniform(&random), -spread);
        for (int32_t r = 0; r < count; r++) {
            squares[r] = defined(true, query, rows + r * padded, padded);
            dots[r] = defined(false, query, rows + r * padded, padded);
            norms[r] = sqrtf(defined(false, rows + r * padded, rows + r * padded, padded));
        }
        const float query_norm = sqrtf(defined(false, query, query, padded));
        const float limit = filter_limit(CANON_L2, sqrtf(squares[random_below(&random, (uint64_t)count)]));
        for (const instruction_set *const *set = instruction_sets; *set; set++) {
            if (!(*set)->present())
                continue;
            const uint64_t kept = (*set)->filter_dots(dots, count, limit, query_norm, norms, filter_slack(padded));
            assert_true(count == 64 || kept >> count == 0);
            for (int32_t r = 0; r < count; r++) {
                if (squares[r] <= limit && !(kept >> r & 1))
                    fail_msg("%s, %s, %d: loses %a, limit %a", (*set)->name, families[family].name, padded, (double)squares[r],
                             (double)limit);
                if (squares[r] > limit && family == 0 && spread < 4) {
                    beyond++;
                    rejected += !(kept >> r & 1);
                }
            }
        }
    }
    if (beyond < 300 || rejected < beyond * 90 / 100)
        fail_msg("of %d rows beyond the limit the screen rejects %d", (int)beyond, (int)rejected);
}

static void an_unknown_instruction_set_is_refused_with_the_list(void **state)
{
    (void)state;
    instruction_set set;
    setenv("WARPWAVE_ISA", "mmx", 1);
    CHECK_FAILS(WW_UNSUPPORTED, instruction_set_choose(&set));
    assert_non_null(strstr(ww_error_message(), "'mmx'"));
    assert_non_null(strstr(ww_error_message(), "scalar"));
    for (const instruction_set *const *known = instruction_sets; *known; known++) {
        setenv("WARPWAVE_ISA", (*known)->name, 1);
        if ((*known)->present()) {
            CHECK_OK(instruction_set_choose(&set));
            assert_string_equal(set.name, (*known)->name);
        } else {
            CHECK_FAILS(WW_UNSUPPORTED, instruction_set_choose(&set));
        }
    }
    unsetenv("WARPWAVE_ISA");
    CHECK_OK(instruction_set_choose(&set));
}

static void scores_and_keys_are_as_defined(void **state)
{
    (void)state;
    assert_int_equal(canon_float_bits(canon_score(CANON_DOT, -0.0f, 1, 1)), 0);
    assert_int_equal(canon_float_bits(canon_score(CANON_COSINE, -0.0f, 1, 1)), 0);
    assert_int_equal(canon_float_bits(canon_score(CANON_COSINE, 5.0f, 0, 1)), 0);
    static const float ascending[] = {-INFINITY, -2.0f, -0x1p-149f, 0.0f, 0x1p-149f, 1.0f, INFINITY};
    for (int32_t metric = 0; metric < 3; metric++) {
        for (uint32_t i = 0; i + 1 < sizeof ascending / sizeof *ascending; i++) {
            const canon_key a = canon_make_key(metric, ascending[i], 7), b = canon_make_key(metric, ascending[i + 1], 7);
            assert_true(metric == CANON_L2 ? a < b : a > b);
            assert_true(canon_make_key(metric, ascending[i], 8) > a);
            assert_int_equal(canon_float_bits(canon_key_score(metric, a)), canon_float_bits(ascending[i]));
            assert_int_equal(canon_key_row(a), 7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_is_the_definition_for_all_dimensions),
        cmocka_unit_test(every_set_stores_rows_padded_with_their_norm),
        cmocka_unit_test(sums_of_blocks_are_the_sums_of_pairs),
        cmocka_unit_test(rows_of_other_types_are_the_floats_that_they_are),
        cmocka_unit_test(sift_keeps_better_rows),
        cmocka_unit_test(the_screen_loses_no_row_and_rejects_most),
        cmocka_unit_test(an_unknown_instruction_set_is_refused_with_the_list),
        cmocka_unit_test(scores_and_keys_are_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
