/* Running sums in their one order, and convolutions of u8 and u32, against their definitions. */
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/tensors.h"

/* ---- running sums -------------------------------------------------------------------------------------------------------- */

/* By the definition: one after the other within chunks of 64; the sums of chunks in the same way; the sums of earlier chunks
 * first. */
/* NOLINTBEGIN(bugprone-macro-parentheses): T is a type */
#define RUNNING(name, T, ADD)                                                                                                  \
    static void running_##name(const T *x, T *y, int64_t n)                                                                    \
    {                                                                                                                          \
        const int64_t chunks = (n + 63) / 64;                                                                                  \
        T *sums = malloc((size_t)chunks * sizeof *sums), *before = malloc((size_t)chunks * sizeof *before);                    \
        for (int64_t i = 0; i < n; i++) {                                                                                      \
            y[i] = i % 64 == 0 ? x[i] : ADD(y[i - 1], x[i]);                                                                   \
            sums[i / 64] = y[i];                                                                                               \
        }                                                                                                                      \
        if (chunks > 1)                                                                                                        \
            running_##name##_above(sums, before, chunks);                                                                      \
        for (int64_t i = 64; i < n; i++)                                                                                       \
            y[i] = ADD(before[i / 64 - 1], y[i]);                                                                              \
        free(sums);                                                                                                            \
        free(before);                                                                                                          \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#define PLUS(a, b)  ((a) + (b))
#define WRAPS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
static void running_f32_above(const float *x, float *y, int64_t n);
static void running_f64_above(const double *x, double *y, int64_t n);
static void running_i64_above(const int64_t *x, int64_t *y, int64_t n);
RUNNING(f32, float, PLUS)
RUNNING(f64, double, PLUS)
RUNNING(i64, int64_t, WRAPS)
static void running_f32_above(const float *x, float *y, int64_t n)
{
    running_f32(x, y, n);
}
static void running_f64_above(const double *x, double *y, int64_t n)
{
    running_f64(x, y, n);
}
static void running_i64_above(const int64_t *x, int64_t *y, int64_t n)
{
    running_i64(x, y, n);
}

/* Computes the bits of one line of x, which starts at element `first` with stride `step`. */
static void expect_line(const test_tensor *x, int64_t first, int64_t step, int64_t n, uint64_t *want)
{
    const ww_dtype dtype = ww_tensor_dtype(&x->tensor);
    float *f = calloc((size_t)n * 2, sizeof *f);
    double *d = calloc((size_t)n * 2, sizeof *d);
    int64_t *w = calloc((size_t)n * 2, sizeof *w);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = test_tensor_bits(x, first + i * step);
        const long double number = number_of(dtype, bits);
        f[i] = is_float(dtype) ? (float)number : 0;
        d[i] = is_float(dtype) ? (double)number : 0;
        w[i] = is_float(dtype) ? 0 : dtype == WW_I64 ? (int64_t)bits : (int64_t)number;
    }
    running_f32(f, f + n, n);
    running_f64(d, d + n, n);
    running_i64(w, w + n, n);
    const size_t bytes = ww_dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t wrapped = (uint64_t)w[n + i] & (bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1);
        want[i] = !is_float(dtype) ? wrapped : bits_nearest(dtype, dtype == WW_F64 ? (long double)d[n + i] : f[n + i]);
    }
    free(f);
    free(d);
    free(w);
}

static void check_cumsum(ww_device *device, test_random *random, ww_dtype dtype, const int64_t shape[3], int32_t dim,
                         test_layout style)
{
    test_tensor x = test_tensor_make(device, random, dtype, 3, shape, style);
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_cumsum(&x.tensor, dim, &out));
    check_dense(&out, 3, shape);
    uint8_t *bytes = storage_bytes(out.storage);
    const int64_t n = shape[dim], step = dim == 2 ? 1 : dim == 1 ? shape[2] : shape[1] * shape[2];
    uint64_t *want = malloc((size_t)n * sizeof *want);
    for (int64_t first = 0; first < ww_layout_elements(&out.layout); first++) {
        if (first / step % n != 0)
            continue;
        expect_line(&x, first, step, n, want);
        for (int64_t i = 0; i < n; i++)
            if (bits_of(bytes, dtype, first + i * step) != want[i])
                fail_msg("%s, dimension %d of [%lld, %lld, %lld], element %lld: %Lg, not %Lg", ww_dtype_name(dtype), (int)dim,
                         (long long)shape[0], (long long)shape[1], (long long)shape[2], (long long)i,
                         number_of(dtype, bits_of(bytes, dtype, first + i * step)), number_of(dtype, want[i]));
    }
    free(want);
    free(bytes);
    ww_tensor_release(&out);
    test_tensor_free(&x);
}

