/* Softmax, norms and rotary embedding: on every type and layout, to the bit, against the canonical order written down plainly;
 * and within a tolerance against arithmetic in long double.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/rows.h"
#include "support/devices.h"
#include "support/numbers.h"

/* A dense tensor of a float type with elements of moderate size, some equal. */
static test_tensor moderate(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape)
{
    const ww_layout layout = ww_layout_contiguous(rank, shape);
    const int64_t count = ww_layout_elements(&layout);
    uint8_t *elements = malloc((size_t)count * 8);
    const size_t bytes = ww_dtype_bytes(dtype);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = bits_nearest(dtype, (long double)((int64_t)(random_bits(random) % 2001) - 1000) / 128);
        memcpy(elements + (size_t)i * bytes, &bits, bytes);
    }
    test_tensor x = test_tensor_of(device, dtype, rank, shape, elements);
    free(elements);
    return x;
}

static number sum_of(kind k, number *xs, int64_t n)
{
    return reduced(k, WW_REDUCE_SUM, xs, n);
}

/* One row by the definition, in the kind's arithmetic, and in long double. */
static void softmax_expected(kind k, const number *x, int64_t n, number *y, long double *exact)
{
    number *e = malloc((size_t)n * sizeof *e);
    long double sum = 0, most = k == OF_F32 ? (long double)x[0].f32 : (long double)x[0].f64;
    for (int64_t i = 1; i < n; i++)
        most = fmaxl(most, k == OF_F32 ? (long double)x[i].f32 : (long double)x[i].f64);
    for (int64_t i = 0; i < n; i++) {
        exact[i] = expl((k == OF_F32 ? (long double)x[i].f32 : (long double)x[i].f64) - most);
        sum += exact[i];
        y[i] = k == OF_F32 ? (number){.f32 = row_exponential_f32(x[i].f32, (float)most)}
                           : (number){.f64 = canon_exp_f64(x[i].f64 - (double)most)};
    }
    memcpy(e, y, (size_t)n * sizeof *e);
    const number all = sum_of(k, e, n);
    for (int64_t i = 0; i < n; i++) {
        exact[i] /= sum;
        y[i] = k == OF_F32 ? (number){.f32 = y[i].f32 * (1.0f / all.f32)} : (number){.f64 = y[i].f64 * (1.0 / all.f64)};
    }
    free(e);
}

static void norm_expected(kind k, bool layer, const number *x, const number *w, const number *b, int64_t n, double eps,
                          number *y, long double *exact)
{
    number *t = malloc((size_t)n * sizeof *t);
    long double mean = 0, spread = 0;
    for (int64_t i = 0; i < n; i++)
        mean += layer ? (k == OF_F32 ? (long double)x[i].f32 : (long double)x[i].f64) / n : 0;
    for (int64_t i = 0; i < n; i++) {
        const long double d = (k == OF_F32 ? (long double)x[i].f32 : (long double)x[i].f64) - mean;
        spread += d * d / n;
    }
    memcpy(t, x, (size_t)n * sizeof *t);
    const number sum = sum_of(k, t, n);
    const float m32 = layer ? sum.f32 / (float)n : 0;
    const double m64 = layer ? sum.f64 / (double)n : 0;
    /* The squares are joined by fma, so not through join(). */
    float s32 = 0;
    double s64 = 0;
    for (int64_t first = 0; first < n; first += RUN) {
        float a[LANES] = {0};
        double c[LANES] = {0};
        for (int64_t i = first; i < n && i < first + RUN; i++) {
            if (k == OF_F32)
                a[i % LANES] = fmaf(x[i].f32 - m32, x[i].f32 - m32, a[i % LANES]);
            else
                c[i % LANES] = fma(x[i].f64 - m64, x[i].f64 - m64, c[i % LANES]);
        }
        for (int s = LANES / 2; s > 0; s /= 2)
            for (int j = 0; j < s; j++) {
                a[j] += a[j + s];
                c[j] += c[j + s];
            }
        t[first / RUN] = k == OF_F32 ? (number){.f32 = a[0]} : (number){.f64 = c[0]};
    }
    const number squares = n > RUN ? sum_of(k, t, (n + RUN - 1) / RUN) : t[0];
    s32 = canon_rsqrt_f32(squares.f32 / (float)n + (float)eps);
    s64 = canon_rsqrt_f64(squares.f64 / (double)n + eps);
    for (int64_t i = 0; i < n; i++) {
        const long double wi = !w ? 1 : k == OF_F32 ? (long double)w[i].f32 : (long double)w[i].f64;
        const long double bi = !b ? 0 : k == OF_F32 ? (long double)b[i].f32 : (long double)b[i].f64;
        exact[i] =
            ((k == OF_F32 ? (long double)x[i].f32 : (long double)x[i].f64) - mean) / sqrtl(spread + (long double)eps) * wi + bi;
        if (k == OF_F32) {
            const float v = (x[i].f32 - m32) * s32;
            y[i].f32 = b ? fmaf(v, w ? w[i].f32 : 1.0f, b[i].f32) : w ? v * w[i].f32 : v;
        } else {
            const double v = (x[i].f64 - m64) * s64;
            y[i].f64 = b ? fma(v, w ? w[i].f64 : 1.0, b[i].f64) : w ? v * w[i].f64 : v;
        }
    }
    free(t);
}

