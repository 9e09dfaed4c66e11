/* Matrices: which files open, their descriptions, their rows in every format, and which files are refused when they are
 * opened. */
#include "support/check.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/data/random.h"
#include "support/scratch.h"

/* Element i of a file of the corpus (tests/fuzz/corpus/make). */
static float ramp(ww_element element, int64_t i)
{
    switch (element) {
    case WW_ELEMENT_I8:
        return (float)(i * 37 % 101 - 50);
    case WW_ELEMENT_U8:
        return (float)(i * 37 % 256);
    case WW_ELEMENT_I32:
        return (float)(i * 104729 % 2000003 - 1000000);
    default:
        return (float)(i * 37 % 101 - 50) / 4.0f;
    }
}

static ww_matrix *open_corpus(const char *file)
{
    char path[4096];
    ww_matrix *matrix = NULL;
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", SOURCE_DIR, file);
    CHECK_OK(ww_matrix_open(path, &matrix));
    return matrix;
}

static ww_matrix *open_scratch(const char *name, const void *bytes, size_t size)
{
    ww_matrix *matrix = NULL;
    CHECK_OK(ww_matrix_open(scratch_write(name, bytes, size), &matrix));
    return matrix;
}

static void check_ramp(const char *file, int64_t rows, int64_t dim, ww_element element)
{
    ww_matrix *matrix = open_corpus(file);
    ww_matrix_info info = ww_matrix_info_default();
    float values[64];
    int32_t integers[64];
    CHECK_OK(ww_matrix_describe(matrix, &info));
    if (info.rows != rows || info.dim != dim || info.element != element)
        fail_msg("%s: %lld x %lld %s", file, (long long)info.rows, (long long)info.dim, ww_element_name(info.element));
    CHECK_OK(ww_matrix_read_f32(matrix, 0, rows, values));
    for (int64_t i = 0; i < rows * dim; i++)
        if (values[i] != ramp(element, i))
            fail_msg("%s: element %lld is %g, not %g", file, (long long)i, (double)values[i], (double)ramp(element, i));
    if (rows > 2) { /* rows from the middle */
        CHECK_OK(ww_matrix_read_f32(matrix, 1, 2, values));
        for (int64_t i = 0; i < 2 * dim; i++)
            assert_true(values[i] == ramp(element, dim + i));
    }
    unsigned char stored[64 * sizeof(double)], middle[64 * sizeof(double)];
    const int64_t bytes = ww_element_bytes(element);
    CHECK_OK(ww_matrix_read_elements(matrix, 0, rows, stored));
    CHECK_OK(ww_matrix_read_elements(matrix, rows / 2, rows - rows / 2, middle));
    assert_memory_equal(stored + rows / 2 * dim * bytes, middle, (size_t)((rows - rows / 2) * dim * bytes));
    for (int64_t i = 0; i < rows * dim; i++) {
        const float number = element == WW_ELEMENT_I8   ? (float)(int8_t)stored[i]
                             : element == WW_ELEMENT_U8 ? (float)stored[i]
                                                        : ramp(element, i);
        assert_true(number == ramp(element, i));
        if (element == WW_ELEMENT_F32)
            assert_memory_equal(stored + i * bytes, &number, sizeof number);
    }
    if (element == WW_ELEMENT_I8 || element == WW_ELEMENT_U8 || element == WW_ELEMENT_I32) {
        CHECK_OK(ww_matrix_read_i32(matrix, 0, rows, integers));
        for (int64_t i = 0; i < rows * dim; i++)
            assert_int_equal(integers[i], (int32_t)ramp(element, i));
    } else {
        CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_read_i32(matrix, 0, rows, integers));
    }
    ww_matrix_close(matrix);
}

