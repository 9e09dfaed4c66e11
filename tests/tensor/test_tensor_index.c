/* Reading and writing by ids, against loops that do what the header says: every type, any layout, ids of all three types. */
#include <stdlib.h>
#include <string.h>

#include "support/devices.h"
#include "support/pretend/pretend.h"
#include "support/tensors.h"

static const ww_dtype id_types[] = {WW_U8, WW_U32, WW_I64};

static uint64_t skip_of(ww_dtype dtype)
{
    return dtype == WW_U8 ? UINT8_MAX : dtype == WW_U32 ? UINT32_MAX : INT64_MAX;
}

/* Ids below `extent` in a tensor of random layout, with a skip now and then. */
static test_tensor random_ids(ww_device *device, test_random *random, ww_dtype dtype, int32_t rank, const int64_t *shape,
                              int64_t extent)
{
    test_tensor ids = test_tensor_make(device, random, dtype, rank, shape, (test_layout)random_below(random, 3));
    const size_t bytes = ww_dtype_bytes(dtype);
    const int64_t elements = ww_storage_elements(ids.tensor.storage);
    for (int64_t i = 0; i < elements; i++) {
        const bool skip = extent == 0 || random_below(random, 8) == 0;
        const uint64_t id = skip ? skip_of(dtype) : random_below(random, (uint64_t)extent);
        memcpy(ids.host + (size_t)i * bytes, &id, bytes);
    }
    ww_storage_release(ids.tensor.storage);
    CHECK_OK(ww_storage_from_host(device, dtype, elements, ids.host, &ids.tensor.storage));
    return ids;
}

/* Coordinates of element i of a shape. */
static void coordinates(int32_t rank, const int64_t *shape, int64_t i, int64_t *at)
{
    for (int32_t d = rank - 1; d >= 0; d--) {
        at[d] = i % shape[d];
        i /= shape[d];
    }
}

static int64_t place(const ww_layout *layout, const int64_t *at)
{
    int64_t where = layout->offset;
    for (int32_t d = 0; d < layout->rank; d++)
        where += at[d] * layout->strides[d];
    return where;
}

/* ---- reading
 * ----------------------------------------------------------------------------------------------------------------- */

/* `list`: index_select, whose ids are a list along dim. */
static void check_read(ww_device *device, test_random *random, ww_dtype dtype, bool list)
{
    int64_t shape[4], ids_shape[4], result[4];
    const int32_t rank = 1 + (int32_t)random_below(random, 4);
    const int32_t dim = (int32_t)random_below(random, (uint64_t)rank);
    const ww_dtype id_type = id_types[random_below(random, 3)];
    ww_tensor out = {0};
    random_shape(random, rank, 300, shape);
    for (int32_t d = 0; d < rank; d++)
        result[d] = list ? shape[d] : 1 + (int64_t)random_below(random, (uint64_t)shape[d]);
    result[dim] = (int64_t)random_below(random, 9);
    memcpy(ids_shape, result, sizeof result);
    if (list)
        ids_shape[0] = result[dim];
    test_tensor x = test_tensor_make(device, random, dtype, rank, shape, (test_layout)random_below(random, 3));
    test_tensor ids = random_ids(device, random, id_type, list ? 1 : rank, ids_shape, shape[dim]);
    if (list)
        CHECK_OK(ww_tensor_index_select(&x.tensor, &ids.tensor, dim, &out));
    else
        CHECK_OK(ww_tensor_gather(&x.tensor, &ids.tensor, dim - rank, &out));
    const ww_layout dense = ww_layout_contiguous(rank, result);
    const int64_t count = ww_layout_elements(&dense);
    assert_int_equal(ww_layout_elements(&out.layout), count);
    uint8_t *got = storage_bytes(out.storage);
    for (int64_t i = 0; i < count; i++) {
        int64_t at[4];
        coordinates(rank, result, i, at);
        const uint64_t id = test_tensor_bits(&ids, list ? at[dim] : i);
        at[dim] = (int64_t)id;
        const uint64_t want = id == skip_of(id_type) ? 0 : bits_of(x.host, dtype, place(&x.tensor.layout, at));
        assert_int_equal(bits_of(got, dtype, i), want);
    }
    free(got);
    ww_tensor_release(&out);
    test_tensor_free(&x);
    test_tensor_free(&ids);
}

