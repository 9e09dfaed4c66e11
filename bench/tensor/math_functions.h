/* The element functions and their references, and how errors are counted: for bench/tensor/ulp.c, which measures all inputs,
 * and tests/arithmetic/test_math.c, which takes a sample.
 *
 * f32 is compared with libm in double, f64 with libm in long double: both have enough bits that their own error does not
 * matter.
 */
#ifndef WW_BENCH_MATH_FUNCTIONS_H
#define WW_BENCH_MATH_FUNCTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"

/* ---- references ---------------------------------------------------------------------------------------------------------- */

#define REFERENCES(type, suffix, c)                                                                                            \
    static inline type ref_abs_##suffix(type x)                                                                                \
    {                                                                                                                          \
        return fabs##c(x);                                                                                                     \
    }                                                                                                                          \
    static inline type ref_sqr_##suffix(type x)                                                                                \
    {                                                                                                                          \
        return x * x;                                                                                                          \
    }                                                                                                                          \
    static inline type ref_recip_##suffix(type x)                                                                              \
    {                                                                                                                          \
        return 1 / x;                                                                                                          \
    }                                                                                                                          \
    static inline type ref_rsqrt_##suffix(type x)                                                                              \
    {                                                                                                                          \
        return 1 / sqrt##c(x);                                                                                                 \
    }                                                                                                                          \
    static inline type ref_sigmoid_##suffix(type x)                                                                            \
    {                                                                                                                          \
        return 1 / (1 + exp##c(-x));                                                                                           \
    }                                                                                                                          \
    static inline type ref_silu_##suffix(type x)                                                                               \
    {                                                                                                                          \
        return x == -(type)INFINITY ? -(type)0 : x / (1 + exp##c(-x));                                                         \
    }                                                                                                                          \
    static inline type ref_gelu_##suffix(type x)                                                                               \
    {                                                                                                                          \
        const type u = sqrt##c(2 / (type)M_PIl) * (x + 0.044715L * x * x * x);                                                 \
        return x == -(type)INFINITY ? -(type)0 : x / (1 + exp##c(-2 * u));                                                     \
    }                                                                                                                          \
    static inline type ref_gelu_erf_##suffix(type x)                                                                           \
    {                                                                                                                          \
        return x == -(type)INFINITY ? -(type)0 : x * erfc##c(-x * (type)M_SQRT1_2l) / 2;                                       \
    }                                                                                                                          \
    static inline type ref_elu_##suffix(type x)                                                                                \
    {                                                                                                                          \
        return x > 0 ? x : expm1##c(x);                                                                                        \
    }                                                                                                                          \
    static inline type ref_sign_##suffix(type x)                                                                               \
    {                                                                                                                          \
        return x != x ? x : (type)((x > 0) - (x < 0));                                                                         \
    }                                                                                                                          \
    static inline type ref_relu_##suffix(type x)                                                                               \
    {                                                                                                                          \
        return x <= 0 ? 0 : x;                                                                                                 \
    }

REFERENCES(double, f32, )
REFERENCES(long double, f64, l)

/* The remainder is exact, and so is this reference. */
static inline double ref_rem_f32(double x, double y)
{
    return fmod(x, y);
}

static inline long double ref_rem_f64(long double x, long double y)
{
    return fmodl(x, y);
}

/* ---- the functions: name, reference in double, in long double, bound in units for f32 and for f64 ------------------------ */

#define UNARIES(UNARY)                                                                                                         \
    UNARY(exp, exp, expl, 1.0, 2.0)                                                                                            \
    UNARY(log, log, logl, 1.0, 2.0)                                                                                            \
    UNARY(sqrt, sqrt, sqrtl, 0.5, 0.5)                                                                                         \
    UNARY(sin, sin, sinl, 1.0, 2.0)                                                                                            \
    UNARY(cos, cos, cosl, 1.0, 2.0)                                                                                            \
    UNARY(tanh, tanh, tanhl, 1.0, 2.0)                                                                                         \
    UNARY(erf, erf, erfl, 1.0, 2.0)                                                                                            \
    UNARY(sigmoid, ref_sigmoid_f32, ref_sigmoid_f64, 1.0, 2.0)                                                                 \
    UNARY(expm1, expm1, expm1l, 1.0, 2.0)                                                                                      \
    UNARY(log1p, log1p, log1pl, 1.0, 2.0)                                                                                      \
    UNARY(silu, ref_silu_f32, ref_silu_f64, 1.5, 2.0)                                                                          \
    UNARY(gelu, ref_gelu_f32, ref_gelu_f64, 2.0, 2.0)                                                                          \
    UNARY(gelu_erf, ref_gelu_erf_f32, ref_gelu_erf_f64, 2.0, 2.0)                                                              \
    UNARY(elu, ref_elu_f32, ref_elu_f64, 1.0, 2.0)                                                                             \
    UNARY(rsqrt, ref_rsqrt_f32, ref_rsqrt_f64, 1.0, 2.0)                                                                       \
    UNARY(recip, ref_recip_f32, ref_recip_f64, 0.5, 0.5)                                                                       \
    UNARY(sqr, ref_sqr_f32, ref_sqr_f64, 0.5, 0.5)                                                                             \
    UNARY(abs, ref_abs_f32, ref_abs_f64, 0.0, 0.0)                                                                             \
    UNARY(floor, floor, floorl, 0.0, 0.0)                                                                                      \
    UNARY(ceil, ceil, ceill, 0.0, 0.0)                                                                                         \
    UNARY(round, round, roundl, 0.0, 0.0)                                                                                      \
    UNARY(sign, ref_sign_f32, ref_sign_f64, 0.0, 0.0)                                                                          \
    UNARY(relu, ref_relu_f32, ref_relu_f64, 0.0, 0.0)

#define BINARIES(BINARY)                                                                                                       \
    BINARY(pow, pow, powl, 1.0, 2.0)                                                                                           \
    BINARY(atan2, atan2, atan2l, 1.0, 2.0)                                                                                     \
    BINARY(rem, ref_rem_f32, ref_rem_f64, 0.0, 0.0)

#define canon_elu_f32(x) canon_elu_f32(x, 1.0f)
#define canon_elu_f64(x) canon_elu_f64(x, 1.0)

/* ---- counting ------------------------------------------------------------------------------------------------------------ */

typedef struct measure {
    double worst; /* in units in the last place of the exact value; for subnormals, in their units */
    double worst_x;
    double worst_y;
    uint64_t inputs;
    uint64_t wrong; /* a NaN, an infinity, a zero or its sign that should not be, or should */
    double wrong_x;
    double wrong_y;
} measure;

static inline void count(measure *m, bool special, double error, const double at[2])
{
    const double x = at[0], y = at[1];
    m->inputs++;
    if (special) {
        m->wrong++;
        m->wrong_x = x;
        m->wrong_y = y;
    } else if (error > m->worst) {
        m->worst = error;
        m->worst_x = x;
        m->worst_y = y;
    }
}

static inline void compare_f32(measure *m, float got, double exact, double x, double y)
{
    const float rounded = (float)exact;
    const bool both_nan = isnan(got) && isnan(rounded);
    const bool same = both_nan || (got == rounded && signbit(got) == signbit(rounded));
    const bool special = !same && (isnan(got) || isnan(rounded) || isinf(got) != isinf(rounded) || (got == 0 && rounded == 0));
    double error = 0;
    if (!special && !both_nan && isfinite(got) && (double)got != exact) {
        const int exponent = exact == 0 ? -149 : ilogb(exact) - 23;
        error = fabs((double)got - exact) * ldexp(1.0, exponent < -149 ? 149 : -exponent);
    }
    count(m, special, error, (const double[]){x, y});
}

static inline void compare_f64(measure *m, double got, long double exact, double x, double y)
{
    const double rounded = (double)exact;
    const bool both_nan = isnan(got) && isnan(rounded);
    const bool same = both_nan || (got == rounded && signbit(got) == signbit(rounded));
    const bool special = !same && (isnan(got) || isnan(rounded) || isinf(got) != isinf(rounded) || (got == 0 && rounded == 0));
    double error = 0;
    if (!special && !both_nan && isfinite(got) && (long double)got != exact) {
        const int exponent = exact == 0 ? -1074 : ilogbl(exact) - 52;
        error = (double)ldexpl(fabsl((long double)got - exact), exponent < -1074 ? 1074 : -exponent);
    }
    count(m, special, error, (const double[]){x, y});
}

#endif
