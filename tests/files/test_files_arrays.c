/* Arrays of any rank: .npy and .safetensors, read and written, as a whole and in parts, by several threads; and refused
 * files. */
#include "support/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/scratch.h"

/* A .npy with any header. */
static const char *write_npy(const char *name, const char *header, const void *data, size_t bytes)
{
    static unsigned char file[1 << 16];
    const uint16_t length = (uint16_t)strlen(header);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    memcpy(file + 8, &length, sizeof length);
    memcpy(file + 10, header, length);
    memcpy(file + 10 + length, data, bytes);
    return scratch_write(name, file, 10 + length + bytes);
}

static void a_npy_of_any_rank_and_type_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        ww_element element;
        int64_t bytes;
    } types[] = {{"<f4", WW_ELEMENT_F32, 4}, {"<f8", WW_ELEMENT_F64, 8}, {"<f2", WW_ELEMENT_F16, 2},
                 {"|i1", WW_ELEMENT_I8, 1},  {"|u1", WW_ELEMENT_U8, 1},  {"<i2", WW_ELEMENT_I16, 2},
                 {"<i4", WW_ELEMENT_I32, 4}, {"<i8", WW_ELEMENT_I64, 8}, {"<u2", WW_ELEMENT_U16, 2},
                 {"<u4", WW_ELEMENT_U32, 4}, {"<u8", WW_ELEMENT_U64, 8}, {"|b1", WW_ELEMENT_BOOL, 1}};
    unsigned char data[24 * 8], back[24 * 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[128];
        ww_npy *npy = NULL;
        ww_array_info info = ww_array_info_default();
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3, 1, 4), }", types[i].type);
        const size_t bytes = (size_t)(24 * types[i].bytes);
        CHECK_OK(ww_npy_open(write_npy("a.npy", header, data, bytes), &npy));
        CHECK_OK(ww_npy_describe(npy, &info));
        assert_int_equal(info.element, types[i].element);
        assert_string_equal(info.type, types[i].type);
        assert_int_equal(info.rank, 4);
        assert_int_equal(info.shape[1], 3);
        assert_int_equal(info.shape[4], 1);
        assert_int_equal(info.elements, 24);
        assert_int_equal(info.bytes, bytes);
        CHECK_OK(ww_npy_read(npy, 0, back, bytes));
        assert_memory_equal(back, data, bytes);
        CHECK_OK(ww_npy_read(npy, 5, back, bytes - 5));
        assert_memory_equal(back, data + 5, bytes - 5);
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_npy_read(npy, 1, back, bytes));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_npy_read(npy, -1, back, 1));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_npy_read(npy, 0, NULL, 1));
        ww_npy_close(npy);
    }
}

static void a_scalar_and_an_empty_array_are_arrays(void **state)
{
    (void)state;
    ww_npy *npy = NULL;
    ww_array_info info = ww_array_info_default();
    float value = 2.5f, back = 0.0f;
    CHECK_OK(ww_npy_open(write_npy("s.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", &value, 4), &npy));
    CHECK_OK(ww_npy_describe(npy, &info));
    assert_int_equal(info.rank, 0);
    assert_int_equal(info.elements, 1);
    CHECK_OK(ww_npy_read(npy, 0, &back, sizeof back));
    assert_true(back == value);
    ww_npy_close(npy);
    CHECK_OK(ww_npy_open(
        write_npy("e.npy", "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 9223372036854775807)}", "", 0), &npy));
    CHECK_OK(ww_npy_describe(npy, &info));
    assert_int_equal(info.elements, 0);
    CHECK_OK(ww_npy_read(npy, 0, NULL, 0));
    ww_npy_close(npy);
}

/* Element (i, j, k) of shape (2, 3, 4) is 100 i + 10 j + k; the first dimension is contiguous in the file, the last one in the
   result. */
static void fortran_order_is_read_as_c_order(void **state)
{
    (void)state;
    int16_t file[24], expected[24], back[24];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) {
                file[i + 2 * j + 6 * k] = (int16_t)(100 * i + 10 * j + k);
                expected[12 * i + 4 * j + k] = (int16_t)(100 * i + 10 * j + k);
            }
    ww_npy *npy = NULL;
    CHECK_OK(ww_npy_open(write_npy("f.npy", "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }", file, sizeof file),
                         &npy));
    CHECK_OK(ww_npy_read(npy, 0, back, sizeof back));
    assert_memory_equal(back, expected, sizeof back);
    CHECK_OK(ww_npy_read(npy, 6, back, 10));
    assert_memory_equal(back, expected + 3, 10);
    ww_npy_close(npy);
}