static void check_rows(const char *what, ww_dtype dtype, const ww_tensor *out, int64_t row, const number *want,
                       const long double *exact, int64_t n)
{
    const kind k = kind_of(dtype);
    const long double unit = dtype == WW_F64    ? 0x1p-46L
                             : dtype == WW_F32  ? 0x1p-17L
                             : dtype == WW_F16  ? 0x1p-8L
                             : dtype == WW_BF16 ? 0x1p-5L
                                                : 0x1p-2L;
    uint8_t *bytes = storage_bytes(out->storage);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t got = bits_of(bytes, dtype, row * n + i);
        const uint64_t bits = bits_from(k, dtype, want[i]);
        const long double error = fabsl(number_of(dtype, got) - exact[i]);
        if (got != bits || error > unit * (1 + fabsl(exact[i])))
            fail_msg("%s of %s, element %lld of %lld: %Lg, not %Lg, and exactly %Lg", what, ww_dtype_name(dtype), (long long)i,
                     (long long)n, number_of(dtype, got), number_of(dtype, bits), exact[i]);
    }
    free(bytes);
}

static number *numbers_of(const test_tensor *x, int64_t first, int64_t n)
{
    const ww_dtype dtype = ww_storage_dtype(x->tensor.storage);
    number *xs = malloc((size_t)n * sizeof *xs);
    for (int64_t i = 0; i < n; i++)
        xs[i] = number_from(kind_of(dtype), dtype, test_tensor_bits(x, first + i));
    return xs;
}

static const int64_t lengths[] = {1,   63,   64,   128,  192,  200,  256,  320,   512,
                                  960, 1000, 1025, 1280, 4096, 4200, 9000, 12288, 16384};

static void softmax_and_norms_are_exact_for_every_length(void **state)
{
    test_random random = {23};
    for (size_t t = 0; t < FLOATS; t++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const int64_t n = lengths[l], rows = n == 64 ? 70 : 3,
                          shape[2] = {rows, n};                        /* 70: more than a block of a GPU has */
            if (device_is_slow(*state) && n >= 1000 && t % 3 != l % 3) /* each length, and each type, but not all pairs */
                continue;
            test_tensor x = moderate(*state, &random, floats[t], 2, shape);
            test_tensor w = moderate(*state, &random, floats[t], 1, &n);
            test_tensor b = moderate(*state, &random, floats[t], 1, &n);
            ww_tensor soft = {0}, layer = {0}, plain = {0}, rms = {0};
            CHECK_OK(ww_tensor_softmax(&x.tensor, -1, &soft));
            CHECK_OK(ww_tensor_layer_norm(&x.tensor, &w.tensor, &b.tensor, 1e-5, &layer));
            CHECK_OK(ww_tensor_layer_norm(&x.tensor, NULL, NULL, 1e-3, &plain));
            CHECK_OK(ww_tensor_rms_norm(&x.tensor, &w.tensor, 1e-5, &rms));
            number *want = malloc((size_t)n * sizeof *want);
            long double *exact = malloc((size_t)n * sizeof *exact);
            number *ws = numbers_of(&w, 0, n), *bs = numbers_of(&b, 0, n);
            for (int64_t row = 0; row < rows; row++) {
                number *xs = numbers_of(&x, row * n, n);
                const kind k = kind_of(floats[t]);
                softmax_expected(k, xs, n, want, exact);
                check_rows("softmax", floats[t], &soft, row, want, exact, n);
                norm_expected(k, true, xs, ws, bs, n, 1e-5, want, exact);
                check_rows("layer_norm", floats[t], &layer, row, want, exact, n);
                norm_expected(k, true, xs, NULL, NULL, n, 1e-3, want, exact);
                check_rows("layer_norm without weight", floats[t], &plain, row, want, exact, n);
                norm_expected(k, false, xs, ws, NULL, n, 1e-5, want, exact);
                check_rows("rms_norm", floats[t], &rms, row, want, exact, n);
                free(xs);
            }
            free(ws);
            free(bs);
            free(want);
            free(exact);
            ww_tensor_release(&soft);
            ww_tensor_release(&layer);
            ww_tensor_release(&plain);
            ww_tensor_release(&rms);
            test_tensor_free(&x);
            test_tensor_free(&w);
            test_tensor_free(&b);
        }
}