static void gather_reads_the_elements_that_the_ids_name(void **state)
{
    test_random random = {21};
    for (int turn = 0; turn < 120; turn++)
        check_read(*state, &random, (ww_dtype)(turn % TEST_TYPES), false);
}

static void index_select_takes_slices(void **state)
{
    test_random random = {22};
    for (int turn = 0; turn < 120; turn++)
        check_read(*state, &random, (ww_dtype)(turn % TEST_TYPES), true);
}

/* Rows of 16 bytes and more, which GPUs move as such. */
static void wide_rows_are_selected(void **state)
{
    test_random random = {27};
    for (int type = 0; type < TEST_TYPES; type++) {
        const int64_t shape[] = {9, 64}, count = 13;
        ww_tensor out = {0};
        test_tensor x = test_tensor_make(*state, &random, (ww_dtype)type, 2, shape, TEST_DENSE);
        test_tensor ids = random_ids(*state, &random, WW_U32, 1, &count, 9);
        CHECK_OK(ww_tensor_index_select(&x.tensor, &ids.tensor, 0, &out));
        uint8_t *got = storage_bytes(out.storage);
        for (int64_t i = 0; i < count * 64; i++) {
            const uint64_t id = test_tensor_bits(&ids, i / 64);
            const uint64_t want = id == UINT32_MAX ? 0 : bits_of(x.host, (ww_dtype)type, (int64_t)id * 64 + i % 64);
            assert_int_equal(bits_of(got, (ww_dtype)type, i), want);
        }
        free(got);
        ww_tensor_release(&out);
        test_tensor_free(&x);
        test_tensor_free(&ids);
    }
}

/* ---- writing
 * ----------------------------------------------------------------------------------------------------------------- */

static uint64_t added(ww_dtype dtype, uint64_t a, uint64_t b)
{
    const size_t bytes = ww_dtype_bytes(dtype);
    if (!is_float(dtype))
        return (a + b) & (bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1);
    const double x = (double)number_of(dtype, a), y = (double)number_of(dtype, b);
    return bits_nearest(dtype, dtype == WW_F64 ? x + y : (double)((float)x + (float)y));
}

typedef enum writing { SCATTER, SCATTER_ADD, INDEX_ADD_LIST } writing;

static ww_status write_it(writing how, const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim)
{
    return how == SCATTER       ? ww_tensor_scatter(x, ids, src, dim)
           : how == SCATTER_ADD ? ww_tensor_scatter_add(x, ids, src, dim)
                                : ww_tensor_index_add(x, ids, src, dim);
}

/* What all of x's storage should be: sources one after the other along dim, which for one place is their order. */
static void write_expected(writing how, const test_tensor *x, const test_tensor *ids, const test_tensor *src, int32_t dim,
                           uint8_t *want)
{
    const ww_layout *shape = &src->tensor.layout;
    const ww_dtype dtype = ww_storage_dtype(x->tensor.storage), id_type = ww_storage_dtype(ids->tensor.storage);
    const size_t bytes = ww_dtype_bytes(dtype);
    for (int64_t i = 0; i < ww_layout_elements(shape); i++) {
        int64_t at[4];
        coordinates(shape->rank, shape->shape, i, at);
        const uint64_t id = test_tensor_bits(ids, how == INDEX_ADD_LIST ? at[dim] : i);
        if (id == skip_of(id_type))
            continue;
        at[dim] = (int64_t)id;
        const int64_t where = place(&x->tensor.layout, at);
        uint64_t value = test_tensor_bits(src, i);
        if (how != SCATTER)
            value = added(dtype, bits_of(want, dtype, where), value);
        memcpy(want + (size_t)where * bytes, &value, bytes);
    }
}