static void invalid_arrays_are_refused_with_their_offset(void **state)
{
    (void)state;
    static const struct {
        const char *header, *reason;
        ww_status status;
    } wrong[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", "cut short: 4 elements of f32 are 16 bytes, and 8",
         WW_CORRUPT_FILE},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "4 byte(s) too many", WW_CORRUPT_FILE},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 2)}", "does not fit into any file",
         WW_CORRUPT_FILE},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "element type '<c8' is not supported", WW_UNSUPPORTED},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian", WW_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "pickled", WW_UNSUPPORTED},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", "element type '|f4'", WW_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)}",
         "17 dimensions; the maximum is 16", WW_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ww_npy *npy = NULL;
        const int64_t held = blocks_held();
        CHECK_FAILS(wrong[i].status, ww_npy_open(write_npy("w.npy", wrong[i].header, "12345678", 8), &npy));
        assert_null(npy);
        if (!strstr(ww_error_message(), wrong[i].reason) || !strstr(ww_error_message(), "w.npy: offset "))
            fail_msg("'%s' does not say '%s'", ww_error_message(), wrong[i].reason);
        assert_int_equal(blocks_held(), held);
    }
}

/* ---- .safetensors -------------------------------------------------------------------------------------------------------- */

static ww_array array_of(const char *name, ww_element element, int32_t rank, const int64_t *shape, const void *data)
{
    ww_array array = ww_array_default();
    array.name = name;
    array.element = element;
    array.rank = rank;
    for (int32_t i = 0; i < rank; i++)
        array.shape[i] = shape[i];
    array.data = data;
    return array;
}

static void written_files_can_be_read(void **state)
{
    (void)state;
    static const float weights[6] = {1, 2, 3, 4, 5, 6};
    static const int8_t codes[3] = {-1, 0, 1};
    static const double one = 0.1;
    const char *path = scratch_path("m.safetensors");
    const ww_array arrays[] = {array_of("codes", WW_ELEMENT_I8, 1, (const int64_t[]){3}, codes),
                               array_of("layer.weight", WW_ELEMENT_F32, 2, (const int64_t[]){2, 3}, weights),
                               array_of("none", WW_ELEMENT_F16, 2, (const int64_t[]){0, 7}, NULL),
                               array_of("\xc3\xa9 \"q\"", WW_ELEMENT_F64, 0, NULL, &one)};
    CHECK_OK(ww_safetensors_write(path, arrays, 4, (const char *const[]){"format", "ww", "author", "me", NULL}));

    ww_safetensors *file = NULL;
    char name[32];
    const int descriptor = scratch_pipe(path, name);
    CHECK_OK(ww_safetensors_open_stream(name, &file));
    close(descriptor);
    assert_int_equal(ww_safetensors_count(file), 4);
    ww_safetensors_close(file);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_safetensors_open_stream(NULL, &file));
    CHECK_OK(ww_safetensors_open(path, &file));
    assert_int_equal(ww_safetensors_count(file), 4);
    for (int i = 0; i < 4; i++) {
        int64_t index = -1;
        unsigned char back[24];
        const void *mapped = NULL;
        ww_array_info info = ww_array_info_default();
        CHECK_OK(ww_safetensors_find(file, arrays[i].name, &index));
        CHECK_OK(ww_safetensors_at(file, index, &info));
        assert_string_equal(info.name, arrays[i].name);
        assert_int_equal(info.element, arrays[i].element);
        assert_int_equal(info.rank, arrays[i].rank);
        for (int d = 0; d < info.rank; d++)
            assert_int_equal(info.shape[d], arrays[i].shape[d]);
        CHECK_OK(ww_safetensors_read(file, index, 0, back, (size_t)info.bytes));
        if (info.bytes > 0)
            assert_memory_equal(back, arrays[i].data, (size_t)info.bytes);
        CHECK_OK(ww_safetensors_map(file, index, &mapped));
        if (info.bytes > 0)
            assert_memory_equal(mapped, arrays[i].data, (size_t)info.bytes);
    }
    const char *key = NULL, *value = NULL;
    assert_int_equal(ww_safetensors_metadata_count(file), 2);
    CHECK_OK(ww_safetensors_metadata_at(file, 1, &key, &value));
    assert_string_equal(key, "author");
    CHECK_OK(ww_safetensors_metadata(file, "format", &value));
    assert_string_equal(value, "ww");
    CHECK_FAILS(WW_NOT_FOUND, ww_safetensors_metadata(file, "colour", &value));
    int64_t index;
    CHECK_FAILS(WW_NOT_FOUND, ww_safetensors_find(file, "absent", &index));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_safetensors_map(file, 4, (const void **)&value));
    ww_safetensors_close(file);
    assert_int_equal(scratch_entries(), 1);
}

