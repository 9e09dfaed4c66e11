/* Quantized matrices from tensors and to tensors, on every device: the bytes and bits of the calls that go through the host,
 * for every type of numbers, layout and kind of ids; and what is refused.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/calls/quant.h"
#include "support/data/golden.h"
#include "support/devices.h"

enum { ROWS = 7, COLS = 512, COUNT = ROWS * COLS };

static const ww_dtype dtypes[] = {WW_F32, WW_F16, WW_BF16};

/* Normal numbers that f16 and bf16 represent exactly. */
static float *numbers(int64_t count)
{
    float *x = quant_normals(17, count);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(int)(x[i] * 32.0f) / 32.0f;
    return x;
}

static ww_tensor tensor_of(ww_device *device, ww_dtype dtype, const float *x, int64_t rows, int64_t cols)
{
    const int64_t shape[2] = {rows, cols};
    ww_tensor floats = {0}, cast = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, shape, x, &floats));
    CHECK_OK(ww_tensor_cast(&floats, dtype, &cast));
    ww_tensor_release(&floats);
    return cast;
}

static void check_blocks(const golden_type *t, ww_quant *expected, ww_quant *made)
{
    ww_quant_info a = ww_quant_info_default(), b = ww_quant_info_default();
    CHECK_OK(ww_quant_describe(expected, &a));
    CHECK_OK(ww_quant_describe(made, &b));
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.bytes, b.bytes);
    unsigned char *x = malloc((size_t)a.bytes), *y = malloc((size_t)a.bytes);
    CHECK_OK(ww_quant_read_blocks(expected, 0, a.rows, x));
    CHECK_OK(ww_quant_read_blocks(made, 0, a.rows, y));
    if (memcmp(x, y, (size_t)a.bytes) != 0)
        fail_msg("%s: other bytes from a tensor than from the host", t->name);
    free(y);
    free(x);
}

static void a_tensor_is_coded_as_floats_of_the_host_are(void **state)
{
    float *x = numbers(COUNT);
    for (const golden_type *t = golden_types; t->name; t++) {
        ww_quant *expected;
        CHECK_OK(ww_quant_from_f32(*state, t->type, x, ROWS, COLS, 0, &expected));
        for (int d = 0; d < 3; d++) {
            ww_quant *made = NULL;
            ww_tensor from = tensor_of(*state, dtypes[d], x, ROWS, COLS);
            CHECK_OK(ww_quant_from_tensor(t->type, &from, &made));
            check_blocks(t, expected, made);
            ww_quant_destroy(made);
            ww_tensor_release(&from);
        }
        ww_quant_destroy(expected);
    }
    free(x);
}

/* A slice with gaps, three dimensions that no two strides describe, a transposed matrix, an offset. */
static void a_tensor_of_any_layout_is_coded(void **state)
{
    enum { K = 32 };
    static const golden_type type = {WW_QUANT_Q8_0, "q8_0"};
    float *x = numbers(2 * 6 * 5 * K), *dense = malloc(sizeof(float) * 2 * 3 * 5 * K);
    const int64_t shape[4] = {2, 6, 5, K};
    for (int i = 0; i < 2 * 3 * 5 * K; i++)
        dense[i] = x[i / (15 * K) * 30 * K + (i / (5 * K) % 3 * 2 + 1) * 5 * K + i % (5 * K)];
    ww_tensor whole = {0}, slice = {0};
    ww_quant *expected, *made;
    CHECK_OK(ww_tensor_from_host(*state, WW_F32, 4, shape, x, &whole));
    CHECK_OK(ww_tensor_slice(&whole, 1, 1, 6, 2, &slice));
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, dense, 30, K, 0, &expected));
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q8_0, &slice, &made));
    check_blocks(&type, expected, made);
    ww_quant_destroy(made);
    ww_quant_destroy(expected);
    ww_tensor_release(&slice);

    ww_tensor turned = tensor_of(*state, WW_F16, x, K, 6);
    CHECK_OK(ww_tensor_transpose(&turned, 0, 1, &turned));
    for (int i = 0; i < 6 * K; i++)
        dense[i] = x[i % K * 6 + i / K];
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, dense, 6, K, 0, &expected));
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q8_0, &turned, &made));
    check_blocks(&type, expected, made);
    ww_quant_destroy(made);
    ww_quant_destroy(expected);
    ww_tensor_release(&turned);
    ww_tensor_release(&whole);
    free(dense);
    free(x);
}

