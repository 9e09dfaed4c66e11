/* Products computed by definition. */
#include "support/products.h"

#include <math.h>
#include <string.h>

void plain_sum_begin(plain_sum *sum, ww_dtype dtype)
{
    *sum = (plain_sum){.dtype = dtype};
}

static void end_chunk(plain_sum *sum)
{
    sum->total_f32 = sum->total_f32 + sum->chunk_f32;
    sum->total_f64 = sum->total_f64 + sum->chunk_f64;
    sum->chunk_f32 = 0.0f;
    sum->chunk_f64 = 0.0;
}

void plain_sum_step(plain_sum *sum, uint64_t a, uint64_t b)
{
    const long double x = number_of(sum->dtype, a), y = number_of(sum->dtype, b);
    if (sum->steps > 0 && sum->steps % 512 == 0)
        end_chunk(sum);
    sum->steps++;
    if (sum->dtype == WW_I8)
        sum->total_i32 += (uint32_t)((int32_t)x * (int32_t)y);
    else if (sum->dtype == WW_F64)
        sum->chunk_f64 = fma((double)x, (double)y, sum->chunk_f64);
    else
        sum->chunk_f32 = fmaf((float)x, (float)y, sum->chunk_f32);
    sum->near += x * y;
    sum->size += fabsl(x * y);
}

uint64_t plain_sum_end(plain_sum *sum)
{
    end_chunk(sum);
    if (sum->dtype == WW_I8)
        return sum->total_i32;
    return bits_nearest(sum->dtype, sum->dtype == WW_F64 ? (long double)sum->total_f64 : (long double)sum->total_f32);
}

void check_near(const char *what, const plain_sum *sum, ww_dtype result_type, uint64_t got)
{
    const long double value = number_of(result_type, got);
    if (!isfinite(sum->near) || !isfinite(value) || result_type == WW_I32)
        return;
    const long double of_sum = sum->dtype == WW_F64 ? 0x1p-53L : 0x1p-24L;
    const long double of_result = result_type == WW_F16 ? 0x1p-11L : result_type == WW_BF16 ? 0x1p-8L : of_sum;
    const long double bound = sum->size * of_sum * (long double)(sum->steps + 2) + fabsl(sum->near) * of_result + 0x1p-24L;
    if (fabsl(value - sum->near) > bound)
        fail_msg("%s: %Lg, not %Lg", what, value, sum->near);
}

test_tensor test_tensor_tame(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape,
                             test_layout style)
{
    test_tensor x = test_tensor_make(device, random, dtype, rank, shape, style);
    const int64_t elements = ww_storage_elements(x.tensor.storage);
    for (int64_t i = 0; i < elements; i++) {
        const long double value =
            dtype == WW_I8 ? (long double)(int8_t)random_bits(random) : (long double)random_normal(random);
        const uint64_t bits = bits_nearest(dtype, value);
        memcpy(x.host + (size_t)i * ww_dtype_bytes(dtype), &bits, ww_dtype_bytes(dtype));
    }
    ww_storage_release(x.tensor.storage);
    CHECK_OK(ww_storage_from_host(device, dtype, elements, x.host, &x.tensor.storage));
    return x;
}