static void running_sums_have_one_order(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {2, 3, 64}, {3, 65, 5}, {130, 2, 7}, {1, 2, 700}, {1, 4200, 3}};
    test_random random = {31};
    for (int type = 0; type < TEST_TYPES; type++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes && type != WW_I8; s++)
            for (int32_t dim = 0; dim < 3; dim++)
                check_cumsum(*state, &random, (ww_dtype)type, shapes[s], dim, (test_layout)((s + (size_t)dim) % 3));
}

/* Four rounds of chunks: in exact numbers, of which any order gives the same. */
static void long_lines_are_summed(void **state)
{
    const int64_t n = 64 * 64 * 64 + 77;
    ww_tensor ones = {0}, sums = {0}, same = {0};
    CHECK_OK(ww_tensor_full(*state, WW_F32, 1, &n, 1.0, &ones));
    CHECK_OK(ww_tensor_cumsum(&ones, 0, &sums));
    float *got = malloc((size_t)n * sizeof *got);
    CHECK_OK(ww_tensor_to_host(&sums, got));
    for (int64_t i = 0; i < n; i++)
        if (got[i] != (float)(i + 1))
            fail_msg("element %lld: %g", (long long)i, (double)got[i]);
    CHECK_OK(ww_tensor_cumsum(&ones, -1, &ones)); /* in place */
    CHECK_OK(ww_tensor_to_host(&ones, got));
    assert_true(got[n - 1] == (float)n);
    free(got);
    ww_tensor_release(&ones);
    ww_tensor_release(&sums);
    ww_tensor_release(&same);
}

