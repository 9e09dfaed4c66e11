/* ww_tensor_attention() on every device: refused arguments change nothing, and results equal those of the jobs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/attention.h>

#include "support/devices.h"
#include "support/tensors.h"

static test_tensor randoms(ww_device *device, int64_t tokens, int64_t heads, int64_t size)
{
    test_random random = {.state = (uint64_t)(tokens * 1000 + heads * 300 + size)};
    float *values = malloc(sizeof *values * (size_t)(tokens * heads * size));
    random_normals(&random, values, tokens * heads * size);
    test_tensor made = test_tensor_of(device, WW_F32, 3, (int64_t[]){tokens, heads, size}, values);
    free(values);
    return made;
}

static void expect(ww_status expected, const char *words, const ww_tensor *q, const ww_tensor *k, const ww_attention *how)
{
    ww_tensor out = {0};
    const ww_status status = ww_tensor_attention(q, k, k, how, &out);
    if (status != expected || !strstr(ww_error_message(), words))
        fail_msg("%s, not %s with '%s': %s", ww_status_name(status), ww_status_name(expected), words, ww_error_message());
    assert_null(out.storage);
}

static void unsuitable_arguments_are_refused(void **state)
{
    test_tensor q = randoms(*state, 2, 4, 32), k = randoms(*state, 5, 2, 32), three = randoms(*state, 5, 3, 32);
    test_tensor small = randoms(*state, 5, 2, 24), odd = randoms(*state, 5, 2, 36), wide = randoms(*state, 5, 2, 264);
    test_tensor forty = randoms(*state, 5, 2, 40);
    ww_attention how = ww_attention_default();
    expect(WW_DIMENSION_MISMATCH, "multiple of the second", &q.tensor, &three.tensor, NULL);
    expect(WW_DIMENSION_MISMATCH, "same head size", &q.tensor, &small.tensor, NULL);
    expect(WW_UNSUPPORTED, "head size is 24", &small.tensor, &small.tensor, NULL);
    expect(WW_UNSUPPORTED, "head size is 36", &odd.tensor, &odd.tensor, NULL);
    expect(WW_UNSUPPORTED, "head size is 264", &wide.tensor, &wide.tensor, NULL);
    how.type = WW_ATTENTION_Q8_0;
    expect(WW_UNSUPPORTED, "multiple of 32", &forty.tensor, &forty.tensor, &how);
    how.type = (ww_attention_type)3;
    expect(WW_INVALID_ARGUMENT, "not a ww_attention_type", &q.tensor, &k.tensor, &how);
    how = ww_attention_default();
    how.window = 4;
    expect(WW_INVALID_ARGUMENT, "without a causal mask", &q.tensor, &k.tensor, &how);
    how = ww_attention_default();
    how.scale = NAN;
    expect(WW_INVALID_ARGUMENT, "must be finite", &q.tensor, &k.tensor, &how);
    how = ww_attention_default();
    how.first_position = -2;
    expect(WW_OUT_OF_RANGE, "first_position is -2", &q.tensor, &k.tensor, &how);
    how = ww_attention_default();
    how.causal = true;
    expect(WW_DIMENSION_MISMATCH, "cannot be more", &k.tensor, &q.tensor, &how);
    how.struct_size = 4;
    expect(WW_INVALID_ARGUMENT, "struct_size", &q.tensor, &k.tensor, &how);
    expect(WW_INVALID_ARGUMENT, "NULL", NULL, &k.tensor, NULL);
    ww_tensor flat = k.tensor;
    flat.layout = ww_layout_contiguous(1, (int64_t[]){32});
    expect(WW_DIMENSION_MISMATCH, "[tokens, heads, head size]", &q.tensor, &flat, NULL);
    assert_int_equal(ww_tensor_attention(&q.tensor, &k.tensor, &k.tensor, NULL, NULL), WW_INVALID_ARGUMENT);
    test_tensor *all[] = {&q, &k, &three, &small, &odd, &wide, &forty};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        test_tensor_free(all[i]);
}

/* Beside double precision: the definition itself is compared to the bit in test_attention.c. */
static void it_is_the_softmax_of_scaled_products_times_values(void **state)
{
    enum { N = 3, KEYS = 270, SIZE = 32 };
    test_tensor q = randoms(*state, N, 1, SIZE), k = randoms(*state, KEYS, 1, SIZE);
    const float *qs = (const float *)(const void *)q.host, *ks = (const float *)(const void *)k.host;
    ww_attention how = ww_attention_default();
    ww_tensor out = {0};
    float got[N * SIZE];
    how.type = WW_ATTENTION_F32;
    how.causal = true;
    CHECK_OK(ww_tensor_attention(&q.tensor, &k.tensor, &k.tensor, &how, &out));
    CHECK_OK(ww_tensor_to_host(&out, got));
    for (int t = 0; t < N; t++) {
        double weights[KEYS], sum = 0, expected[SIZE] = {0};
        const int seen = KEYS - N + t + 1;
        for (int j = 0; j < seen; j++) {
            double score = 0;
            for (int i = 0; i < SIZE; i++)
                score += (double)qs[t * SIZE + i] * ks[j * SIZE + i];
            weights[j] = exp(score / sqrt(SIZE));
            sum += weights[j];
        }
        for (int j = 0; j < seen; j++)
            for (int i = 0; i < SIZE; i++)
                expected[i] += weights[j] / sum * ks[j * SIZE + i];
        for (int i = 0; i < SIZE; i++)
            assert_true(fabs(got[t * SIZE + i] - expected[i]) < 1e-5);
    }
    ww_tensor_release(&out);
    test_tensor_free(&q);
    test_tensor_free(&k);
}

static void no_keys_give_zeros(void **state)
{
    test_tensor q = randoms(*state, 2, 2, 32), k = randoms(*state, 3, 1, 32);
    ww_tensor none = k.tensor, out = {0};
    float got[2 * 2 * 32];
    none.layout.shape[0] = 0;
    CHECK_OK(ww_tensor_attention(&q.tensor, &none, &none, NULL, &out));
    CHECK_OK(ww_tensor_to_host(&out, got));
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        assert_true(got[i] == 0.0f);
    ww_tensor_release(&out);
    test_tensor_free(&q);
    test_tensor_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsuitable_arguments_are_refused),
        cmocka_unit_test(it_is_the_softmax_of_scaled_products_times_values),
        cmocka_unit_test(no_keys_give_zeros),
    };
    return RUN_ON_EVERY_DEVICE("attention of tensors", tests);
}
