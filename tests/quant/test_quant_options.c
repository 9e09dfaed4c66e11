/* The ways to multiply a quantized matrix, on every device: float activations as canonical dot products with decoded weights,
 * activations that were encoded before, experts by ids on the device; and refused arguments.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/calls/quant.h"
#include "support/data/golden.h"
#include "support/devices.h"

static float *results_of(ww_tensor *out)
{
    float *y = malloc((size_t)ww_layout_elements(&out->layout) * sizeof *y + 1);
    CHECK_OK(ww_tensor_to_host(out, y));
    ww_tensor_release(out);
    return y;
}

static void check_same(const char *name, int64_t n, const float *expected, const float *found, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&expected[i], &found[i], sizeof *found) != 0)
            fail_msg("%s times %d: result %d is %a, expected %a", name, (int)n, (int)i, (double)found[i], (double)expected[i]);
}

/* ---- float activations --------------------------------------------------------------------------------------------------- */

/* The definition, from the rows that the matrix decodes to. */
static float canonical_dot(const float *a, const float *b, int64_t count)
{
    float acc[64] = {0};
    for (int64_t i = 0; i < count; i++)
        acc[i % 64] = fmaf(a[i], b[i], acc[i % 64]);
    for (int s = 32; s > 0; s /= 2)
        for (int j = 0; j < s; j++)
            acc[j] = acc[j] + acc[j + s];
    return acc[0];
}

static void check_decoded(ww_device *device, const golden_type *t, int64_t rows, int64_t n, int64_t k)
{
    float *w = quant_normals(3, rows * k), *x = quant_normals(4, n * k), *expected = malloc(sizeof(float) * (size_t)(rows * n));
    const char *name = t->name ? t->name : "f32";
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    ww_tensor out = {0}, xs = quant_tensor(device, x, n, k);
    options.activations = WW_ACTIVATIONS_FLOAT;
    CHECK_OK(ww_quant_from_f32(device, t->type, w, rows, k, 0, &q));
    CHECK_OK(ww_quant_read_f32(q, 0, rows, w));
    for (int64_t i = 0; i < rows * n; i++)
        expected[i] = canonical_dot(w + i % rows * k, x + i / rows * k, k);
    for (options.queued = 0; options.queued < 2; options.queued++) {
        CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
        float *found = results_of(&out);
        check_same(name, n, expected, found, rows * n);
        free(found);
    }
    ww_tensor_release(&xs);
    ww_quant_destroy(q);
    free(expected);
    free(x);
    free(w);
}

static void float_activations_give_dot_products_of_decoded_rows(void **state)
{
    static const struct {
        int64_t rows, n, k;
    } shapes[] = {{1, 1, 256}, {18, 2, 512}, {5, 5, 768}, {3, 37, 256}};
    int64_t number = 0; /* an emulated device takes one shape for each type */
    for (const golden_type *t = golden_types; t; t = t->name ? t + 1 : NULL, number++)
        for (int64_t s = 0; s < 4; s++)
            if (!device_is_slow(*state) || number % 4 == s)
                check_decoded(*state, t, shapes[s].rows, shapes[s].n, shapes[s].k);
    static const golden_type odd[] = {{WW_QUANT_Q4_0, "q4_0"}, {WW_QUANT_MXFP4, "mxfp4"}, {WW_QUANT_F16, "f16"}};
    for (int t = 0; t < 3; t++)
        check_decoded(*state, &odd[t], 17, 6, 352);
}

/* What cannot be coded is multiplied: only its own results are not numbers. */
static void nothing_is_refused_of_float_activations(void **state)
{
    enum { K = 64 };
    float *w = quant_normals(5, 2 * K), *x = quant_normals(6, 2 * K);
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    ww_tensor out = {0};
    x[K + 3] = INFINITY;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.math = WW_MATH_FAST;
    ww_tensor xs = quant_tensor(*state, x, 2, K);
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_0, w, 2, K, 0, &q));
    CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
    float *y = results_of(&out);
    assert_true(isfinite(y[0]) && isfinite(y[1]));
    assert_true(!isfinite(y[2]) && !isfinite(y[3]));
    free(y);
    ww_tensor_release(&xs);
    ww_quant_destroy(q);
    free(x);
    free(w);
}

/* ---- activations that are coded ------------------------------------------------------------------------------------------ */

static ww_quant_type activations_of(ww_quant_type type)
{
    return ww_quant_block_elements(type) == 32 ? WW_QUANT_Q8_1 : WW_QUANT_Q8_K;
}

