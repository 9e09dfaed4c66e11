/* Storages and tensors on them, and copies between layouts and devices. */
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/tensors.h"

static void check_elements(const char *what, const ww_tensor *out, const test_tensor *x)
{
    const ww_dtype dtype = ww_storage_dtype(x->tensor.storage);
    const int64_t count = ww_layout_elements(&x->tensor.layout);
    assert_int_equal(ww_tensor_dtype(out), dtype);
    check_dense(out, x->tensor.layout.rank, x->tensor.layout.shape);
    uint8_t *bytes = storage_bytes(out->storage);
    for (int64_t i = 0; i < count; i++)
        if (bits_of(bytes, dtype, i) != test_tensor_bits(x, i))
            fail_msg("%s, %s, element %lld", what, ww_dtype_name(dtype), (long long)i);
    free(bytes);
}

/* ---- storages ------------------------------------------------------------------------------------------------------------ */

static void storages_keep_the_bytes_that_were_written(void **state)
{
    test_random random = {1};
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int type = 0; type < TEST_TYPES; type++) {
        static const int64_t sizes[] = {0, 1, 3, 1000};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            test_tensor x = test_tensor_make(*state, &random, (ww_dtype)type, 1, &sizes[s], TEST_DENSE);
            ww_tensor clone = {0}, away = {0}, back = {0};
            assert_ptr_equal(ww_storage_device(x.tensor.storage), *state);
            check_elements("from host", &x.tensor, &x);
            CHECK_OK(ww_tensor_contiguous(&x.tensor, &clone));
            CHECK_OK(ww_tensor_copy_to(&clone, cpu, &away));
            ww_tensor_release(&clone);
            check_elements("on the cpu", &away, &x);
            CHECK_OK(ww_tensor_copy_to(&away, *state, &back));
            ww_tensor_release(&away);
            CHECK_OK(ww_device_synchronize(*state));
            check_elements("back", &back, &x);
            ww_tensor_release(&back);
            test_tensor_free(&x);
        }
    }
    ww_device_close(cpu);
}

static void zeros_are_zero(void **state)
{
    for (int64_t count = 0; count < 300; count += 37) {
        ww_tensor zeros = {0};
        CHECK_OK(ww_tensor_zeros(*state, WW_U8, 1, (int64_t[]){count}, &zeros));
        uint8_t *bytes = storage_bytes(zeros.storage);
        for (int64_t i = 0; i < count; i++)
            assert_int_equal(bytes[i], 0);
        free(bytes);
        ww_tensor_release(&zeros);
    }
}

/* The stream's order is all that keeps memory apart which is handed out again at once. */
static void a_storage_may_be_released_while_it_is_in_use(void **state)
{
    const int64_t count = 5000;
    float *numbers = malloc((size_t)count * sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)i;
    test_tensor x = test_tensor_of(*state, WW_F32, 1, &count, numbers);
    for (int turn = 0; turn < 40; turn++) {
        ww_tensor next = {0};
        CHECK_OK(ww_tensor_affine(&x.tensor, 1.0, 1.0, &next));
        ww_tensor_release(&x.tensor);
        x.tensor = next;
    }
    uint8_t *bytes = storage_bytes(x.tensor.storage);
    for (int64_t i = 0; i < count; i++) {
        const float want = (float)(i + 40);
        assert_memory_equal(bytes + i * 4, &want, 4);
    }
    free(bytes);
    free(numbers);
    test_tensor_free(&x);
    ww_memory_info memory = ww_memory_info_default();
    CHECK_OK(ww_device_trim(*state));
    CHECK_OK(ww_device_memory(*state, &memory));
    assert_int_equal(memory.pooled_bytes, 0);
}

/* ---- copies -------------------------------------------------------------------------------------------------------------- */

static void any_layout_becomes_dense(void **state)
{
    test_random random = {2};
    for (int turn = 0; turn < 150; turn++) {
        int64_t shape[WW_RANK_MAX];
        const int32_t rank = (int32_t)random_below(&random, WW_RANK_MAX + 1);
        ww_tensor out = {0};
        random_shape(&random, rank, 500, shape);
        test_tensor x = test_tensor_make(*state, &random, (ww_dtype)(turn % TEST_TYPES), rank, shape, (test_layout)(turn % 3));
        CHECK_OK(ww_tensor_contiguous(&x.tensor, &out));
        check_elements("contiguous", &out, &x);
        ww_tensor_release(&out);
        test_tensor_free(&x);
    }
}