static int64_t units_of(ww_device *device)
{
    ww_device_info info = {.struct_size = sizeof info};
    CHECK_OK(ww_device_describe(device, &info));
    return info.compute_units > 1 ? info.compute_units : 1;
}

/* Enough rows for each block of a GPU to process several; the test compares some of them. */
static void many_rows_of_16_bits_are_exact(void **state)
{
    static const int64_t sizes[] = {192, 512, 2176, 4096, 4352, 5120},
                         each[] = {64, 32, 24, 32, 12, 16}; /* at least, of a compute unit */
    test_random random = {28};
    const int64_t units = units_of(*state);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t n = sizes[s], rows = each[s] * units + 5, shape[2] = {rows, n};
        test_tensor x = moderate(*state, &random, WW_F16, 2, shape), y = moderate(*state, &random, WW_BF16, 2, shape);
        test_tensor w = moderate(*state, &random, WW_BF16, 1, &n), b = moderate(*state, &random, WW_BF16, 1, &n);
        ww_tensor soft = {0}, layer = {0}, plain = {0}, rms = {0};
        CHECK_OK(ww_tensor_softmax(&x.tensor, -1, &soft));
        CHECK_OK(ww_tensor_layer_norm(&y.tensor, &w.tensor, &b.tensor, 1e-5, &layer));
        CHECK_OK(ww_tensor_layer_norm(&x.tensor, NULL, NULL, 1e-3, &plain));
        CHECK_OK(ww_tensor_rms_norm(&y.tensor, &w.tensor, 1e-5, &rms));
        number *want = malloc((size_t)n * sizeof *want), *ws = numbers_of(&w, 0, n), *bs = numbers_of(&b, 0, n);
        long double *exact = malloc((size_t)n * sizeof *exact);
        for (int64_t row = rows - 1; row >= 0; row -= rows / 9) {
            number *xs = numbers_of(&x, row * n, n), *ys = numbers_of(&y, row * n, n);
            softmax_expected(OF_F32, xs, n, want, exact);
            check_rows("softmax", WW_F16, &soft, row, want, exact, n);
            norm_expected(OF_F32, true, ys, ws, bs, n, 1e-5, want, exact);
            check_rows("layer_norm", WW_BF16, &layer, row, want, exact, n);
            norm_expected(OF_F32, true, xs, NULL, NULL, n, 1e-3, want, exact);
            check_rows("layer_norm without weight", WW_F16, &plain, row, want, exact, n);
            norm_expected(OF_F32, false, ys, ws, NULL, n, 1e-5, want, exact);
            check_rows("rms_norm", WW_BF16, &rms, row, want, exact, n);
            free(xs);
            free(ys);
        }
        free(want);
        free(ws);
        free(bs);
        free(exact);
        ww_tensor_release(&soft);
        ww_tensor_release(&layer);
        ww_tensor_release(&plain);
        ww_tensor_release(&rms);
        test_tensor_free(&x);
        test_tensor_free(&y);
        test_tensor_free(&w);
        test_tensor_free(&b);
    }
}

