/* The arithmetic of matrix products of f32, f16 and bf16, for matmul_tile.h: f32, with results rounded once. */
#ifndef WW_KERNELS_MATMUL_MATMUL_F32_H
#define WW_KERNELS_MATMUL_MATMUL_F32_H

#include "kernels/matmul/matmul_common.h"

#define NUMBER      float
#define NUMBER_TYPE TYPE_F32
#define FOUR        four_f32

typedef struct four_f32 {
    float v[4];
} four_f32;

DEVICE int64_t element_bytes(int32_t type)
{
    return type == TYPE_F32 ? 4 : 2;
}

DEVICE float number_widen(int32_t type, uint16_t bits)
{
    return type == TYPE_F16 ? widen_f16(bits) : widen_bf16(bits);
}

DEVICE float number_take(int32_t type, const void *data, int64_t at)
{
    return type == TYPE_F32 ? ((const float *)data)[at] : number_widen(type, ((const uint16_t *)data)[at]);
}

DEVICE four_f32 four_of(f32x4 x)
{
    const four_f32 four = {{x.x, x.y, x.z, x.w}};
    return four;
}

DEVICE four_f32 four_load(const float *from)
{
    return four_of(load_f32x4(from));
}

DEVICE void four_store(float *to, four_f32 four)
{
    store_f32x4(to, make_f32x4(four.v[0], four.v[1], four.v[2], four.v[3]));
}

DEVICE four_f32 four_take(int32_t type, const void *data, int64_t at)
{
    if (type == TYPE_F32)
        return four_load((const float *)data + at);
    const uint64_t bits = *(const uint64_t *)((const uint16_t *)data + at);
    four_f32 four;
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        four.v[i] = number_widen(type, (uint16_t)(bits >> (16 * i)));
    return four;
}

DEVICE float number_step(float a, float b, float sum)
{
    return fma_f32(a, b, sum);
}

DEVICE void number_put(const matmul_args *args, int64_t at, bool first, bool last, float sum)
{
    float *totals = args->type == TYPE_F32 ? (float *)args->c : args->totals;
    const float total = (first ? 0.0f : totals[at]) + sum;
    if (args->type == TYPE_F32 || !last)
        totals[at] = last ? one_nan_f32(total) : total;
    else
        ((uint16_t *)args->c)[at] = args->type == TYPE_F16 ? narrow_f16(total) : narrow_bf16(total);
}

/* For f32 only (c_quads). */
DEVICE void four_put(const matmul_args *args, int64_t at, bool first, bool last, const float *sums)
{
    float *totals = (float *)args->c + at;
    four_f32 four = {{0.0f, 0.0f, 0.0f, 0.0f}};
    if (!first)
        four = four_load(totals);
    UNROLL
    for (int32_t i = 0; i < 4; i++) {
        const float total = four.v[i] + sums[i];
        four.v[i] = last ? one_nan_f32(total) : total;
    }
    four_store(totals, four);
}

#endif