/* The elements of a tensor as f32: exact for the types here. */
static float *values_of(const ww_tensor *x)
{
    ww_tensor floats = {0};
    float *values = malloc((size_t)ww_layout_elements(&x->layout) * sizeof *values + 1);
    CHECK_OK(ww_tensor_cast(x, WW_F32, &floats));
    CHECK_OK(ww_tensor_to_host(&floats, values));
    ww_tensor_release(&floats);
    return values;
}

/* What f32 values become in another type, by the library's cast. */
static float *rounded(ww_device *device, ww_dtype dtype, const float *values, int64_t count)
{
    ww_tensor cast = tensor_of(device, dtype, values, 1, count);
    float *made = values_of(&cast);
    ww_tensor_release(&cast);
    return made;
}

static void check_values(const char *name, ww_dtype dtype, const ww_tensor *found, const float *expected)
{
    float *values = values_of(found);
    assert_int_equal(ww_tensor_dtype(found), dtype);
    if (memcmp(values, expected, (size_t)ww_layout_elements(&found->layout) * sizeof *values) != 0)
        fail_msg("%s: other rows as %s than through the host", name, ww_dtype_name(dtype));
    free(values);
}

static void rows_are_decoded_into_tensors(void **state)
{
    float *x = numbers(COUNT), *read = malloc(sizeof(float) * COUNT);
    for (const golden_type *t = golden_types; t->name; t++) {
        ww_quant *q;
        CHECK_OK(ww_quant_from_f32(*state, t->type, x, ROWS, COLS, 0, &q));
        CHECK_OK(ww_quant_read_f32(q, 0, ROWS, read));
        for (int d = 0; d < 3; d++) {
            const int64_t shape[2] = {ROWS - 3, COLS};
            float *expected = rounded(*state, dtypes[d], read + 2 * (ptrdiff_t)COLS, (ROWS - 3) * COLS);
            ww_tensor fresh = {0}, given = {0};
            CHECK_OK(ww_quant_dequantize(q, 2, ROWS - 3, dtypes[d], &fresh));
            assert_int_equal(fresh.layout.rank, 2);
            assert_int_equal(fresh.layout.shape[0], ROWS - 3);
            check_values(t->name, dtypes[d], &fresh, expected);
            CHECK_OK(ww_tensor_empty(*state, dtypes[d], 2, shape, &given));
            const ww_storage *storage = given.storage;
            CHECK_OK(ww_quant_dequantize(q, 2, ROWS - 3, dtypes[d], &given));
            assert_ptr_equal(given.storage, storage);
            check_values(t->name, dtypes[d], &given, expected);
            ww_tensor_release(&given);
            ww_tensor_release(&fresh);
            free(expected);
        }
        ww_quant_destroy(q);
    }
    free(read);
    free(x);
}

/* A row longer than a CPU decodes at a time, with a number of blocks that is not a multiple of a group. */
static void long_rows_are_decoded_too(void **state)
{
    enum { LONG = 2048 + 96 };
    float *x = numbers(2 * LONG), *read = malloc(sizeof(float) * 2 * LONG);
    static const ww_quant_type types[] = {WW_QUANT_Q5_0, WW_QUANT_MXFP4, WW_QUANT_F16};
    for (int t = 0; t < 3; t++) {
        ww_quant *q;
        ww_tensor out = {0};
        CHECK_OK(ww_quant_from_f32(*state, types[t], x, 2, LONG, 0, &q));
        CHECK_OK(ww_quant_read_f32(q, 0, 2, read));
        float *expected = rounded(*state, WW_BF16, read, 2 * LONG);
        CHECK_OK(ww_quant_dequantize(q, 0, 2, WW_BF16, &out));
        check_values("a long row", WW_BF16, &out, expected);
        ww_tensor_release(&out);
        ww_quant_destroy(q);
        free(expected);
    }
    free(read);
    free(x);
}