static void check_write(ww_device *device, test_random *random, ww_dtype dtype, writing how, int64_t most, int32_t rank)
{
    int64_t shape[4], source[4], ids_shape[4];
    const int32_t dim = (int32_t)random_below(random, (uint64_t)rank);
    const ww_dtype id_type = id_types[random_below(random, 3)];
    random_shape(random, rank, most, shape);
    for (int32_t d = 0; d < rank; d++)
        source[d] = how == INDEX_ADD_LIST ? shape[d] : 1 + (int64_t)random_below(random, (uint64_t)shape[d]);
    source[dim] = (int64_t)random_below(random, 30);
    memcpy(ids_shape, source, sizeof source);
    if (how == INDEX_ADD_LIST)
        ids_shape[0] = source[dim];
    test_tensor x = test_tensor_make(device, random, dtype, rank, shape, TEST_VIEW);
    test_tensor src = test_tensor_make(device, random, dtype, rank, source, (test_layout)random_below(random, 3));
    test_tensor ids = random_ids(device, random, id_type, how == INDEX_ADD_LIST ? 1 : rank, ids_shape, shape[dim]);
    const size_t all = (size_t)ww_storage_elements(x.tensor.storage) * ww_dtype_bytes(dtype);
    uint8_t *want = malloc(all + 1);
    memcpy(want, x.host, all);
    const ww_status status = write_it(how, &x.tensor, &ids.tensor, &src.tensor, dim);
    if (dtype == WW_I8 && how != SCATTER) {
        assert_int_equal(status, WW_UNSUPPORTED);
    } else {
        CHECK_OK(status);
        write_expected(how, &x, &ids, &src, dim, want);
    }
    uint8_t *got = storage_bytes(x.tensor.storage);
    assert_memory_equal(got, want, all);
    free(got);
    free(want);
    test_tensor_free(&x);
    test_tensor_free(&src);
    test_tensor_free(&ids);
}

static void scatters_write_in_the_order_of_sources(void **state)
{
    test_random random = {23};
    for (int turn = 0; turn < 200; turn++)
        check_write(*state, &random, (ww_dtype)(turn % TEST_TYPES), (writing)(turn % 3), 200, 1 + turn % 4);
}

/* One line with many ids: shared by threads, still in order. */
static void one_long_line_is_added_in_order(void **state)
{
    enum { COUNT = 20000, PLACES = 50 };
    test_random random = {24};
    const int64_t count = COUNT, places = PLACES;
    float *numbers = malloc(COUNT * sizeof *numbers), want[PLACES] = {0}, zeros[PLACES] = {0};
    uint32_t *where = malloc(COUNT * sizeof *where);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = random_normal(&random);
        where[i] = (uint32_t)random_below(&random, PLACES);
        want[where[i]] += numbers[i];
    }
    test_tensor x = test_tensor_of(*state, WW_F32, 1, &places, zeros);
    test_tensor ids = test_tensor_of(*state, WW_U32, 1, &count, where);
    test_tensor src = test_tensor_of(*state, WW_F32, 1, &count, numbers);
    CHECK_OK(ww_tensor_scatter_add(&x.tensor, &ids.tensor, &src.tensor, 0));
    uint8_t *got = storage_bytes(x.tensor.storage);
    assert_memory_equal(got, want, sizeof want);
    free(got);
    free(numbers);
    free(where);
    test_tensor_free(&x);
    test_tensor_free(&ids);
    test_tensor_free(&src);
}

/* A tensor scattered into itself reads what was there before. */
static void sources_may_overlap_the_destination(void **state)
{
    const int64_t four = 4;
    const int64_t numbers[] = {3, 2, 1, 0};
    int64_t got[4];
    test_tensor x = test_tensor_of(*state, WW_I64, 1, &four, numbers);
    CHECK_OK(ww_tensor_scatter(&x.tensor, &x.tensor, &x.tensor, 0));
    CHECK_OK(ww_storage_to_host(x.tensor.storage, got));
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(got[i], i);
    test_tensor_free(&x);
}

/* ---- refusals
 * ---------------------------------------------------------------------------------------------------------------- */

