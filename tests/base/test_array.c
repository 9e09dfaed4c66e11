/* Arrays that grow: what is in them stays, and a failure changes nothing. */
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "support/check.h"
#include "support/memory.h"

static void an_array_grows_by_doubling_and_keeps_its_elements(void **state)
{
    (void)state;
    int32_t *numbers = NULL;
    int64_t room = 0, grown = 0;
    for (int32_t i = 0; i < 1000; i++) {
        const int64_t before = room;
        CHECK_OK(array_reserve(&numbers, &room, i + 1, sizeof *numbers, "numbers"));
        assert_true(room > i);
        grown += room != before;
        numbers[i] = i;
    }
    assert_true(grown <= 8); /* 16, 32, ... 1024 */
    for (int32_t i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
    CHECK_OK(array_reserve(&numbers, &room, 100000, sizeof *numbers, "numbers")); /* many at once */
    assert_true(room >= 100000);
    memory_free(numbers);
}

static void an_array_that_cannot_grow_stays_as_it_is(void **state)
{
    (void)state;
    double *numbers = NULL, *before;
    int64_t room = 0;
    CHECK_OK(array_reserve(&numbers, &room, 3, sizeof *numbers, "numbers"));
    before = numbers;
    const int64_t had = room;
    fail_allocation_at(1);
    assert_int_equal(array_reserve(&numbers, &room, had + 1, sizeof *numbers, "the numbers of a test"), WW_OUT_OF_MEMORY);
    fail_allocation_at(0);
    assert_non_null(strstr(ww_error_message(), "the numbers of a test"));
    assert_int_equal(array_reserve(&numbers, &room, INT64_MAX / 4, sizeof *numbers, "numbers"), WW_OUT_OF_MEMORY);
    assert_ptr_equal(numbers, before);
    assert_int_equal(room, had);
    memory_free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_grows_by_doubling_and_keeps_its_elements),
        cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
