/* Tensors from .npy and .safetensors: every type, in pieces, by name and all at once; what tensors do not have is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/devices.h"
#include "support/memory.h"
#include "support/scratch.h"
#include "support/tensors.h"

static void says(const char *text)
{
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

static const ww_element elements[TEST_TYPES] = {
    [WW_U8] = WW_ELEMENT_U8,   [WW_U32] = WW_ELEMENT_U32,       [WW_I16] = WW_ELEMENT_I16, [WW_I32] = WW_ELEMENT_I32,
    [WW_I64] = WW_ELEMENT_I64, [WW_BF16] = WW_ELEMENT_BF16,     [WW_F16] = WW_ELEMENT_F16, [WW_F32] = WW_ELEMENT_F32,
    [WW_F64] = WW_ELEMENT_F64, [WW_F8E4M3] = WW_ELEMENT_F8E4M3, [WW_I8] = WW_ELEMENT_I8,
};

/* A file with a tensor of each type, called after it, whose bytes are random; and bool, u64 and a rank that is too high. */
enum { OTHERS = 3, ARRAYS = TEST_TYPES + OTHERS, BYTES = 3 * 5 * 8 };
static uint8_t data[ARRAYS][BYTES];

static void write_types(const char *path, int32_t count)
{
    ww_array arrays[ARRAYS];
    test_random random = {41};
    for (int32_t i = 0; i < count; i++) {
        arrays[i] = ww_array_default();
        arrays[i].data = data[i];
        arrays[i].rank = 2;
        arrays[i].shape[0] = 3;
        arrays[i].shape[1] = 5;
        for (int b = 0; b < BYTES; b++)
            data[i][b] = (uint8_t)random_bits(&random);
        if (i < TEST_TYPES) {
            arrays[i].name = ww_dtype_name((ww_dtype)i);
            arrays[i].element = elements[i];
        }
    }
    if (count == ARRAYS) {
        arrays[TEST_TYPES].name = "bool";
        arrays[TEST_TYPES].element = WW_ELEMENT_BOOL;
        arrays[TEST_TYPES + 1].name = "u64";
        arrays[TEST_TYPES + 1].element = WW_ELEMENT_U64;
        arrays[TEST_TYPES + 2].name = "deep";
        arrays[TEST_TYPES + 2].element = WW_ELEMENT_U8;
        arrays[TEST_TYPES + 2].rank = 9;
        for (int d = 0; d < 9; d++)
            arrays[TEST_TYPES + 2].shape[d] = 1;
    }
    CHECK_OK(ww_safetensors_write(path, arrays, count, NULL));
}

static void check_loaded(const ww_tensor *x, int type)
{
    check_dense(x, 2, (int64_t[]){3, 5});
    assert_int_equal(ww_tensor_dtype(x), type);
    uint8_t *bytes = storage_bytes(x->storage);
    assert_memory_equal(bytes, data[type], 15 * ww_dtype_bytes((ww_dtype)type));
    free(bytes);
}

