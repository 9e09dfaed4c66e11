/* Matrix products of every instruction set that this machine has, to the bit against the definition, and against the scalar one
 * through windows; all of it in one program, so that it also runs for other machines under an emulator.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/data/random.h"

#include "arithmetic/convert.h"
#include "cpu/cpu.h"
#include "cpu/isa/scalar/scalar.h"
#include "cpu/matmul/matmul.h"

/* The CPU with two threads, on every machine. */
static ww_device *open_cpu(void)
{
    ww_device *device = NULL;
    setenv("WARPWAVE_THREADS", "2", 1);
    CHECK_OK(backend_cpu.open(0, &device)); /* not by its name: other backends are no part of a program for an emulator */
    return device;
}

/* Bytes of random elements of a type, all finite. */
static void *random_elements(test_random *random, int32_t type, int64_t count)
{
    char *made = aligned_alloc(64, ((size_t)count * 8 + 63) / 64 * 64 + 64);
    for (int64_t i = 0; i < count; i++) {
        const float value = random_normal(random);
        if (type == TYPE_F64)
            ((double *)(void *)made)[i] = (double)value;
        else if (type == TYPE_F32)
            ((float *)(void *)made)[i] = value;
        else if (type == TYPE_I8)
            ((int8_t *)made)[i] = (int8_t)random_bits(random);
        else
            ((uint16_t *)(void *)made)[i] = type == TYPE_F16 ? narrow_f16(value) : narrow_bf16(value);
    }
    return made;
}

static float element_f32(int32_t type, const void *data, int64_t at)
{
    if (type == TYPE_F32)
        return ((const float *)data)[at];
    const uint16_t bits = ((const uint16_t *)data)[at];
    return type == TYPE_F16 ? widen_f16(bits) : widen_bf16(bits);
}

/* One result by the definition, in the type of results. */
static uint64_t expected(const matmul_job *job, int64_t i, int64_t j)
{
    uint64_t bits = 0;
    float total = 0.0f, chunk = 0.0f;
    double total_f64 = 0.0, chunk_f64 = 0.0;
    uint32_t whole = 0;
    for (int64_t k = 0; k < job->k; k++) {
        const int64_t a = i * job->a_row + k * job->a_column, b = k * job->b_row + j * job->b_column;
        if (k > 0 && k % MATMUL_CHUNK == 0) {
            total += chunk;
            total_f64 += chunk_f64;
            chunk = 0.0f;
            chunk_f64 = 0.0;
        }
        if (job->type == TYPE_I8)
            whole += (uint32_t)(((const int8_t *)job->a)[a] * ((const int8_t *)job->b)[b]);
        else if (job->type == TYPE_F64)
            chunk_f64 = fma(((const double *)job->a)[a], ((const double *)job->b)[b], chunk_f64);
        else
            chunk = fmaf(element_f32(job->type, job->a, a), element_f32(job->type, job->b, b), chunk);
    }
    total += chunk;
    total_f64 += chunk_f64;
    const uint16_t half = job->type == TYPE_F16 ? narrow_f16(total) : narrow_bf16(total);
    const void *from = job->type == TYPE_I8    ? (const void *)&whole
                       : job->type == TYPE_F64 ? (const void *)&total_f64
                       : job->type == TYPE_F32 ? (const void *)&total
                                               : (const void *)&half;
    memcpy(&bits, from, (size_t)matmul_result_bytes(job->type));
    return bits;
}

static void check_set(ww_device *device, const instruction_set *set, test_random *random, int32_t type, int64_t m, int64_t k,
                      int64_t n, bool turn_a, bool turn_b, int64_t every)
{
    const int64_t bytes = matmul_result_bytes(type);
    void *a = random_elements(random, type, m * k), *b = random_elements(random, type, k * n);
    char *c = malloc((size_t)(m * n * bytes) + 1);
    const matmul_job job = {.type = type,
                            .m = m,
                            .n = n,
                            .k = k,
                            .a = a,
                            .b = b,
                            .c = c,
                            .a_row = turn_a ? 1 : k,
                            .a_column = turn_a ? m : 1,
                            .b_row = turn_b ? 1 : n,
                            .b_column = turn_b ? k : 1,
                            .c_row = n,
                            .c_elements = m * n};
    CHECK_OK(matmul_run(device, set->matmul, &job));
    for (int64_t i = 0; i < m * n; i += every) {
        uint64_t got = 0;
        memcpy(&got, c + i * bytes, (size_t)bytes);
        if (got != expected(&job, i / n, i % n))
            fail_msg("%s, type %d, %lld x %lld x %lld, element %lld: %llx, not %llx", set->name, (int)type, (long long)m,
                     (long long)k, (long long)n, (long long)i, (unsigned long long)got,
                     (unsigned long long)expected(&job, i / n, i % n));
    }
    free(a);
    free(b);
    free(c);
}

static void every_instruction_set_has_the_canonical_bits(void **state)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 2}, {14, 8, 32}, {17, 513, 35}, {29, 70, 100}, {61, 2, 131}};
    static const int32_t types[] = {TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_I8};
    test_random random = {41};
    ww_device *device = open_cpu();
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes && (*set)->present(); s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                check_set(device, *set, &random, types[t], sizes[s][0], sizes[s][1], sizes[s][2], (s + t) % 2 == 0,
                          (s + t) % 3 == 0, 1);
    backend_cpu.close(device);
}

/* Panels that all threads share, blocks and chunks that are not whole, and more rows than are processed at a time. Compares
 * every n-th element of c, where n is a prime, so that every row and every column of tiles has some. */
