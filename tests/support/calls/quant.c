/* Quantized products through the library, for tests that compare devices. */
#include "support/calls/quant.h"

#include <stdlib.h>

#include "support/data/random.h"
#include "support/devices.h"

float *quant_normals(uint64_t seed, int64_t count)
{
    test_random random = {seed};
    float *x = malloc((size_t)count * sizeof *x + 1);
    random_normals(&random, x, count);
    return x;
}

ww_tensor quant_tensor(ww_device *device, const float *x, int64_t n, int64_t k)
{
    const int64_t shape[2] = {n, k};
    ww_tensor t = {.layout = ww_layout_contiguous(2, shape)};
    CHECK_OK(ww_storage_from_host(device, WW_F32, n * k, x, &t.storage));
    return t;
}

float *quant_multiply(ww_device *device, ww_quant_type type, const float *w, int64_t rows, const float *x, int64_t n, int64_t k)
{
    ww_quant *q;
    ww_tensor t = quant_tensor(device, x, n, k), out = {0};
    float *y = malloc((size_t)(n * rows) * sizeof *y + 1);
    CHECK_OK(ww_quant_from_f32(device, type, w, rows, k, 0, &q));
    CHECK_OK(ww_quant_matmul(q, &t, &out));
    assert_int_equal(ww_layout_elements(&out.layout), n * rows);
    CHECK_OK(ww_tensor_to_host(&out, y));
    ww_tensor_release(&out);
    ww_tensor_release(&t);
    ww_quant_destroy(q);
    return y;
}