static void every_format_gives_the_numbers_that_are_in_the_file(void **state)
{
    (void)state;
    check_ramp("npy/good-f4.npy", 5, 4, WW_ELEMENT_F32);
    check_ramp("npy/good-f8.npy", 5, 4, WW_ELEMENT_F64);
    check_ramp("npy/good-f2.npy", 5, 4, WW_ELEMENT_F16);
    check_ramp("npy/good-i1.npy", 5, 4, WW_ELEMENT_I8);
    check_ramp("npy/good-u1.npy", 5, 4, WW_ELEMENT_U8);
    check_ramp("npy/good-i4.npy", 5, 4, WW_ELEMENT_I32);
    check_ramp("npy/good-version-2.npy", 5, 4, WW_ELEMENT_F32);
    check_ramp("npy/good-version-3.npy", 5, 4, WW_ELEMENT_F32);
    check_ramp("npy/good-one-dimension.npy", 1, 7, WW_ELEMENT_F32);
    check_ramp("npy/good-fortran-one-row.npy", 1, 6, WW_ELEMENT_F32);
    check_ramp("npy/good-fortran-one-column.npy", 6, 1, WW_ELEMENT_F32);
    check_ramp("npy/good-other-order-and-quotes.npy", 1, 2, WW_ELEMENT_F32);
    check_ramp("npy/good-no-rows.npy", 0, 4, WW_ELEMENT_F32);
    check_ramp("vecs/good-five-rows.fvecs", 5, 3, WW_ELEMENT_F32);
    check_ramp("vecs/good-five-rows.bvecs", 5, 3, WW_ELEMENT_U8);
    check_ramp("vecs/good-five-rows.ivecs", 5, 3, WW_ELEMENT_I32);
    check_ramp("bin/good-five-rows.fbin", 5, 3, WW_ELEMENT_F32);
    check_ramp("bin/good-five-rows.f32bin", 5, 3, WW_ELEMENT_F32);
    check_ramp("bin/good-five-rows.f16bin", 5, 3, WW_ELEMENT_F16);
    check_ramp("bin/good-five-rows.hbin", 5, 3, WW_ELEMENT_F16);
    check_ramp("bin/good-five-rows.u8bin", 5, 3, WW_ELEMENT_U8);
    check_ramp("bin/good-five-rows.bbin", 5, 3, WW_ELEMENT_U8);
    check_ramp("bin/good-five-rows.i8bin", 5, 3, WW_ELEMENT_I8);
    check_ramp("bin/good-five-rows.ibin", 5, 3, WW_ELEMENT_I32);
    check_ramp("bin/good-five-rows.i32bin", 5, 3, WW_ELEMENT_I32);
    check_ramp("bin/good-no-rows.fbin", 0, 3, WW_ELEMENT_F32);
}

static void a_view_is_there_for_contiguous_f32_and_only_then(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool viewed;
    } cases[] = {
        {"npy/good-f4.npy", true},
        {"bin/good-five-rows.fbin", true},
        {"csv/good-plain.csv", true},
        {"npy/good-unaligned.npy", true}, /* the alignment of the data in the file does not matter */
        {"npy/good-f8.npy", false},
        {"npy/good-i4.npy", false},
        {"vecs/good-five-rows.fvecs", false},
        {"bin/good-five-rows.f16bin", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_matrix *matrix = open_corpus(cases[i].file);
        ww_matrix_info info = ww_matrix_info_default();
        float values[64];
        const float *view = ww_matrix_view_f32(matrix);
        if ((view != NULL) != cases[i].viewed)
            fail_msg("%s: %s view", cases[i].file, view ? "a" : "no");
        CHECK_OK(ww_matrix_describe(matrix, &info));
        CHECK_OK(ww_matrix_read_f32(matrix, 0, info.rows, values));
        if (view)
            assert_memory_equal(view, values, (size_t)(info.rows * info.dim) * sizeof *values);
        ww_matrix_close(matrix);
    }
    assert_null(ww_matrix_view_f32(NULL));
}

/* Rows longer than the buffer, and many short ones that do not fill it evenly. */
static void check_vecs_of_dim(int32_t dim, int64_t rows, bool bytes)
{
    const size_t element = bytes ? 1 : 4, row_bytes = 4 + (size_t)dim * element;
    char *content = malloc((size_t)rows * row_bytes);
    float *out = malloc((size_t)rows * (size_t)dim * sizeof *out);
    for (int64_t row = 0; row < rows; row++) {
        memcpy(content + (size_t)row * row_bytes, &dim, sizeof dim);
        for (int32_t i = 0; i < dim; i++) {
            const uint8_t small = (uint8_t)(row * 31 + i);
            const float value = (float)(row * 31 + i);
            memcpy(content + (size_t)row * row_bytes + 4 + (size_t)i * element, bytes ? (const void *)&small : &value, element);
        }
    }
    ww_matrix *matrix = open_scratch(bytes ? "rows.bvecs" : "rows.fvecs", content, (size_t)rows * row_bytes);
    CHECK_OK(ww_matrix_read_f32(matrix, 0, rows, out));
    for (int64_t row = 0; row < rows; row++)
        for (int32_t i = 0; i < dim; i++) {
            const float value = out[row * dim + i];
            assert_true(value == (bytes ? (float)(uint8_t)(row * 31 + i) : (float)(row * 31 + i)));
        }
    ww_matrix_close(matrix);
    free(content);
    free(out);
}

