/* The element functions: a sample against libm, special values, and the same bits from every instruction set. The whole of the
 * f32 numbers is measured by bench/tensor/ulp.c. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "../bench/tensor/math_functions.h"
#include "arithmetic/rows.h"

enum { COUNT = 4096 };

/* ---- one loop a function and instruction set ----------------------------------------------------------------------------- */

typedef void (*loop_f32)(const float *, const float *, float *);
typedef void (*loop_f64)(const double *, const double *, double *);

/* NOLINTBEGIN(bugprone-macro-parentheses): attributes cannot stand in parentheses */
#define LOOPS_OF(name, set, attributes, call_f32, call_f64)                                                                    \
    attributes static void name##_f32_##set(const float *restrict x, const float *restrict y, float *restrict out)             \
    {                                                                                                                          \
        (void)y;                                                                                                               \
        for (int i = 0; i < COUNT; i++)                                                                                        \
            out[i] = call_f32;                                                                                                 \
    }                                                                                                                          \
    attributes static void name##_f64_##set(const double *restrict x, const double *restrict y, double *restrict out)          \
    {                                                                                                                          \
        (void)y;                                                                                                               \
        for (int i = 0; i < COUNT; i++)                                                                                        \
            out[i] = call_f64;                                                                                                 \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#if defined(__x86_64__)
#define AVX2                   __attribute__((target("avx2,fma")))
#define AVX512                 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define FOR_EACH_SET(SET, ...) SET(plain, , __VA_ARGS__) SET(avx2, AVX2, __VA_ARGS__) SET(avx512, AVX512, __VA_ARGS__)
#define SETS(type, name)       {name##_##type##_plain, name##_##type##_avx2, name##_##type##_avx512}
#else
#define FOR_EACH_SET(SET, ...) SET(plain, , __VA_ARGS__)
#define SETS(type, name)       {name##_##type##_plain, NULL, NULL}
#endif

#define UNARY_SET(set, attributes, name) LOOPS_OF(name, set, attributes, canon_##name##_f32(x[i]), canon_##name##_f64(x[i]))
#define BINARY_SET(set, attributes, name)                                                                                      \
    LOOPS_OF(name, set, attributes, canon_##name##_f32(x[i], y[i]), canon_##name##_f64(x[i], y[i]))
#define UNARY_LOOPS(name, ...)  FOR_EACH_SET(UNARY_SET, name)
#define BINARY_LOOPS(name, ...) FOR_EACH_SET(BINARY_SET, name)
UNARIES(UNARY_LOOPS)
BINARIES(BINARY_LOOPS)

typedef struct function {
    const char *name;
    loop_f32 f32[3];
    loop_f64 f64[3];
    double (*reference)(double);
    long double (*reference_long)(long double);
    double (*reference_two)(double, double);
    long double (*reference_two_long)(long double, long double);
    double bound_f32;
    double bound_f64;
} function;

static const function functions[] = {
#define UNARY_ROW(name, ref, ref_long, bound, bound_long)                                                                      \
    {#name, SETS(f32, name), SETS(f64, name), ref, ref_long, NULL, NULL, bound, bound_long},
    UNARIES(UNARY_ROW)
#define BINARY_ROW(name, ref, ref_long, bound, bound_long)                                                                     \
    {#name, SETS(f32, name), SETS(f64, name), NULL, NULL, ref, ref_long, bound, bound_long},
        BINARIES(BINARY_ROW)};

static bool set_is_here(int set)
{
#if defined(__x86_64__)
    if (set == 1)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (set == 2)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    return set == 0;
}

/* ---- samples ------------------------------------------------------------------------------------------------------------- */

static const float specials[] = {0.0f,       -0.0f,     1.0f,     -1.0f,   INFINITY, -INFINITY, NAN,     0.5f,
                                 -0.5f,      2.0f,      -2.0f,    3.0f,    -3.0f,    1.5f,      -2.5f,   0x1p-149f,
                                 -0x1p-149f, 0x1p-126f, 0x1p127f, 3.4e38f, -3.4e38f, 0x1p24f,   0x1p23f, -0x1p17f,
                                 88.73f,     -103.9f,   -104.1f,  710.0f,  0.9f,     0x1p100f};
enum { SPECIALS = sizeof specials / sizeof *specials };

static uint64_t mixed(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* Alternately: pairs of special values, any bits, the range where functions change. */
static void fill_f32(uint64_t block, float *x, float *y)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t a = mixed(block * COUNT + i);
        const uint64_t b = mixed(a + 1);
        x[i] = i < SPECIALS * SPECIALS ? specials[i / SPECIALS] : canon_bits_float((uint32_t)a);
        y[i] = i < SPECIALS * SPECIALS ? specials[i % SPECIALS] : canon_bits_float((uint32_t)b);
        if (i >= SPECIALS * SPECIALS && i % 2) {
            x[i] = (float)((double)(int64_t)a * 0x1p-63 * (i % 4 == 1 ? 3 : 95));
            y[i] = (float)((double)(int64_t)b * 0x1p-63 * 30);
        }
    }
}

static void fill_f64(uint64_t block, double *x, double *y)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t a = mixed(block * COUNT + i);
        const uint64_t b = mixed(a + 1);
        x[i] = i < SPECIALS * SPECIALS ? (double)specials[i / SPECIALS] : canon_bits_double(a);
        y[i] = i < SPECIALS * SPECIALS ? (double)specials[i % SPECIALS] : canon_bits_double(b);
        if (i >= SPECIALS * SPECIALS && i % 2) {
            x[i] = (double)(int64_t)a * 0x1p-63 * (i % 4 == 1 ? 3 : 720);
            y[i] = (double)(int64_t)b * 0x1p-63 * 200;
        }
    }
}

static void check(const function *f, const char *type, double bound, const measure *m)
{
    if (m->wrong)
        fail_msg("%s of %s: %u special values are wrong, such as at %a, %a", f->name, type, (unsigned)m->wrong, m->wrong_x,
                 m->wrong_y);
    if (m->worst > bound)
        fail_msg("%s of %s is off by %g units, more than %g, at %a, %a", f->name, type, m->worst, bound, m->worst_x,
                 m->worst_y);
}

static void f32_functions_stay_within_their_bounds(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT], got[COUNT];
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
        const function *f = &functions[n];
        measure m = {0};
        for (uint64_t block = 0; block < 24; block++) {
            fill_f32(block, x, y);
            f->f32[0](x, y, got);
            for (int i = 0; i < COUNT; i++)
                compare_f32(&m, got[i], f->reference ? f->reference(x[i]) : f->reference_two(x[i], y[i]), x[i], y[i]);
        }
        check(f, "f32", f->bound_f32, &m);
    }
}