/* A NaN or an infinity anywhere, or nothing but -infinity, makes all of a row NaN; some -infinity are zeros. */
static void check_not_finite(ww_device *device, ww_dtype dtype, int64_t rows, int64_t n)
{
    const int64_t shape[2] = {rows, n};
    const size_t bytes = ww_dtype_bytes(dtype);
    uint8_t *x = malloc((size_t)(rows * n) * bytes);
    ww_tensor out = {0};
    for (int64_t i = 0; i < rows * n; i++) {
        const bool low = i / n == 2 || i == 3 * n + 5;
        const long double value = i == n - 3     ? (long double)NAN
                                  : i == n + 100 ? INFINITY
                                  : low          ? -INFINITY
                                                 : (long double)(i % 7);
        const uint64_t bits = bits_nearest(dtype, value);
        memcpy(x + (size_t)i * bytes, &bits, bytes);
    }
    test_tensor given = test_tensor_of(device, dtype, 2, shape, x);
    CHECK_OK(ww_tensor_softmax(&given.tensor, -1, &out));
    uint8_t *y = storage_bytes(out.storage);
    for (int64_t i = 0; i < 3 * n; i++)
        assert_int_equal(bits_of(y, dtype, i), bits_nearest(dtype, (long double)NAN));
    for (int64_t i = 3 * n; i < rows * n; i++) {
        const long double value = number_of(dtype, bits_of(y, dtype, i));
        assert_true(i == 3 * n + 5 ? value == 0 : value > 0 && value < 1);
    }
    free(y);
    free(x);
    ww_tensor_release(&out);
    test_tensor_free(&given);
}

static void softmax_of_values_that_are_not_finite_is_defined(void **state)
{
    check_not_finite(*state, WW_F32, 4, 200);
    check_not_finite(*state, WW_F32, 4, 2048);
    check_not_finite(*state, WW_F16, 4, 2048);
    check_not_finite(*state, WW_F16, 64 * units_of(*state) + 4, 192); /* by blocks that go from row to row */
    check_not_finite(*state, WW_BF16, 24 * units_of(*state) + 4, 2112);
    check_not_finite(*state, WW_BF16, 24 * units_of(*state) + 4, 4096);
}

/* Results that are computed step by step, each from the previous one, among others that are independent. */
enum { CHAIN_RESULTS = 5 };

static void make_chain(ww_device *device, const test_tensor *x, const test_tensor *w, bool wait,
                       ww_tensor results[CHAIN_RESULTS])
{
    static const int32_t rows[] = {1}, columns[] = {0}, all[] = {0, 1};
    ww_tensor at[3] = {x->tensor, x->tensor, x->tensor};
    ww_tensor made[3] = {{0}}, other = {0};
    for (int32_t step = 0; step < 3; step++) {
        const ww_tensor *from = step == 0 ? &x->tensor : &at[step - 1];
        CHECK_OK(ww_tensor_softmax(&x->tensor, -1, &other));
        ww_tensor_release(&other);
        if (step == 1)
            CHECK_OK(ww_tensor_layer_norm(from, &w->tensor, &w->tensor, 1e-5, &made[step]));
        else
            CHECK_OK(ww_tensor_softmax(from, -1, &made[step]));
        at[step] = made[step];
        if (wait)
            CHECK_OK(ww_device_synchronize(device));
    }
    CHECK_OK(ww_tensor_reduce(WW_REDUCE_SUM, &at[2], rows, 1, &results[0]));
    CHECK_OK(ww_tensor_reduce(WW_REDUCE_SUM, &at[1], columns, 1, &results[1]));
    CHECK_OK(ww_tensor_reduce(WW_REDUCE_SUM, &at[1], all, 2, &results[2]));
    CHECK_OK(ww_tensor_rms_norm(&at[1], &w->tensor, 1e-5, &results[3]));
    results[4] = made[2];
    ww_tensor_release(&made[0]);
    ww_tensor_release(&made[1]);
}

static void queued_work_sees_earlier_queued_work(void **state)
{
    static const ww_dtype types[] = {WW_F16, WW_BF16};
    static const int64_t sizes[] = {1088, 1024}; /* for which there are two kinds of kernels */
    test_random random = {29};
    for (size_t t = 0; t < 2; t++) {
        const int64_t n = sizes[t], rows = 40 * units_of(*state) + 3, shape[2] = {rows, n};
        test_tensor x = moderate(*state, &random, types[t], 2, shape), w = moderate(*state, &random, types[t], 1, &n);
        ww_tensor want[CHAIN_RESULTS] = {{0}}, got[CHAIN_RESULTS] = {{0}};
        make_chain(*state, &x, &w, true, want);
        for (int32_t turn = 0; turn < (device_is_slow(*state) ? 1 : 6); turn++) {
            make_chain(*state, &x, &w, false, got);
            for (int32_t r = 0; r < CHAIN_RESULTS; r++) {
                uint8_t *one = storage_bytes(want[r].storage), *other = storage_bytes(got[r].storage);
                assert_memory_equal(one, other, (size_t)ww_layout_elements(&want[r].layout) * ww_dtype_bytes(types[t]));
                free(one);
                free(other);
                ww_tensor_release(&got[r]);
            }
        }
        for (int32_t r = 0; r < CHAIN_RESULTS; r++)
            ww_tensor_release(&want[r]);
        test_tensor_free(&x);
        test_tensor_free(&w);
    }
}