/* Large enough for several threads. If it is cut short, all of them reach the end, and the first place is reported. */
static void a_large_tensor_is_read_by_several_threads(void **state)
{
    (void)state;
    enum { WORDS = 10 << 20 }; /* 40 MiB */
    const int64_t shape[] = {WORDS};
    const char *path = scratch_path("large.safetensors");
    uint32_t *words = malloc(WORDS * sizeof *words), *back = calloc(WORDS, sizeof *back);
    assert_true(words && back);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
    const ww_array array = array_of("w", WW_ELEMENT_U32, 1, shape, words);
    CHECK_OK(ww_safetensors_write(path, &array, 1, NULL));
    ww_safetensors *file = NULL;
    ww_array_info info = ww_array_info_default();
    CHECK_OK(ww_safetensors_open(path, &file));
    CHECK_OK(ww_safetensors_at(file, 0, &info));
    CHECK_OK(ww_safetensors_read(file, 0, 4, back, (size_t)info.bytes - 4));
    assert_memory_equal(back, words + 1, (size_t)info.bytes - 4);
    assert_int_equal(truncate(path, info.offset + (9 << 20)), 0);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_safetensors_read(file, 0, 0, back, (size_t)info.bytes));
    char expected[64];
    snprintf(expected, sizeof expected, "offset %lld: the file ends here", (long long)info.offset + (9 << 20));
    assert_non_null(strstr(ww_error_message(), expected));
    ww_safetensors_close(file);
    free(words);
    free(back);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = scratch_write("m.safetensors", "old", 3);
    const float x = 1.0f;
    const ww_array good = array_of("a", WW_ELEMENT_F32, 0, NULL, &x);
    const struct {
        ww_array array;
        const char *reason;
    } wrong[] = {{array_of("a", WW_ELEMENT_F32, 0, NULL, &x), "'a' appears twice"},
                 {array_of("", WW_ELEMENT_F32, 0, NULL, &x), "has no name"},
                 {array_of(NULL, WW_ELEMENT_F32, 0, NULL, &x), "has no name"},
                 {array_of("__metadata__", WW_ELEMENT_F32, 0, NULL, &x), "which is for texts"},
                 {array_of("\xff", WW_ELEMENT_F32, 0, NULL, &x), "is not UTF-8"},
                 {array_of("b", WW_ELEMENT_UNKNOWN, 0, NULL, &x), "is not a type"},
                 {array_of("b", WW_ELEMENT_F32, 1, (const int64_t[]){-1}, &x), "the shape is negative"},
                 {array_of("b", WW_ELEMENT_F32, 0, NULL, NULL), "data is NULL"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t size;
        const ww_array both[2] = {good, wrong[i].array};
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_safetensors_write(path, both, 2, NULL));
        if (!strstr(ww_error_message(), wrong[i].reason))
            fail_msg("'%s' does not say '%s'", ww_error_message(), wrong[i].reason);
        char *content = scratch_content(path, &size);
        assert_string_equal(content, "old");
        free(content);
    }
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_safetensors_write(path, &good, 1, (const char *const[]){"key", NULL}));
    assert_int_equal(scratch_entries(), 1);
}

static ww_status write_read_close(const char *path)
{
    static const float x[4] = {1, 2, 3, 4};
    const ww_array arrays[2] = {array_of("a", WW_ELEMENT_F32, 1, (const int64_t[]){4}, x),
                                array_of("b", WW_ELEMENT_U8, 1, (const int64_t[]){3}, x)};
    ww_safetensors *file = NULL;
    float back[4];
    ww_status status = ww_safetensors_write(path, arrays, 2, (const char *const[]){"k", "v", NULL});
    if (status == WW_OK)
        status = ww_safetensors_open(path, &file);
    if (status == WW_OK)
        status = ww_safetensors_read(file, 0, 0, back, sizeof back);
    else
        assert_null(file);
    ww_safetensors_close(file);
    file = NULL;
    if (status == WW_OK) {
        char name[32];
        const int descriptor = scratch_pipe(path, name);
        status = ww_safetensors_open_stream(name, &file);
        close(descriptor);
    }
    ww_safetensors_close(file);
    return status;
}

static ww_status npy_open_read(const char *path)
{
    ww_npy *npy = NULL;
    unsigned char back[24];
    ww_status status = ww_npy_open(path, &npy);
    if (status == WW_OK)
        status = ww_npy_read(npy, 0, back, sizeof back);
    else
        assert_null(npy);
    ww_npy_close(npy);
    return status;
}

static int fail_each_allocation(ww_status (*call)(const char *path), const char *path)
{
    const int64_t held = blocks_held();
    const int open_files = scratch_open_files();
    for (int n = 1; n < 100; n++) {
        fail_allocation_at(n);
        const ww_status status = call(path);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        assert_int_equal(scratch_open_files(), open_files);
        if (status == WW_OK)
            return n - 1;
        CHECK_FAILS(WW_OUT_OF_MEMORY, status);
    }
    fail_msg("still failing after 100 faults");
    return 0;
}

static void every_failed_allocation_is_a_status(void **state)
{
    (void)state;
    static const unsigned char data[24];
    assert_true(fail_each_allocation(write_read_close, scratch_path("f.safetensors")) >= 8);
    const char *path = write_npy("f.npy", "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", data, sizeof data);
    assert_true(fail_each_allocation(npy_open_read, path) >= 4);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_npy_of_any_rank_and_type_is_read), IN_SCRATCH(a_scalar_and_an_empty_array_are_arrays),
        IN_SCRATCH(fortran_order_is_read_as_c_order),   IN_SCRATCH(invalid_arrays_are_refused_with_their_offset),
        IN_SCRATCH(written_files_can_be_read),          IN_SCRATCH(a_large_tensor_is_read_by_several_threads),
        IN_SCRATCH(a_failed_write_leaves_the_old_file), IN_SCRATCH(every_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
