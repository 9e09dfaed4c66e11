/* Compiles the public headers with strict compilers: each header by itself, in C and in C++, old standards and new, without a
 * warning.
 *
 * A program that uses the library should not need exceptions for it. The test uses the installed compilers and reports the
 * others as skipped.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

enum { HEADERS_MAX = 32 };

static const char *const strict[] = {"-Wall", "-Wextra", "-Wpedantic", "-pedantic", "-Wshadow", "-Wconversion", "-Werror"};

typedef struct compiler {
    const char *name, *language, *standard;
} compiler;

static bool is_installed(const char *name)
{
    char line[256];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", name);
    return system(line) == 0;
}

/* The headers by the names used in #include: "warpwave.h", "warpwave/device.h", ... cluster.h needs an MPI compiler: the tests
 * of ranks include it first. */
static int find_headers(char names[HEADERS_MAX][300])
{
    int count = 0;
    snprintf(names[count++], sizeof names[0], "warpwave.h");
    DIR *folder = opendir(SOURCE_DIR "/include/warpwave");
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        const size_t length = strlen(entry->d_name);
        if (length > 2 && strcmp(entry->d_name + length - 2, ".h") == 0 && strcmp(entry->d_name, "cluster.h") != 0) {
            assert_true(count < HEADERS_MAX);
            snprintf(names[count++], sizeof names[0], "warpwave/%s", entry->d_name);
        }
    }
    closedir(folder);
    return count;
}

/* Includes the header twice, to test its guards. Inline functions are compiled, too, even if they are not used. */
static command_result compile(const compiler *with, const char *header)
{
    char text[640];
    const int length =
        snprintf(text, sizeof text, "#include <%s>\n#include <%s>\nint main(void)\n{\n    return 0;\n}\n", header, header);
    const char *source = scratch_write(strcmp(with->language, "c") == 0 ? "alone.c" : "alone.cc", text, (size_t)length);
    char line[2 * SCRATCH_PATH_BYTES];
    int used = snprintf(line, sizeof line, "%s -x %s -std=%s -fsyntax-only -I'%s'", with->name, with->language, with->standard,
                        SOURCE_DIR "/include");
    for (size_t i = 0; i < sizeof strict / sizeof *strict; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %s", strict[i]);
    snprintf(line + used, sizeof line - (size_t)used, " '%s'", source);
    const char *const arguments[] = {"sh", "-c", line, NULL};
    return program_run("/bin/sh", arguments);
}

static void compiles_alone(const compiler *compilers, size_t count)
{
    static char headers[HEADERS_MAX][300];
    const int header_count = find_headers(headers);
    assert_true(header_count >= 9);
    for (size_t c = 0; c < count; c++) {
        if (!is_installed(compilers[c].name)) {
            printf("SKIP: %s is not installed, so no header was compiled with it\n", compilers[c].name);
            continue;
        }
        for (int h = 0; h < header_count; h++) {
            command_result result = compile(&compilers[c], headers[h]);
            if (result.code != 0)
                fail_msg("%s -std=%s: <%s>:\n%s", compilers[c].name, compilers[c].standard, headers[h], result.err);
            command_free(&result);
        }
    }
}

static void every_single_header_compiles_in_c_without_a_warning(void **state)
{
    (void)state;
    static const compiler compilers[] = {
        {"gcc", "c", "c99"}, {"gcc", "c", "c11"}, {"clang", "c", "c99"}, {"clang-19", "c", "c11"}};
    compiles_alone(compilers, sizeof compilers / sizeof *compilers);
}

static void every_single_header_compiles_in_cpp_without_a_warning(void **state)
{
    (void)state;
    static const compiler compilers[] = {{"g++", "c++", "c++11"},
                                         {"g++", "c++", "c++17"},
                                         {"clang++", "c++", "c++11"},
                                         {"clang++", "c++", "c++17"},
                                         {"clang++-19", "c++", "c++20"}};
    compiles_alone(compilers, sizeof compilers / sizeof *compilers);
}

/* If the flags or the compiler's exit code were lost, the tests above would pass with any header. */
static void a_header_with_a_warning_would_be_noticed(void **state)
{
    (void)state;
    static const compiler cpp = {"g++", "c++", "c++11"};
    if (!is_installed(cpp.name)) {
        printf("SKIP: %s is not installed\n", cpp.name);
        skip();
    }
    static const char text[] = "struct pair { int a, b; };\n"
                               "static inline pair none(void)\n{\n    pair p = {0};\n    return p;\n}\n";
    char header[SCRATCH_PATH_BYTES];
    snprintf(header, sizeof header, "%s", scratch_write("warns.h", text, sizeof text - 1));
    command_result result = compile(&cpp, header);
    assert_int_not_equal(result.code, 0);
    assert_non_null(strstr(result.err, "missing-field-initializers"));
    command_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_single_header_compiles_in_c_without_a_warning, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(every_single_header_compiles_in_cpp_without_a_warning, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_header_with_a_warning_would_be_noticed, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