static void large_products_have_the_canonical_bits(void **state)
{
    static const int64_t sizes[][3] = {{310, 1030, 230}, {4103, 130, 129}};
    static const int32_t types[] = {TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_I8};
    test_random random = {44};
    ww_device *device = open_cpu();
    (void)state;
    for (const instruction_set *const *set = instruction_sets; set[1]; set++) /* the last is slow */
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes && (*set)->present(); s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                check_set(device, *set, &random, types[t], sizes[s][0], sizes[s][1], sizes[s][2], t % 2 == 0, t % 3 == 1, 97);
    backend_cpu.close(device);
}

/* Through a window sets differ in their tiles only: they agree with the scalar one, which test_tensor_conv.c checks. */
static void every_instruction_set_sees_the_same_through_a_window(void **state)
{
    test_random random = {42};
    ww_device *device = open_cpu();
    const matmul_window window = {.taps_y = 3,
                                  .taps_x = 2,
                                  .outs_y = 5,
                                  .outs_x = 7,
                                  .in_y = 5,
                                  .in_x = 7,
                                  .first_y = -1,
                                  .first_x = 1,
                                  .step_y = 1,
                                  .step_x = 1,
                                  .tap_y = 1,
                                  .tap_x = -1,
                                  .image_stride = 140,
                                  .channel_stride = 35,
                                  .y_stride = 7,
                                  .x_stride = 1,
                                  .out_image_stride = 315,
                                  .out_y_stride = 7,
                                  .out_x_stride = 1};
    float *a = random_elements(&random, TYPE_F32, (int64_t)9 * 24), *b = random_elements(&random, TYPE_F32, 280);
    float want[630], got[630];
    matmul_job job = {.type = TYPE_F32,
                      .m = 9,
                      .n = 70,
                      .k = 24,
                      .a = a,
                      .b = b,
                      .c = want,
                      .a_row = 24,
                      .a_column = 1,
                      .c_row = 35,
                      .c_elements = 630,
                      .window = &window};
    (void)state;
    CHECK_OK(matmul_run(device, &matmul_tiles_scalar, &job));
    job.c = got;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        if (!(*set)->present())
            continue;
        memset(got, 0xff, sizeof got);
        CHECK_OK(matmul_run(device, (*set)->matmul, &job));
        if (memcmp(got, want, sizeof got) != 0)
            fail_msg("%s sees something else through a window than the scalar set", (*set)->name);
    }
    backend_cpu.close(device);
    free(a);
    free(b);
}

/* Within the error that docs/design/arithmetic.md states: k 2^-23 of the products' magnitudes, plus one rounding to bf16.
 * Checks every n-th element. */
static void check_near(const char *name, const matmul_job *job, int64_t every)
{
    const uint16_t *a = job->a, *b = job->b, *c = job->c;
    for (int64_t i = 0; i < job->m * job->n; i += every) {
        double sum = 0.0, size = 0.0;
        for (int64_t step = 0; step < job->k; step++) {
            const double x = (double)widen_bf16(a[i / job->n * job->a_row + step * job->a_column]) *
                             (double)widen_bf16(b[step * job->b_row + i % job->n * job->b_column]);
            sum += x;
            size += fabs(x);
        }
        const double got = (double)widen_bf16(c[i]);
        if (!(fabs(got - sum) <= (double)job->k * 0x1p-23 * size + 0x1p-8 * fabs(sum) + 0x1p-120))
            fail_msg("%s, %lld x %lld x %lld, element %lld: %g, not about %g", name, (long long)job->m, (long long)job->k,
                     (long long)job->n, (long long)i, got, sum);
    }
}

static void fast_products_of_bf16_are_near(void **state)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 1},       {32, 32, 32, 1},  {33, 70, 45, 1},
                                       {100, 1030, 67, 1}, {5, 513, 130, 1}, {310, 1030, 230, 97}};
    test_random random = {43};
    ww_device *device = open_cpu();
    (void)state;
    for (size_t s = 0; s < 4 * sizeof sizes / sizeof *sizes; s++) {
        const int64_t m = sizes[s / 4][0], k = sizes[s / 4][1], n = sizes[s / 4][2], every = sizes[s / 4][3];
        uint16_t *a = random_elements(&random, TYPE_BF16, m * k), *b = random_elements(&random, TYPE_BF16, k * n);
        uint16_t *c = malloc((size_t)(m * n) * sizeof *c);
        const matmul_job job = {.type = TYPE_BF16,
                                .fast = true,
                                .m = m,
                                .n = n,
                                .k = k,
                                .a = a,
                                .b = b,
                                .c = c,
                                .a_row = s & 1 ? 1 : k,
                                .a_column = s & 1 ? m : 1,
                                .b_row = s & 2 ? 1 : n,
                                .b_column = s & 2 ? k : 1,
                                .c_row = n,
                                .c_elements = m * n};
        for (const instruction_set *const *set = instruction_sets; *set; set++) {
            if (!(*set)->present() || (every > 1 && !(*set)->matmul->fast_present))
                continue;
            CHECK_OK(matmul_run(device, (*set)->matmul, &job));
            check_near((*set)->name, &job, every);
        }
        free(a);
        free(b);
        free(c);
    }
    backend_cpu.close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_has_the_canonical_bits),
        cmocka_unit_test(large_products_have_the_canonical_bits),
        cmocka_unit_test(every_instruction_set_sees_the_same_through_a_window),
        cmocka_unit_test(fast_products_of_bf16_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
