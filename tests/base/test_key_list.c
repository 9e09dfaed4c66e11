/* Lists of keys: they keep the smallest keys in order, for any input order, and without memory for more. */
#include <stdlib.h>
#include <string.h>

#include "base/tables/key_list.h"
#include "support/check.h"
#include "support/data/random.h"
#include "support/memory.h"

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Kinds of order: random, rising, falling, of two parts, with few digits that differ, and all the same, which parts do not
 * help. */
enum { ORDERS = 6 };

static void make_keys(uint64_t *keys, int64_t count, int order)
{
    test_random random = {(uint64_t)count + 1};
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = random_bits(&random) >> 24 << 24 | (uint64_t)i;
        keys[i] = order == 0   ? bits
                  : order == 1 ? (uint64_t)i
                  : order == 2 ? (uint64_t)(count - i)
                  : order == 3 ? (uint64_t)(i % 2 ? i : count * 2 - i)
                  : order == 4 ? UINT64_C(0x3f80000000000000) | (bits & 0xffffff)
                               : 7;
    }
}

static void sorting_and_selecting_agree_with_qsort(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 24, 25, 26, 100, 2047, 2048, 5000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int order = 0; order < ORDERS; order++) {
            const int64_t count = counts[c];
            const size_t bytes = (size_t)count * sizeof(uint64_t) + 1;
            uint64_t *made = malloc(bytes), *sorted = malloc(bytes), *tried = malloc(bytes);
            make_keys(made, count, order);
            memcpy(sorted, made, bytes);
            qsort(sorted, (size_t)count, sizeof *sorted, by_value);
            for (int without = 0; without < 2; without++) {
                memcpy(tried, made, bytes);
                fail_allocation_at(without);
                keys_sort(tried, count);
                fail_allocation_at(0);
                assert_memory_equal(tried, sorted, (size_t)count * sizeof *tried);
            }
            for (int64_t least = 1; least <= count; least += 1 + count / 7) {
                memcpy(tried, made, bytes);
                assert_true(keys_select(tried, count, least) == sorted[least - 1]);
                qsort(tried, (size_t)least, sizeof *tried, by_value);
                assert_memory_equal(tried, sorted, (size_t)least * sizeof *tried);
            }
            free(made);
            free(sorted);
            free(tried);
        }
}

static void a_list_has_the_smallest_keys_and_not_many_more(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static const int64_t limits[] = {0, 1, 10, 63, 64, 65, 1000, 2999, 3000, 100000};
    uint64_t made[COUNT], sorted[COUNT];
    for (int order = 0; order < 3; order++) {
        make_keys(made, COUNT, order);
        memcpy(sorted, made, sizeof sorted);
        qsort(sorted, COUNT, sizeof *sorted, by_value);
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
            const int64_t limit = limits[l], wanted = limit < COUNT ? limit : COUNT;
            key_list lists[2] = {{0}};
            for (int64_t i = 0; i < COUNT; i++) {
                key_list *list = &lists[i % 3 == 0];
                list->total++;
                assert_true(key_list_add(list, limit, made[i]));
                assert_true(list->capacity <= (limit < 16 ? 64 : 4 * limit));
            }
            const uint64_t most = key_list_cut(&lists[1], limit);
            assert_true(limit > 0 ? most >= sorted[wanted - 1] : most == 0);
            assert_true(key_list_add_all(&lists[0], limit, &lists[1]));
            key_list_finish(&lists[0], limit);
            assert_int_equal(lists[0].total, COUNT);
            assert_int_equal(lists[0].count, wanted);
            assert_memory_equal(lists[0].keys ? lists[0].keys : sorted, sorted, (size_t)wanted * sizeof *sorted);
            key_list_free(&lists[0]);
            key_list_free(&lists[1]);
        }
    }
}

static void without_memory_a_list_does_not_change(void **state)
{
    (void)state;
    const int64_t held = blocks_held();
    key_list list = {0};
    for (uint64_t key = 1; key <= 100; key++) {
        const key_list before = list;
        fail_allocation_at(1);
        if (!key_list_add(&list, 1000, key)) {
            assert_memory_equal(&before, &list, sizeof list);
            fail_allocation_at(0);
            assert_true(key_list_add(&list, 1000, key));
        }
        fail_allocation_at(0);
        assert_int_equal(list.count, key);
    }
    key_list_free(&list);
    assert_int_equal(blocks_held(), held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_and_selecting_agree_with_qsort),
        cmocka_unit_test(a_list_has_the_smallest_keys_and_not_many_more),
        cmocka_unit_test(without_memory_a_list_does_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