static void f64_functions_stay_within_their_bounds(void **state)
{
    (void)state;
    static double x[COUNT], y[COUNT], got[COUNT];
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
        const function *f = &functions[n];
        measure m = {0};
        for (uint64_t block = 0; block < 8; block++) {
            fill_f64(block, x, y);
            f->f64[0](x, y, got);
            for (int i = 0; i < COUNT; i++)
                compare_f64(&m, got[i], f->reference_long ? f->reference_long(x[i]) : f->reference_two_long(x[i], y[i]), x[i],
                            y[i]);
        }
        check(f, "f64", f->bound_f64, &m);
    }
}

static void every_instruction_set_gives_the_same_bits(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT], plain[COUNT], got[COUNT];
    static double x64[COUNT], y64[COUNT], plain64[COUNT], got64[COUNT];
    int sets = 0;
    for (int set = 1; set < 3; set++) {
        if (!set_is_here(set) || !functions[0].f32[set])
            continue;
        sets++;
        for (uint64_t n = 0; n < sizeof functions / sizeof *functions; n++) {
            const function *f = &functions[n];
            fill_f32(100 + n, x, y);
            f->f32[0](x, y, plain);
            f->f32[set](x, y, got);
            fill_f64(100 + n, x64, y64);
            f->f64[0](x64, y64, plain64);
            f->f64[set](x64, y64, got64);
            for (int i = 0; i < COUNT; i++) {
                if (canon_float_bits(got[i]) != canon_float_bits(plain[i]) && !(isnan(got[i]) && isnan(plain[i])))
                    fail_msg("%s of f32 (%a, %a): %a, but %a by set %d", f->name, x[i], y[i], plain[i], got[i], set);
                if (canon_double_bits(got64[i]) != canon_double_bits(plain64[i]) && !(isnan(got64[i]) && isnan(plain64[i])))
                    fail_msg("%s of f64 (%a, %a): %a, but %a by set %d", f->name, x64[i], y64[i], plain64[i], got64[i], set);
            }
        }
    }
    if (sets == 0) {
        print_message("SKIP: this machine has one instruction set\n");
        skip();
    }
}