static ww_tensor ids_of(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *ids)
{
    ww_tensor wide = {0}, cast = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_I64, rank, shape, ids, &wide));
    CHECK_OK(ww_tensor_cast(&wide, dtype, &cast));
    ww_tensor_release(&wide);
    return cast;
}

static void rows_are_looked_up_by_ids_on_the_device(void **state)
{
    static const int64_t ids[6] = {5, 0, 3, 3, 6, 1}, shape[2] = {2, 3};
    static const ww_dtype kinds[] = {WW_U8, WW_U32, WW_I64};
    static const ww_quant_type types[] = {WW_QUANT_Q4_K, WW_QUANT_Q8_0, WW_QUANT_IQ4_NL, WW_QUANT_BF16};
    float *x = numbers(COUNT), *read = malloc(sizeof(float) * 6 * COLS);
    for (int t = 0; t < 4; t++) {
        ww_quant *q;
        CHECK_OK(ww_quant_from_f32(*state, types[t], x, ROWS, COLS, 0, &q));
        CHECK_OK(ww_quant_get_rows(q, ids, 6, read));
        for (int k = 0; k < 3; k++) {
            ww_tensor list = ids_of(*state, kinds[k], 2, shape, ids), out = {0};
            float *expected = rounded(*state, dtypes[k], read, 6 * COLS);
            CHECK_OK(ww_quant_rows(q, &list, dtypes[k], &out));
            assert_int_equal(out.layout.rank, 3);
            assert_int_equal(out.layout.shape[1], 3);
            assert_int_equal(out.layout.shape[2], COLS);
            check_values("rows", dtypes[k], &out, expected);
            ww_tensor_release(&out);
            ww_tensor_release(&list);
            free(expected);
        }
        ww_quant_destroy(q);
    }
    free(read);
    free(x);
}

static void a_skipped_id_gives_zeros_and_one_that_is_no_row_is_refused(void **state)
{
    static const int64_t three = 3;
    float *x = numbers(COUNT), *read = malloc(sizeof(float) * 3 * COLS), zeros[COLS] = {0};
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, ROWS, COLS, 0, &q));
    const int64_t skipping[3] = {2, (int64_t)UINT32_MAX, 4}, wrong[3] = {2, ROWS, 4}, negative[3] = {2, 0, -1};
    ww_tensor list = ids_of(*state, WW_U32, 1, &three, skipping), bad = ids_of(*state, WW_U32, 1, &three, wrong),
              below = ids_of(*state, WW_I64, 1, &three, negative), out = {0};
    CHECK_OK(ww_quant_rows(q, &list, WW_F32, &out));
    CHECK_OK(ww_tensor_to_host(&out, read));
    assert_memory_equal(read + COLS, zeros, sizeof zeros);
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_rows(q, &bad, WW_F32, &out));
    assert_non_null(strstr(ww_error_message(), "element 1 of the ids"));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_rows(q, &below, WW_F32, &out));
    float *after = values_of(&out);
    assert_memory_equal(after, read, sizeof(float) * 3 * COLS); /* nothing was written */
    free(after);
    ww_tensor_release(&out);
    ww_tensor_release(&below);
    ww_tensor_release(&bad);
    ww_tensor_release(&list);
    ww_quant_destroy(q);
    free(read);
    free(x);
}

static void values_that_no_block_can_hold_are_refused_with_their_place(void **state)
{
    float *x = numbers(COUNT);
    ww_quant *q = NULL;
    x[5 * COLS + 100] = INFINITY;
    for (int d = 0; d < 3; d++) {
        ww_tensor from = tensor_of(*state, dtypes[d], x, ROWS, COLS);
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_tensor(WW_QUANT_Q4_0, &from, &q));
        assert_non_null(strstr(ww_error_message(), "row 5, columns 96 to 127"));
        ww_tensor_release(&from);
    }
    assert_null(q);
    free(x);
}

