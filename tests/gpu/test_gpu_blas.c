/* Products by the vendor's BLAS, small ones of every type, shape and transposition, against a plain reference in double. If the
 * GPU's BLAS is not installed, or does not exist, products are refused with a message. */
#include "support/devices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/half.h"
#include "gpu/blas/blas.h"
#include "gpu/memory.h"
#include "support/data/random.h"

static const size_t element_bytes[] = {4, 8, 2, 2, 1};
static const size_t result_bytes[] = {4, 8, 2, 2, 4};

/* What one rounding to the result's type may cost, and a rounding of a partial sum. */
static const double result_unit[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8, 0.0};
static const double sum_unit[] = {0x1p-23, 0x1p-52, 0x1p-23, 0x1p-23, 0.0};

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

static void put(void *to, int64_t index, blas_type type, bool result, double value)
{
    if (type == BLAS_F32)
        ((float *)to)[index] = (float)value;
    else if (type == BLAS_F64)
        ((double *)to)[index] = value;
    else if (type == BLAS_F16)
        ((uint16_t *)to)[index] = f16_from_f32((float)value);
    else if (type == BLAS_BF16)
        ((uint16_t *)to)[index] = bf16_from_f32((float)value);
    else if (result)
        ((int32_t *)to)[index] = (int32_t)value;
    else
        ((int8_t *)to)[index] = (int8_t)value;
}

static double got(const void *from, int64_t index, blas_type type, bool result)
{
    if (type == BLAS_F32)
        return (double)((const float *)from)[index];
    if (type == BLAS_F64)
        return ((const double *)from)[index];
    if (type == BLAS_F16)
        return (double)f32_from_f16(((const uint16_t *)from)[index]);
    if (type == BLAS_BF16)
        return (double)f32_from_bf16(((const uint16_t *)from)[index]);
    return result ? ((const int32_t *)from)[index] : ((const int8_t *)from)[index];
}

/* ---- a product ----------------------------------------------------------------------------------------------------------- */

typedef struct matrix {
    void *host;
    buffer device;
    int64_t elements;
} matrix;

static matrix matrix_make(gpu_stream *stream, test_random *random, blas_type type, bool result, int64_t elements)
{
    gpu_device *device = stream->device;
    matrix made = {.elements = elements};
    const size_t bytes = (size_t)elements * (result ? result_bytes : element_bytes)[type];
    made.host = malloc(bytes);
    for (int64_t i = 0; i < elements; i++)
        put(made.host, i, type, result,
            type == BLAS_I8 ? (double)(int)(random_below(random, 255))-127.0 : (double)random_uniform(random));
    CHECK_OK(gpu_memory_alloc(device, bytes, &made.device));
    CHECK_OK(gpu_copy_in(stream, made.device.data, made.host, bytes));
    return made;
}

static void matrix_free(gpu_device *device, matrix *m)
{
    gpu_memory_free(device, &m->device);
    free(m->host);
}

typedef struct shape {
    int64_t m, n, k, batch, more; /* `more` elements between rows, and between matrices */
    bool transpose_a, transpose_b;
    double alpha, beta;
} shape;

/* |error| <= k roundings of a sum of |products|, and one of the result. */
static void check_products(const blas_product *p, const matrix *a, const matrix *b, const matrix *before, const void *after)
{
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = batch * p->c_batch_stride + i * p->c_stride + j;
                double sum = 0.0;
                double size = 0.0;
                for (int64_t l = 0; l < p->k; l++) {
                    const int64_t ai =
                        batch * p->a.batch_stride + (p->a.transposed ? l * p->a.stride + i : i * p->a.stride + l);
                    const int64_t bi =
                        batch * p->b.batch_stride + (p->b.transposed ? j * p->b.stride + l : l * p->b.stride + j);
                    const double product = got(a->host, ai, p->type, false) * got(b->host, bi, p->type, false);
                    sum += product;
                    size += fabs(product);
                }
                double right = p->alpha * sum;
                size *= fabs(p->alpha);
                if (p->beta != 0.0) {
                    right += p->beta * got(before->host, at, p->type, true);
                    size += fabs(p->beta * got(before->host, at, p->type, true));
                }
                const double bound = (double)(p->k + 4) * sum_unit[p->type] * size + 2.0 * result_unit[p->type] * fabs(right);
                if (!(fabs(got(after, at, p->type, true) - right) <= bound))
                    fail_msg("type %d, %d x %d x %d, batch %d, row %d, column %d: %g, not %g (give or take %g)", (int)p->type,
                             (int)p->m, (int)p->n, (int)p->k, (int)batch, (int)i, (int)j, got(after, at, p->type, true), right,
                             bound);
            }
}