static void safetensors_become_tensors(void **state)
{
    const char *path = scratch_path("types.safetensors");
    write_types(path, ARRAYS);
    ww_safetensors *file = NULL;
    CHECK_OK(ww_safetensors_open(path, &file));
    for (int type = 0; type < TEST_TYPES; type++) {
        ww_tensor x = {0};
        int64_t index = 0;
        CHECK_OK(ww_tensor_load_safetensors(*state, path, ww_dtype_name((ww_dtype)type), &x));
        check_loaded(&x, type);
        CHECK_OK(ww_safetensors_find(file, ww_dtype_name((ww_dtype)type), &index));
        CHECK_OK(ww_safetensors_load(file, index, *state, &x)); /* into an existing tensor */
        check_loaded(&x, type);
        ww_tensor_release(&x);
    }
    ww_tensor x = {0};
    CHECK_OK(ww_tensor_load_safetensors(*state, path, "bool", &x));
    assert_int_equal(ww_tensor_dtype(&x), WW_U8);
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_load_safetensors(*state, path, "deep", &x));
    says("rank 9");
    ww_tensor_release(&x);
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_load_safetensors(*state, path, "u64", &x));
    says("'u64' is of type U64");
    CHECK_FAILS(WW_NOT_FOUND, ww_tensor_load_safetensors(*state, path, "none", &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_load_safetensors(*state, path, NULL, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_load_safetensors(NULL, path, "f32", &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_load_safetensors(*state, path, "f32", NULL));
    assert_true(ww_safetensors_load(file, 99, *state, &x) != WW_OK);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_safetensors_load(NULL, 0, *state, &x));
    assert_null(x.storage);
    ww_safetensors_close(file);
    unlink(path);
}

static void all_of_a_file_or_nothing(void **state)
{
    const char *path = scratch_path("all.safetensors");
    ww_safetensors *file = NULL;
    ww_tensor all[ARRAYS];
    write_types(path, TEST_TYPES);
    CHECK_OK(ww_safetensors_open(path, &file));
    assert_int_equal(ww_safetensors_count(file), TEST_TYPES);
    CHECK_OK(ww_safetensors_load_all(file, *state, all));
    for (int i = 0; i < TEST_TYPES; i++) {
        ww_array_info info = ww_array_info_default();
        CHECK_OK(ww_safetensors_at(file, i, &info));
        check_loaded(&all[i], ww_dtype_of_name(info.name));
        ww_tensor_release(&all[i]);
    }
    ww_safetensors_close(file);
    write_types(path, ARRAYS);
    CHECK_OK(ww_safetensors_open(path, &file));
    CHECK_FAILS(WW_UNSUPPORTED, ww_safetensors_load_all(file, *state, all));
    for (int i = 0; i < ARRAYS; i++)
        assert_null(all[i].storage);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_safetensors_load_all(file, *state, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_safetensors_load_all(NULL, *state, all));
    ww_safetensors_close(file);
    unlink(path);
}

/* ---- .npy ---------------------------------------------------------------------------------------------------------------- */

static void write_npy(const char *path, const char *descr, const char *order, const char *shape, const void *bytes, size_t size)
{
    char header[128];
    const int used =
        snprintf(header + 10, sizeof header - 10, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(header + 10 + used, ' ', sizeof header - 10 - (size_t)used);
    header[127] = '\n';
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(header, 1, sizeof header, file), sizeof header);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void npy_becomes_a_tensor(void **state)
{
    const char *path = scratch_path("array.npy");
    const int32_t numbers[6] = {1, 2, 3, 4, 5, 6}, in_order[6] = {1, 3, 5, 2, 4, 6};
    int32_t got[6];
    ww_tensor x = {0};
    write_npy(path, "<i4", "False", "(3, 1, 2)", numbers, sizeof numbers);
    CHECK_OK(ww_tensor_load_npy(*state, path, &x));
    check_dense(&x, 3, (int64_t[]){3, 1, 2});
    assert_int_equal(ww_tensor_dtype(&x), WW_I32);
    CHECK_OK(ww_tensor_to_host(&x, got));
    assert_memory_equal(got, numbers, sizeof numbers);
    ww_tensor_release(&x);
    write_npy(path, "<i4", "True", "(2, 3)", numbers, sizeof numbers);
    CHECK_OK(ww_tensor_load_npy(*state, path, &x));
    CHECK_OK(ww_tensor_to_host(&x, got));
    assert_memory_equal(got, in_order, sizeof in_order);
    ww_tensor_release(&x);
    write_npy(path, "<f4", "False", "()", numbers, 4);
    CHECK_OK(ww_tensor_load_npy(*state, path, &x));
    assert_int_equal(x.layout.rank, 0);
    ww_tensor_release(&x);
    write_npy(path, "<u8", "False", "(3,)", numbers, 24);
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_load_npy(*state, path, &x));
    says("<u8");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_load_npy(*state, NULL, &x));
    assert_true(ww_tensor_load_npy(*state, "/nowhere.npy", &x) != WW_OK);
    assert_null(x.storage);
    unlink(path);
}

/* More than is read at once. */
static void large_arrays_are_read_in_pieces(void **state)
{
    if (device_is_slow(*state))
        return;
    const int64_t count = (33 << 20) + 3;
    const char *path = scratch_path("large.safetensors");
    uint8_t *bytes = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 20));
    ww_array array = ww_array_default();
    array.name = "large";
    array.element = WW_ELEMENT_U8;
    array.rank = 1;
    array.shape[0] = count;
    array.data = bytes;
    CHECK_OK(ww_safetensors_write(path, &array, 1, NULL));
    ww_tensor x = {0};
    CHECK_OK(ww_tensor_load_safetensors(*state, path, "large", &x));
    uint8_t *got = storage_bytes(x.storage);
    assert_true(memcmp(got, bytes, (size_t)count) == 0);
    free(got);
    free(bytes);
    ww_tensor_release(&x);
    unlink(path);
}

static void loading_survives_a_failure_of_every_allocation(void **state)
{
    const char *path = scratch_path("faults.safetensors");
    write_types(path, TEST_TYPES);
    ww_tensor x = {0};
    CHECK_OK(ww_tensor_load_safetensors(*state, path, "f32", &x)); /* the first use makes the stream, which stays */
    ww_tensor_release(&x);
    int64_t n = 1;
    for (ww_status status = WW_OUT_OF_MEMORY; status != WW_OK; n++) {
        const int64_t blocks = blocks_held();
        fail_allocation_at(n);
        status = ww_tensor_load_safetensors(*state, path, "f32", &x);
        fail_allocation_at(0);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_null(x.storage);
        assert_int_equal(blocks_held(), blocks);
        assert_true(n < 200);
    }
    assert_true(n > 3);
    check_loaded(&x, WW_F32);
    ww_tensor_release(&x);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_become_tensors),
        cmocka_unit_test(all_of_a_file_or_nothing),
        cmocka_unit_test(npy_becomes_a_tensor),
        cmocka_unit_test(large_arrays_are_read_in_pieces),
        cmocka_unit_test(loading_survives_a_failure_of_every_allocation),
    };
    assert_int_equal(scratch_setup(NULL), 0);
    const int failed = RUN_ON_EVERY_DEVICE("tensors from files", tests);
    return failed + scratch_teardown(NULL);
}
