/* `warpwave store import` and `store add --in`: imports that go on where they were interrupted, and payloads in CSV. */
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

enum { ROWS = 70000, BATCH = 65536 }; /* two batches */

static char store[SCRATCH_PATH_BYTES];

static int setup(void **state)
{
    const int made = scratch_setup(state);
    snprintf(store, sizeof store, "%s", scratch_path("s.db"));
    return made;
}

static char *path_of(const char *name)
{
    static char paths[2][SCRATCH_PATH_BYTES];
    static int next;
    char *path = paths[next ^= 1];
    snprintf(path, SCRATCH_PATH_BYTES, "%s", scratch_path(name));
    return path;
}

/* Vectors of one number and their ids, r0, r1, ...; returns the path of the vectors. */
static char *write_rows(void)
{
    const int32_t counts[] = {ROWS, 1};
    char *bytes = malloc(sizeof counts + ROWS * sizeof(float)), *ids = malloc(ROWS * 8);
    size_t length = 0;
    assert_true(bytes && ids);
    memcpy(bytes, counts, sizeof counts);
    for (int i = 0; i < ROWS; i++) {
        const float value = (float)i;
        memcpy(bytes + sizeof counts + i * sizeof value, &value, sizeof value);
        length += (size_t)snprintf(ids + length, 8, "r%d\n", i);
    }
    scratch_write("ids.txt", ids, length);
    scratch_write("rows.fbin", bytes, sizeof counts + ROWS * sizeof(float));
    free(bytes);
    free(ids);
    return path_of("rows.fbin");
}

static void write_objects(void)
{
    char *text = malloc(ROWS * 40);
    size_t length = 0;
    assert_non_null(text);
    for (int i = 0; i < ROWS; i++)
        length += (size_t)snprintf(text + length, 40, "%s{\"id\": \"r%d\", \"vector\": [%d]}\n", i % 1000 ? "" : "\n", i, i);
    scratch_write("rows.jsonl", text, length);
    free(text);
}

/* The second batch fails because the id of its last row is taken; without that row the import goes on after the first. */
static void go_on(const char *file, const char *ids)
{
    COMMAND_SAYS(0, "created", "store", "create", store, "docs", "--dim", "1");
    COMMAND_SAYS(0, "1 row (the collection was empty)", "store", "add", store, "docs", "--vector", "[5]", "--id", "r69999");
    COMMAND_SAYS(3, "the 65536 rows before this batch", "store", "add", store, "docs", "--in", file, "--resume",
                 ids ? "--ids" : NULL, ids);
    COMMAND_SAYS(0, "1", "store", "remove", store, "docs", "--id", "r69999");
    COMMAND_SAYS(0, "70000 rows (65536 before)", "store", "add", store, "docs", "--in", file, "--resume", ids ? "--ids" : NULL,
                 ids);
    COMMAND_SAYS(0, "70000 rows (70000 before)", "store", "add", store, "docs", "--in", file, "--resume", ids ? "--ids" : NULL,
                 ids);
    COMMAND_SAYS(0, "69999", "store", "get", store, "docs", "--id", "r69999", "--vectors");
    COMMAND_SAYS(0, "sound", "store", "check", store);
}

static void vectors_go_on_after_the_last_batch(void **state)
{
    (void)state;
    const char *file = write_rows();
    go_on(file, path_of("ids.txt"));
}

static void lines_go_on_after_the_last_batch(void **state)
{
    (void)state;
    write_objects();
    go_on(path_of("rows.jsonl"), NULL);
}

