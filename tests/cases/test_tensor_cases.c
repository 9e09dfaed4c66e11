/* warpwave-cases: the golden cases pass on every device, and it reports cases that do not. */
#include <stdio.h>
#include <string.h>

#include "support/command.h"
#include "support/devices.h"

#define GOLDEN SOURCE_DIR "/tests/golden/tensor_cases.json"
#define MORE   SOURCE_DIR "/tests/golden/more_cases.json"

static command_result run_cases(ww_device *device, const char *file)
{
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    const char *const arguments[] = {"warpwave-cases", file, "--device", info.id, NULL};
    return program_run(CASES_PATH, arguments);
}

static void the_golden_cases_pass(void **state)
{
    command_result result = run_cases(*state, GOLDEN);
    if (result.code != 0 || strcmp(result.out, "110 passed, 0 failed\n") != 0)
        fail_msg("exit code %d: %s%s", result.code, result.out, result.err);
    command_free(&result);
}

/* Other operations, other names, other ways to write numbers. */
static void cases_as_others_write_them_pass(void **state)
{
    command_result result = run_cases(*state, MORE);
    if (result.code != 0 || !strstr(result.out, " passed, 0 failed\n"))
        fail_msg("exit code %d: %s%s", result.code, result.out, result.err);
    command_free(&result);
}

static void check_says(ww_device *device, const char *cases, int code, const char *text)
{
    scratch_write("cases.json", cases, strlen(cases));
    command_result result = run_cases(device, scratch_path("cases.json"));
    if (result.code != code || !strstr(result.out, text))
        fail_msg("exit code %d, output '%s%s', which should have '%s'", result.code, result.out, result.err, text);
    command_free(&result);
}

static void mistakes_are_reported(void **state)
{
    check_says(*state,
               "[{\"id\":\"a\",\"op\":\"unary\",\"dtype\":\"f32\",\"inputs\":{\"x\":{\"shape\":[2],\"data\":[1,-2]},"
               "\"attrs\":{\"kind\":\"abs\"}},\"expected\":{\"shape\":[2],\"data\":[1,3]},\"tol\":{\"exact\":true}}]",
               1, "a unary: element 1: expected 3, got 2");
    check_says(
        *state,
        "[{\"id\":\"b\",\"op\":\"unary\",\"dtype\":\"i64\",\"inputs\":{\"x\":{\"shape\":[1],\"data\":[9223372036854775807]},"
        "\"attrs\":{\"kind\":\"neg\"}},\"expected\":{\"shape\":[1],\"data\":[-9223372036854775807]},\"tol\":{\"exact\":true}}]",
        0, "1 passed, 0 failed");
    check_says(*state, "[{\"id\":\"c\",\"op\":\"fold\",\"dtype\":\"f32\",\"inputs\":{},\"expected\":{}}]", 1,
               "no operation 'fold'");
    check_says(*state,
               "[{\"id\":\"d\",\"op\":\"cast\",\"dtype\":\"f32\",\"inputs\":{\"x\":{\"shape\":[3],\"data\":[1,2,3]},"
               "\"attrs\":{\"to\":\"u8\"}},\"expected\":{\"shape\":[1,3],\"data\":[1,2,3]},\"tol\":{\"exact\":true}}]",
               1, "expected shape [1, 3], got [3]");
    check_says(*state,
               "[{\"id\":\"e\",\"op\":\"binary\",\"dtype\":\"f32\",\"inputs\":{\"x\":{\"shape\":[3],\"data\":[1,2,3]},"
               "\"y\":{\"shape\":[2],\"data\":[1,2]},\"attrs\":{\"kind\":\"add\"}},\"expected\":{\"error\":\"shape\"}},"
               "{\"id\":\"f\",\"op\":\"affine\",\"dtype\":\"f16\",\"inputs\":{\"x\":{\"shape\":[4],\"data\":{\"formula\":"
               "\"(i-1)*0.5\"}},\"attrs\":{\"mul\":2,\"add\":1}},\"expected\":{\"points\":[[[3],3]],\"flat_points\":[[0,0]]},"
               "\"tol\":{\"ulp\":1}}]",
               0, "2 passed, 0 failed");
}

#define RAMP "\"x\":{\"shape\":[256],\"data\":{\"formula\":\"(i-128)/128\"}}"

