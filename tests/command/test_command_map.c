/* `warpwave store map`: the files it writes, its report, and its refusals. tests/python/vectors/test_map.py reads its pictures.
 */
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

static char store[SCRATCH_PATH_BYTES];

static const char lines[] =
    "{\"id\": \"a\", \"vector\": [1, 0, 0], \"payload\": {\"kind\": \"<script>&'\\u0007\", \"year\": 1}}\n"
    "{\"id\": \"b\", \"vector\": [1, 1, 0], \"payload\": {\"kind\": \"<script>&'\\u0007\", \"year\": 2}}\n"
    "{\"id\": \"c\", \"vector\": [0, 1, 3], \"payload\": {\"kind\": true, \"year\": 3}}\n"
    "{\"id\": \"d\", \"vector\": [0, 2, 3], \"payload\": {\"in\": {\"side\": \"x\"}}}\n"
    "{\"id\": \"e\", \"vector\": [0, 0, 1]}";

static int setup(void **state)
{
    const int made = scratch_setup(state);
    snprintf(store, sizeof store, "%s", scratch_path("s.db"));
    const char *file = scratch_write("rows.jsonl", lines, sizeof lines - 1);
    COMMAND_SAYS(0, "5 rows", "store", "import", store, "docs", file, "--metric", "l2");
    return made;
}

static void points_and_ids_are_written(void **state)
{
    (void)state;
    char *points = strdup(scratch_path("m.npy")), *ids = strdup(scratch_path("ids.txt"));
    size_t size = 0;
    COMMAND_SAYS(0, "5 points, made with 15 neighbours, 30 steps and seed 3", "store", "map", store, "docs", "--out", points,
                 "--ids", ids, "--steps", "30", "--seed", "3");
    char *written = scratch_content(ids, &size);
    assert_string_equal(written, "a\nb\nc\nd\ne\n");
    free(written);
    char *before = scratch_content(points, &size);
    assert_int_equal(size, 128 + 5 * 2 * 4);
    assert_non_null(strstr(before + 10, "(5, 2)"));
    COMMAND_SAYS(0, "5 points, kept with 15 neighbours, 30 steps and seed 3", "store", "map", store, "docs", "--out", points);
    char *after = scratch_content(points, &size);
    assert_memory_equal(before, after, 128 + 5 * 2 * 4);
    free(after);
    COMMAND_SAYS(0, "", "store", "add", store, "docs", "--vector", "[1, 1, 1]", "--id", "f");
    COMMAND_SAYS(0, "6 points, grown with 15 neighbours, 30 steps and seed 3; 1 placed", "store", "map", store, "docs", "--out",
                 points);
    COMMAND_SAYS(0, "6 points, made with 15 neighbours, 30 steps and seed 3\n", "store", "map", store, "docs", "--out", points,
                 "--remake");
    json_t *report = COMMAND_JSON("store", "map", store, "docs", "--out", points, "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "rows")), 6);
    assert_string_equal(json_string_value(json_object_get(report, "origin")), "kept");
    json_decref(report);
    free(before);
    free(ids);
    free(points);
}

static void pictures_have_a_legend_that_is_text(void **state)
{
    (void)state;
    char *svg = strdup(scratch_path("m.svg")), *png = strdup(scratch_path("m.png"));
    size_t size = 0;
    COMMAND_SAYS(0, "#a0a4a8          2  other", "store", "map", store, "docs", "--out", svg, "--color", "kind", "--steps",
                 "9");
    char *text = scratch_content(svg, &size);
    assert_non_null(strstr(text, "&#60;script&#62;&#38;&#39;  (2)</text>")); /* the bell is a space */
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, ">true (1)</text>"));
    assert_non_null(strstr(text, "</svg>\n"));
    free(text);
    json_t *report = COMMAND_JSON("store", "map", store, "docs", "--out", svg, "--color", "in.side", "--json");
    json_t *first = json_array_get(json_object_get(report, "legend"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "value")), "x");
    assert_int_equal(json_integer_value(json_object_get(first, "rows")), 1);
    json_decref(report);
    COMMAND_SAYS(0, "5 points", "store", "map", store, "docs", "--out", png);
    char *bytes = scratch_content(png, &size);
    assert_memory_equal(bytes, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    assert_memory_equal(bytes + size - 8, "IEND\xae\x42\x60\x82", 8);
    free(bytes);
    free(png);
    free(svg);
}

static void wrong_command_lines_are_refused(void **state)
{
    (void)state;
    const char *const svg = scratch_path("m.svg"), *const npy = scratch_path("m.npy");
    COMMAND_SAYS(2, "must end in .svg, .png or .npy", "store", "map", store, "docs", "--out", scratch_path("m.jpg"));
    COMMAND_SAYS(2, "--out", "store", "map", store, "docs");
    COMMAND_SAYS(2, "--color is for pictures", "store", "map", store, "docs", "--out", npy, "--color", "kind");
    COMMAND_SAYS(2, "--neighbours", "store", "map", store, "docs", "--out", npy, "--neighbours", "1");
    COMMAND_SAYS(2, "--seed", "store", "map", store, "docs", "--out", npy, "--seed", "-1");
    COMMAND_SAYS(2, "--ids", "store", "map", store, "docs", "--out", npy, "--ids", npy);
    COMMAND_SAYS(1, "no row has a field 'colour'", "store", "map", store, "docs", "--out", svg, "--color", "colour");
    COMMAND_SAYS(1, "nobody", "store", "map", store, "nobody", "--out", svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(points_and_ids_are_written, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(pictures_have_a_legend_that_is_text, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(wrong_command_lines_are_refused, setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("command: maps", tests, NULL, NULL);
}
