/* Numbers of JSON texts: the nearest double for each, whichever way it is read, in a time that does not depend on what follows.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json/json_value.h"
#include "support/check.h"
#include "support/data/random.h"

static void check_number(const char *text)
{
    char list[128];
    snprintf(list, sizeof list, "[%s, 1.5e3]", text);
    const json_number number = json_number_of(list + 1);
    const double expected = strtod(text, NULL);
    errno = 0;
    const long long whole = strtoll(text, NULL, 10);
    const bool integer = !strpbrk(text, ".eE") && errno == 0;
    if (number.is_integer != integer || (integer && number.integer != whole) ||
        (!integer && memcmp(&number.real, &expected, sizeof expected) != 0))
        fail_msg("%s: integer %d, %lld, %.17g", text, number.is_integer, (long long)number.integer, number.real);
}

static void numbers_are_the_nearest_doubles(void **state)
{
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0.0",
                                        "-0.0",
                                        "-0.1",
                                        "1.0",
                                        "9007199254740993",
                                        "9007199254740993.0",
                                        "999999999999999999",
                                        "-999999999999999999",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "0.000000000000000000000000000000001",
                                        "0.0000000000000000000001",
                                        "123456789012345.1",
                                        "0.1234567890123456789",
                                        "1e2",
                                        "1E-2",
                                        "1.5e3",
                                        "0e5",
                                        "1.7976931348623157e308",
                                        "5e-324"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_number(texts[i]);
    test_random r = {5};
    for (int i = 0; i < 200000; i++) {
        char text[64];
        const double value = ((double)random_bits(&r) - 0x1p63) / (double)(1 + (random_bits(&r) >> (random_bits(&r) % 64)));
        snprintf(text, sizeof text, "%.*f", (int)(random_bits(&r) % 20), value);
        check_number(text);
        snprintf(text, sizeof text, "%.9g", (double)(float)value); /* as clients write vectors */
        check_number(text);
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Time to read a list of integers. */
static double list_seconds(size_t count)
{
    char *text = malloc(2 * count + 2);
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < count; i++)
        memcpy(text + 1 + 2 * i, "7,", 2);
    memcpy(text + 2 * count, "]", 2);
    int64_t sum = 0;
    const double begun = seconds();
    for (const char *at = json_first(text); at; at = json_next(at))
        sum += json_number_of(at).integer;
    const double taken = seconds() - begun;
    assert_int_equal(sum, 7 * count);
    free(text);
    return taken;
}

/* A reader that scanned ahead for each number would take 256 times as long for a list that is 16 times as long. */
static void a_long_list_takes_no_longer_for_each_number(void **state)
{
    (void)state;
    double short_list = DBL_MAX, long_list = DBL_MAX;
    for (int i = 0; i < 5; i++) {
        short_list = fmin(short_list, list_seconds(10000));
        long_list = fmin(long_list, list_seconds(160000));
    }
    if (long_list > 64 * short_list)
        fail_msg("10,000 numbers take %g s, 160,000 take %g s", short_list, long_list);
}

/* Reads the text as the only element and between others, and compares with strtof(). */
static void check_f32(const char *text)
{
    char list[256];
    float values[3];
    const float expected = strtof(text, NULL);
    snprintf(list, sizeof list, "[%s]", text);
    assert_int_equal(json_numbers_count(list), 1);
    assert_true(json_numbers_read(list, values));
    if (memcmp(values, &expected, sizeof expected) != 0)
        fail_msg("%s is read as %.9g", text, (double)values[0]);
    snprintf(list, sizeof list, "[ 1.5e3 ,%s\t,\n-2 ]", text);
    assert_int_equal(json_numbers_count(list), 3);
    assert_true(json_numbers_read(list, values));
    if (values[0] != 1500 || memcmp(&values[1], &expected, sizeof expected) != 0 || values[2] != -2)
        fail_msg("%s between others is read as %.9g", text, (double)values[1]);
}

static void lists_of_numbers_are_the_nearest_f32(void **state)
{
    /* Halfway points between floats, more than 19 digits, zeros, denormals, overflow, and exponents that digits compensate. */
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "0e99999999999999999999",
                                        "16777217",
                                        "16777217.0000000000000000000000000001",
                                        "16777216.9999999999999999999999999999",
                                        "1.00000005960464477539062500000000001",
                                        "1.000000059604644775390625",
                                        "1.0000001788139343261718750",
                                        "1.4e-45",
                                        "7e-46",
                                        "1.17549428e-38",
                                        "1.17549435e-38",
                                        "3.4028235e38",
                                        "3.4028236e38",
                                        "1e39",
                                        "-1e400",
                                        "1e-400",
                                        "1e999999999999999999999",
                                        "100000000000000000000000000000000000000",
                                        "0.00000000000000000000000000000000000001",
                                        "123456789012345678901234567890e-20",
                                        "0.12345678955316544",
                                        "12345678",
                                        "1234567.8",
                                        "1E+2",
                                        "1E-2",
                                        "99999999999999999999999999999999999999.99999999"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_f32(texts[i]);
    test_random r = {8};
    for (int i = 0; i < 300000; i++) {
        char text[64];
        const double value = ((double)random_bits(&r) - 0x1p63) / (double)(1 + (random_bits(&r) >> (random_bits(&r) % 64)));
        const float narrow = (float)value;
        const int digits = 1 + (int)random_below(&r, 20);
        snprintf(text, sizeof text, i % 3 == 0 ? "%.*f" : i % 3 == 1 ? "%.*g" : "%.*e", digits, i % 2 ? value : (double)narrow);
        check_f32(text);
    }
}

static void lists_with_other_elements_are_not_read_as_numbers(void **state)
{
    static const char *const others[] = {"[]",      "[ ]",           "[null]",    "[\"1\"]",   "[[1]]",
                                         "[1,[2]]", "[1,{\"a\":2}]", "[1,\"2\"]", "{\"a\":1}", "true"};
    static const char *const words[] = {"[1,null]", "[1, true ,2]"};
    float values[4];
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(json_numbers_count(others[i]), -1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_true(json_numbers_count(words[i]) > 0 && !json_numbers_read(words[i], values));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_nearest_doubles),
        cmocka_unit_test(lists_of_numbers_are_the_nearest_f32),
        cmocka_unit_test(lists_with_other_elements_are_not_read_as_numbers),
        cmocka_unit_test(a_long_list_takes_no_longer_for_each_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
