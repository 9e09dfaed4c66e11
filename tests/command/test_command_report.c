/* The report that an owner of a GPU can send: what scripts/gpu/gpu-report.sh writes about runs that pass and runs that fail. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"

static const char report_script[] = SOURCE_DIR "/scripts/gpu/gpu-report.sh";
static const char devices_script[] = SOURCE_DIR "/scripts/gpu/gpu-devices.sh";

/* Runs scripts/gpu/gpu-report.sh in a folder of its own, which has the command in it. */
static command_result report(const char *folder, const char *part, const char *script)
{
    const char *const arguments[] = {"bash", report_script, folder, part, "bash", "-c", script, NULL};
    return program_run("/bin/bash", arguments);
}

static void a_report_has_the_machine_the_tests_and_the_figures(void **state)
{
    (void)state;
    const char *const folder = scratch_path("");
    assert_int_equal(symlink(COMMAND_PATH, scratch_path("warpwave")), 0);

    command_result first = report(folder, "tests", "echo suite one: 3 of 3; echo a warning >&2; exit 9");
    assert_int_equal(first.code, 9);
    assert_non_null(strstr(first.out, "suite one: 3 of 3"));
    command_free(&first);
    command_result second = report(folder, "figures", "echo 12 GB/s");
    assert_int_equal(second.code, 0);
    command_free(&second);

    size_t size;
    char *text = scratch_content(scratch_path("gpu-report.txt"), &size);
    static const char *const expected[] = {
        "==== machine ====", WW_VERSION_TEXT, "cpu: ",   "==== tests ====",  "FAILED, exit code 9",
        "suite one",         "a warning",     "12 GB/s", "==== figures ===="};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(text, expected[i]))
            fail_msg("the report does not have '%s':\n%s", expected[i], text);
    assert_true(strstr(text, "==== tests ====") < strstr(text, "==== figures ===="));
    free(text);

    command_result third = report(folder, "tests", "echo suite one: all well");
    assert_int_equal(third.code, 0);
    command_free(&third);
    text = scratch_content(scratch_path("gpu-report.txt"), &size);
    assert_null(strstr(text, "FAILED"));
    assert_non_null(strstr(text, "12 GB/s"));
    free(text);
}

/* A build without GPUs in sight: the emulated ones are not real. */
static void without_a_gpu_nothing_is_chosen_and_that_fails(void **state)
{
    (void)state;
    const char *const arguments[] = {"bash", devices_script, BUILD_DIR, NULL};
    command_result result = program_run("/bin/bash", arguments);
    if (result.code == 0) {
        printf("SKIP: there is a GPU here: %s", result.out);
        command_free(&result);
        skip();
    }
    assert_non_null(strstr(result.err, "there is no GPU here"));
    assert_string_equal(result.out, "");
    command_free(&result);
    const char *const named[] = {"bash", devices_script, BUILD_DIR, "cpu", NULL};
    command_result refused = program_run("/bin/bash", named);
    assert_int_equal(refused.code, 2);
    command_free(&refused);
    const char *const absent[] = {"bash", devices_script, BUILD_DIR, "rocm:99", NULL};
    refused = program_run("/bin/bash", absent);
    assert_int_equal(refused.code, 2);
    assert_non_null(strstr(refused.err, "no device 'rocm:99'"));
    command_free(&refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_report_has_the_machine_the_tests_and_the_figures, scratch_setup, scratch_teardown),
        cmocka_unit_test(without_a_gpu_nothing_is_chosen_and_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
