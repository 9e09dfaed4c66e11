/* The command's front: help, version, and every way to call it wrongly, with the exit codes that help promises. */
#include <string.h>

#include "support/command.h"

static const char *const command_names[] = {"devices",     "search", "demo",    "bench", "gguf",
                                            "safetensors", "quant",  "version", "help"};

enum { COMMANDS = sizeof command_names / sizeof *command_names };

static void no_command_is_a_mistake_that_names_the_commands(void **state)
{
    (void)state;
    command_result result = command_run((const char *[]){NULL});
    assert_int_equal(result.code, 2);
    for (int i = 0; i < COMMANDS; i++)
        assert_non_null(strstr(result.err, command_names[i]));
    command_free(&result);
}

static void an_unknown_command_is_named(void **state)
{
    (void)state;
    COMMAND_SAYS(2, "warpwave: unknown command 'serch'", "serch");
    COMMAND_SAYS(2, "warpwave help: unknown command 'serch'", "help", "serch");
    COMMAND_SAYS(2, "warpwave help: help takes one command", "help", "search", "demo");
}

static void help_lists_commands_exit_codes_and_environment(void **state)
{
    (void)state;
    command_result help = COMMAND_RUN("help"), dashes = COMMAND_RUN("--help"), dash = COMMAND_RUN("-h");
    assert_int_equal(help.code, 0);
    for (int i = 0; i < COMMANDS; i++)
        assert_non_null(strstr(help.out, command_names[i]));
    static const char *const words[] = {"Exit codes",   "  0  ",    "  1  ",           "  2  ",
                                        "  3  ",        "  4  ",    "  5  ",           "  130  ",
                                        "Environment:", "NO_COLOR", "WARPWAVE_DEVICE", "warpwave help COMMAND"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_non_null(strstr(help.out, words[i]));
    assert_string_equal(help.out, dashes.out);
    assert_string_equal(help.out, dash.out);
    command_free(&help);
    command_free(&dashes);
    command_free(&dash);
}

static void each_command_has_help_in_three_ways(void **state)
{
    (void)state;
    for (int i = 0; i < COMMANDS; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "usage: warpwave %s", command_names[i]);
        command_result help = COMMAND_RUN("help", command_names[i]);
        command_result dashes = COMMAND_RUN(command_names[i], "--help"), dash = COMMAND_RUN(command_names[i], "-h");
        assert_int_equal(help.code, 0);
        assert_int_equal(strncmp(help.out, usage, strlen(usage)), 0);
        assert_string_equal(help.err, "");
        assert_string_equal(help.out, dashes.out);
        assert_string_equal(help.out, dash.out);
        command_free(&help);
        command_free(&dashes);
        command_free(&dash);
    }
}

static void search_has_its_documented_options(void **state)
{
    (void)state;
    static const char *const words[] = {"--base FILE",
                                        "--queries FILE",
                                        "[--format F]",
                                        "[-k N]",
                                        "[--metric cosine|l2|dot]",
                                        "[--device D]",
                                        "[--ids FILE]",
                                        "[--id-column C]",
                                        "[--quiet]",
                                        "[--out-neighbors F.ibin]",
                                        "[--out-distances F.fbin]",
                                        "[--rows-skip N]",
                                        "[--rows-take N]",
                                        "[--repeat N]",
                                        "[--json]"};
    command_result help = COMMAND_RUN("help", "search");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_non_null(strstr(help.out, words[i]));
    command_free(&help);
}

static void version_is_the_librarys(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof text, "warpwave %s\n", ww_version());
    command_result word = COMMAND_RUN("version"), dashes = COMMAND_RUN("--version");
    assert_int_equal(word.code, 0);
    assert_memory_equal(word.out, text, strlen(text));
    assert_string_equal(dashes.out, word.out);
    /* One more line: the kernels and their compiler. */
    const char *line = word.out + strlen(text);
    if (ww_kernel_chip_count() == 0) {
        assert_string_equal(line, "no GPU kernels\n");
    } else {
        assert_non_null(strstr(line, ww_kernel_chip(0)));
        assert_non_null(strstr(line, ", by "));
        assert_non_null(strstr(line, "clang"));
        assert_int_equal(strcspn(line, "\n") + 1, strlen(line));
    }
    command_free(&word);
    command_free(&dashes);
    COMMAND_SAYS(2, "unknown option '--json'", "version", "--json");
}

