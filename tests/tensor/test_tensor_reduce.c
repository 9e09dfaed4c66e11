/* Reductions: on every type and layout, to the bit, against the canonical order written down plainly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/numbers.h"

static bool nan_of(kind k, number x)
{
    return k == OF_F32 ? isnan(x.f32) : k == OF_F64 && isnan(x.f64);
}

static uint64_t arg_of(kind k, ww_reduce op, const number *xs, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        const number a = xs[best], b = xs[i];
        const bool less = k == OF_F32 ? b.f32 < a.f32 : k == OF_F64 ? b.f64 < a.f64 : b.i64 < a.i64;
        const bool more = k == OF_F32 ? b.f32 > a.f32 : k == OF_F64 ? b.f64 > a.f64 : b.i64 > a.i64;
        if (nan_of(k, b) ? !nan_of(k, a) : op == WW_REDUCE_ARGMIN ? less : more)
            best = i;
    }
    return (uint64_t)best;
}

static void check_reduce(ww_device *device, test_random *random, ww_reduce op, ww_dtype dtype, int32_t rank,
                         const int64_t *shape, uint32_t mask, test_layout style)
{
    const kind k = kind_of(dtype);
    int32_t dims[WW_RANK_MAX];
    int32_t count = 0;
    int64_t n = 1, outs = 1;
    for (int32_t d = rank - 1; d >= 0; d--) { /* any order will do */
        if (mask >> d & 1)
            dims[count++] = d;
        *(mask >> d & 1 ? &n : &outs) *= shape[d];
    }
    /* of many elements with all bits some would be NaN, and the sum with them */
    test_tensor x =
        (n > 64 && is_float(dtype) ? test_tensor_tame : test_tensor_make)(device, random, dtype, rank, shape, style);
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_reduce(op, &x.tensor, dims, count, &out));
    const bool arg = op == WW_REDUCE_ARGMIN || op == WW_REDUCE_ARGMAX;
    assert_int_equal(ww_layout_elements(&out.layout), outs);
    assert_int_equal(ww_tensor_dtype(&out), arg ? WW_U32 : dtype);
    uint8_t *bytes = storage_bytes(out.storage);
    number *xs = malloc((size_t)n * sizeof *xs);
    for (int64_t o = 0; o < outs; o++) {
        for (int64_t i = 0; i < n; i++) { /* the i-th reduced element of result o, in row-major order of all */
            int64_t at = 0, size = 1, left_o = o, left_i = i;
            for (int32_t d = rank - 1; d >= 0; d--) {
                int64_t *left = mask >> d & 1 ? &left_i : &left_o;
                at += *left % shape[d] * size;
                *left /= shape[d];
                size *= shape[d];
            }
            xs[i] = number_from(k, dtype, test_tensor_bits(&x, at));
        }
        uint64_t want;
        if (arg)
            want = arg_of(k, op, xs, n);
        else {
            number value = reduced(k, op == WW_REDUCE_MEAN ? WW_REDUCE_SUM : op, xs, n);
            if (op == WW_REDUCE_MEAN && k == OF_F32)
                value.f32 /= (float)n;
            else if (op == WW_REDUCE_MEAN)
                value.f64 /= (double)n;
            want = bits_from(k, dtype, value);
        }
        const uint64_t got = bits_of(bytes, arg ? WW_U32 : dtype, o);
        if (got != want)
            fail_msg("%s of %s, result %lld of %lld over %lld elements: %llx, not %llx", ww_reduce_name(op),
                     ww_dtype_name(dtype), (long long)o, (long long)outs, (long long)n, (unsigned long long)got,
                     (unsigned long long)want);
    }
    free(xs);
    free(bytes);
    ww_tensor_release(&out);
    test_tensor_free(&x);
}

static void every_reduction_of_every_type_and_layout_is_exact(void **state)
{
    test_random random = {21};
    for (int op = WW_REDUCE_SUM; op <= WW_REDUCE_PROD; op++)
        for (int dtype = 0; dtype < TEST_TYPES; dtype++) {
            if (dtype == WW_I8 || (op == WW_REDUCE_MEAN && !is_float((ww_dtype)dtype)))
                continue;
            for (int style = TEST_DENSE; style <= TEST_BROADCAST; style++) {
                int64_t shape[4];
                random_shape(&random, 4, 600, shape);
                const bool arg = op == WW_REDUCE_ARGMIN || op == WW_REDUCE_ARGMAX;
                const uint32_t mask = arg ? 1u << (random_bits(&random) % 4) : (uint32_t)(random_bits(&random) % 16);
                check_reduce(*state, &random, (ww_reduce)op, (ww_dtype)dtype, 4, shape, mask, (test_layout)style);
            }
        }
}

