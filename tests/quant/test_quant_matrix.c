/* Quantized matrices through the API, on every device: loading, views, looking up rows, and refused arguments. */
#include <stdlib.h>
#include <string.h>

#include "quant/matrix.h"
#include "support/data/golden.h"
#include "support/data/random.h"
#include "support/devices.h"

enum { ROWS = 37, COLS = 256 };

static float *values_make(uint64_t seed)
{
    test_random random = {seed};
    float *x = malloc((size_t)ROWS * COLS * sizeof *x);
    random_normals(&random, x, (int64_t)ROWS * COLS);
    return x;
}

static void a_view_has_its_rows_and_outlives_the_matrix(void **state)
{
    float *x = values_make(1), all[ROWS * COLS], part[5 * COLS];
    for (const golden_type *t = golden_types; t->name; t++) {
        ww_quant *q, *view, *inner;
        CHECK_OK(ww_quant_from_f32(*state, t->type, x, ROWS, COLS, 0, &q));
        CHECK_OK(ww_quant_read_f32(q, 0, ROWS, all));
        CHECK_OK(ww_quant_view(q, 3, 20, &view));
        CHECK_OK(ww_quant_view(view, 4, 5, &inner));
        ww_quant_destroy(q);
        ww_quant_destroy(view);
        CHECK_OK(ww_quant_read_f32(inner, 0, 5, part));
        assert_memory_equal(part, all + 7 * COLS, sizeof part);
        ww_quant_info info = ww_quant_info_default();
        CHECK_OK(ww_quant_describe(inner, &info));
        assert_int_equal(info.rows, 5);
        assert_int_equal(info.cols, COLS);
        assert_int_equal(info.type, t->type);
        assert_int_equal(info.bytes, 5 * info.row_bytes);
        ww_quant_destroy(inner);
    }
    free(x);
}

static void rows_looked_up_are_the_rows_of_the_matrix(void **state)
{
    static const int64_t ids[] = {36, 0, 0, 17, 5, 36};
    enum { IDS = sizeof ids / sizeof *ids };
    float *x = values_make(2), all[ROWS * COLS], found[IDS * COLS];
    for (const golden_type *t = golden_types; t->name; t++) {
        ww_quant *q;
        CHECK_OK(ww_quant_from_f32(*state, t->type, x, ROWS, COLS, 0, &q));
        CHECK_OK(ww_quant_read_f32(q, 0, ROWS, all));
        CHECK_OK(ww_quant_get_rows(q, ids, IDS, found));
        for (int i = 0; i < IDS; i++)
            assert_memory_equal(found + i * COLS, all + ids[i] * COLS, COLS * sizeof *all);
        CHECK_OK(ww_quant_get_rows(q, NULL, 0, NULL));
        ww_quant_destroy(q);
    }
    free(x);
}

static void an_id_that_is_no_row_writes_nothing(void **state)
{
    static const int64_t wrong[][2] = {{0, ROWS}, {0, -1}, {INT64_MAX, 0}, {1, INT64_MIN}};
    float *x = values_make(3), found[2 * COLS], before[2 * COLS];
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, ROWS, COLS, 0, &q));
    memset(found, 7, sizeof found);
    memcpy(before, found, sizeof found);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_get_rows(q, wrong[i], 2, found));
        assert_memory_equal(found, before, sizeof found);
    }
    ww_quant_destroy(q);
    free(x);
}

static void plain_types_take_rows_of_any_length_and_a_stride(void **state)
{
    static const int64_t cols[] = {1, 3, 7, 31, 257};
    static const ww_quant_type plain[] = {WW_QUANT_F32, WW_QUANT_F16, WW_QUANT_BF16};
    float *x = values_make(4), read[4 * 257];
    for (int t = 0; t < 3; t++)
        for (int c = 0; c < 5; c++) {
            ww_quant *q;
            CHECK_OK(ww_quant_from_f32(*state, plain[t], x, 4, cols[c], cols[c] + 9, &q));
            CHECK_OK(ww_quant_read_f32(q, 0, 4, read));
            for (int64_t row = 0; row < 4; row++)
                for (int64_t i = 0; i < cols[c]; i++) {
                    const float sent = x[row * (cols[c] + 9) + i], got = read[row * cols[c] + i];
                    const float off = plain[t] == WW_QUANT_F32 ? 0.0f : plain[t] == WW_QUANT_F16 ? 0x1p-11f : 0x1p-8f;
                    assert_true(got - sent <= off * 4 && sent - got <= off * 4);
                }
            ww_quant_destroy(q);
        }
    free(x);
}

/* The last row is followed by zeros, however the matrix was made. */
static void the_padding_is_zero(void **state)
{
    ww_device *device = *state;
    float *x = values_make(5);
    for (const golden_type *t = golden_types; t->name; t++) {
        ww_quant *q;
        CHECK_OK(ww_quant_from_f32(device, t->type, x, 3, COLS, 0, &q));
        const size_t rows = (size_t)(3 * q->row_bytes), padding = (size_t)(2 * q->row_bytes); /* 512 elements */
        assert_true(q->memory->blocks.bytes >= rows + padding);
        unsigned char *behind = malloc(padding);
        device_stream *stream;
        CHECK_OK(device->backend->stream_create(device, &stream));
        CHECK_OK(device->backend->copy_out(device, stream, behind, (buffer_range){&q->memory->blocks, rows, padding}));
        device->backend->stream_destroy(device, stream);
        for (size_t i = 0; i < padding; i++)
            assert_int_equal(behind[i], 0);
        free(behind);
        ww_quant_destroy(q);
    }
    free(x);
}