static void a_changed_file_is_not_resumed(void **state)
{
    (void)state;
    const char one[] = "{\"vector\": [1]}\n", two[] = "{\"vector\": [1]}\n{\"vector\": [2]}\n";
    const char *file = scratch_write("rows.jsonl", one, sizeof one - 1);
    COMMAND_SAYS(0, "1 row (the collection was empty)", "store", "import", store, "docs", file, "--resume");
    command_result result = COMMAND_RUN("store", "import", store, "docs", file);
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.err, "already has the first 1 of the rows or lines"));
    command_free(&result);
    scratch_write("rows.jsonl", two, sizeof two - 1);
    COMMAND_SAYS(3, "has changed since 1 of its rows or lines were added", "store", "import", store, "docs", file, "--resume");
    COMMAND_SAYS(2, "--resume: - is not a file", "store", "import", store, "docs", "-", "--format", "jsonl", "--resume");
    COMMAND_SAYS(2, "--resume goes with --in", "store", "add", store, "docs", "--vector", "[1]", "--resume");
}

static void records_of_csv_are_payloads(void **state)
{
    (void)state;
    static const char meta[] = "name,year,\"a \"\"b\"\"\",x\r\n"
                               "\"n, 1\nsecond\",2000,,true\r\n"
                               "\n"
                               "\xc3\x84,-1.50,\"say \"\"hi\"\"\\\",007\r\n";
    char *rows = path_of("rows.csv"), *payloads = path_of("meta.csv");
    scratch_write("rows.csv", "1,2\n3,4\n", 8);
    scratch_write("meta.csv", meta, sizeof meta - 1);
    COMMAND_SAYS(0, "2 rows (the collection was empty)", "store", "import", store, "docs", rows, "--payloads", payloads);
    json_t *got = COMMAND_JSON("store", "get", store, "docs", "--limit", "2", "--json");
    json_t *wanted = json_loads("[{\"name\": \"n, 1\\nsecond\", \"year\": 2000, \"a \\\"b\\\"\": null, \"x\": true}, "
                                "{\"name\": \"\\u00c4\", \"year\": -1.5, \"a \\\"b\\\"\": \"say \\\"hi\\\"\\\\\", \"x\": "
                                "\"007\"}]",
                                0, NULL);
    for (size_t i = 0; i < 2; i++)
        assert_true(json_equal(json_object_get(json_array_get(got, i), "payload"), json_array_get(wanted, i)));
    json_decref(got);
    json_decref(wanted);
}

static void bad_records_are_refused_with_their_line(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "it is empty"},
        {"a,\n1,2\n3,4\n", "line 1: a field has no name"},
        {"a,a\n1,2\n3,4\n", "line 1: two fields are named 'a'"},
        {"a,b\n1\n2,3\n", "line 2: the record has 1 values; the first line names 2 fields"},
        {"a,b\n1,2\n3,4,5\n", "line 3: the record has 3 values"},
        {"a,b\n1,2\n3,\"4\n", "a quote is not closed"},
        {"a,b\n1,2\n3,4\"5\"\n", "line 3: a quote is within a value"},
        {"a,b\n1,2\n3,\"4\"5\n", "line 3: a quote is within a value"},
        {"a,b\n1,2\n3,\xff\n", "line 3: it is not UTF-8"},
        {"a,b\n1,2\n", "there must be one for each of the 2 rows"},
        {"a,b\n1,2\n3,4\n5,6\n", "more payloads than there are rows"},
    };
    char *rows = path_of("rows.csv"), *payloads = path_of("meta.csv");
    scratch_write("rows.csv", "1,2\n3,4\n", 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_write("meta.csv", cases[i][0], strlen(cases[i][0]));
        COMMAND_SAYS(3, cases[i][1], "store", "import", store, "docs", rows, "--payloads", payloads);
    }
}

static void files_for_python_are_named_as_such(void **state)
{
    (void)state;
    const char *file = scratch_write("rows.parquet", "PAR1", 4);
    COMMAND_SAYS(3, "Python reads such files, with pyarrow", "store", "import", store, "docs", file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(vectors_go_on_after_the_last_batch, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(lines_go_on_after_the_last_batch, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_changed_file_is_not_resumed, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(records_of_csv_are_payloads, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(bad_records_are_refused_with_their_line, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(files_for_python_are_named_as_such, setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