static void mistakes_in_options_name_the_option(void **state)
{
    (void)state;
    COMMAND_SAYS(2, "warpwave bench: unknown option '--row'", "bench", "--row", "5");
    COMMAND_SAYS(2, "Run 'warpwave help bench' for usage.", "bench", "--row", "5");
    COMMAND_SAYS(2, "unexpected argument '5'", "bench", "5");
    COMMAND_SAYS(2, "unexpected argument 'extra'", "devices", "extra");
    COMMAND_SAYS(2, "--rows needs a value: N", "bench", "--rows");
    COMMAND_SAYS(2, "--rows needs a value (N), but '--dim' follows", "bench", "--rows", "--dim", "5");
    COMMAND_SAYS(2, "--device: the D is empty", "bench", "--device=");
    COMMAND_SAYS(2, "--json takes no value", "bench", "--json=yes");
    COMMAND_SAYS(2, "--rows is given twice", "bench", "--rows", "5", "--rows=5");
    COMMAND_SAYS(2, "--metric takes cosine|l2|dot, not 'l3'", "bench", "--metric", "l3");
    COMMAND_SAYS(2, "--metric takes cosine|l2|dot, not 'cos'", "demo", "--metric", "cos");
    COMMAND_SAYS(2, "--metric takes cosine|l2|dot, not ''", "demo", "--metric", "");
}

static void numbers_are_whole_and_in_range(void **state)
{
    (void)state;
    COMMAND_SAYS(2, "--rows takes an integer, not 'many'", "bench", "--rows", "many");
    COMMAND_SAYS(2, "--rows takes an integer, not '5x'", "bench", "--rows", "5x");
    COMMAND_SAYS(2, "--rows takes an integer, not '1e3'", "bench", "--rows", "1e3");
    COMMAND_SAYS(2, "--rows takes an integer, not ''", "bench", "--rows=");
    COMMAND_SAYS(2, "--rows must be between 1 and 4294967295, not 0", "bench", "--rows", "0");
    COMMAND_SAYS(2, "--rows must be between 1 and 4294967295, not -5", "bench", "--rows", "-5");
    COMMAND_SAYS(2, "--rows must be between 1 and 4294967295, not 99999999999999999999", "bench", "--rows",
                 "99999999999999999999");
    COMMAND_SAYS(2, "--dim must be between 1 and 65536", "bench", "--dim", "65537");
    COMMAND_SAYS(2, "--queries must be between 1", "bench", "--queries", "0");
    COMMAND_SAYS(2, "-k must be between 1 and 16384", "bench", "-k", "16385");
    COMMAND_SAYS(2, "--repeat must be between 1", "bench", "--repeat", "0");
    COMMAND_SAYS(2, "-k must be between 1 and 100", "demo", "-k", "101");
}

static void search_refuses_to_run_without_its_required_options(void **state)
{
    (void)state;
    COMMAND_SAYS(2, "warpwave search: --queries FILE is missing", "search");
    COMMAND_SAYS(2, "--base FILE is missing", "search", "--queries", "q.npy");
    COMMAND_SAYS(2, "--queries FILE is missing", "search", "--base", "b.npy");
    COMMAND_SAYS(2, "-k must be between 1 and 16384, not 0", "search", "-k", "0");
    COMMAND_SAYS(2, "--rows-skip must be between 0", "search", "--rows-skip", "-1");
    COMMAND_SAYS(2, "--rows-take must be between 0", "search", "--rows-take", "-1");
    COMMAND_SAYS(2, "--repeat must be between 1", "search", "--repeat", "0");
}

static void a_device_that_is_not_there_is_exit_code_4(void **state)
{
    (void)state;
    COMMAND_SAYS(4, "warpwave demo: ", "demo", "--device", "cuda:99");
    COMMAND_SAYS(4, "cpu", "bench", "--device", "teapot");
}

static void too_much_memory_is_exit_code_5(void **state)
{
    (void)state;
    COMMAND_SAYS(5, "warpwave bench: 4000000000 rows", "bench", "--device", "cpu", "--rows", "4000000000", "--dim", "65536");
}

static void output_that_cannot_be_written_is_a_failure(void **state)
{
    (void)state;
    const char *const arguments[] = {"sh", "-c", COMMAND_PATH " devices --json > /dev/full", NULL};
    command_result result = program_run("/bin/sh", arguments);
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.err, "warpwave devices: cannot write to standard output"));
    command_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_command_is_a_mistake_that_names_the_commands),
        cmocka_unit_test(an_unknown_command_is_named),
        cmocka_unit_test(help_lists_commands_exit_codes_and_environment),
        cmocka_unit_test(each_command_has_help_in_three_ways),
        cmocka_unit_test(search_has_its_documented_options),
        cmocka_unit_test(version_is_the_librarys),
        cmocka_unit_test(mistakes_in_options_name_the_option),
        cmocka_unit_test(numbers_are_whole_and_in_range),
        cmocka_unit_test(search_refuses_to_run_without_its_required_options),
        cmocka_unit_test(a_device_that_is_not_there_is_exit_code_4),
        cmocka_unit_test(too_much_memory_is_exit_code_5),
        cmocka_unit_test(output_that_cannot_be_written_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
