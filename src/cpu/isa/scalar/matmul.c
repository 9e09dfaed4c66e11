/* Matrix products as they are defined, one operation at a time: for machines without any other instruction set, and as the
 * reference for the others.
 */
#include <math.h>

#include "cpu/isa/convert_half.h"
#include "cpu/isa/scalar/scalar.h"

enum { ROWS = 4, COLUMNS = 4 };

static void tile_f32(const float *a, const float *b, int64_t k, float *c, int64_t stride, int32_t which)
{
    for (int r = 0; r < ROWS; r++) {
        for (int j = 0; j < COLUMNS; j++) {
            float acc = 0.0f, *at = c + r * stride + j;
            for (int64_t i = 0; i < k; i++)
                acc = fmaf(a[i * ROWS + r], b[i * COLUMNS + j], acc);
            const float total = (which & MATMUL_FIRST ? 0.0f : *at) + acc;
            *at = which & MATMUL_LAST ? one_nan_f32(total) : total;
        }
    }
}

static void tile_f64(const double *a, const double *b, int64_t k, double *c, int64_t stride, int32_t which)
{
    for (int r = 0; r < ROWS; r++) {
        for (int j = 0; j < COLUMNS; j++) {
            double acc = 0.0, *at = c + r * stride + j;
            for (int64_t i = 0; i < k; i++)
                acc = fma(a[i * ROWS + r], b[i * COLUMNS + j], acc);
            const double total = (which & MATMUL_FIRST ? 0.0 : *at) + acc;
            *at = which & MATMUL_LAST ? one_nan_f64(total) : total;
        }
    }
}

static void tile_i8(const int16_t *a, const int16_t *b, int64_t k, int32_t *c, int64_t stride, int32_t which)
{
    for (int r = 0; r < ROWS; r++) {
        for (int j = 0; j < COLUMNS; j++) {
            int32_t *at = c + r * stride + j;
            uint32_t acc = which & MATMUL_FIRST ? 0u : (uint32_t)*at;
            for (int64_t i = 0; i < 2 * k; i++)
                acc += (uint32_t)(a[(i / 2 * ROWS + r) * 2 + i % 2] * b[(i / 2 * COLUMNS + j) * 2 + i % 2]);
            *at = (int32_t)acc;
        }
    }
}

const matmul_tiles matmul_tiles_scalar = {.shape_f32 = {ROWS, COLUMNS},
                                          .shape_f64 = {ROWS, COLUMNS},
                                          .shape_i8 = {ROWS, COLUMNS},
                                          .f32 = tile_f32,
                                          .f64 = tile_f64,
                                          .i8 = tile_i8,
                                          .widen_f16 = widen_f16_many,
                                          .widen_bf16 = widen_bf16_many,
                                          .narrow_f16 = narrow_f16_many,
                                          .narrow_bf16 = narrow_bf16_many};
