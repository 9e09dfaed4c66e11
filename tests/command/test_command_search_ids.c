/* Ids in `warpwave search`: read from a file, returned with the rows, refused, and printed without harm. */
#include <stdio.h>
#include <string.h>

#include "command/search_files.h"
#include "warpwave/json.h"

/* `count` ids, the n-th as printf writes it with `format`. */
static void write_ids(const char *name, const char *format, int count)
{
    char text[ROWS * 32 + 64] = "";
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i % 2 ? "even-%d\n" : format, i);
    scratch_write(name, text, used);
}

static void ids_are_returned_with_the_rows(void **state)
{
    (void)state;
    write_ids("ids.txt", "r\xc3\xb6w %d\r\n", ROWS); /* UTF-8, and lines that end in CR LF */
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k",
                                  "9", "--metric", "l2", "--ids", scratch_path("ids.txt"), "--rows-skip", "90", "--json");
    const json_t *results = json_object_get(report, "results"), *found, *neighbour;
    size_t i, j;
    json_array_foreach(results, i, found) json_array_foreach(found, j, neighbour)
    {
        char id[32];
        snprintf(id, sizeof id, row_of(neighbour) % 2 ? "even-%d" : "r\xc3\xb6w %d", (int)row_of(neighbour));
        assert_string_equal(json_string_value(json_object_get(neighbour, "id")), id);
    }
    json_decref(report);
    COMMAND_SAYS(0, "r\xc3\xb6w 100\n", "search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"),
                 "-k", "9", "--metric", "l2", "--ids", scratch_path("ids.txt"));
}

#define SEARCH_WITH_IDS(name)                                                                                                  \
    "search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k", "2", "--metric", "l2",      \
        "--ids", scratch_path(name)

static void ids_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static char wide[ROWS * 300];
    write_ids("few.txt", "odd-%d\n", ROWS - 1);
    COMMAND_SAYS(3, "has 299 ids", SEARCH_WITH_IDS("few.txt"));
    write_ids("many.txt", "odd-%d\n", ROWS + 1);
    COMMAND_SAYS(3, "has 301 ids", SEARCH_WITH_IDS("many.txt"));
    write_ids("same.txt", "even-1\n", ROWS);
    COMMAND_SAYS(3, "'even-1'", SEARCH_WITH_IDS("same.txt"));
    scratch_write("empty.txt", "a\n\nb\n", 5);
    COMMAND_SAYS(3, "line 2 is empty", SEARCH_WITH_IDS("empty.txt"));
    scratch_write("nul.txt", "a\nb\0c\n", 6);
    COMMAND_SAYS(3, "line 2 is not UTF-8", SEARCH_WITH_IDS("nul.txt"));
    memset(wide, 'x', sizeof wide);
    scratch_write("wide.txt", wide, 257);
    COMMAND_SAYS(3, "line 1 has 257 bytes", SEARCH_WITH_IDS("wide.txt"));
    COMMAND_SAYS(3, "absent.txt: cannot open the file for reading", SEARCH_WITH_IDS("absent.txt"));
    COMMAND_SAYS(3, "is a directory, not a file", SEARCH_WITH_IDS("."));
}

static void ids_that_are_not_utf8_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",             /* a continuation without a lead */
        "\xc3",             /* a lead without its continuation */
        "\xc3(",            /* a lead with something else */
        "\xc0\xaf",         /* two bytes instead of one */
        "\xe0\x80\xaf",     /* three */
        "\xf0\x80\x80\xaf", /* four */
        "\xed\xa0\x80",     /* half of a surrogate pair */
        "\xf4\x90\x80\x80", /* past the last code point */
        "\xff",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scratch_write("bad.txt", bad[i], strlen(bad[i]));
        COMMAND_SAYS(3, "line 1 is not UTF-8", SEARCH_WITH_IDS("bad.txt"));
    }
    scratch_write("good.txt", "\xed\x9f\xbf\xf4\x8f\xbf\xbf\xe0\xa0\x80", 10);
    COMMAND_SAYS(3, "has 1 ids", SEARCH_WITH_IDS("good.txt")); /* the text is fine, there is too little of it */
}

static void an_id_cannot_move_the_cursor(void **state)
{
    (void)state;
    write_ids("escape.txt", "\033[2J%d\n", ROWS);
    command_result result = COMMAND_RUN(SEARCH_WITH_IDS("escape.txt"));
    assert_int_equal(result.code, 0);
    assert_null(strchr(result.out, '\033'));
    assert_non_null(strstr(result.out, "  \\x1b[2J100\n"));
    command_free(&result);
}

static void an_id_that_is_no_utf8_is_spelt_in_json(void **state)
{
    (void)state;
    json_kept report;
    CHECK_OK(json_keep(&report, JSON_DIGITS_F32));
    report.writer.compact = true;
    json_open(&report.writer, NULL, '[');
    json_put_id(&report.writer, NULL, "r\xff");
    json_put_id(&report.writer, NULL, "r\xc3\xa9");
    json_put_id(&report.writer, NULL, NULL);
    json_close(&report.writer);
    CHECK_OK(json_kept_check(&report));
    assert_string_equal(report.text, "[\"r\\\\xff\", \"r\\u00e9\", null]\n");
    json_kept_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_returned_with_the_rows),         cmocka_unit_test(ids_that_do_not_fit_are_refused),
        cmocka_unit_test(ids_that_are_not_utf8_are_refused),      cmocka_unit_test(an_id_cannot_move_the_cursor),
        cmocka_unit_test(an_id_that_is_no_utf8_is_spelt_in_json),
    };
    return cmocka_run_group_tests(tests, make_files, scratch_teardown);
}
