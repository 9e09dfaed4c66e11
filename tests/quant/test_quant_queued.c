/* Queued products that start before the previous ones have ended: their inputs are complete, and other data on the same stream
 * is not overwritten.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/calls/quant.h"
#include "support/devices.h"

static float *scaled_normals(uint64_t seed, int64_t count, float scale)
{
    float *x = quant_normals(seed, count);
    for (int64_t i = 0; i < count; i++)
        x[i] *= scale;
    return x;
}

/* x times the matrix, `times` times: each product uses the result of the one before it. */
static float *chain(ww_device *device, ww_quant *q, const float *x, int64_t n, int64_t k, int times, bool queued)
{
    float *y = malloc((size_t)(n * k) * sizeof *y);
    ww_quant_product options = ww_quant_product_default();
    ww_tensor t = quant_tensor(device, x, n, k);
    options.queued = queued;
    for (int i = 0; i < times; i++) {
        ww_tensor out = {0};
        CHECK_OK(ww_quant_multiply(q, &t, &options, &out));
        if (!queued)
            CHECK_OK(ww_device_synchronize(device));
        ww_tensor_release(&t);
        t = out;
    }
    CHECK_OK(ww_storage_to_host(t.storage, y));
    ww_storage_release(t.storage);
    return y;
}

/* A queued chain of products gives the same as one that waits for each product. */
static void compare_chains(ww_device *device, ww_quant *q, const float *x, int64_t n, int64_t k, bool slow)
{
    const int times = slow ? 3 : 40;
    float *waited = chain(device, q, x, n, k, times, false);
    for (int again = 0; again < (slow ? 1 : 4); again++) {
        float *queued = chain(device, q, x, n, k, times, true);
        for (int64_t i = 0; i < n * k; i++)
            if (memcmp(&queued[i], &waited[i], sizeof *queued) != 0)
                fail_msg("%d x %d, %d columns: result %d is %a, waited for %a", (int)k, (int)k, (int)n, (int)i,
                         (double)queued[i], (double)waited[i]);
        free(queued);
    }
    free(waited);
}

/* Matrices with few rows, which blocks of threads share, and with many. */
static void each_product_of_a_chain_uses_the_previous_result(void **state)
{
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q6_K};
    static const int64_t columns[] = {1, 8, 40};
    const bool slow = !device_is_quick_gpu(*state);
    for (int64_t k = slow ? 256 : 512; k <= (slow ? 256 : 2048); k *= 4) {
        float *w = scaled_normals(1, k * k, 1.0f / sqrtf((float)k)), *x = scaled_normals(2, 40 * k, 1.0f);
        for (int t = 0; t < 2; t++) {
            ww_quant *q;
            CHECK_OK(ww_quant_from_f32(*state, types[t], w, k, k, 0, &q));
            for (int c = 0; c < (slow ? 2 : 3); c++)
                compare_chains(*state, q, x, columns[c], k, slow);
            ww_quant_destroy(q);
        }
        free(x);
        free(w);
    }
}

static void functions_of_bf16(ww_device *device, const ww_tensor *x, ww_unary op, uint16_t *y)
{
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_unary(op, x, &out));
    CHECK_OK(ww_tensor_to_host(&out, y));
    ww_tensor_release(&out);
    CHECK_OK(ww_device_synchronize(device));
}

/* On some chips, functions of bf16 use tables in the memory of the same stream, which are made from numbers before them. If a
 * product overwrites these, the next function shows it. */
static void products_do_not_overwrite_tables_of_functions(void **state)
{
    enum { MOST = 1 << 18, N = 8, K = 256 };
    const int64_t count = device_is_slow(*state) ? 1 << 10 : MOST;
    static const ww_unary ops[] = {WW_ERF, WW_SIN, WW_LOG}; /* some of those that are looked up, not computed */
    const int64_t shape[1] = {count};
    uint16_t *numbers = malloc(MOST * sizeof *numbers), *here = malloc(MOST * sizeof *here),
             *there = malloc(MOST * sizeof *there);
    for (int i = 0; i < count; i++)
        numbers[i] = (uint16_t)(i * 7 % 0x7f80); /* finite, not negative */
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_tensor a = {.layout = ww_layout_contiguous(1, shape)}, b = a;
    CHECK_OK(ww_storage_from_host(cpu, WW_BF16, count, numbers, &a.storage));
    CHECK_OK(ww_storage_from_host(*state, WW_BF16, count, numbers, &b.storage));
    float *w = scaled_normals(3, (int64_t)K * K, 1.0f), *x = scaled_normals(4, (int64_t)N * K, 1.0f);
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, w, K, K, 0, &q));
    for (int op = 0; op < 3; op++) {
        functions_of_bf16(cpu, &a, ops[op], here);
        functions_of_bf16(*state, &b, ops[op], there);
        assert_memory_equal(here, there, (size_t)count * sizeof *here);
        free(chain(*state, q, x, N, K, 2, true));
        functions_of_bf16(*state, &b, ops[op], there);
        assert_memory_equal(here, there, (size_t)count * sizeof *here);
    }
    ww_quant_destroy(q);
    ww_storage_release(b.storage);
    ww_storage_release(a.storage);
    ww_device_close(cpu);
    free(x);
    free(w);
    free(there);
    free(here);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_product_of_a_chain_uses_the_previous_result),
        cmocka_unit_test(products_do_not_overwrite_tables_of_functions),
    };
    return RUN_ON_EVERY_DEVICE("quant stream", tests);
}