/* `n` columns, each encoded once and multiplied twice. */
static void check_coded(ww_device *device, const golden_type *t, int64_t n)
{
    enum { ROWS = 19 };
    const int64_t k = ww_quant_block_elements(t->type) == 32 ? 352 : 768;
    float *w = quant_normals(7, ROWS * k), *x = quant_normals(8, n * k);
    ww_quant *q, *coded;
    ww_tensor out = {0}, xs = quant_tensor(device, x, n, k);
    CHECK_OK(ww_quant_from_f32(device, t->type, w, ROWS, k, 0, &q));
    CHECK_OK(ww_quant_from_tensor(activations_of(t->type), &xs, &coded));
    CHECK_OK(ww_quant_matmul(q, &xs, &out));
    float *expected = results_of(&out);
    for (int again = 0; again < 2; again++) {
        CHECK_OK(ww_quant_multiply_coded(q, coded, NULL, &out));
        assert_int_equal(out.layout.rank, 2);
        assert_int_equal(out.layout.shape[0], n);
        float *found = results_of(&out);
        check_same(t->name, n, expected, found, ROWS * n);
        free(found);
    }
    free(expected);
    ww_quant_destroy(coded);
    ww_quant_destroy(q);
    ww_tensor_release(&xs);
    free(x);
    free(w);
}

static void coded_activations_give_the_same_bits(void **state)
{
    static const int64_t columns[] = {1, 2, 9, 35};
    for (const golden_type *t = golden_types; t->name; t++) {
        if (ww_quant_block_elements(t->type) == 1)
            continue;
        const bool slow = device_is_slow(*state), tiles = t->type == WW_QUANT_Q4_1 || t->type == WW_QUANT_Q6_K;
        for (int c = 0; c < (slow && !tiles ? 3 : 4); c++) /* emulated tiles take their time */
            check_coded(*state, t, columns[c]);
    }
}

static void a_view_of_coded_activations_is_accepted_and_others_are_refused(void **state)
{
    enum { ROWS = 5, N = 6, K = 256 };
    float *w = quant_normals(9, ROWS * K), *x = quant_normals(10, N * K);
    unsigned char *blocks = malloc((size_t)N * 8 * 36);
    ww_quant *q, *plain, *coded, *view, *loaded, *narrow;
    ww_quant_product options = ww_quant_product_default();
    ww_tensor out = {0}, xs = quant_tensor(*state, x, N, K);
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_0, w, ROWS, K, 0, &q));
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_F16, w, ROWS, K, 0, &plain));
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q8_1, &xs, &coded));
    CHECK_OK(ww_quant_view(coded, 2, 3, &view));
    CHECK_OK(ww_quant_matmul(q, &xs, &out));
    float *all = results_of(&out);
    CHECK_OK(ww_quant_multiply_coded(q, view, NULL, &out));
    float *some = results_of(&out);
    check_same("a view", 3, all + 2 * ROWS, some, 3 * ROWS);
    CHECK_OK(ww_quant_read_blocks(coded, 0, N, blocks));
    CHECK_OK(ww_quant_load(*state, WW_QUANT_Q8_1, blocks, (size_t)N * 8 * 36, N, K, &loaded));
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_1, x, 1, 64, 0, &narrow));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply_coded(q, loaded, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply_coded(q, q, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply_coded(NULL, coded, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply_coded(q, NULL, NULL, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply_coded(q, coded, NULL, NULL));
    CHECK_FAILS(WW_UNSUPPORTED, ww_quant_multiply_coded(plain, coded, NULL, &out));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_multiply_coded(q, narrow, NULL, &out));
    options.activations = WW_ACTIVATIONS_FLOAT;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply_coded(q, coded, &options, &out));
    options.activations = (ww_activations)7;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply(q, &xs, &options, &out));
    assert_null(out.storage);
    ww_quant_destroy(narrow);
    ww_quant_destroy(loaded);
    ww_quant_destroy(view);
    ww_quant_destroy(coded);
    ww_quant_destroy(plain);
    ww_quant_destroy(q);
    ww_tensor_release(&xs);
    free(some);
    free(all);
    free(blocks);
    free(x);
    free(w);
}

/* ---- experts by ids on the device ---------------------------------------------------------------------------------------- */

enum { EXPERTS = 5, EXPERT_ROWS = 6, EXPERT_K = 256 };

static ww_tensor ids_of(ww_device *device, ww_dtype dtype, int64_t n, const int64_t *ids)
{
    ww_tensor wide = {0}, cast = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_I64, 1, &n, ids, &wide));
    CHECK_OK(ww_tensor_cast(&wide, dtype, &cast));
    ww_tensor_release(&wide);
    return cast;
}

