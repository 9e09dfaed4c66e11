/* The command reads and prints the same numbers in any rounding mode that a library loaded before it has set. */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/calls/rounding.h"
#include "support/command.h"

enum { COLUMNS = 12, ROWS = HARD_NUMBERS / COLUMNS };

/* Outputs of all commands, and the files that they wrote. */
static char *answer;
static size_t answer_bytes;

static void note(const char *bytes, size_t size)
{
    char *larger = realloc(answer, answer_bytes + size + 1);
    assert_non_null(larger);
    answer = larger;
    memcpy(answer + answer_bytes, bytes, size);
    answer_bytes += size;
    answer[answer_bytes] = '\0';
}

/* Every line that tells no time. */
static void note_output(const char *text)
{
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", (int)length, line);
        if (!strstr(copy, "second") && !strstr(copy, "per_s") && !strstr(copy, "bytes"))
            note(line, length + (line[length] != '\0'));
        line += length + (line[length] != '\0');
    }
}

static void run(const char *const *arguments)
{
    command_result result = command_run(arguments);
    if (result.code != 0)
        fail_msg("%s %s: exit code %d: %s", arguments[0], arguments[1], result.code, result.err);
    note_output(result.out);
    command_free(&result);
}
#define RUN(...) run((const char *[]){__VA_ARGS__, NULL})

static void note_file(const char *path)
{
    size_t size;
    char *content = scratch_content(path, &size);
    note(content, size);
    free(content);
}

/* rows.csv and rows.jsonl, of hard numbers. */
static void write_rows(void)
{
    static char csv[HARD_NUMBERS * HARD_NUMBER_BYTES], jsonl[HARD_NUMBERS * HARD_NUMBER_BYTES];
    size_t csv_length = 0, jsonl_length = 0;
    for (int i = 0; i < HARD_NUMBERS; i++) {
        char text[HARD_NUMBER_BYTES];
        const bool first = i % COLUMNS == 0, last = i % COLUMNS == COLUMNS - 1;
        hard_number(i, text);
        csv_length += (size_t)snprintf(csv + csv_length, sizeof csv - csv_length, "%s%c", text, last ? '\n' : ',');
        if (first)
            jsonl_length += (size_t)snprintf(jsonl + jsonl_length, sizeof jsonl - jsonl_length,
                                             "{\"id\": \"r%d\", \"payload\": {\"x\": %s}, \"vector\": [", i / COLUMNS, text);
        jsonl_length += (size_t)snprintf(jsonl + jsonl_length, sizeof jsonl - jsonl_length, "%s%s", text, last ? "]}\n" : ", ");
    }
    scratch_write("rows.csv", csv, csv_length);
    scratch_write("rows.jsonl", jsonl, jsonl_length);
}

static void run_everything(void)
{
    char csv[SCRATCH_PATH_BYTES], store[SCRATCH_PATH_BYTES];
    snprintf(csv, sizeof csv, "%s", scratch_path("rows.csv"));
    snprintf(store, sizeof store, "%s", scratch_path("s.db"));
    RUN("search", "--base", csv, "--queries", csv, "-k", "3", "--metric", "cosine", "--device", "cpu", "--json", "--quiet");
    RUN("search", "--base", csv, "--queries", csv, "--metric", "l2", "--radius", "33.3000000000000001", "--device", "cpu",
        "--json", "--quiet");
    RUN("store", "import", store, "docs", scratch_path("rows.jsonl"), "--metric", "l2", "--quiet");
    RUN("store", "add", store, "docs", "--id", "more", "--vector", "[0.1,0.2,0.3,0.7,1e-7,3.3,4.4,5.5,6.6,7.7,8.8,9.9]");
    RUN("store", "search", store, "docs", "--queries", csv, "-k", "3", "--where", "payload->>'$.x' > :x", "--param", "x=0.1",
        "--device", "cpu", "--json");
    RUN("store", "get", store, "docs", "--id", "r3", "--vectors", "--json");
    static const char *const names[] = {"out.jsonl", "out.csv", "out.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        RUN("store", "export", store, "docs", scratch_path(names[i]), "--quiet");
        note_file(scratch_path(names[i]));
        unlink(scratch_path(names[i]));
    }
    unlink(store);
    static const char file[] = SOURCE_DIR "/tests/golden/more_cases.json";
    const char *const cases[] = {"warpwave-cases", file, "--device", "cpu", NULL};
    command_result result = program_run(CASES_PATH, cases);
    note(result.out, strlen(result.out));
    command_free(&result);
}

static void numbers_are_read_and_printed_alike(void **state)
{
    (void)state;
    char *right = NULL;
    size_t right_bytes = 0;
    write_rows();
    for (int i = 0; i < ROUNDING_COUNT; i++) {
        answer = NULL;
        answer_bytes = 0;
        command_round(ROUNDINGS[i]);
        run_everything();
        command_round(FE_TONEAREST);
        if (i == 0) {
            right = answer;
            right_bytes = answer_bytes;
            continue;
        }
        size_t at = 0;
        while (at < right_bytes && at < answer_bytes && right[at] == answer[at])
            at++;
        if (at < right_bytes || at < answer_bytes)
            fail_msg("under rounding mode %x: \"%.100s\", not \"%.100s\"", (unsigned)ROUNDINGS[i], answer + at, right + at);
        free(answer);
    }
    assert_non_null(memmem(right, right_bytes, " passed, 0 failed", 17));
    free(right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_read_and_printed_alike)};
    return cmocka_run_group_tests_name("the command under every rounding mode", tests, scratch_setup, scratch_teardown);
}