static void quantized_cases_must_meet_their_stated_error(void **state)
{
    check_says(*state,
               "[{\"id\":\"a\",\"op\":\"quantize_dequantize\",\"dtype\":\"q4k\",\"inputs\":{" RAMP
               "},\"expected\":{\"shape\":[256],\"points\":[[[0],-1]],\"max_abs_err_vs_input\":0.001},\"tol\":{\"abs\":0.1}}]",
               1, "expected at most 0.001 from the input, got");
    check_says(
        *state,
        "[{\"id\":\"b\",\"op\":\"quantize_dequantize\",\"dtype\":\"q6_K\",\"inputs\":{" RAMP
        "},\"expected\":{\"shape\":[256],\"points\":[[[0],-0.9]],\"max_abs_err_vs_input\":0.02},\"tol\":{\"abs\":0.001}}]",
        1, "element 0: expected -0.9");
    check_says(*state,
               "[{\"id\":\"c\",\"op\":\"qmatmul\",\"dtype\":\"q8_0\",\"inputs\":{\"x\":{\"shape\":[1,32],\"data\":{\"formula\":"
               "\"i\"}},\"w\":{\"shape\":[1,32],\"data\":{\"formula\":\"1\"}}},\"expected\":{\"shape\":[1,1],\"data\":[7],"
               "\"data_other\":[496]},\"tol\":{\"abs\":2}},"
               "{\"id\":\"d\",\"op\":\"qmatmul\",\"dtype\":\"q4_0\",\"inputs\":{\"x\":{\"shape\":[1,33],\"data\":{\"formula\":"
               "\"i\"}},\"w\":{\"shape\":[1,33],\"data\":{\"formula\":\"1\"}}},\"expected\":{\"error\":\"block\"}}]",
               0, "2 passed, 0 failed");
    check_says(
        *state,
        "[{\"id\":\"e\",\"op\":\"mmq_q8_1\",\"dtype\":\"q4_0\",\"inputs\":{\"x\":{\"shape\":[1,32],\"data\":{\"formula\":"
        "\"i\"}},\"w\":{\"shape\":[1,64],\"data\":{\"formula\":\"1\"}}},\"expected\":{\"shape\":[1,1],\"data\":[1]}}]",
        1, "its last dimension must be the matrix's 64 columns");
}

#define Q8_1(id, expected)                                                                                                     \
    "{\"id\":\"" id                                                                                                            \
    "\",\"op\":\"mmvq_q8_1\",\"dtype\":\"q4_0\",\"inputs\":{\"x\":{\"shape\":[1,256],\"data\":{\"arange\":[0,256]}},"          \
    "\"w\":{\"shape\":[1,256],\"data\":{\"arange\":[0,256]}}},\"expected\":{\"shape\":[1,1],\"data\":[" expected               \
    "]},\"tol\":{\"exact\":true}}"

/* The library's product is 5564434.5; what other kernels publish is near it, by a bound, and nothing else passes. */
static void a_product_of_another_kernel_is_held_to_its_bound(void **state)
{
    check_says(*state, "[" Q8_1("a", "5561664.5") "," Q8_1("b", "5564434.5") "]", 0, "2 passed, 0 failed");
    check_says(*state, "[" Q8_1("c", "5500000") "]", 1, "c mmvq_q8_1: element 0: expected 5500000, got 5564434");
    check_says(*state, "[" Q8_1("d", "5630000") "]", 1, "d mmvq_q8_1: element 0: expected 5630000");
    /* Without sums, and with no weight halfway between two codes, there is no bound: only the tolerance counts. */
    check_says(
        *state,
        "[{\"id\":\"e\",\"op\":\"qmatmul\",\"dtype\":\"q4_0\",\"inputs\":{\"x\":{\"shape\":[1,32],\"data\":{\"formula\":"
        "\"1\"}},\"w\":{\"shape\":[1,32],\"data\":{\"formula\":\"8\"}}},\"expected\":{\"shape\":[1,1],\"data\":[256.5]}}]",
        1, "e qmatmul: element 0: expected 256.5, got 255.98");
}

static void formulas_compute_in_f32_where_they_say_so(void **state)
{
    check_says(*state,
               "[{\"id\":\"a\",\"op\":\"clone\",\"dtype\":\"f64\",\"inputs\":{\"x\":{\"shape\":[2],\"data\":{\"formula\":"
               "\"f32(i)/f32(3)\"}}},\"expected\":{\"shape\":[2],\"data\":[0,0.3333333432674408]},\"tol\":{\"exact\":true}},"
               "{\"id\":\"b\",\"op\":\"clone\",\"dtype\":\"f64\",\"inputs\":{\"x\":{\"shape\":[3],\"data\":{\"formula\":"
               "\"-2**2*i + (7-i)//2 % 3\"}}},\"expected\":{\"shape\":[3],\"data\":[0,-4,-6]},\"tol\":{\"exact\":true}}]",
               0, "2 passed, 0 failed");
}

#define ONE "{\"shape\":[1,1,1],\"data\":[1]}"