static void rows_of_any_length_are_read_whole(void **state)
{
    (void)state;
    check_vecs_of_dim(1, 20000, false);
    check_vecs_of_dim(100, 1000, false);
    check_vecs_of_dim(8191, 5, false); /* a row and its dim are the piece exactly */
    check_vecs_of_dim(8192, 5, false);
    check_vecs_of_dim(50000, 3, false);
    check_vecs_of_dim(3, 20000, true);
    check_vecs_of_dim(32764, 3, true);
    check_vecs_of_dim(100001, 3, true);
}

static void doubles_round_once_to_nearest_even(void **state)
{
    (void)state;
    const double values[] = {
        1.0 + 0x1p-24, 1.0 + 0x1p-23 + 0x1p-24, 1.0 + 0x1p-24 + 0x1p-52, 0x1p-149, 0x1p-150, 1e300, -0.0, NAN};
    const float expected[] = {1.0f, 1.0f + 0x1p-22f, 1.0f + 0x1p-23f, 0x1p-149f, 0.0f, INFINITY, -0.0f};
    char content[128 + sizeof values] = "\x93NUMPY\x01";
    content[8] = 118;
    memset(content + 10, ' ', 118);
    memcpy(content + 10, "{'descr':'<f8','fortran_order':False,'shape':(8,)}", 50);
    memcpy(content + 128, values, sizeof values);
    ww_matrix *matrix = open_scratch("doubles.npy", content, sizeof content);
    float out[8];
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 1, out));
    assert_memory_equal(out, expected, sizeof expected);
    assert_true(isnan(out[7]));
    ww_matrix_close(matrix);
}

static void large_integers_round_in_f32_and_are_exact_in_i32(void **state)
{
    (void)state;
    const int32_t content[] = {1, 4, 16777217, 16777219, INT32_MIN, INT32_MAX};
    const float expected[] = {16777216.0f, 16777220.0f, -0x1p31f, 0x1p31f};
    ww_matrix *matrix = open_scratch("large.ibin", content, sizeof content);
    float values[4];
    int32_t integers[4];
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 1, values));
    CHECK_OK(ww_matrix_read_i32(matrix, 0, 1, integers));
    assert_memory_equal(values, expected, sizeof values);
    assert_memory_equal(integers, content + 2, sizeof integers);
    ww_matrix_close(matrix);
}

static void an_ending_decides_whatever_its_case_and_an_unknown_one_is_refused(void **state)
{
    (void)state;
    const uint32_t content[] = {1, 1, 0};
    ww_matrix *matrix = NULL;
    ww_matrix_close(open_scratch("UPPER.FBIN", content, sizeof content));
    ww_matrix_close(open_scratch("two.dots.fbin", content, sizeof content));
    static const char *const names[] = {"file.bin", "file", "filefbin", "file.fbin.gz", "file.txt", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_open(*names[i] ? scratch_path(names[i]) : "", &matrix));
        assert_non_null(strstr(ww_error_message(), ".npy .fvecs"));
    }
    CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_open(".npy", &matrix)); /* a hidden file, not an ending */
    assert_null(matrix);
}

static void invalid_files_are_refused_with_the_reason(void **state)
{
    (void)state;
    ww_matrix *matrix = NULL;
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_open(scratch_path("missing.npy"), &matrix));
    assert_non_null(strstr(ww_error_message(), "missing.npy"));
    assert_non_null(strstr(ww_error_message(), "No such file"));
    const char *directory = scratch_path("directory.npy");
    assert_int_equal(mkdir(directory, 0777), 0);
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_open(directory, &matrix));
    assert_non_null(strstr(ww_error_message(), "directory"));
    const char *pipe_path = scratch_path("pipe.csv"); /* opening it plainly would wait for ever: until the alarm */
    assert_int_equal(mkfifo(pipe_path, 0666), 0);
    alarm(30);
    CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_open(pipe_path, &matrix));
    alarm(0);
    assert_null(matrix);
}

static void a_long_path_leaves_room_for_the_reason(void **state)
{
    (void)state;
    char path[2000];
    ww_matrix *matrix = NULL;
    memset(path, 'a', sizeof path);
    for (size_t i = 100; i < sizeof path; i += 100)
        path[i] = '/';
    strcpy(path + sizeof path - 10, "/last.npy");
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_open(path, &matrix));
    assert_non_null(strstr(ww_error_message(), "/last.npy"));
    assert_non_null(strstr(ww_error_message(), "No such file"));
}

