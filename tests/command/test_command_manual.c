/* What is written about the command and the library is what they do: the manual page has each command's options and no others,
 * and the README's example is the program in examples/, which runs. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

enum { OPTIONS_MAX = 32, NAME_BYTES = 32 };

typedef struct names {
    char text[OPTIONS_MAX][NAME_BYTES];
    int count;
} names;

static void names_add(names *list, const char *prefix, const char *from)
{
    size_t length = 0;
    while (isalnum((unsigned char)from[length]) || from[length] == '-')
        length++;
    assert_true(list->count < OPTIONS_MAX);
    snprintf(list->text[list->count++], NAME_BYTES, "%s%.*s", prefix, (int)length, from);
}

static bool names_have(const names *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->text[i], name) == 0)
            return true;
    return false;
}

/* Lines of `warpwave help NAME` that begin with two blanks and a dash. */
static names options_in_help(const char *command)
{
    names list = {.count = 0};
    command_result help = COMMAND_RUN("help", command);
    for (const char *line = help.out; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "  -", 3) == 0)
            names_add(&list, "", line + 2);
    }
    command_free(&help);
    return list;
}

/* Lines ".It Fl NAME" of the command's section. */
static names options_in_manual(const char *manual, const char *command)
{
    names list = {.count = 0};
    char head[64];
    snprintf(head, sizeof head, ".Ss warpwave %s\n", command);
    const char *line = strstr(manual, head);
    if (!line) {
        fail_msg("the manual has no section '.Ss warpwave %s'", command);
        return list;
    }
    for (line = strchr(line, '\n'); line && strncmp(line, "\n.Ss", 4) != 0 && strncmp(line, "\n.Sh", 4) != 0;
         line = strchr(line + 1, '\n'))
        if (strncmp(line, "\n.It Fl ", 8) == 0)
            names_add(&list, "-", line + 8);
    return list;
}

static void the_manual_has_every_option_and_no_other(void **state)
{
    (void)state;
    static const char *const commands[] = {"devices", "search",      "store", "demo",    "bench", "model",
                                           "gguf",    "safetensors", "quant", "version", "help"};
    static const int counts[] = {2, 30, 29, 4, 12, 21, 5, 1, 4, 0, 0};
    size_t size;
    char *manual = scratch_content(SOURCE_DIR "/docs/reference/warpwave.1", &size);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const names help = options_in_help(commands[i]), page = options_in_manual(manual, commands[i]);
        assert_int_equal(help.count, counts[i]);
        for (int j = 0; j < help.count; j++)
            if (!names_have(&page, help.text[j]))
                fail_msg("the manual's '%s' lacks %s", commands[i], help.text[j]);
        for (int j = 0; j < page.count; j++)
            if (!names_have(&help, page.text[j]))
                fail_msg("the manual's '%s' has %s, the command has not", commands[i], page.text[j]);
    }
    free(manual);
}

/* "  3    a file ..." in help is ".It 3" and the same words, but for case and the stop, in the manual. */
static void the_manual_has_the_exit_codes_of_help(void **state)
{
    (void)state;
    size_t size;
    char *manual = scratch_content(SOURCE_DIR "/docs/reference/warpwave.1", &size);
    command_result help = COMMAND_RUN("help");
    const char *line = strstr(help.out, "Exit codes:\n");
    int found = 0;
    assert_non_null(line);
    for (line = strchr(line, '\n') + 1; *line == ' '; line = strchr(line, '\n') + 1, found++) {
        int code, used;
        char entry[256];
        assert_int_equal(sscanf(line, " %d %n", &code, &used), 1);
        snprintf(entry, sizeof entry, "\n.It %d\n%c%.*s.\n", code, toupper((unsigned char)line[used]),
                 (int)strcspn(line + used + 1, "\n"), line + used + 1);
        if (!strstr(manual, entry))
            fail_msg("the manual lacks:%s", entry);
    }
    assert_int_equal(found, 7);
    command_free(&help);
    free(manual);
}

static void the_readmes_example_is_the_program_in_examples(void **state)
{
    (void)state;
    size_t size;
    char *readme = scratch_content(SOURCE_DIR "/README.md", &size),
         *example = scratch_content(SOURCE_DIR "/examples/search.c", &size);
    char *block = malloc(size + 16);
    assert_non_null(block);
    snprintf(block, size + 16, "```c\n%s```\n", example);
    assert_non_null(strstr(readme, block));
    free(block);
    free(example);
    free(readme);
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
        cmocka_unit_test(the_manual_has_every_option_and_no_other),
        cmocka_unit_test(the_manual_has_the_exit_codes_of_help),
        cmocka_unit_test(the_readmes_example_is_the_program_in_examples),
        cmocka_unit_test(the_example_finds_east_and_then_northeast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