/* Patterns: one expert for all, each in turn, most columns to one, one column. */
static int64_t chosen(int pattern, int64_t i)
{
    return pattern == 0 ? 3 : pattern == 1 ? i * 3 % EXPERTS : i % 7 == 6 ? 4 : 1;
}

static void check_ids(ww_device *device, ww_quant_type type, ww_activations kind, int64_t n, int pattern)
{
    static const ww_dtype kinds[] = {WW_U8, WW_U32, WW_I64};
    float *w = quant_normals(11, EXPERTS * EXPERT_ROWS * EXPERT_K), *x = quant_normals(12, n * EXPERT_K);
    int64_t *experts = malloc((size_t)n * sizeof *experts);
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q, *coded = NULL;
    ww_tensor out = {0}, xs = quant_tensor(device, x, n, EXPERT_K);
    for (int64_t i = 0; i < n; i++)
        experts[i] = chosen(pattern, i);
    ww_tensor ids = ids_of(device, kinds[pattern % 3], n, experts);
    CHECK_OK(ww_quant_from_f32(device, type, w, (int64_t)EXPERTS * EXPERT_ROWS, EXPERT_K, 0, &q));
    options.activations = kind;
    options.expert_rows = EXPERT_ROWS;
    options.experts = experts;
    CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
    float *expected = results_of(&out);
    options.experts = NULL;
    options.expert_ids = &ids;
    for (options.queued = 0; options.queued < 2; options.queued++) {
        CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
        float *found = results_of(&out);
        check_same("experts", n, expected, found, EXPERT_ROWS * n);
        free(found);
    }
    if (kind == WW_ACTIVATIONS_CODED && ww_quant_block_elements(type) > 1) {
        CHECK_OK(ww_quant_from_tensor(activations_of(type), &xs, &coded));
        CHECK_OK(ww_quant_multiply_coded(q, coded, &options, &out));
        float *found = results_of(&out);
        check_same("experts of coded activations", n, expected, found, EXPERT_ROWS * n);
        free(found);
    }
    ww_quant_destroy(coded);
    ww_quant_destroy(q);
    ww_tensor_release(&ids);
    ww_tensor_release(&xs);
    free(experts);
    free(expected);
    free(x);
    free(w);
}

static void experts_by_ids_on_the_device_are_those_of_the_host(void **state)
{
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q6_K, WW_QUANT_IQ4_XS, WW_QUANT_F16};
    for (int t = 0; t < 4; t++)
        for (int pattern = device_is_slow(*state) ? t % 3 : 0; pattern < 3; pattern += device_is_slow(*state) ? 3 : 1)
            check_ids(*state, types[t], WW_ACTIVATIONS_CODED, pattern == 2 ? 29 : 11, pattern);
    check_ids(*state, WW_QUANT_Q5_1, WW_ACTIVATIONS_FLOAT, 11, 1);
    check_ids(*state, WW_QUANT_Q4_K, WW_ACTIVATIONS_CODED, 1, 1);
    check_ids(*state, WW_QUANT_Q4_0, WW_ACTIVATIONS_CODED, 260, 1); /* more than a thread block has threads */
}

/* f16 activations, which a product with tiles would use directly. */
static void many_columns_of_f16_can_use_experts_too(void **state)
{
    enum { N = 40 };
    float *w = quant_normals(13, EXPERTS * EXPERT_ROWS * EXPERT_K), *x = quant_normals(14, N * EXPERT_K);
    int64_t experts[N];
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    ww_tensor out = {0}, halves = {0}, wide = {0}, xs = quant_tensor(*state, x, N, EXPERT_K);
    for (int i = 0; i < N; i++)
        experts[i] = chosen(1, i);
    ww_tensor ids = ids_of(*state, WW_U32, N, experts);
    CHECK_OK(ww_tensor_cast(&xs, WW_F16, &halves));
    CHECK_OK(ww_tensor_cast(&halves, WW_F32, &wide));
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, w, (int64_t)EXPERTS * EXPERT_ROWS, EXPERT_K, 0, &q));
    options.expert_rows = EXPERT_ROWS;
    options.expert_ids = &ids;
    CHECK_OK(ww_quant_multiply(q, &wide, &options, &out));
    float *expected = results_of(&out);
    CHECK_OK(ww_quant_multiply(q, &halves, &options, &out));
    float *found = results_of(&out);
    check_same("f16", N, expected, found, (int64_t)N * EXPERT_ROWS);
    free(found);
    free(expected);
    ww_quant_destroy(q);
    ww_tensor_release(&ids);
    ww_tensor_release(&wide);
    ww_tensor_release(&halves);
    ww_tensor_release(&xs);
    free(x);
    free(w);
}