static void long_reductions_go_by_runs(void **state)
{
    test_random random = {22};
    static const struct {
        int64_t shape[2];
        uint32_t mask;
    } cases[] = {{{3, 4096}, 2}, {{2, 9001}, 2}, {{5000, 70}, 1}, {{300, 9}, 1},  {{4200, 72}, 1}, {{4200, 3}, 1},
                 {{130, 70}, 3}, {{1, 65}, 2},   {{13, 130}, 2},  {{3, 8192}, 2}, {{9, 2500}, 1}};
    static const ww_dtype types[] = {WW_F32, WW_F16, WW_F64, WW_U8, WW_I64};
    static const ww_reduce ops[] = {WW_REDUCE_SUM, WW_REDUCE_MAX, WW_REDUCE_ARGMIN};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t o = 0; o < 3; o++) {
                if (ops[o] == WW_REDUCE_ARGMIN && cases[c].mask == 3)
                    continue;
                if (device_is_slow(*state) && (c + t + o) % 3 != 0)
                    continue;
                check_reduce(*state, &random, ops[o], types[t], 2, cases[c].shape, cases[c].mask, TEST_DENSE);
            }
}

/* Blocks share adjacent results, and the last of them finishes. Run twice, to show that their counters are reset. */
static void columns_of_several_runs_are_exact(void **state)
{
    test_random random = {27};
    static const int64_t shape[2] = {4200, 72};
    for (size_t t = 0; t < FLOATS; t++) {
        check_reduce(*state, &random, WW_REDUCE_SUM, floats[t], 2, shape, 1, TEST_DENSE);
        check_reduce(*state, &random, t % 2 ? WW_REDUCE_MIN : WW_REDUCE_MEAN, floats[t], 2, shape, 1, TEST_DENSE);
    }
}

/* 16-bit elements by eight, of a result and of several, whole runs and not. */
static void rows_of_16_bits_are_exact(void **state)
{
    test_random random = {29};
    static const int64_t shapes[][2] = {{3, 640}, {1, 8256}, {2, 4096}};
    static const ww_reduce ops[] = {WW_REDUCE_SUM, WW_REDUCE_MAX, WW_REDUCE_MIN, WW_REDUCE_MEAN};
    for (size_t s = 0; s < 3; s++)
        for (size_t o = 0; o < 4; o++)
            check_reduce(*state, &random, ops[o], (s + o) % 2 ? WW_F16 : WW_BF16, 2, shapes[s], 2, TEST_DENSE);
}

/* More than 4096 runs, so a third round: ones, whose sum is exact in whatever order. */
static void many_runs_make_a_third_round(void **state)
{
    const int64_t n = device_is_slow(*state) ? 3 * RUN + 1 : (int64_t)RUN * RUN + 4097;
    const int64_t one = 1;
    const float first = 1.0f;
    ww_storage *unit = NULL;
    ww_tensor out = {0};
    CHECK_OK(ww_storage_from_host(*state, WW_F32, 1, &first, &unit));
    ww_tensor x = {.storage = unit, .layout = ww_layout_contiguous(1, &one)};
    x.layout.shape[0] = n;
    x.layout.strides[0] = 0;
    CHECK_OK(ww_tensor_reduce(WW_REDUCE_SUM, &x, NULL, 0, &out));
    float got = 0;
    CHECK_OK(ww_tensor_to_host(&out, &got));
    assert_true(got == (float)n);
    ww_tensor_release(&out);
    ww_storage_release(unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reduction_of_every_type_and_layout_is_exact),
        cmocka_unit_test(long_reductions_go_by_runs),
        cmocka_unit_test(columns_of_several_runs_are_exact),
        cmocka_unit_test(rows_of_16_bits_are_exact),
        cmocka_unit_test(many_runs_make_a_third_round),
    };
    return RUN_ON_EVERY_DEVICE("tensor_reduce", tests);
}