/* Dimensions are swapped except for the last, which has 16 bytes or a small multiple of that, and is moved as a whole. */
static void wide_rows_are_moved_whole(void **state)
{
    test_random random = {9};
    for (int turn = 0; turn < 3 * TEST_TYPES; turn++) {
        const ww_dtype dtype = (ww_dtype)(turn % TEST_TYPES);
        const int64_t row = 16 / (int64_t)ww_dtype_bytes(dtype) * (1 + turn % 3), offset = turn % 2 ? row : 0;
        const int64_t elements = 5 * 7 * row + offset;
        ww_tensor out = {0};
        test_tensor x = test_tensor_make(*state, &random, dtype, 1, &elements, TEST_DENSE);
        x.tensor.layout = (ww_layout){.rank = 3, .shape = {7, 5, row}, .strides = {row, 7 * row, 1}, .offset = offset};
        CHECK_OK(ww_tensor_contiguous(&x.tensor, &out));
        check_elements("wide rows", &out, &x);
        ww_tensor_release(&out);
        test_tensor_free(&x);
    }
}

/* The last `count` elements of a u8 storage are `want`. */
static void check_tail(const ww_tensor *x, int64_t count, uint8_t even, uint8_t odd)
{
    ww_tensor out = {0};
    const ww_tensor tail = {
        .storage = x->storage,
        .layout = {.rank = 1, .shape = {count}, .strides = {1}, .offset = ww_storage_elements(x->storage) - count}};
    CHECK_OK(ww_tensor_contiguous(&tail, &out));
    uint8_t *bytes = storage_bytes(out.storage);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(bytes[i], i % 2 ? odd : even);
    free(bytes);
    ww_tensor_release(&out);
}

/* On real GPUs only: elsewhere it takes too long. */
static void more_than_two_to_the_31_elements_work(void **state)
{
    enum { TAIL = 5000 };
    const int64_t count = (INT64_C(1) << 31) + 2 * TAIL;
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(*state, &info));
    if (device_is_slow(*state) || strcmp(info.backend, "cpu") == 0 || info.memory_free_bytes < 4 * count) {
        printf("SKIP: 2^31 elements are for GPUs with 9 GB\n");
        skip();
    }
    const uint8_t seven = 7;
    ww_tensor zeros = {0}, out = {0};
    CHECK_OK(ww_tensor_zeros(*state, WW_U8, 1, (int64_t[]){count}, &zeros));
    ww_tensor x = {.storage = zeros.storage, .layout = {.rank = 1, .shape = {TAIL}, .strides = {1}, .offset = count - TAIL}};
    CHECK_OK(ww_tensor_const_set(&x, &seven));
    x.layout = ww_layout_contiguous(1, &count);
    CHECK_OK(ww_tensor_affine(&x, 2.0, 1.0, &out));
    check_tail(&out, TAIL, 15, 15);
    ww_tensor_release(&out);
    x.layout =
        (ww_layout){.rank = 2, .shape = {count / 2, 2}, .strides = {1, count / 2}}; /* halves, one element of each in turn */
    CHECK_OK(ww_tensor_binary(WW_ADD, &x, &x, &out));
    check_tail(&out, TAIL, 0, 14);
    ww_tensor_release(&out);
    ww_tensor_release(&zeros);
    CHECK_OK(ww_device_trim(*state));
}

/* Copies x into y and compares all of y's storage with what that should leave. */
static void check_copy(const test_tensor *from, const test_tensor *to)
{
    const ww_dtype dtype = ww_storage_dtype(to->tensor.storage);
    const size_t bytes = ww_dtype_bytes(dtype);
    const int64_t elements = ww_storage_elements(to->tensor.storage);
    uint8_t *want = malloc((size_t)elements * bytes + 1);
    memcpy(want, to->host, (size_t)elements * bytes);
    for (int64_t i = 0; i < ww_layout_elements(&from->tensor.layout); i++) {
        const uint64_t bits = test_tensor_bits(from, i);
        memcpy(want + (size_t)test_tensor_place(&to->tensor.layout, i) * bytes, &bits, bytes);
    }
    CHECK_OK(ww_tensor_copy_strided(&from->tensor, &to->tensor));
    uint8_t *got = storage_bytes(to->tensor.storage);
    assert_memory_equal(got, want, (size_t)elements * bytes);
    free(got);
    free(want);
}

