/* Matrix products of i8: sums are i32, exact except for wrapping, so their order does not matter. */
#include "kernels/matmul/matmul_common.h"

#define NUMBER      uint32_t
#define NUMBER_TYPE TYPE_I8
#define FOUR        four_u32

typedef struct four_u32 {
    uint32_t v[4];
} four_u32;

DEVICE int64_t element_bytes(int32_t type)
{
    (void)type;
    return 1;
}

DEVICE uint32_t number_take(int32_t type, const void *data, int64_t at)
{
    (void)type;
    return (uint32_t)(int32_t)((const int8_t *)data)[at];
}

DEVICE four_u32 four_load(const uint32_t *from)
{
    const u32x4 x = load_u32x4(from);
    const four_u32 four = {{x.x, x.y, x.z, x.w}};
    return four;
}

DEVICE void four_store(uint32_t *to, four_u32 four)
{
    const u32x4 x = {four.v[0], four.v[1], four.v[2], four.v[3]};
    *(u32x4 *)to = x;
}

DEVICE four_u32 four_take(int32_t type, const void *data, int64_t at)
{
    (void)type;
    const uint32_t bytes = *(const uint32_t *)((const int8_t *)data + at);
    four_u32 four;
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        four.v[i] = (uint32_t)(int32_t)(int8_t)(bytes >> (8 * i));
    return four;
}

DEVICE uint32_t number_step(uint32_t a, uint32_t b, uint32_t sum)
{
    return sum + a * b;
}

DEVICE void number_put(const matmul_args *args, int64_t at, bool first, bool last, uint32_t sum)
{
    (void)last;
    uint32_t *totals = (uint32_t *)args->c;
    totals[at] = (first ? 0u : totals[at]) + sum;
}

DEVICE void four_put(const matmul_args *args, int64_t at, bool first, bool last, const uint32_t *sums)
{
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        number_put(args, at + i, first, last, sums[i]);
}

#include "kernels/matmul/matmul_tile.h"

MATMUL_KERNEL(matmul_i8_64, 64, 64, 16)