/* Along the first dimension of a transposed view: the same numbers as along the last dimension of the original. */
static void softmax_takes_any_dimension_of_any_view(void **state)
{
    test_random random = {24};
    const int64_t shape[3] = {5, 3, 70};
    test_tensor x = moderate(*state, &random, WW_F32, 3, shape);
    ww_tensor view = x.tensor;
    const int32_t order[3] = {2, 0, 1};
    for (int d = 0; d < 3; d++) {
        view.layout.shape[d] = shape[order[d]];
        view.layout.strides[d] = x.tensor.layout.strides[order[d]];
    }
    ww_tensor straight = {0}, turned = {0};
    CHECK_OK(ww_tensor_softmax(&x.tensor, 2, &straight));
    CHECK_OK(ww_tensor_softmax(&view, 0, &turned));
    float *a = (float *)storage_bytes(straight.storage), *b = (float *)storage_bytes(turned.storage);
    for (int64_t i = 0; i < 15; i++)
        for (int64_t j = 0; j < 70; j++)
            assert_int_equal(canon_float_bits(a[i * 70 + j]), canon_float_bits(b[j * 15 + i]));
    free(a);
    free(b);
    ww_tensor_release(&straight);
    ww_tensor_release(&turned);
    test_tensor_free(&x);
}

/* softmax along the middle of three dimensions, and along the last of a copy that has it there: the same bits. */
static void check_columns(const test_tensor *x, const int64_t shape[3])
{
    const int64_t turned_shape[3] = {shape[0], shape[2], shape[1]};
    ww_tensor view = x->tensor, copy = {.layout = ww_layout_contiguous(3, turned_shape)};
    ww_tensor columns = {0}, rows = {0};
    view.layout.shape[1] = shape[2];
    view.layout.shape[2] = shape[1];
    view.layout.strides[1] = 1;
    view.layout.strides[2] = shape[2];
    CHECK_OK(ww_tensor_contiguous(&view, &copy));
    CHECK_OK(ww_tensor_softmax(&copy, -1, &rows));
    CHECK_OK(ww_tensor_softmax(&x->tensor, 1, &columns));
    const size_t bytes = ww_dtype_bytes(ww_tensor_dtype(&columns));
    uint8_t *a = storage_bytes(columns.storage), *b = storage_bytes(rows.storage);
    for (int64_t o = 0; o < shape[0]; o++)
        for (int64_t i = 0; i < shape[1]; i++)
            for (int64_t c = 0; c < shape[2]; c++)
                assert_memory_equal(a + (size_t)((o * shape[1] + i) * shape[2] + c) * bytes,
                                    b + (size_t)((o * shape[2] + c) * shape[1] + i) * bytes, bytes);
    free(a);
    free(b);
    ww_tensor_release(&columns);
    ww_tensor_release(&rows);
    ww_storage_release(copy.storage);
}

static void softmax_of_columns_is_that_of_rows(void **state)
{
    static const int64_t shapes[][3] = {{2, 1, 16}, {3, 63, 20}, {1, 64, 64}, {2, 200, 150}, {1, 4096, 17}, {1, 9000, 33}};
    test_random random = {27};
    for (size_t t = 0; t < FLOATS; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            if (device_is_slow(*state) && shapes[s][1] > 1000)
                continue;
            test_tensor x = moderate(*state, &random, floats[t], 3, shapes[s]);
            check_columns(&x, shapes[s]);
            test_tensor_free(&x);
        }
    const int64_t shape[3] = {1, 100, 16};
    float odd[1600];
    for (int32_t i = 0; i < 1600; i++)
        odd[i] = i % 16 == 0 ? -INFINITY : (float)(i % 7);
    odd[161] = NAN;
    odd[322] = INFINITY;
    odd[483] = -INFINITY;
    test_tensor x = test_tensor_of(*state, WW_F32, 3, shape, odd);
    check_columns(&x, shape);
    test_tensor_free(&x);
}

