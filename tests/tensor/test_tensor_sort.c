/* Sorting and the first k of an order, on every type, against the C library's sort. */
#include <stdlib.h>

#include "support/devices.h"
#include "support/tensors.h"

typedef struct sortable {
    long double value; /* NaN is the largest */
    bool nan;
    int64_t index;
    bool descending;
} sortable;

static int compare(const void *one, const void *other)
{
    const sortable *a = one, *b = other;
    const int order = a->nan != b->nan ? (a->nan ? 1 : -1) : a->nan ? 0 : (a->value > b->value) - (a->value < b->value);
    if (order != 0)
        return a->descending ? -order : order;
    return a->index < b->index ? -1 : 1;
}

static void check_sorted(ww_device *device, test_random *random, ww_dtype dtype, int64_t rows, int64_t n, int64_t k,
                         bool descending)
{
    const int64_t shape[2] = {rows, n};
    test_tensor x = test_tensor_make(device, random, dtype, 2, shape, random_bits(random) % 2 ? TEST_DENSE : TEST_VIEW);
    ww_tensor values = {0}, indices = {0};
    if (k == n)
        CHECK_OK(ww_tensor_sort(&x.tensor, descending, &values, &indices));
    else
        CHECK_OK(ww_tensor_top_k(&x.tensor, k, descending, &values, &indices));
    assert_int_equal(ww_layout_elements(&values.layout), rows * k);
    uint8_t *got = storage_bytes(values.storage);
    uint32_t *places = (uint32_t *)storage_bytes(indices.storage);
    sortable *all = malloc((size_t)n * sizeof *all);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = test_tensor_bits(&x, row * n + i);
            all[i] = (sortable){number_of(dtype, bits), bits_are_nan(dtype, bits), i, descending};
        }
        qsort(all, (size_t)n, sizeof *all, compare);
        for (int64_t i = 0; i < k; i++) {
            if (places[row * k + i] != all[i].index)
                fail_msg("%s, row of %lld, place %lld: %u, not %lld", ww_dtype_name(dtype), (long long)n, (long long)i,
                         places[row * k + i], (long long)all[i].index);
            assert_true(bits_of(got, dtype, row * k + i) == test_tensor_bits(&x, row * n + all[i].index));
        }
    }
    free(all);
    free(got);
    free(places);
    ww_tensor_release(&values);
    ww_tensor_release(&indices);
    test_tensor_free(&x);
}

static void every_type_is_sorted_and_equals_keep_their_order(void **state)
{
    test_random random = {26};
    static const int64_t sizes[] = {1, 2, 31, 33, 500, 1024};
    for (int dtype = 0; dtype < TEST_TYPES; dtype++)
        for (size_t s = 0; dtype != WW_I8 && s < sizeof sizes / sizeof *sizes; s++) {
            if (device_is_slow(*state) && sizes[s] >= 500 && dtype % 4 != (int)s % 4)
                continue;
            check_sorted(*state, &random, (ww_dtype)dtype, 3, sizes[s], sizes[s], s % 2);
            check_sorted(*state, &random, (ww_dtype)dtype, 2, sizes[s], (sizes[s] + 9) / 10, dtype % 2);
        }
    check_sorted(*state, &random, WW_F32, 37, 40, 40, true); /* a block of a GPU sorts several such rows at a time */
    check_sorted(*state, &random, WW_I32, 9, 200, 128, false);
    check_sorted(*state, &random, WW_BF16, 17, 128, 128, true);
    check_sorted(*state, &random, WW_F32, 35, 128, 128, false); /* and lanes of some have them in registers */
    check_sorted(*state, &random, WW_U32, 130, 16, 16, true);
    check_sorted(*state, &random, WW_I32, 19, 64, 64, false);
    check_sorted(*state, &random, WW_F16, 67, 5, 3, true);
    check_sorted(*state, &random, WW_F32, 2, 4096, 4096, true); /* as many as one block of a GPU sorts */
    check_sorted(*state, &random, WW_I16, 1, 2500, 2500, false);
    check_sorted(*state, &random, WW_U32, 1, 2049, 17, true);
    check_sorted(*state, &random, WW_F16, 1, 4096, 4096, false);
    check_sorted(*state, &random, WW_BF16, 2, 4096, 10, true);
    check_sorted(*state, &random, WW_F8E4M3, 1, 3000, 256, false); /* many are equal to the last */
    check_sorted(*state, &random, WW_U8, 1, 700, 257, true);
    const int64_t large = device_is_slow(*state) ? 5000 : 70000;
    check_sorted(*state, &random, WW_F32, 2, large, large, true);
    check_sorted(*state, &random, WW_I64, 1, large, 100, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type_is_sorted_and_equals_keep_their_order)};
    return RUN_ON_EVERY_DEVICE("tensor_sort", tests);
}