static void invalid_running_sums_are_refused(void **state)
{
    const int8_t numbers[2] = {1, 2};
    const int64_t two = 2, none[2] = {0, 3};
    ww_tensor out = {0}, empty = {0};
    test_tensor x = test_tensor_of(*state, WW_I8, 1, &two, numbers);
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_cumsum(&x.tensor, 0, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_cumsum(&x.tensor, 1, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cumsum(NULL, 0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_cumsum(&x.tensor, 0, NULL));
    assert_null(out.storage);
    CHECK_OK(ww_tensor_empty(*state, WW_F32, 2, none, &empty));
    CHECK_OK(ww_tensor_cumsum(&empty, 0, &out));
    check_dense(&out, 2, none);
    ww_tensor_release(&out);
    CHECK_OK(ww_tensor_cumsum(&empty, 1, &out));
    ww_tensor_release(&out);
    ww_tensor_release(&empty);
    test_tensor_free(&x);
}

/* ---- convolutions of integers -------------------------------------------------------------------------------------------- */

typedef struct geometry {
    int64_t images, in, in_y, in_x, out, kernel_y, kernel_x, groups, padding, stride, dilation, output_padding;
    bool transposed;
} geometry;

/* Scattered from the inputs, as transposed convolutions are defined, or gathered. */
static void expect_conv(const geometry *g, const test_tensor *x, const test_tensor *w, int64_t out_y, int64_t out_x,
                        uint32_t *want)
{
    const int64_t ins = g->in / g->groups, outs = g->out / g->groups;
    memset(want, 0, (size_t)(g->images * g->out * out_y * out_x) * sizeof *want);
    for (int64_t image = 0; image < g->images; image++)
        for (int64_t o = 0; o < g->out; o++)
            for (int64_t i = 0; i < ins; i++)
                for (int64_t ky = 0; ky < g->kernel_y; ky++)
                    for (int64_t kx = 0; kx < g->kernel_x; kx++) {
                        const int64_t group = o / outs, channel = group * ins + i;
                        const int64_t of_w = g->transposed ? ((channel * outs + o % outs) * g->kernel_y + ky) * g->kernel_x + kx
                                                           : ((o * ins + i) * g->kernel_y + ky) * g->kernel_x + kx;
                        const uint32_t tap = (uint32_t)test_tensor_bits(w, of_w);
                        for (int64_t a = 0; a < (g->transposed ? g->in_y : out_y); a++)
                            for (int64_t b = 0; b < (g->transposed ? g->in_x : out_x); b++) {
                                const int64_t other_y = a * g->stride - g->padding + ky * g->dilation;
                                const int64_t other_x = b * g->stride - g->padding + kx * g->dilation;
                                const int64_t y = g->transposed ? other_y : a, z = g->transposed ? other_x : b;
                                const int64_t iy = g->transposed ? a : other_y, ix = g->transposed ? b : other_x;
                                if (y < 0 || z < 0 || y >= out_y || z >= out_x || iy < 0 || ix < 0 || iy >= g->in_y ||
                                    ix >= g->in_x)
                                    continue;
                                want[((image * g->out + o) * out_y + y) * out_x + z] +=
                                    tap *
                                    (uint32_t)test_tensor_bits(x, ((image * g->in + channel) * g->in_y + iy) * g->in_x + ix);
                            }
                    }
}

static void check_conv(ww_device *device, test_random *random, ww_dtype dtype, const geometry *g, test_layout style)
{
    const int64_t of_x[4] = {g->images, g->in, g->in_y, g->in_x};
    const int64_t of_w[4] = {g->transposed ? g->in : g->out, (g->transposed ? g->out : g->in) / g->groups, g->kernel_y,
                             g->kernel_x};
    test_tensor x = test_tensor_make(device, random, dtype, 4, of_x, style);
    test_tensor w = test_tensor_make(device, random, dtype, 4, of_w, style);
    ww_conv how = ww_conv_default();
    ww_tensor out = {0};
    how.groups = g->groups;
    for (int d = 0; d < 2; d++) {
        how.padding[d] = g->padding;
        how.stride[d] = g->stride;
        how.dilation[d] = g->dilation;
        how.output_padding[d] = g->output_padding;
    }
    if (g->transposed)
        CHECK_OK(ww_tensor_conv_transpose2d(&x.tensor, &w.tensor, &how, &out));
    else
        CHECK_OK(ww_tensor_conv2d(&x.tensor, &w.tensor, &how, &out));
    const int64_t out_y = out.layout.shape[2], out_x = out.layout.shape[3], count = ww_layout_elements(&out.layout);
    uint32_t *want = malloc((size_t)count * sizeof *want);
    expect_conv(g, &x, &w, out_y, out_x, want);
    uint8_t *bytes = storage_bytes(out.storage);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(bits_of(bytes, dtype, i), dtype == WW_U8 ? want[i] & 255 : want[i]);
    free(bytes);
    free(want);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    test_tensor_free(&w);
}

static void convolutions_of_integers_wrap(void **state)
{
    static const geometry all[] = {
        {2, 3, 7, 6, 4, 3, 2, 1, 1, 1, 1, 0, false}, {1, 4, 9, 8, 6, 3, 3, 2, 2, 2, 2, 0, false},
        {1, 2, 5, 5, 2, 1, 1, 1, 0, 1, 1, 0, false}, {2, 4, 5, 4, 6, 3, 3, 2, 1, 2, 1, 1, true},
        {1, 2, 3, 4, 3, 2, 3, 1, 0, 3, 2, 2, true},
    };
    test_random random = {32};
    for (size_t g = 0; g < sizeof all / sizeof *all; g++)
        for (int style = 0; style < 2; style++) {
            check_conv(*state, &random, WW_U8, &all[g], (test_layout)style);
            check_conv(*state, &random, WW_U32, &all[g], (test_layout)style);
        }
}

/* In one dimension, with the numbers written out. */
static void a_row_of_integers_is_convolved(void **state)
{
    const int64_t of_x[3] = {1, 1, 5}, of_w[3] = {1, 1, 2};
    const uint8_t row[5] = {1, 2, 3, 200, 100}, taps[2] = {1, 2}, want[4] = {5, 8, 147, 144};
    test_tensor x = test_tensor_of(*state, WW_U8, 3, of_x, row), w = test_tensor_of(*state, WW_U8, 3, of_w, taps);
    const ww_conv how = ww_conv_default();
    ww_tensor out = {0};
    CHECK_OK(ww_tensor_conv1d(&x.tensor, &w.tensor, &how, &out));
    check_dense(&out, 3, (int64_t[]){1, 1, 4});
    uint8_t *bytes = storage_bytes(out.storage);
    assert_memory_equal(bytes, want, sizeof want);
    free(bytes);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    test_tensor_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_sums_have_one_order),      cmocka_unit_test(long_lines_are_summed),
        cmocka_unit_test(invalid_running_sums_are_refused), cmocka_unit_test(convolutions_of_integers_wrap),
        cmocka_unit_test(a_row_of_integers_is_convolved),
    };
    return RUN_ON_EVERY_DEVICE("running sums and convolutions of integers", tests);
}
