/* The documentation matches the program: the reference has the exit codes, and the guide's first program is the one in
 * examples/, which runs. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

/* "  3    a file ..." in help is a row "| 3 | a file ... |" in the reference, from which the manual page is made. */
static void the_reference_has_the_exit_codes_of_help(void **state)
{
    (void)state;
    size_t size;
    char *reference = scratch_content(SOURCE_DIR "/docs/reference/errors.md", &size);
    command_result help = COMMAND_RUN("help");
    const char *line = strstr(help.out, "Exit codes:\n");
    int found = 0;
    assert_non_null(line);
    for (line = strchr(line, '\n') + 1; *line == ' '; line = strchr(line, '\n') + 1, found++) {
        int code, used;
        char entry[256];
        assert_int_equal(sscanf(line, " %d %n", &code, &used), 1);
        snprintf(entry, sizeof entry, "\n| %d | %.*s |", code, (int)strcspn(line + used, "\n"), line + used);
        if (!strstr(reference, entry))
            fail_msg("the reference lacks:%s", entry);
    }
    assert_int_equal(found, 7);
    command_free(&help);
    free(reference);
}

static void the_guides_first_program_is_the_one_in_examples(void **state)
{
    (void)state;
    size_t size;
    char *guide = scratch_content(SOURCE_DIR "/docs/guide/start.md", &size),
         *example = scratch_content(SOURCE_DIR "/examples/search.c", &size);
    char *block = malloc(size + 16);
    assert_non_null(block);
    snprintf(block, size + 16, "```c\n%s```\n", example);
    assert_non_null(strstr(guide, block));
    free(block);
    free(example);
    free(guide);
}

static void the_example_finds_east_and_then_northeast(void **state)
{
    (void)state;
    const char *const arguments[] = {EXAMPLE_PATH, NULL};
    command_result result = program_run(EXAMPLE_PATH, arguments);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.out, "east 0.9939\nnortheast 0.8614\n");
    assert_string_equal(result.err, "");
    command_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_has_the_exit_codes_of_help),
        cmocka_unit_test(the_guides_first_program_is_the_one_in_examples),
        cmocka_unit_test(the_example_finds_east_and_then_northeast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