static void nonsensical_arguments_are_refused(void **state)
{
    float *x = numbers(COUNT);
    ww_quant *q, *none = NULL;
    ww_tensor from = tensor_of(*state, WW_F32, x, ROWS, COLS), integers = tensor_of(*state, WW_I32, x, ROWS, COLS), out = {0},
              odd = {0}, scalar = {0};
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q4_0, &from, &q));
    CHECK_OK(ww_tensor_narrow(&from, 1, 0, 33, &odd));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_from_tensor(WW_QUANT_Q4_0, &odd, &none));
    CHECK_FAILS(WW_UNSUPPORTED, ww_quant_from_tensor(WW_QUANT_Q4_0, &integers, &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_tensor(WW_QUANT_Q4_0, &out, &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_tensor(WW_QUANT_Q4_0, NULL, &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_tensor(WW_QUANT_Q4_0, &from, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_tensor((ww_quant_type)4, &from, &none));
    CHECK_OK(ww_tensor_select(&from, 0, 0, &scalar));
    CHECK_OK(ww_tensor_select(&scalar, 0, 0, &scalar));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_from_tensor(WW_QUANT_F32, &scalar, &none));
    assert_null(none);
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_dequantize(q, 1, ROWS, WW_F32, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_quant_dequantize(q, 0, 1, WW_F64, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_dequantize(NULL, 0, 1, WW_F32, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_dequantize(q, 0, 1, WW_F32, NULL));
    CHECK_FAILS(WW_UNSUPPORTED, ww_quant_rows(q, &integers, WW_F32, &out)); /* i32 */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_rows(q, NULL, WW_F32, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_rows(NULL, &integers, WW_F32, &out));
    assert_null(out.storage);
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_dequantize(q, 0, 2, WW_F32, &from)); /* of another shape */
    ww_tensor_release(&scalar);
    ww_tensor_release(&odd);
    ww_tensor_release(&integers);
    ww_tensor_release(&from);
    ww_quant_destroy(q);
    free(x);
}

/* No rows, and no ids. */
static void nothing_is_coded_and_decoded_as_well(void **state)
{
    const int64_t shape[2] = {0, 64}, none = 0;
    ww_tensor empty = {0}, ids = {0}, out = {0};
    ww_quant *q;
    CHECK_OK(ww_tensor_empty(*state, WW_F16, 2, shape, &empty));
    CHECK_OK(ww_quant_from_tensor(WW_QUANT_Q4_0, &empty, &q));
    CHECK_OK(ww_quant_dequantize(q, 0, 0, WW_F16, &out));
    assert_int_equal(ww_layout_elements(&out.layout), 0);
    ww_tensor_release(&out);
    CHECK_OK(ww_tensor_empty(*state, WW_U32, 1, &none, &ids));
    CHECK_OK(ww_quant_rows(q, &ids, WW_F32, &out));
    assert_int_equal(out.layout.shape[1], 64);
    ww_tensor_release(&out);
    ww_tensor_release(&ids);
    ww_tensor_release(&empty);
    ww_quant_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_is_coded_as_floats_of_the_host_are),
        cmocka_unit_test(a_tensor_of_any_layout_is_coded),
        cmocka_unit_test(rows_are_decoded_into_tensors),
        cmocka_unit_test(long_rows_are_decoded_too),
        cmocka_unit_test(rows_are_looked_up_by_ids_on_the_device),
        cmocka_unit_test(a_skipped_id_gives_zeros_and_one_that_is_no_row_is_refused),
        cmocka_unit_test(values_that_no_block_can_hold_are_refused_with_their_place),
        cmocka_unit_test(nonsensical_arguments_are_refused),
        cmocka_unit_test(nothing_is_coded_and_decoded_as_well),
    };
    return RUN_ON_EVERY_DEVICE("quant tensors", tests);
}