/* In a queued product the results are NaN; other products refuse the ids. */
static void check_wrong_ids(ww_device *device, ww_quant_type type, ww_activations kind)
{
    enum { N = 5 };
    const int64_t wrong[N] = {1, EXPERTS, 2, (int64_t)UINT32_MAX, 1}, skipping[N] = {1, 0, 2, (int64_t)UINT32_MAX, 1};
    float *w = quant_normals(15, EXPERTS * EXPERT_ROWS * EXPERT_K), *x = quant_normals(16, N * EXPERT_K);
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    ww_tensor bad = ids_of(device, WW_U32, N, wrong), good = ids_of(device, WW_U32, N, skipping), out = {0},
              xs = quant_tensor(device, x, N, EXPERT_K);
    CHECK_OK(ww_quant_from_f32(device, type, w, (int64_t)EXPERTS * EXPERT_ROWS, EXPERT_K, 0, &q));
    options.activations = kind;
    options.expert_rows = EXPERT_ROWS;
    options.expert_ids = &bad;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_multiply(q, &xs, &options, &out));
    assert_non_null(strstr(ww_error_message(), "element 1 of the ids"));
    assert_null(out.storage);
    options.queued = 1;
    CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
    float *y = results_of(&out);
    options.queued = 0;
    options.expert_ids = &good;
    CHECK_OK(ww_quant_multiply(q, &xs, &options, &out));
    float *expected = results_of(&out);
    for (int i = 0; i < N * EXPERT_ROWS; i++) {
        if (i / EXPERT_ROWS == 1)
            assert_true(isnan(y[i]));
        else
            assert_memory_equal(&y[i], &expected[i], sizeof *y);
        if (i / EXPERT_ROWS == 3)
            assert_true(y[i] == 0.0f && !signbit(y[i]));
    }
    free(expected);
    free(y);
    ww_quant_destroy(q);
    ww_tensor_release(&xs);
    ww_tensor_release(&good);
    ww_tensor_release(&bad);
    free(x);
    free(w);
}

static void a_wrong_id_is_refused_or_nan_and_a_skipped_one_gives_zeros(void **state)
{
    check_wrong_ids(*state, WW_QUANT_Q4_0, WW_ACTIVATIONS_CODED);
    check_wrong_ids(*state, WW_QUANT_Q4_K, WW_ACTIVATIONS_FLOAT);
    check_wrong_ids(*state, WW_QUANT_BF16, WW_ACTIVATIONS_CODED);
}

static void ids_that_do_not_fit_are_refused(void **state)
{
    const int64_t three[3] = {0, 1, 2};
    float *w = quant_normals(18, EXPERTS * EXPERT_ROWS * EXPERT_K), *x = quant_normals(19, 2 * EXPERT_K);
    ww_quant_product options = ww_quant_product_default();
    ww_quant *q;
    ww_device *cpu;
    ww_tensor out = {0}, xs = quant_tensor(*state, x, 2, EXPERT_K), ids = ids_of(*state, WW_I64, 3, three),
              halves = ids_of(*state, WW_F16, 2, three);
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_tensor elsewhere = ids_of(cpu, WW_I64, 2, three);
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_0, w, (int64_t)EXPERTS * EXPERT_ROWS, EXPERT_K, 0, &q));
    options.expert_rows = EXPERT_ROWS;
    options.expert_ids = &ids;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_multiply(q, &xs, &options, &out)); /* three for two rows */
    options.expert_ids = &halves;
    CHECK_FAILS(WW_UNSUPPORTED, ww_quant_multiply(q, &xs, &options, &out));
    options.expert_ids = &elsewhere;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply(q, &xs, &options, &out));
    options.experts = three;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_multiply(q, &xs, &options, &out)); /* both */
    options.experts = NULL;
    options.expert_rows = EXPERT_ROWS + 1;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_multiply(q, &xs, &options, &out));
    assert_null(out.storage);
    ww_tensor_release(&elsewhere);
    ww_device_close(cpu);
    ww_quant_destroy(q);
    ww_tensor_release(&halves);
    ww_tensor_release(&ids);
    ww_tensor_release(&xs);
    free(x);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_activations_give_dot_products_of_decoded_rows),
        cmocka_unit_test(nothing_is_refused_of_float_activations),
        cmocka_unit_test(coded_activations_give_the_same_bits),
        cmocka_unit_test(a_view_of_coded_activations_is_accepted_and_others_are_refused),
        cmocka_unit_test(experts_by_ids_on_the_device_are_those_of_the_host),
        cmocka_unit_test(many_columns_of_f16_can_use_experts_too),
        cmocka_unit_test(a_wrong_id_is_refused_or_nan_and_a_skipped_one_gives_zeros),
        cmocka_unit_test(ids_that_do_not_fit_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("quant options", tests);
}