static void null_and_ranges_outside_the_matrix_are_refused(void **state)
{
    (void)state;
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    float values[64];
    int32_t integers[64];
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_open(NULL, &matrix));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_open("x.npy", NULL));
    ww_matrix_close(NULL);
    matrix = open_corpus("bin/good-five-rows.ibin");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_describe(NULL, &info));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_describe(matrix, NULL));
    info.struct_size = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_describe(matrix, &info));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_read_f32(NULL, 0, 1, values));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_read_i32(NULL, 0, 1, integers));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_read_elements(NULL, 0, 1, integers));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_read_elements(matrix, 0, 1, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_read_f32(matrix, 0, 1, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_read_i32(matrix, 0, 1, NULL));
    static const int64_t ranges[][2] = {{-1, 1}, {0, -1}, {0, 6}, {5, 1}, {6, 0}, {INT64_MAX, INT64_MAX}, {1, INT64_MAX}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_matrix_read_f32(matrix, ranges[i][0], ranges[i][1], values));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_matrix_read_i32(matrix, ranges[i][0], ranges[i][1], integers));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_matrix_read_elements(matrix, ranges[i][0], ranges[i][1], integers));
    }
    CHECK_OK(ww_matrix_read_f32(matrix, 5, 0, NULL));
    CHECK_OK(ww_matrix_read_f32(matrix, 4, 1, values));
    ww_matrix_close(matrix);
}

/* A library that knew fewer fields must not be written past its struct. */
static void describe_writes_no_more_than_the_struct_holds(void **state)
{
    (void)state;
    ww_matrix *matrix = open_corpus("bin/good-five-rows.fbin");
    ww_matrix_info info;
    memset(&info, 0x5a, sizeof info);
    info.struct_size = offsetof(ww_matrix_info, dim);
    CHECK_OK(ww_matrix_describe(matrix, &info));
    assert_int_equal(info.rows, 5);
    assert_int_equal(info.dim, INT64_C(0x5a5a5a5a5a5a5a5a));
    assert_int_equal(info.struct_size, offsetof(ww_matrix_info, dim));
    ww_matrix_close(matrix);
}

static void a_file_cut_short_while_open_is_an_error_and_not_a_signal(void **state)
{
    (void)state;
    static const char *const names[] = {"cut.fbin", "cut.u8bin", "cut.fvecs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool vecs = strstr(names[i], "vecs") != NULL;
        const size_t size = vecs ? 1000 * 260 : 8 + (i == 0 ? 64000 : 16000);
        int32_t *content = calloc(1, size);
        float *out = malloc(1000 * 64 * sizeof *out);
        content[0] = 1000;
        content[1] = 16;
        for (int row = 0; vecs && row < 1000; row++)
            content[row * 65] = 64;
        ww_matrix *matrix = open_scratch(names[i], content, size);
        CHECK_OK(ww_matrix_read_f32(matrix, 0, 1000, out));
        assert_int_equal(truncate(scratch_path(names[i]), 4100), 0);
        CHECK_FAILS(WW_CORRUPT_FILE, ww_matrix_read_f32(matrix, 0, 1000, out));
        assert_non_null(strstr(ww_error_message(), "offset 4100"));
        CHECK_OK(ww_matrix_read_f32(matrix, 0, 10, out)); /* the remaining rows can be read */
        ww_matrix_close(matrix);
        free(content);
        free(out);
    }
}

static void names_of_elements_are_known_and_nothing_else_is(void **state)
{
    (void)state;
    assert_string_equal(ww_element_name(WW_ELEMENT_F32), "f32");
    assert_string_equal(ww_element_name(WW_ELEMENT_F64), "f64");
    assert_string_equal(ww_element_name(WW_ELEMENT_F16), "f16");
    assert_string_equal(ww_element_name(WW_ELEMENT_I8), "i8");
    assert_string_equal(ww_element_name(WW_ELEMENT_U8), "u8");
    assert_string_equal(ww_element_name(WW_ELEMENT_I32), "i32");
    assert_null(ww_element_name((ww_element)15));
    assert_null(ww_element_name((ww_element)-1));
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_the_numbers_that_are_in_the_file),
        cmocka_unit_test(a_view_is_there_for_contiguous_f32_and_only_then),
        IN_SCRATCH(rows_of_any_length_are_read_whole),
        IN_SCRATCH(doubles_round_once_to_nearest_even),
        IN_SCRATCH(large_integers_round_in_f32_and_are_exact_in_i32),
        IN_SCRATCH(an_ending_decides_whatever_its_case_and_an_unknown_one_is_refused),
        IN_SCRATCH(invalid_files_are_refused_with_the_reason),
        cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
        cmocka_unit_test(null_and_ranges_outside_the_matrix_are_refused),
        cmocka_unit_test(describe_writes_no_more_than_the_struct_holds),
        IN_SCRATCH(a_file_cut_short_while_open_is_an_error_and_not_a_signal),
        cmocka_unit_test(names_of_elements_are_known_and_nothing_else_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