/* Whatever the layout of rows on a device, their bytes can be read back: also a part of them, and if they were written in
 * pieces of odd sizes. */
static void blocks_are_read_back_unchanged(void **state)
{
    static const int64_t cols[] = {256, 2048, 2304, 5120};
    enum { LOADED = 5, PIECE = 1237 };
    for (const golden_type *t = golden_types; t->name; t++)
        for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) {
            test_random random = {c};
            int64_t row_bytes;
            CHECK_OK(ww_quant_row_bytes(t->type, cols[c], &row_bytes));
            const size_t size = (size_t)(LOADED * row_bytes);
            unsigned char *sent = malloc(size), *back = malloc(size);
            for (size_t i = 0; i < size; i++)
                sent[i] = (unsigned char)random_bits(&random);
            ww_quant *whole, *pieces = NULL;
            CHECK_OK(ww_quant_load(*state, t->type, sent, size, LOADED, cols[c], &whole));
            CHECK_OK(quant_make(*state, t->type, LOADED, cols[c], &pieces));
            ww_device *device = *state;
            device_stream *stream;
            CHECK_OK(device->backend->stream_create(device, &stream));
            for (size_t at = 0; at < size; at += PIECE) {
                const host_bytes piece = {sent + at, size - at < PIECE ? size - at : PIECE};
                CHECK_OK(quant_fill(pieces, stream, at, piece));
            }
            CHECK_OK(device->backend->stream_synchronize(device, stream));
            device->backend->stream_destroy(device, stream);
            CHECK_OK(ww_quant_read_blocks(whole, 0, LOADED, back));
            assert_memory_equal(back, sent, size);
            CHECK_OK(ww_quant_read_blocks(pieces, 0, LOADED, back));
            assert_memory_equal(back, sent, size);
            CHECK_OK(ww_quant_read_blocks(whole, 2, 2, back));
            assert_memory_equal(back, sent + 2 * row_bytes, (size_t)(2 * row_bytes));
            ww_quant_destroy(pieces);
            ww_quant_destroy(whole);
            free(back);
            free(sent);
        }
}

static void impossible_arguments_are_refused(void **state)
{
    float *x = values_make(6), read[COLS];
    unsigned char blocks[256] = {0};
    ww_quant *q = NULL, *view = NULL;
    ww_quant_type type;
    int64_t bytes;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, 2, 33, 0, &q));
    assert_non_null(strstr(ww_error_message(), "blocks hold 32"));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_from_f32(*state, WW_QUANT_Q4_K, x, 2, 128, 0, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(*state, (ww_quant_type)5, x, 2, 32, 0, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, 2, 0, 0, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, -1, 32, 0, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, 2, 64, 32, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(*state, WW_QUANT_Q4_0, x, INT64_MAX, 64, 0, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(*state, WW_QUANT_Q4_0, NULL, 2, 64, 0, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_from_f32(NULL, WW_QUANT_Q4_0, x, 2, 64, 0, &q));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_load(*state, WW_QUANT_Q4_0, blocks, 17, 1, 32, &q));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_quant_load(*state, WW_QUANT_Q4_0, blocks, 36, INT64_MAX, 64, &q));
    assert_null(q);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_find("q4_k_m", &type));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_row_bytes(WW_QUANT_Q8_0, 32, NULL));
    CHECK_OK(ww_quant_row_bytes(WW_QUANT_Q6_K, 512, &bytes));
    assert_int_equal(bytes, 420);
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, x, 4, 64, 0, &q));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_read_f32(q, 3, 2, read));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_read_blocks(q, -1, 1, read));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_quant_view(q, 1, INT64_MAX, &view));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_view(q, 1, 1, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_read_f32(NULL, 0, 0, read));
    ww_quant_info old = {.struct_size = 2};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_quant_describe(q, &old));
    ww_quant_destroy(q);
    ww_quant_destroy(NULL);
    free(x);
}

static void every_type_has_a_name_that_finds_it(void **state)
{
    (void)state;
    for (const golden_type *t = golden_types; t->name; t++) {
        ww_quant_type type = WW_QUANT_F32;
        CHECK_OK(ww_quant_find(t->name, &type));
        assert_int_equal(type, t->type);
        assert_string_equal(ww_quant_name(type), t->name);
    }
    ww_quant_type type = WW_QUANT_F32;
    CHECK_OK(ww_quant_find("Q4_k", &type));
    assert_int_equal(type, WW_QUANT_Q4_K);
    assert_null(ww_quant_name((ww_quant_type)4));
    assert_int_equal(ww_quant_block_elements((ww_quant_type)31), 0);
}

static void a_matrix_without_rows_is_one(void **state)
{
    float nothing;
    ww_quant *q;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q5_K, NULL, 0, 256, 0, &q));
    CHECK_OK(ww_quant_read_f32(q, 0, 0, &nothing));
    ww_quant_destroy(q);
    CHECK_OK(ww_quant_load(*state, WW_QUANT_Q5_K, NULL, 0, 0, 256, &q));
    ww_quant_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_has_its_rows_and_outlives_the_matrix),
        cmocka_unit_test(rows_looked_up_are_the_rows_of_the_matrix),
        cmocka_unit_test(an_id_that_is_no_row_writes_nothing),
        cmocka_unit_test(plain_types_take_rows_of_any_length_and_a_stride),
        cmocka_unit_test(the_padding_is_zero),
        cmocka_unit_test(blocks_are_read_back_unchanged),
        cmocka_unit_test(impossible_arguments_are_refused),
        cmocka_unit_test(every_type_has_a_name_that_finds_it),
        cmocka_unit_test(a_matrix_without_rows_is_one),
    };
    return RUN_ON_EVERY_DEVICE("quant matrix", tests);
}