static void rope_turns_pairs_of_both_kinds(void **state)
{
    test_random random = {25};
    for (size_t t = 0; t < FLOATS; t++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            const ww_dtype dtype = floats[t];
            const kind k = kind_of(dtype);
            const int64_t shape[4] = {2, 3, 5, 36}, angles[2] = {5, 18};
            test_tensor x = moderate(*state, &random, dtype, 4, shape);
            test_tensor c = moderate(*state, &random, dtype, 2, angles), s = moderate(*state, &random, dtype, 2, angles);
            ww_tensor wide = s.tensor; /* broadcast to all dimensions */
            wide.layout = (ww_layout){.rank = 4, .shape = {2, 3, 5, 18}, .strides = {0, 0, 18, 1}};
            ww_tensor out = {0};
            CHECK_OK(ww_tensor_rope(&x.tensor, &c.tensor, &wide, interleaved, &out));
            uint8_t *bytes = storage_bytes(out.storage);
            number *xs = numbers_of(&x, 0, 2 * 3 * 5 * 36), *cs = numbers_of(&c, 0, 90), *ss = numbers_of(&s, 0, 90);
            for (int64_t row = 0; row < 30; row++)
                for (int64_t i = 0; i < 18; i++) {
                    const int64_t one = row * 36 + (interleaved ? 2 * i : i), other = interleaved ? one + 1 : one + 18;
                    const number a = xs[one], b = xs[other], cn = cs[row % 5 * 18 + i], sn = ss[row % 5 * 18 + i];
                    const number first = k == OF_F32 ? (number){.f32 = fmaf(a.f32, cn.f32, -(b.f32 * sn.f32))}
                                                     : (number){.f64 = fma(a.f64, cn.f64, -(b.f64 * sn.f64))};
                    const number second = k == OF_F32 ? (number){.f32 = fmaf(a.f32, sn.f32, b.f32 * cn.f32)}
                                                      : (number){.f64 = fma(a.f64, sn.f64, b.f64 * cn.f64)};
                    assert_true(bits_of(bytes, dtype, one) == bits_from(k, dtype, first));
                    assert_true(bits_of(bytes, dtype, other) == bits_from(k, dtype, second));
                }
            free(xs);
            free(cs);
            free(ss);
            free(bytes);
            ww_tensor_release(&out);
            test_tensor_free(&x);
            test_tensor_free(&c);
            test_tensor_free(&s);
        }
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void unsuitable_arguments_are_refused(void **state)
{
    test_random random = {27};
    const int64_t shape[2] = {3, 7}, none[2] = {3, 0}, three = 3;
    test_tensor x = moderate(*state, &random, WW_F32, 2, shape), w = moderate(*state, &random, WW_F32, 1, &three);
    test_tensor whole = test_tensor_make(*state, &random, WW_I32, 2, shape, TEST_DENSE);
    const int32_t twice[2] = {1, -1}, both[2] = {0, 1}, last = 1, beyond = 2;
    ww_tensor out = {0};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_reduce(WW_REDUCE_SUM, &x.tensor, twice, 2, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_reduce(WW_REDUCE_SUM, &x.tensor, &beyond, 1, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_reduce(WW_REDUCE_ARGMAX, &x.tensor, both, 2, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_reduce(WW_REDUCE_MEAN, &whole.tensor, &last, 1, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_reduce((ww_reduce)7, &x.tensor, &last, 1, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_softmax(&whole.tensor, 1, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_softmax(&x.tensor, 2, &out));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_layer_norm(&x.tensor, &w.tensor, NULL, 1e-5, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_rope(&x.tensor, &x.tensor, &x.tensor, false, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_top_k(&x.tensor, 8, true, &out, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_sort(&x.tensor, true, NULL, NULL));
    assert_null(out.storage);
    ww_tensor empty = {.storage = x.tensor.storage, .layout = ww_layout_contiguous(2, none)};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_reduce(WW_REDUCE_SUM, &empty, &last, 1, &out));
    const int32_t first = 0;
    CHECK_OK(ww_tensor_reduce(WW_REDUCE_SUM, &empty, &first, 1, &out)); /* no results of three elements each */
    assert_int_equal(ww_layout_elements(&out.layout), 0);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    test_tensor_free(&w);
    test_tensor_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_and_norms_are_exact_for_every_length),
        cmocka_unit_test(many_rows_of_16_bits_are_exact),
        cmocka_unit_test(softmax_of_values_that_are_not_finite_is_defined),
        cmocka_unit_test(queued_work_sees_earlier_queued_work),
        cmocka_unit_test(softmax_takes_any_dimension_of_any_view),
        cmocka_unit_test(softmax_of_columns_is_that_of_rows),
        cmocka_unit_test(rope_turns_pairs_of_both_kinds),
        cmocka_unit_test(unsuitable_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("tensor_rows", tests);
}