static void says(const char *text)
{
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

static void an_id_out_of_range_is_refused_and_nothing_is_written(void **state)
{
    static const int64_t bad_ids[] = {4, -1, INT64_MIN, INT64_MAX - 1, 255};
    test_random random = {25};
    const int64_t shape[] = {4, 5}, five = 5;
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 2, shape, TEST_DENSE);
    test_tensor src = test_tensor_make(*state, &random, WW_F32, 2, (int64_t[]){5, 5}, TEST_DENSE);
    for (size_t b = 0; b < sizeof bad_ids / sizeof *bad_ids; b++) {
        int64_t numbers[] = {0, 3, INT64_MAX, bad_ids[b], 99};
        ww_tensor out = {0};
        test_tensor ids = test_tensor_of(*state, WW_I64, 1, &five, numbers);
        ww_tensor wide = ids.tensor;
        wide.layout = (ww_layout){.rank = 2, .shape = {5, 5}, .strides = {1, 0}};
        char value[32];
        snprintf(value, sizeof value, "is %lld", (long long)bad_ids[b]);
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_index_select(&x.tensor, &ids.tensor, 0, &out));
        says("element 3");
        says(value);
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_gather(&x.tensor, &wide, 0, &out));
        assert_null(out.storage);
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_scatter(&x.tensor, &wide, &src.tensor, 0));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_scatter_add(&x.tensor, &wide, &src.tensor, 0));
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_index_add(&x.tensor, &ids.tensor, &src.tensor, 0));
        says("4 elements");
        uint8_t *now = storage_bytes(x.tensor.storage);
        assert_memory_equal(now, x.host, 20 * sizeof(float));
        free(now);
        test_tensor_free(&ids);
    }
    test_tensor_free(&x);
    test_tensor_free(&src);
}

static void operands_that_do_not_fit_are_refused(void **state)
{
    test_random random = {26};
    const int64_t a[] = {4, 5}, b[] = {4, 6}, four = 4;
    ww_tensor out = {0};
    test_tensor x = test_tensor_make(*state, &random, WW_F32, 2, a, TEST_DENSE);
    test_tensor ids = random_ids(*state, &random, WW_U32, 2, b, 4);
    test_tensor list = random_ids(*state, &random, WW_U32, 1, &four, 4);
    test_tensor src = test_tensor_make(*state, &random, WW_F32, 2, b, TEST_DENSE);
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_gather(&x.tensor, &ids.tensor, 0, &out));
    says("[4, 6]");
    says("[4, 5]");
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_gather(&x.tensor, &list.tensor, 0, &out));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_gather(&x.tensor, &ids.tensor, 2, &out));
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_gather(&x.tensor, &src.tensor, 1, &out));
    says("f32");
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_index_select(&x.tensor, &ids.tensor, 0, &out));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_scatter(&x.tensor, &ids.tensor, &src.tensor, 0));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_scatter(&x.tensor, &list.tensor, &src.tensor, 0));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_tensor_index_add(&x.tensor, &list.tensor, &src.tensor, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_index_add(&x.tensor, &list.tensor, &ids.tensor, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_index_add(&x.tensor, NULL, &ids.tensor, 0));
    ww_tensor repeated = x.tensor;
    repeated.layout.strides[0] = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_index_add(&repeated, &list.tensor, &x.tensor, 0));
    assert_null(out.storage);
    test_tensor_free(&x);
    test_tensor_free(&ids);
    test_tensor_free(&list);
    test_tensor_free(&src);
}

/* As for more than 2^31 elements, which are too many for a test. */
static void places_may_take_64_bits(void **state)
{
    ww_device *device = *state;
    pretend_large_tensors(device, true);
    gather_reads_the_elements_that_the_ids_name(state);
    index_select_takes_slices(state);
    scatters_write_in_the_order_of_sources(state);
    an_id_out_of_range_is_refused_and_nothing_is_written(state);
    pretend_large_tensors(device, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_reads_the_elements_that_the_ids_name),
        cmocka_unit_test(index_select_takes_slices),
        cmocka_unit_test(wide_rows_are_selected),
        cmocka_unit_test(scatters_write_in_the_order_of_sources),
        cmocka_unit_test(one_long_line_is_added_in_order),
        cmocka_unit_test(sources_may_overlap_the_destination),
        cmocka_unit_test(an_id_out_of_range_is_refused_and_nothing_is_written),
        cmocka_unit_test(operands_that_do_not_fit_are_refused),
        cmocka_unit_test(places_may_take_64_bits),
    };
    return RUN_ON_EVERY_DEVICE("tensors by ids", tests);
}