/* The gaps between the rows of c stay unchanged. */
static void check_gaps(const blas_product *p, const matrix *before, const char *after)
{
    const size_t bytes = result_bytes[p->type];
    for (int64_t i = 0; i < before->elements; i++) {
        const int64_t within = i % p->c_batch_stride;
        const bool inside = within / p->c_stride < p->m && within % p->c_stride < p->n;
        if (!inside && memcmp(after + (size_t)i * bytes, (const char *)before->host + (size_t)i * bytes, bytes) != 0)
            fail_msg("type %d: element %d of c, outside of the matrix, was written", (int)p->type, (int)i);
    }
}

static void multiply_and_check(gpu_stream *stream, gpu_blas *blas, blas_type type, const shape *s)
{
    gpu_device *device = stream->device;
    test_random random = {(uint64_t)(s->m * 31 + s->n * 7 + s->k + type)};
    const int64_t a_rows = s->transpose_a ? s->k : s->m;
    const int64_t a_stride = (s->transpose_a ? s->m : s->k) + s->more;
    const int64_t b_rows = s->transpose_b ? s->n : s->k;
    const int64_t b_stride = (s->transpose_b ? s->k : s->n) + s->more;
    const int64_t c_stride = s->n + s->more;
    matrix a = matrix_make(stream, &random, type, false, s->batch * (a_rows * a_stride + s->more));
    matrix b = matrix_make(stream, &random, type, false, s->batch * (b_rows * b_stride + s->more));
    matrix c = matrix_make(stream, &random, type, true, s->batch * (s->m * c_stride + s->more));
    const blas_product p = {.type = type,
                            .m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .batch = s->batch,
                            .a = {.data = a.device.data,
                                  .stride = a_stride,
                                  .batch_stride = a_rows * a_stride + s->more,
                                  .transposed = s->transpose_a},
                            .b = {.data = b.device.data,
                                  .stride = b_stride,
                                  .batch_stride = b_rows * b_stride + s->more,
                                  .transposed = s->transpose_b},
                            .c = c.device.data,
                            .c_stride = c_stride,
                            .c_batch_stride = s->m * c_stride + s->more,
                            .alpha = s->alpha,
                            .beta = s->beta};
    const size_t bytes = (size_t)c.elements * result_bytes[type];
    char *after = malloc(bytes);
    CHECK_OK(gpu_blas_multiply(device, blas, &p));
    CHECK_OK(gpu_copy_out(stream, after, c.device.data, bytes));
    check_products(&p, &a, &b, &c, after);
    check_gaps(&p, &c, after);
    free(after);
    matrix_free(device, &a);
    matrix_free(device, &b);
    matrix_free(device, &c);
}

/* ---- with a handle ------------------------------------------------------------------------------------------------------- */

static gpu_stream *stream;
static gpu_blas *blas;

/* Returns false if there is no BLAS here; then it was refused correctly, and the stream is returned. */
static bool begin(gpu_device *device)
{
    blas = NULL;
    CHECK_OK(gpu_stream_borrow(device, &stream));
    const ww_status status = gpu_blas_create(stream, &blas);
    if (status == WW_OK)
        return true;
    const bool emulated = strcmp(device->base.info.backend, "emulator") == 0;
    assert_int_equal(status, WW_UNSUPPORTED);
    assert_non_null(strstr(ww_error_message(), emulated ? "has no BLAS" : "not installed"));
    assert_null(blas);
    if (!emulated)
        printf("SKIP: %s\n", ww_error_message());
    CHECK_OK(gpu_stream_return(stream, WW_OK));
    if (!emulated)
        skip();
    return false;
}