static void copies_write_their_places_and_no_others(void **state)
{
    test_random random = {3};
    for (int turn = 0; turn < 120; turn++) {
        int64_t shape[5];
        const int32_t rank = (int32_t)random_below(&random, 6);
        const ww_dtype dtype = (ww_dtype)(turn % TEST_TYPES);
        random_shape(&random, rank, 400, shape);
        test_tensor x = test_tensor_make(*state, &random, dtype, rank, shape, (test_layout)(turn % 3));
        test_tensor y = test_tensor_make(*state, &random, dtype, rank, shape, TEST_VIEW);
        check_copy(&x, &y);
        test_tensor_free(&x);
        test_tensor_free(&y);
    }
}

/* A matrix onto its own transpose, and a run onto itself one further. */
static void a_copy_may_overlap_its_source(void **state)
{
    test_random random = {4};
    const int64_t all = 30 * 30 + 1, square[] = {30, 30};
    test_tensor buffer = test_tensor_make(*state, &random, WW_I32, 1, &all, TEST_DENSE);
    test_tensor from = buffer, to = buffer;
    from.tensor.layout = ww_layout_contiguous(2, square);
    to.tensor.layout = from.tensor.layout;
    to.tensor.layout.strides[0] = 1;
    to.tensor.layout.strides[1] = 30;
    check_copy(&from, &to);
    free(buffer.host);
    buffer.host = storage_bytes(buffer.tensor.storage);
    from = to = buffer;
    from.tensor.layout.shape[0] = to.tensor.layout.shape[0] = 900;
    to.tensor.layout.offset = 1;
    check_copy(&from, &to);
    test_tensor_free(&buffer);
}

static void copy2d_copies_runs(void **state)
{
    const int64_t count = 40;
    uint32_t numbers[40], got[40];
    for (uint32_t i = 0; i < 40; i++)
        numbers[i] = i;
    test_tensor x = test_tensor_of(*state, WW_U32, 1, &count, numbers);
    ww_tensor to = {0};
    CHECK_OK(ww_tensor_zeros(*state, WW_U32, 1, (int64_t[]){count}, &to));
    CHECK_OK(ww_tensor_copy2d(x.tensor.storage, to.storage, 3, 4, 10, 8, 2, 1));
    CHECK_OK(ww_tensor_to_host(&to, got));
    for (uint32_t i = 0; i < 40; i++) {
        const uint32_t row = (i - 1) / 8, column = (i - 1) % 8;
        assert_int_equal(got[i], i > 0 && row < 3 && column < 4 ? 2 + row * 10 + column : 0);
    }
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_copy2d(x.tensor.storage, to.storage, 4, 4, 10, 8, 7, 1));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_copy2d(x.tensor.storage, to.storage, 4, 4, 10, 12, 2, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy2d(x.tensor.storage, to.storage, 4, 4, 10, 3, 2, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy2d(x.tensor.storage, NULL, 4, 4, 10, 3, 2, 1));
    ww_tensor_release(&to);
    test_tensor_free(&x);
}

static void const_set_sets_a_view(void **state)
{
    test_random random = {5};
    for (int turn = 0; turn < 66; turn++) {
        int64_t shape[3];
        const ww_dtype dtype = (ww_dtype)(turn % TEST_TYPES);
        const size_t bytes = ww_dtype_bytes(dtype);
        const uint64_t value = random_element(&random, dtype);
        random_shape(&random, 3, 300, shape);
        test_tensor x = test_tensor_make(*state, &random, dtype, 3, shape, (test_layout)(turn % 3));
        for (int64_t i = 0; i < ww_layout_elements(&x.tensor.layout); i++)
            memcpy(x.host + (size_t)test_tensor_place(&x.tensor.layout, i) * bytes, &value, bytes);
        CHECK_OK(ww_tensor_const_set(&x.tensor, &value));
        uint8_t *got = storage_bytes(x.tensor.storage);
        assert_memory_equal(got, x.host, (size_t)ww_storage_elements(x.tensor.storage) * bytes);
        free(got);
        test_tensor_free(&x);
    }
}

