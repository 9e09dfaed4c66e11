/* The canonical order of reductions in plain code, for tests: three kinds of numbers, and the operations that join them. */
#ifndef SUPPORT_NUMBERS_H
#define SUPPORT_NUMBERS_H

#include <math.h>

#include "arithmetic/math/f32.h"
#include "arithmetic/math/f64.h"
#include "support/products.h"
#include "support/tensors.h"

enum { RUN = 4096, LANES = 64 };

static const ww_dtype floats[] = {WW_F32, WW_F16, WW_BF16, WW_F8E4M3, WW_F64};
enum { FLOATS = sizeof floats / sizeof *floats };

/* Numbers of a kind: a float's operations round to it, a double's to that, integers' to 64 bits. */
typedef enum kind { OF_F32, OF_F64, OF_INTEGERS } kind;

static inline kind kind_of(ww_dtype dtype)
{
    return dtype == WW_F64 ? OF_F64 : is_float(dtype) ? OF_F32 : OF_INTEGERS;
}

typedef union number {
    float f32;
    double f64;
    int64_t i64;
} number;

static inline number number_from(kind k, ww_dtype dtype, uint64_t bits)
{
    const long double value = number_of(dtype, bits);
    return k == OF_F32   ? (number){.f32 = (float)value}
           : k == OF_F64 ? (number){.f64 = (double)value}
                         : (number){.i64 = (int64_t)value};
}

static inline uint64_t bits_from(kind k, ww_dtype dtype, number x)
{
    if (k == OF_INTEGERS) /* wraps */
        return ww_dtype_bytes(dtype) == 8 ? (uint64_t)x.i64 : (uint64_t)x.i64 & ((1ull << (8 * ww_dtype_bytes(dtype))) - 1);
    return bits_nearest(dtype, k == OF_F32 ? (long double)x.f32 : (long double)x.f64);
}

#define JOIN(a, b, field)                                                                                                      \
    (op == WW_REDUCE_PROD ? (a).field * (b).field                                                                              \
     : op == WW_REDUCE_MIN                                                                                                     \
         ? ((b).field < (a).field || ((b).field == (a).field && signbit((double)(b).field)) ? (b).field : (a).field)           \
     : op == WW_REDUCE_MAX                                                                                                     \
         ? ((b).field > (a).field || ((b).field == (a).field && signbit((double)(a).field)) ? (b).field : (a).field)           \
         : (a).field + (b).field)

static inline number join(kind k, ww_reduce op, number a, number b)
{
    const bool extreme = op == WW_REDUCE_MIN || op == WW_REDUCE_MAX;
    if (k == OF_INTEGERS && op == WW_REDUCE_PROD)
        return (number){.i64 = (int64_t)((uint64_t)a.i64 * (uint64_t)b.i64)};
    if (k == OF_INTEGERS && !extreme)
        return (number){.i64 = (int64_t)((uint64_t)a.i64 + (uint64_t)b.i64)};
    if (k == OF_INTEGERS)
        return (number){.i64 = op == WW_REDUCE_MIN ? (a.i64 < b.i64 ? a.i64 : b.i64) : (a.i64 > b.i64 ? a.i64 : b.i64)};
    if (k == OF_F32)
        return extreme && (isnan(a.f32) || isnan(b.f32)) ? (number){.f32 = NAN} : (number){.f32 = JOIN(a, b, f32)};
    return extreme && (isnan(a.f64) || isnan(b.f64)) ? (number){.f64 = (double)NAN} : (number){.f64 = JOIN(a, b, f64)};
}

static inline number neutral(kind k, ww_reduce op)
{
    const double of_floats = op == WW_REDUCE_PROD ? 1 : op == WW_REDUCE_MIN ? INFINITY : op == WW_REDUCE_MAX ? -INFINITY : 0;
    if (k == OF_INTEGERS)
        return (number){.i64 = op == WW_REDUCE_PROD  ? 1
                               : op == WW_REDUCE_MIN ? INT64_MAX
                               : op == WW_REDUCE_MAX ? INT64_MIN
                                                     : 0};
    return k == OF_F32 ? (number){.f32 = (float)of_floats} : (number){.f64 = of_floats};
}

/* Uses up `xs`. */
static inline number reduced(kind k, ww_reduce op, number *xs, int64_t n)
{
    do {
        int64_t runs = 0;
        for (int64_t first = 0; first < n; first += RUN) {
            number sums[LANES];
            for (int j = 0; j < LANES; j++)
                sums[j] = neutral(k, op);
            for (int64_t i = first; i < n && i < first + RUN; i++)
                sums[i % LANES] = join(k, op, sums[i % LANES], xs[i]);
            for (int s = LANES / 2; s > 0; s /= 2)
                for (int j = 0; j < s; j++)
                    sums[j] = join(k, op, sums[j], sums[j + s]);
            xs[runs++] = sums[0];
        }
        n = runs;
    } while (n > 1);
    return xs[0];
}

#endif