static void end(void)
{
    gpu_blas_destroy(blas);
    gpu_blas_destroy(NULL);
    CHECK_OK(gpu_stream_return(stream, WW_OK));
}

static void products_of_every_type_are_right(void **state)
{
    static const shape shapes[] = {
        {4, 8, 12, 1, 0, false, false, 1.0, 0.0}, {4, 8, 12, 1, 4, true, false, 1.0, 0.0},
        {8, 4, 16, 1, 4, false, true, 2.0, 1.0},  {12, 4, 4, 1, 0, true, true, -1.0, 2.0},
        {4, 12, 8, 3, 4, false, true, 1.0, 0.0},  {8, 8, 8, 2, 0, true, false, 3.0, -1.0},
    };
    gpu_device *device = gpu_of(*state);
    if (!begin(device))
        return;
    for (int type = 0; type < BLAS_TYPES; type++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            multiply_and_check(stream, blas, (blas_type)type, &shapes[i]);
    end();
}

/* Without i8, whose sizes must be multiples of 4 for some vendors. */
static void odd_sizes_are_right(void **state)
{
    static const shape shapes[] = {{1, 1, 1, 1, 0, false, false, 1.0, 0.0},     {1, 7, 5, 1, 3, false, true, 0.5, 0.0},
                                   {13, 1, 3, 1, 1, true, false, 1.0, 1.0},     {3, 5, 1, 4, 1, true, true, 1.0, 0.0},
                                   {33, 17, 70, 1, 0, false, false, 1.5, 0.25}, {5, 3, 9, 5, 2, false, false, 1.0, 0.0}};
    gpu_device *device = gpu_of(*state);
    if (!begin(device))
        return;
    for (int type = 0; type < BLAS_I8; type++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            multiply_and_check(stream, blas, (blas_type)type, &shapes[i]);
    end();
}

static void a_matrix_times_a_vector_is_right(void **state)
{
    static const shape shapes[] = {{8, 1, 12, 1, 0, false, false, 1.0, 0.0},
                                   {12, 1, 8, 1, 0, true, false, 2.0, 1.0},
                                   {16, 1, 4, 1, 4, false, false, -1.0, 0.0},
                                   {4, 1, 20, 3, 4, false, false, 1.0, 1.0}};
    gpu_device *device = gpu_of(*state);
    if (!begin(device))
        return;
    for (int type = 0; type < BLAS_I8; type++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            multiply_and_check(stream, blas, (blas_type)type, &shapes[i]);
    end();
}

static void unsuitable_matrices_are_refused(void **state)
{
    gpu_device *device = gpu_of(*state);
    if (!begin(device))
        return;
    float some[1] = {0};
    const blas_product good = {.type = BLAS_F32,
                               .m = 2,
                               .n = 3,
                               .k = 4,
                               .batch = 1,
                               .a = {.data = some, .stride = 4},
                               .b = {.data = some, .stride = 3},
                               .c = some,
                               .c_stride = 3,
                               .alpha = 1.0};
    blas_product p = good;
    p.m = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    p = good;
    p.n = INT64_C(1) << 31;
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    p = good;
    p.a.stride = 3;
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    assert_non_null(strstr(ww_error_message(), "rows of a are 3 elements apart"));
    p = good;
    p.b.transposed = true; /* rows of 4 then */
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    p = good;
    p.c = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    p = good;
    p.type = (blas_type)9;
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    p = good;
    p.type = BLAS_I8;
    p.alpha = 0.5;
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu_blas_multiply(device, blas, &p));
    end();
}

int main(void)
{
    setenv("WARPWAVE_TEST_DEVICES", "emulator:32,emulator:64", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_type_are_right),
        cmocka_unit_test(odd_sizes_are_right),
        cmocka_unit_test(a_matrix_times_a_vector_is_right),
        cmocka_unit_test(unsuitable_matrices_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("vendor's BLAS", tests);
}