static void cat_joins_along_any_dimension(void **state)
{
    test_random random = {6};
    for (int turn = 0; turn < 40; turn++) {
        enum { PIECES = 3 };
        int64_t shape[4];
        const int32_t rank = 1 + (int32_t)random_below(&random, 4);
        const int32_t dim = (int32_t)random_below(&random, (uint64_t)rank);
        const ww_dtype dtype = (ww_dtype)(turn % TEST_TYPES);
        test_tensor xs[PIECES];
        ww_tensor list[PIECES];
        ww_tensor out = {0};
        int64_t length = 0;
        random_shape(&random, rank, 60, shape);
        for (int p = 0; p < PIECES; p++) {
            shape[dim] = (int64_t)random_below(&random, 5);
            length += shape[dim];
            xs[p] = test_tensor_make(*state, &random, dtype, rank, shape, (test_layout)random_below(&random, 3));
            list[p] = xs[p].tensor;
        }
        CHECK_OK(ww_tensor_cat(list, PIECES, turn % 2 ? dim : dim - rank, &out));
        shape[dim] = length;
        ww_layout whole = ww_layout_contiguous(rank, shape);
        uint8_t *got = storage_bytes(out.storage);
        assert_int_equal(ww_layout_elements(&out.layout), ww_layout_elements(&whole));
        int64_t along = 0;
        for (int p = 0; p < PIECES; p++) {
            ww_layout part = whole;
            part.shape[dim] = list[p].layout.shape[dim];
            part.offset = along * whole.strides[dim];
            along += part.shape[dim];
            for (int64_t i = 0; i < ww_layout_elements(&part); i++)
                assert_int_equal(bits_of(got, dtype, test_tensor_place(&part, i)), test_tensor_bits(&xs[p], i));
            test_tensor_free(&xs[p]);
        }
        free(got);
        ww_tensor_release(&out);
    }
}

static void names_and_numbers_convert_both_ways(void **state)
{
    (void)state;
    for (int type = 0; type < TEST_TYPES; type++)
        assert_int_equal(ww_dtype_of_name(ww_dtype_name((ww_dtype)type)), type);
    assert_int_equal(ww_unary_of_name("gelu_erf"), WW_GELU_ERF);
    assert_int_equal(ww_binary_of_name("maximum"), WW_MAXIMUM);
    assert_int_equal(ww_cmp_of_name("ge"), WW_GE);
    assert_int_equal(ww_dtype_of_name("q4_0"), -1);
    assert_int_equal(ww_unary_of_name(NULL), -1);
    assert_string_equal(ww_unary_name((ww_unary)99), "unknown");
    assert_int_equal(ww_dtype_bytes((ww_dtype)99), 0);
}

/* Larger than a tile, and not a multiple of one: two dimensions are exchanged, with and without others before, between and
   after them. */
static void turned_tensors_become_dense(void **state)
{
    static const int64_t shapes[][4] = {{1, 70, 1, 131}, {3, 65, 2, 9}, {2, 8, 3, 200}, {1, 7, 1, 90}};
    test_random random = {77};
    for (int type = 0; type < TEST_TYPES; type++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            test_tensor x = test_tensor_make(*state, &random, (ww_dtype)type, 4, shapes[s], TEST_DENSE);
            const int64_t size = x.tensor.layout.shape[1], stride = x.tensor.layout.strides[1];
            ww_tensor out = {0};
            x.tensor.layout.shape[1] = x.tensor.layout.shape[3];
            x.tensor.layout.strides[1] = x.tensor.layout.strides[3];
            x.tensor.layout.shape[3] = size;
            x.tensor.layout.strides[3] = stride;
            CHECK_OK(ww_tensor_contiguous(&x.tensor, &out));
            check_elements("turned", &out, &x);
            ww_tensor_release(&out);
            test_tensor_free(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storages_keep_the_bytes_that_were_written),
        cmocka_unit_test(zeros_are_zero),
        cmocka_unit_test(a_storage_may_be_released_while_it_is_in_use),
        cmocka_unit_test(any_layout_becomes_dense),
        cmocka_unit_test(turned_tensors_become_dense),
        cmocka_unit_test(wide_rows_are_moved_whole),
        cmocka_unit_test(more_than_two_to_the_31_elements_work),
        cmocka_unit_test(copies_write_their_places_and_no_others),
        cmocka_unit_test(a_copy_may_overlap_its_source),
        cmocka_unit_test(copy2d_copies_runs),
        cmocka_unit_test(const_set_sets_a_view),
        cmocka_unit_test(cat_joins_along_any_dimension),
        cmocka_unit_test(names_and_numbers_convert_both_ways),
    };
    return RUN_ON_EVERY_DEVICE("tensors", tests);
}
