/* Matrix products and convolutions of f64. */
#include "kernels/matmul/matmul_common.h"

#define NUMBER      double
#define NUMBER_TYPE TYPE_F64
#define FOUR        four_f64

typedef struct __attribute__((aligned(16))) four_f64 {
    double v[4];
} four_f64;

DEVICE int64_t element_bytes(int32_t type)
{
    (void)type;
    return 8;
}

DEVICE double number_take(int32_t type, const void *data, int64_t at)
{
    (void)type;
    return ((const double *)data)[at];
}

DEVICE four_f64 four_load(const double *from)
{
    return *(const four_f64 *)from;
}

DEVICE void four_store(double *to, four_f64 four)
{
    *(four_f64 *)to = four;
}

DEVICE four_f64 four_take(int32_t type, const void *data, int64_t at)
{
    (void)type;
    return four_load((const double *)data + at);
}

DEVICE double number_step(double a, double b, double sum)
{
    return __builtin_fma(a, b, sum);
}

DEVICE void number_put(const matmul_args *args, int64_t at, bool first, bool last, double sum)
{
    double *totals = (double *)args->c;
    const double total = (first ? 0.0 : totals[at]) + sum;
    totals[at] = last ? one_nan_f64(total) : total;
}

DEVICE void four_put(const matmul_args *args, int64_t at, bool first, bool last, const double *sums)
{
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        number_put(args, at + i, first, last, sums[i]);
}

#include "kernels/matmul/matmul_tile.h"

MATMUL_KERNEL(matmul_f64_64, 64, 64, 16)
CONV_KERNEL(conv_f64_64, 64, 64, 16, false)