/* An x, the attributes of a conv1d with it, and the error in one of them. */
static const struct {
    const char *x, *attrs, *why;
} senseless[] = {
    {ONE, "{\"padding\":\"same\"}", "attribute 'padding' is not what it should be"},
    {ONE, "{\"stride\":[1,2,3]}", "attribute 'stride'"},
    {ONE, "{\"groups\":1.5}", "attribute 'groups'"},
    {"{\"shape\":[1,1,1]}", "{}", "neither a list nor arange nor formula"},
    {"{\"shape\":[4611686018427387904],\"data\":{\"formula\":\"i\"}}", "{}", "data of more than"},
    {"{\"shape\":[1,1,1],\"data\":{\"arange\":[0,4611686018427387904]}}", "{}", "data of more than"},
    {"{\"shape\":[1,1,1],\"data\":{\"arange\":[0,\"inf\"]}}", "{}", "neither a list"},
    {"{\"shape\":[1,1,\"x\"],\"data\":[1]}", "{}", "without a shape"},
    {"{\"shape\":[1,1,1],\"data\":[1],\"offset\":\"x\"}", "{}", "offset that is no whole number"},
    {"{\"shape\":[1,1,1],\"data\":[1],\"dtype\":\"f31\"}", "{}", "no type 'f31'"},
    {"{\"shape\":[1,1,1],\"data\":[null]}", "{}", "element 0 of a tensor is not a number"},
    {"7", "{}", "without a shape"},
};

/* All invalid cases are in one file, each followed by a valid one. */
static void a_case_that_makes_no_sense_fails_and_the_next_is_run(void **state)
{
    enum { COUNT = sizeof senseless / sizeof *senseless };
    char cases[COUNT * 512] = "[";
    char line[256];
    for (int i = 0; i < COUNT; i++)
        snprintf(cases + strlen(cases), sizeof cases - strlen(cases),
                 "%s{\"id\":\"s%d\",\"op\":\"conv1d\",\"inputs\":{\"x\":%s,\"w\":" ONE
                 ",\"attrs\":%s},\"expected\":{\"data\":[1]}},"
                 "{\"op\":\"abs\",\"inputs\":{\"x\":" ONE "},\"expected\":{\"data\":[1]}}",
                 i > 0 ? "," : "", i, senseless[i].x, senseless[i].attrs);
    strcat(cases, "]");
    scratch_write("cases.json", cases, strlen(cases));
    command_result result = run_cases(*state, scratch_path("cases.json"));
    assert_int_equal(result.code, 1);
    for (int i = 0; i < COUNT; i++) {
        snprintf(line, sizeof line, "s%d conv1d: ", i);
        const char *at = strstr(result.out, line);
        const char *why = at ? strstr(at, senseless[i].why) : NULL;
        if (!why || strchr(at, '\n') < why)
            fail_msg("'%s' should have '%s' at %s", result.out, senseless[i].why, line);
    }
    snprintf(line, sizeof line, "\n%d passed, %d failed\n", COUNT, COUNT);
    assert_non_null(strstr(result.out, line));
    command_free(&result);
}

static void files_that_are_no_cases_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } files[] = {{"{\"cases\":7}", "not a list of cases"}, {"[", "line 1, column 1"}, {"", "end of file"}, {"7", "not a list"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        scratch_write("cases.json", files[i].text, strlen(files[i].text));
        command_result result = run_cases(*state, scratch_path("cases.json"));
        assert_int_equal(result.code, 3);
        assert_string_equal(result.out, "0 passed, 1 failed\n");
        if (!strstr(result.err, files[i].why))
            fail_msg("'%s' should have '%s'", result.err, files[i].why);
        command_free(&result);
    }
    command_result result = run_cases(*state, "/nowhere.json");
    assert_int_equal(result.code, 3);
    assert_string_equal(result.out, "0 passed, 1 failed\n");
    command_free(&result);
    static const char golden[] = GOLDEN;
    const char *const arguments[] = {"warpwave-cases", golden, "--device", "nothing:7", NULL};
    result = program_run(CASES_PATH, arguments);
    assert_int_equal(result.code, 4);
    assert_string_equal(result.out, "0 passed, 110 failed\n");
    command_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_cases_pass),
        cmocka_unit_test(cases_as_others_write_them_pass),
        cmocka_unit_test(mistakes_are_reported),
        cmocka_unit_test(a_case_that_makes_no_sense_fails_and_the_next_is_run),
        cmocka_unit_test(quantized_cases_must_meet_their_stated_error),
        cmocka_unit_test(a_product_of_another_kernel_is_held_to_its_bound),
        cmocka_unit_test(formulas_compute_in_f32_where_they_say_so),
        cmocka_unit_test(files_that_are_no_cases_are_refused),
    };
    void *unused = NULL;
    if (scratch_setup(&unused) != 0)
        return 1;
    const int failures = RUN_ON_EVERY_DEVICE("cases", tests);
    return scratch_teardown(&unused) == 0 ? failures : 1;
}