/* The near forms, which vector loops take, against the whole functions. */
static void near_forms_give_the_same_bits_in_their_range(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT];
    static double x64[COUNT], y64[COUNT];
    int near = 0;
    for (uint64_t block = 0; block < 8; block++) {
        fill_f32(block, x, y);
        fill_f64(block, x64, y64);
        for (int i = 0; i < COUNT; i++) {
            if (!MATH_SIN_FAR_F32(x[i])) {
                assert_int_equal(canon_float_bits(canon_sin_near_f32(x[i])), canon_float_bits(canon_sin_f32(x[i])));
                assert_int_equal(canon_float_bits(canon_cos_near_f32(x[i])), canon_float_bits(canon_cos_f32(x[i])));
                near++;
            }
            if (!MATH_REM_FAR_F32(x[i], y[i]))
                assert_int_equal(canon_float_bits(canon_rem_near_f32(x[i], y[i])), canon_float_bits(canon_rem_f32(x[i], y[i])));
            if (!MATH_SIN_FAR_F64(x64[i])) {
                assert_true(canon_double_bits(canon_sin_near_f64(x64[i])) == canon_double_bits(canon_sin_f64(x64[i])));
                assert_true(canon_double_bits(canon_cos_near_f64(x64[i])) == canon_double_bits(canon_cos_f64(x64[i])));
            }
            if (!MATH_REM_FAR_F64(x64[i], y64[i]))
                assert_true(canon_double_bits(canon_rem_near_f64(x64[i], y64[i])) ==
                            canon_double_bits(canon_rem_f64(x64[i], y64[i])));
        }
    }
    assert_true(near > COUNT);
}

/* arithmetic/rows.h: what softmax has for e^x. */
static void exponentials_of_softmax_stay_within_their_bound(void **state)
{
    (void)state;
    for (uint32_t bits = 0x80000000u; bits < 0xc2aea000u; bits += 1021) { /* down to -87.3, below which results are subnormal */
        const float x = canon_bits_float(bits);
        const double exact = exp((double)x), unit = ldexp(1.0, ilogb(exact) - 23);
        const double error = fabs((double)row_exponential_f32(x, 0.0f) - exact) / unit;
        if (error > 1.0)
            fail_msg("e^%a is wrong by %.3f units", (double)x, error);
    }
    assert_true(row_exponential_f32(3.0f, 3.0f) == 1.0f);
    assert_true(row_exponential_f32(-87.5f, 0.0f) > 0.0f && row_exponential_f32(-87.75f, 0.0f) == 0.0f);
    assert_true(row_exponential_f32(-MATH_INF_F32, 0.0f) == 0.0f);
    assert_true(isnan(row_exponential_f32(MATH_NAN_F32, 0.0f)) && isnan(row_exponential_f32(0.0f, MATH_NAN_F32)));
    assert_true(isnan(row_exponential_f32(-MATH_INF_F32, -MATH_INF_F32)));
}

static void maximum_and_minimum_know_nan_and_the_sign_of_zero(void **state)
{
    (void)state;
    for (int i = 0; i < SPECIALS; i++)
        for (int j = 0; j < SPECIALS; j++) {
            const float a = specials[i], b = specials[j];
            const float high = canon_max_f32(a, b), low = canon_min_f32(a, b);
            if (isnan(a) || isnan(b)) {
                assert_true(isnan(high) && isnan(low));
                assert_true(isnan(canon_max_f64(a, b)) && isnan(canon_min_f64(a, b)));
                continue;
            }
            assert_true(high >= a && high >= b && (high == a || high == b));
            assert_true(low <= a && low <= b && (low == a || low == b));
            assert_int_equal(canon_float_bits(high), canon_float_bits(canon_max_f32(b, a)));
            assert_int_equal(canon_float_bits(low), canon_float_bits(canon_min_f32(b, a)));
            assert_true(canon_max_f64(a, b) == (double)high && canon_min_f64(a, b) == (double)low);
        }
    assert_int_equal(canon_float_bits(canon_max_f32(-0.0f, 0.0f)), 0);
    assert_int_equal(canon_float_bits(canon_min_f32(0.0f, -0.0f)), 0x80000000u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_functions_stay_within_their_bounds),
        cmocka_unit_test(f64_functions_stay_within_their_bounds),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(near_forms_give_the_same_bits_in_their_range),
        cmocka_unit_test(exponentials_of_softmax_stay_within_their_bound),
        cmocka_unit_test(maximum_and_minimum_know_nan_and_the_sign_of_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
