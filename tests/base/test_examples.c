/* The examples, as programs. Those for GPUs find on a GPU what the CPU finds; without one they say so and exit with 77, and
 * which of the two it was is printed. The search of the README is tested beside it (test_command_manual.c). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"
#include "support/scratch.h"

enum { SAME = 0, NO_DEVICE = 77 };

static int run(const char *path, const char *kind)
{
    const char *const arguments[] = {path, NULL};
    command_result result = program_run(path, arguments);
    const int code = result.code;
    printf("%s: %s\n%s", path, code == SAME ? "ran on a device" : code == NO_DEVICE ? "no device" : "FAILED", result.out);
    if (code == SAME) {
        assert_non_null(strstr(result.out, "rows and score bits are the same"));
        assert_non_null(strstr(result.out, kind));
    } else if (code == NO_DEVICE) {
        char expected[64];
        snprintf(expected, sizeof expected, "no %s device here: no device '%s'", kind, kind);
        assert_non_null(strstr(result.out, expected));
        printf("SKIP: %s: there is no %s device here, so nothing was compared\n", path, kind);
    } else {
        fail_msg("%s: exit code %d: %s", path, code, result.err);
    }
    assert_string_equal(result.err, "");
    command_free(&result);
    return code;
}

static void the_cuda_example_agrees_with_the_cpu_or_finds_no_device(void **state)
{
    (void)state;
    run(EXAMPLES_DIR "/example_cuda_basic", "cuda");
}

static void the_rocm_example_agrees_with_the_cpu_or_finds_no_device(void **state)
{
    (void)state;
    run(EXAMPLES_DIR "/example_rocm_basic", "rocm");
}

static void the_rocm_example_agrees_with_the_cpu_on_the_stand_in(void **state)
{
    (void)state;
    if (access(BUILD_DIR "/standin/libamdhip64.so", R_OK) != 0) {
        printf("SKIP: the stand-in for ROCm was not built\n");
        skip();
    }
    setenv("WARPWAVE_HIP_LIBRARY", BUILD_DIR "/standin/libamdhip64.so", 1);
    assert_int_equal(run(EXAMPLES_DIR "/example_rocm_basic", "rocm"), SAME);
    unsetenv("WARPWAVE_HIP_LIBRARY");
}

static void expect_output(const char *path, const char *expected)
{
    const char *const arguments[] = {path, NULL};
    command_result result = program_run(path, arguments);
    assert_string_equal(result.err, "");
    assert_string_equal(result.out, expected);
    assert_int_equal(result.code, 0);
    command_free(&result);
}

static void the_filter_finds_even_rows_only(void **state)
{
    (void)state;
    expect_output(EXAMPLES_DIR "/example_filter", "row 4 at distance 1\nrow 6 at distance 1\nrow 2 at distance 3\n");
}

static void a_collection_that_was_saved_is_loaded_again(void **state)
{
    (void)state;
    assert_int_equal(chdir(scratch_path(".")), 0); /* where it writes */
    expect_output(EXAMPLES_DIR "/example_save", "3 rows saved, 3 loaded\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filter_finds_even_rows_only),
        cmocka_unit_test_setup_teardown(a_collection_that_was_saved_is_loaded_again, scratch_setup, scratch_teardown),
        cmocka_unit_test(the_cuda_example_agrees_with_the_cpu_or_finds_no_device),
        cmocka_unit_test(the_rocm_example_agrees_with_the_cpu_or_finds_no_device),
        cmocka_unit_test(the_rocm_example_agrees_with_the_cpu_on_the_stand_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
