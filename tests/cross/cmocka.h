/* As much of cmocka as the tests of the arithmetic use, for machines that have no cmocka: those that qemu emulates.
 *
 * A check that fails says where and ends the program. The lines it prints are cmocka's, so that the summary counts them.
 */
#ifndef TESTS_CROSS_CMOCKA_H
#define TESTS_CROSS_CMOCKA_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function) {#function, function}

#define cmocka_run_group_tests(tests, setup, teardown) run_tests(tests, sizeof(tests) / sizeof *(tests))

#define print_message printf

#define fail_msg(...)                                                                                                          \
    do {                                                                                                                       \
        printf("%s:%d: ", __FILE__, __LINE__);                                                                                 \
        printf(__VA_ARGS__);                                                                                                   \
        printf("\n[  FAILED  ] 1 test(s)\n");                                                                                  \
        exit(1);                                                                                                               \
    } while (0)

#define assert_true(condition)                                                                                                 \
    do {                                                                                                                       \
        if (!(condition))                                                                                                      \
            fail_msg("%s", #condition);                                                                                        \
    } while (0)

#define assert_false(condition)           assert_true(!(condition))
#define assert_in_range(value, low, high) assert_true((value) >= (low) && (value) <= (high))
#define assert_null(pointer)              assert_true((pointer) == NULL)
#define assert_non_null(pointer)          assert_true((pointer) != NULL)
#define assert_ptr_equal(a, b)            assert_true((const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b)            assert_true((int64_t)(a) == (int64_t)(b))
#define assert_int_not_equal(a, b)        assert_true((int64_t)(a) != (int64_t)(b))
#define assert_string_equal(a, b)         assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, length) assert_true(memcmp(a, b, length) == 0)

static inline int run_tests(const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *state = NULL;
        printf("[ RUN      ] %s\n", tests[i].name);
        fflush(stdout);
        tests[i].run(&state);
        printf("[       OK ] %s\n", tests[i].name);
    }
    printf("[  PASSED  ] %zu test(s).\n", count);
    return 0;
}

#endif
