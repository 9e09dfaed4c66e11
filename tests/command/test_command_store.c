/* `warpwave store` and `warpwave search --store`: what they store, find, print and refuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"

static char store[SCRATCH_PATH_BYTES];

static const char lines[] = "{\"id\": \"a\", \"vector\": [1, 0, 0], \"payload\": {\"lang\": \"en\", \"year\": 1999}}\n"
                            "{\"id\": \"b\", \"vector\": [0.9, 0.1, 0], \"payload\": {\"lang\": \"de\", \"year\": 2005}}\r\n"
                            "\n"
                            "{\"id\": \"c\", \"vector\": [0, 1, 0.5], \"payload\": {\"lang\": \"en\", \"year\": 2010}}\n"
                            "{\"id\": 7, \"vector\": [0, 0, 1]}";

/* A store with the collection `docs` of these four rows. */
static int setup(void **state)
{
    const int made = scratch_setup(state);
    snprintf(store, sizeof store, "%s", scratch_path("s.db"));
    const char *file = scratch_write("rows.jsonl", lines, sizeof lines - 1);
    COMMAND_SAYS(0, "4 rows (the collection was empty)", "store", "import", store, "docs", file, "--metric", "l2");
    return made;
}

/* The ids of the only query's results, with commas between. */
static void assert_found(json_t *report, const char *expected)
{
    char found[256] = "";
    size_t i;
    json_t *hit;
    json_array_foreach(json_array_get(json_object_get(report, "results"), 0), i, hit)
    {
        strncat(found, i > 0 ? "," : "", sizeof found - strlen(found) - 1);
        strncat(found, json_string_value(json_object_get(hit, "id")), sizeof found - strlen(found) - 1);
    }
    assert_string_equal(found, expected);
    json_decref(report);
}

static void imported_rows_are_listed_returned_and_found(void **state)
{
    (void)state;
    json_t *list = COMMAND_JSON("store", "list", store, "--json"), *first = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "docs");
    assert_int_equal(json_integer_value(json_object_get(first, "rows")), 4);
    assert_int_equal(json_integer_value(json_object_get(first, "dim")), 3);
    json_decref(list);
    json_t *rows = COMMAND_JSON("store", "get", store, "docs", "--id", "b", "--id", "7", "--vectors", "--json");
    json_t *payload = json_object_get(json_array_get(rows, 0), "payload");
    assert_int_equal(json_integer_value(json_object_get(payload, "year")), 2005);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "payload")));
    json_t *vector = json_object_get(json_array_get(rows, 0), "vector");
    assert_true((float)json_number_value(json_array_get(vector, 1)) == 0.1f);
    json_decref(rows);
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[1, 0, 0]", "-k", "2", "--json"), "a,b");
    COMMAND_SAYS(0, "{\"lang\":\"en\",\"year\":1999}", "store", "search", store, "docs", "--vector", "[1, 0, 0]", "-k", "1");
    COMMAND_SAYS(0, "docs", "store", "info", store);
}

static void filters_take_parameters(void **state)
{
    (void)state;
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[1, 0, 0]", "--where", "payload->>'$.year' > :y",
                              "--param", "y=2000", "--json"),
                 "b,c");
    COMMAND_SAYS(0, "indexed docs", "store", "index", store, "docs", "$.lang");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[1, 0, 0]", "--where",
                              "payload->>'$.lang' = :lang AND payload->>'$.year' < ?2", "--param", "lang=en", "--param",
                              "2=2000.5", "--json"),
                 "a");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[1, 0, 0]", "--where", "id = :id", "--param",
                              "id='7'", "--json"),
                 "7");
    const char *queries = scratch_write("q.csv", "0,1,0.4\n", 8);
    assert_found(COMMAND_JSON("search", "--store", store, "--collection", "docs", "--queries", queries, "-k", "1", "--where",
                              "id <> 'zzz'", "--json"),
                 "c");
    assert_found(
        COMMAND_JSON("search", "--store", store, "--collection", "docs", "--queries", queries, "--radius", "0.2", "--json"),
        "c");
    COMMAND_SAYS(2, "--where, which is missing", "store", "search", store, "docs", "--vector", "[1,0,0]", "--param", "a=1");
    COMMAND_SAYS(2, "--param 'a'", "store", "search", store, "docs", "--vector", "[1,0,0]", "--where", "id = :a", "--param",
                 "a");
}

static void rows_are_added_replaced_and_removed(void **state)
{
    (void)state;
    COMMAND_SAYS(0, "5 rows (4 before)", "store", "add", store, "docs", "--vector", "[5, 5, 5]", "--id", "e", "--payload",
                 "{\"n\": 1}");
    COMMAND_SAYS(3, "e", "store", "add", store, "docs", "--vector", "[6, 6, 6]", "--id", "e");
    COMMAND_SAYS(0, "5 rows (5 before)", "store", "add", store, "docs", "--vector", "[6, 6, 6]", "--id", "e", "--upsert");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[6, 6, 6]", "-k", "1", "--json"), "e");
    COMMAND_SAYS(0, "removed 1 row\n", "store", "remove", store, "docs", "--id", "e");
    command_result result = COMMAND_RUN("store", "remove", store, "docs", "--id", "e");
    assert_int_not_equal(result.code, 0);
    command_free(&result);
    COMMAND_SAYS(0, "removed 1 row; the others", "store", "remove", store, "docs", "--id", "e", "--id", "a", "--missing-ok");
    COMMAND_SAYS(0, "compacted docs", "store", "compact", store, "docs");
    COMMAND_SAYS(0, "sound", "store", "check", store);
    json_t *list = COMMAND_JSON("store", "list", store, "--json");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "rows")), 3);
    json_decref(list);
}

static void rows_are_got_counted_and_removed_by_conditions(void **state)
{
    (void)state;
    const char *const many = scratch_path("many.db");
    COMMAND_SAYS(0, "created", "store", "create", many, "docs", "--dim", "2");
    for (int i = 0; i < 5; i++) {
        char payload[32], id[16];
        snprintf(payload, sizeof payload, "{\"n\": %d}", i);
        snprintf(id, sizeof id, "r%d", i);
        COMMAND_SAYS(0, " row", "store", "add", many, "docs", "--vector", "[1, 2]", "--id", id, "--payload", payload);
    }
    COMMAND_SAYS(0, "5", "store", "count", many, "docs");
    COMMAND_SAYS(0, "2", "store", "count", many, "docs", "--filter", "{\"n\": {\"$gt\": 2}}");
    COMMAND_SAYS(0, "3", "store", "count", many, "docs", "--where", "payload->>'$.n' IN :ns", "--param", "ns=[0, 1, 4, 9]");
    COMMAND_SAYS(0, "r3", "store", "get", many, "docs", "--filter", "{\"n\": 3}");
    COMMAND_SAYS(0, "the next rows: --after 1", "store", "get", many, "docs", "--limit", "2");
    COMMAND_SAYS(0, "the next rows: --after 3", "store", "get", many, "docs", "--limit", "2", "--after", "1");
    json_t *page = COMMAND_JSON("store", "get", many, "docs", "--limit", "2", "--after", "3", "--json");
    assert_int_equal(json_array_size(page), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(page, 0), "id")), "r4");
    json_decref(page);
    COMMAND_SAYS(2, "either ids", "store", "get", many, "docs", "--limit", "2", "--id", "r1");
    COMMAND_SAYS(0, "removed 2 rows", "store", "remove", many, "docs", "--where", "payload->>'$.n' < :n", "--param", "n=2");
    COMMAND_SAYS(0, "renamed docs", "store", "rename", many, "docs", "notes");
    COMMAND_SAYS(0, "3", "store", "count", many, "notes");
}

/* After export and import, searches find the same rows with the same scores. */
static void an_export_can_be_imported(void **state)
{
    (void)state;
    static const char *const names[] = {"out.jsonl", "out.csv", "out.npy", "out.fbin"};
    for (int i = 0; i < 4; i++) {
        char file[SCRATCH_PATH_BYTES], ids[SCRATCH_PATH_BYTES], payloads[SCRATCH_PATH_BYTES];
        snprintf(file, sizeof file, "%s", scratch_path(names[i]));
        snprintf(ids, sizeof ids, "%s", scratch_path("ids.txt"));
        snprintf(payloads, sizeof payloads, "%s", scratch_path("payloads.txt"));
        if (i == 0) {
            COMMAND_SAYS(0, "wrote 4 rows", "store", "export", store, "docs", file);
            COMMAND_SAYS(0, "4 rows", "store", "import", store, names[i], file, "--metric", "l2");
        } else {
            COMMAND_SAYS(0, "wrote 4 rows", "store", "export", store, "docs", file, "--ids", ids, "--payloads", payloads);
            if (i == 1)
                COMMAND_SAYS(0, "4 rows", "store", "import", store, names[i], file, "--id-column", "id", "--payloads", payloads,
                             "--metric", "l2");
            else
                COMMAND_SAYS(0, "4 rows", "store", "import", store, names[i], file, "--ids", ids, "--payloads", payloads,
                             "--metric", "l2");
        }
        json_t *one = COMMAND_JSON("store", "search", store, "docs", "--vector", "[1, 2, 3]", "--json"),
               *other = COMMAND_JSON("store", "search", store, names[i], "--vector", "[1, 2, 3]", "--json");
        json_t *a = json_array_get(json_object_get(one, "results"), 0),
               *b = json_array_get(json_object_get(other, "results"), 0);
        assert_int_equal(json_array_size(a), 4);
        for (size_t j = 0; j < 4; j++) {
            json_t *x = json_array_get(a, j), *y = json_array_get(b, j);
            assert_true(json_equal(json_object_get(x, "id"), json_object_get(y, "id")));
            assert_true(json_equal(json_object_get(x, "score"), json_object_get(y, "score")));
            assert_true(json_equal(json_object_get(x, "payload"), json_object_get(y, "payload")));
        }
        json_decref(one);
        json_decref(other);
    }
}

/* Into a collection of their type, and of another, which takes them as numbers. */
static void files_of_bytes_are_added_as_they_are(void **state)
{
    (void)state;
    static const unsigned char u8[] = {2, 0, 0, 0, 3, 0, 0, 0, 255, 0, 128, 1, 2, 3};
    char file[SCRATCH_PATH_BYTES], again[SCRATCH_PATH_BYTES];
    snprintf(file, sizeof file, "%s", scratch_write("bytes.u8bin", u8, sizeof u8));
    COMMAND_SAYS(0, "2 rows", "store", "import", store, "bytes", file, "--metric", "l2", "--type", "u8");
    COMMAND_SAYS(0, "2 rows", "store", "import", store, "floats", file, "--metric", "l2");
    static const char *const names[] = {"bytes", "floats"};
    for (int i = 0; i < 2; i++) {
        snprintf(again, sizeof again, "%s", scratch_path("again.jsonl"));
        COMMAND_SAYS(0, "wrote 2 rows", "store", "export", store, names[i], again);
        json_t *found = COMMAND_JSON("store", "search", store, names[i], "--vector", "[255, 0, 128]", "-k", "1", "--json");
        json_t *hit = json_array_get(json_array_get(json_object_get(found, "results"), 0), 0);
        assert_true(json_number_value(json_object_get(hit, "score")) == 0.0);
        json_decref(found);
    }
    static const unsigned char i8[] = {1, 0, 0, 0, 3, 0, 0, 0, 0x80, 0xff, 5}; /* -128, -1, 5 */
    snprintf(file, sizeof file, "%s", scratch_write("bytes.i8bin", i8, sizeof i8));
    COMMAND_SAYS(3, "rows of u8: a vector has a value that it cannot hold", "store", "import", store, "bytes", file);
    COMMAND_SAYS(0, "1 row (", "store", "import", store, "signed", file, "--metric", "l2", "--type", "i8");
    json_t *found = COMMAND_JSON("store", "search", store, "signed", "--vector", "[-128, -1, 5]", "-k", "1", "--json");
    json_t *hit = json_array_get(json_array_get(json_object_get(found, "results"), 0), 0);
    assert_true(json_number_value(json_object_get(hit, "score")) == 0.0);
    json_decref(found);
}

/* The first bytes of a file; returns how many it has in all. */
static size_t file_read(const char *path, void *to, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t first = fread(to, 1, room, file);
    const int rest = fgetc(file);
    fclose(file);
    assert_int_equal(rest, EOF);
    return first;
}

/* Rows of each type to files that hold it, and back: the same bytes. */
static void exports_have_the_type_of_the_rows(void **state)
{
    (void)state;
    static const struct {
        const char *type, *bin, *said;
        unsigned char rows[6]; /* two numbers per row */
        size_t bytes;
    } cases[] = {{"f16", "a.f16bin", "'descr': '<f2'", {0x00, 0x3c, 0xff, 0x7b}, 4}, /* 1, 65504 */
                 {"i8", "a.i8bin", "'descr': '|i1'", {0x80, 0x05}, 2},
                 {"u8", "a.u8bin", "'descr': '|u1'", {0xff, 0x00}, 2}};
    for (int i = 0; i < 3; i++) {
        unsigned char bin[8 + 4] = {1, 0, 0, 0, 2};
        memcpy(bin + 8, cases[i].rows, cases[i].bytes);
        char from[SCRATCH_PATH_BYTES], npy[SCRATCH_PATH_BYTES], again[SCRATCH_PATH_BYTES];
        snprintf(from, sizeof from, "%s", scratch_write(cases[i].bin, bin, 8 + cases[i].bytes));
        snprintf(npy, sizeof npy, "%s", scratch_path("typed.npy"));
        char back[32];
        snprintf(back, sizeof back, "again.%s", strchr(cases[i].bin, '.') + 1);
        snprintf(again, sizeof again, "%s", scratch_path(back));
        COMMAND_SAYS(0, "1 row (", "store", "import", store, cases[i].type, from, "--type", cases[i].type, "--metric", "l2");
        COMMAND_SAYS(0, "wrote 1 row\n", "store", "export", store, cases[i].type, npy);
        COMMAND_SAYS(0, "1 row (", "store", "import", store, "back", npy, "--type", cases[i].type, "--metric", "l2");
        COMMAND_SAYS(0, "wrote 1 row\n", "store", "export", store, "back", again);
        COMMAND_SAYS(0, "dropped", "store", "drop", store, "back");
        char bytes[256] = {0};
        assert_int_equal(file_read(npy, bytes, sizeof bytes), 128 + cases[i].bytes);
        assert_non_null(strstr(bytes + 10, cases[i].said));
        assert_memory_equal(bytes + 128, cases[i].rows, cases[i].bytes);
        assert_int_equal(file_read(again, bytes, sizeof bytes), 8 + cases[i].bytes);
        assert_memory_equal(bytes, bin, 8 + cases[i].bytes);
    }
    COMMAND_SAYS(2, "would hold u8; the rows of 'docs' are f32", "store", "export", store, "docs", scratch_path("x.u8bin"));
    static const unsigned char nan[] = {1, 0, 0, 0, 2, 0, 0, 0, 0x00, 0x3c, 0x00, 0x7e};
    COMMAND_SAYS(3, "row 0, column 1 is NaN", "store", "import", store, "f16", scratch_write("nan.f16bin", nan, sizeof nan));
}

static void a_backup_is_a_store_of_its_own(void **state)
{
    (void)state;
    char copy[SCRATCH_PATH_BYTES];
    snprintf(copy, sizeof copy, "%s", scratch_path("copy.db"));
    COMMAND_SAYS(0, "copied to", "store", "backup", store, copy);
    COMMAND_SAYS(2, "exists already; --force replaces it", "store", "backup", store, copy);
    COMMAND_SAYS(0, "copied to", "store", "backup", store, copy, "--force");
    COMMAND_SAYS(0, "dropped docs", "store", "drop", store, "docs");
    assert_found(COMMAND_JSON("store", "search", copy, "docs", "--vector", "[0, 0, 1]", "-k", "1", "--json"), "7");
    command_result result = COMMAND_RUN("store", "search", store, "docs", "--vector", "[0, 0, 1]");
    assert_int_not_equal(result.code, 0);
    assert_non_null(strstr(result.err, "docs"));
    command_free(&result);
}

static void a_restored_collection_replaces_the_one_with_its_name(void **state)
{
    (void)state;
    char copy[SCRATCH_PATH_BYTES], other[SCRATCH_PATH_BYTES];
    snprintf(copy, sizeof copy, "%s", scratch_path("copy.db"));
    snprintf(other, sizeof other, "%s", scratch_path("other.db"));
    COMMAND_SAYS(0, "copied to", "store", "backup", store, copy);
    COMMAND_SAYS(0, "dropped docs", "store", "drop", store, "docs");
    COMMAND_SAYS(0, "created", "store", "create", store, "kept", "--dim", "2");
    COMMAND_SAYS(0, "restored", "store", "restore", copy, store);
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[0, 0, 1]", "-k", "1", "--json"), "7");
    COMMAND_SAYS(0, "restored", "store", "restore", copy, store, "--collection", "docs");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--vector", "[0, 0, 1]", "-k", "1", "--json"), "7");
    COMMAND_SAYS(0, "0", "store", "count", store, "kept");
    COMMAND_SAYS(0, "restored", "store", "restore", copy, other); /* a store that does not exist yet */
    assert_found(COMMAND_JSON("store", "search", other, "docs", "--vector", "[0, 0, 1]", "-k", "1", "--json"), "7");
    COMMAND_SAYS(1, "has no collection 'nobody'", "store", "restore", copy, store, "--collection", "nobody");
    COMMAND_SAYS(3, "it is no SQLite database", "store", "restore",
                 scratch_write("text", "some text, which is no database", 31), store);
}

static void a_failed_batch_reports_which_rows_are_in_the_store(void **state)
{
    (void)state;
    static const char bad[] = "{\"vector\": [1, 2, 3]}\n{\"vector\": [1, 2]}\n";
    const char *file = scratch_write("bad.jsonl", bad, sizeof bad - 1);
    COMMAND_SAYS(3, "line 2: the vector has 2 numbers", "store", "import", store, "docs", file);
    static const char none[] = "{\"vector\": [1, 2, 3]\n";
    COMMAND_SAYS(3, "line 1", "store", "import", store, "docs", scratch_write("none.jsonl", none, sizeof none - 1));
    static const char mixed[] = "{\"vector\": [1, 2, 3]}\n{\"id\": \"a\", \"vector\": [1, 2, 3]}\n";
    COMMAND_SAYS(3, "the store has the 1 row before this batch", "store", "import", store, "docs",
                 scratch_write("mixed.jsonl", mixed, sizeof mixed - 1));
}

static void an_index_is_built_used_and_dropped(void **state)
{
    (void)state;
    char rows[64 * 400];
    size_t length = 0;
    for (int i = 0; i < 400; i++)
        length += (size_t)snprintf(rows + length, sizeof rows - length, "{\"vector\": [%d, %d, 0.5]}\n", i % 4 * 100 + i % 17,
                                   i % 19);
    COMMAND_SAYS(0, "400 rows", "store", "import", store, "many", scratch_write("many.jsonl", rows, length), "--metric", "l2");
    COMMAND_SAYS(3, "there is no index", "store", "search", store, "many", "--vector", "[1, 2, 3]", "--nprobe", "1");
    json_t *built = COMMAND_JSON("store", "build-ivf", store, "many", "--nlist", "8", "--seed", "2", "--json");
    assert_int_equal(json_integer_value(json_object_get(built, "nlist")), 8);
    json_decref(built);
    COMMAND_SAYS(0, "index of 8 lists", "store", "info", store);
    json_t *found = COMMAND_JSON("store", "search", store, "many", "--vector", "[201, 2, 0]", "--nprobe", "1", "--json");
    assert_int_equal(json_integer_value(json_object_get(found, "lists_read")), 1);
    assert_int_equal(json_array_size(json_object_get(found, "proven")), 1);
    json_decref(found);
    COMMAND_SAYS(3, "not calibrated", "store", "search", store, "many", "--vector", "[1, 2, 3]", "--recall", "0.9");
    COMMAND_SAYS(0, "calibrated with 350 queries", "store", "calibrate", store, "many", "-k", "3", "--query-count", "350");
    COMMAND_SAYS(2, "at most 1", "store", "calibrate", store, "many", "--recall", "2");
    json_t *learnt = COMMAND_JSON("store", "calibrate", store, "many", "--query-count", "350", "--recall", "0.9", "--json");
    assert_true(json_integer_value(json_object_get(learnt, "calibration_time")) > 0);
    json_decref(learnt);
    COMMAND_SAYS(0, "\"calibration_rows_removed\":0,\"calibration_time\":1", "store", "info", store, "--json");
    const char *query = scratch_write("q.csv", "1,2,3\n", 6);
    COMMAND_SAYS(0, "", "search", "--store", store, "--collection", "many", "--queries", query, "--recall", "0.9");
    COMMAND_SAYS(0, "sound", "store", "check", store);
    COMMAND_SAYS(2, "give one of them", "store", "search", store, "many", "--vector", "[1,2,3]", "--nprobe", "1", "--recall",
                 "1");
    COMMAND_SAYS(2, "at most 1", "store", "search", store, "many", "--vector", "[1,2,3]", "--recall", "2");
    COMMAND_SAYS(2, "nearest k", "store", "search", store, "many", "--vector", "[1,2,3]", "--nprobe", "1", "--radius", "2");
    COMMAND_SAYS(0, "dropped the index of many", "store", "drop-ivf", store, "many");
    COMMAND_SAYS(1, "has no index", "store", "drop-ivf", store, "many");
}

/* The rows of the first 10 hits of a query by lists, as text. */
static char *hits_by_lists(const char *name)
{
    json_t *found = COMMAND_JSON("store", "search", store, name, "--vector", "[201, 2, 0]", "--nprobe", "2", "--json");
    char *text = json_dumps(json_object_get(found, "results"), JSON_SORT_KEYS);
    json_decref(found);
    return text;
}

/* An export has rows only. The same rows, imported and indexed with the same numbers, have the same lists. */
static void an_export_has_no_index_and_an_import_goes_into_the_one_there_is(void **state)
{
    (void)state;
    char rows[64 * 400], file[SCRATCH_PATH_BYTES];
    size_t length = 0;
    for (int i = 0; i < 400; i++)
        length += (size_t)snprintf(rows + length, sizeof rows - length, "{\"vector\": [%d, %d, 0.%d]}\n", i % 4 * 100 + i % 17,
                                   i % 19, i);
    COMMAND_SAYS(0, "400 rows", "store", "import", store, "first", scratch_write("first.jsonl", rows, length), "--metric",
                 "l2");
    COMMAND_SAYS(0, "8 lists", "store", "build-ivf", store, "first", "--nlist", "8", "--seed", "2");
    snprintf(file, sizeof file, "%s", scratch_path("exported.jsonl"));
    COMMAND_SAYS(0, "wrote 400 rows", "store", "export", store, "first", file);
    COMMAND_SAYS(0, "400 rows", "store", "import", store, "second", file, "--metric", "l2");
    COMMAND_SAYS(3, "there is no index", "store", "search", store, "second", "--vector", "[1, 2, 3]", "--nprobe", "1");
    COMMAND_SAYS(0, "8 lists", "store", "build-ivf", store, "second", "--nlist", "8", "--seed", "2");
    char *first = hits_by_lists("first"), *second = hits_by_lists("second");
    assert_string_equal(first, second);
    free(first);
    free(second);
    length = 0;
    for (int i = 0; i < 60; i++)
        length += (size_t)snprintf(rows + length, sizeof rows - length, "{\"vector\": [201, 2, %d.5]}\n", i);
    COMMAND_SAYS(0, "60 rows", "store", "import", store, "second", scratch_write("more.jsonl", rows, length));
    json_t *found = COMMAND_JSON("store", "search", store, "second", "--vector", "[201, 2, 30.5]", "--nprobe", "1", "--json");
    json_t *hit = json_array_get(json_array_get(json_object_get(found, "results"), 0), 0);
    assert_true(json_number_value(json_object_get(hit, "score")) == 0.0);
    json_decref(found);
    COMMAND_SAYS(0, "sound", "store", "check", store);
}

static void an_export_has_the_sparse_vectors_and_an_import_reads_them(void **state)
{
    (void)state;
    static const char LINES[] =
        "{\"id\": \"a\", \"vector\": [1, 2], \"sparse\": {\"indices\": [9, 4294967295], \"values\": [0.1, -3.5]}}\n"
        "{\"id\": \"b\", \"vector\": [3, 4]}\n"
        "{\"id\": \"c\", \"vector\": [5, 6], \"sparse\": {\"indices\": [9, 7], \"values\": [1e-30, 2]}}\n";
    static const char *const wrong[][2] = {
        {"{\"indices\": [1, 1], \"values\": [1, 2]}", "index 1 appears twice"},
        {"{\"indices\": [1], \"values\": [1, 2]}", "line 1: its \"sparse\" is not"},
        {"{\"indices\": [-1], \"values\": [1]}", "line 1: its \"sparse\" has an index"},
        {"{\"indices\": [4294967296], \"values\": [1]}", "line 1: its \"sparse\" has an index"},
        {"{\"indices\": [1], \"values\": [\"1\"]}", "line 1: its \"sparse\" has an index"},
        {"[1, 2]", "line 1: its \"sparse\" is not"},
    };
    char file[SCRATCH_PATH_BYTES], line[256];
    size_t size[2];
    COMMAND_SAYS(0, "3 rows", "store", "import", store, "sparse", scratch_write("sparse.jsonl", LINES, sizeof LINES - 1));
    snprintf(file, sizeof file, "%s", scratch_path("sparse_out.jsonl"));
    COMMAND_SAYS(0, "wrote 3 rows", "store", "export", store, "sparse", file);
    char *first = scratch_content(file, &size[0]);
    assert_non_null(strstr(first, "\"sparse\": {\"indices\": [9, 4294967295], \"values\": [0.100000001, -3.5]}"));
    COMMAND_SAYS(0, "3 rows", "store", "import", store, "sparse2", file);
    snprintf(file, sizeof file, "%s", scratch_path("sparse_out2.jsonl"));
    COMMAND_SAYS(0, "wrote 3 rows", "store", "export", store, "sparse2", file);
    char *second = scratch_content(file, &size[1]);
    assert_string_equal(first, second);
    free(first);
    free(second);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int length = snprintf(line, sizeof line, "{\"vector\": [1, 2], \"sparse\": %s}\n", wrong[i][0]);
        COMMAND_SAYS(3, wrong[i][1], "store", "import", store, "sparse", scratch_write("wrong.jsonl", line, (size_t)length));
    }
    COMMAND_SAYS(0, "sound", "store", "check", store);
}

static void wrong_command_lines_are_refused(void **state)
{
    (void)state;
    COMMAND_SAYS(2, "no action given", "store");
    COMMAND_SAYS(2, "unknown action 'fetch'", "store", "fetch", store);
    COMMAND_SAYS(2, "create STORE NAME", "store", "create", store, "--dim", "3");
    COMMAND_SAYS(2, "--dim", "store", "create", store, "x");
    COMMAND_SAYS(2, "give one of --vector", "store", "search", store, "docs");
    COMMAND_SAYS(2, "give one of --vector", "store", "add", store, "docs");
    COMMAND_SAYS(2, "give either --id", "store", "get", store, "docs");
    COMMAND_SAYS(2, "is not JSON", "store", "search", store, "docs", "--vector", "[1,");
    COMMAND_SAYS(2, "the vector has 1 numbers", "store", "search", store, "docs", "--vector", "[1]");
    COMMAND_SAYS(2, "--min-score does not go", "store", "search", store, "docs", "--vector", "[1,0,0]", "--min-score", "1");
    COMMAND_SAYS(2, "must end in .jsonl", "store", "export", store, "docs", scratch_path("x.txt"));
    COMMAND_SAYS(0, "created", "store", "create", store, "second", "--dim",
                 "3"); /* if there is only one collection, its name may be omitted */
    COMMAND_SAYS(2, "--collection NAME is missing", "search", "--store", store, "--queries", "q.npy");
    COMMAND_SAYS(2, "--base FILE is missing", "search", "--queries", "q.npy");
    COMMAND_SAYS(2, "beside --store", "search", "--store", store, "--collection", "docs", "--queries", "q.npy", "--metric",
                 "l2");
    COMMAND_SAYS(3, "there is no file", "store", "list", scratch_path("none.db"));
    COMMAND_SAYS(3, "there is no file", "store", "search", scratch_path("none.db"), "docs", "--vector", "[1,0,0]");
    command_result missing = COMMAND_RUN("store", "remove", store, "docs", "--id", "nobody");
    assert_int_equal(missing.code, 1);
    assert_non_null(strstr(missing.err, "there is no id 'nobody' to remove; nothing was removed"));
    assert_null(strstr(missing.err, "ww_"));
    command_free(&missing);
    COMMAND_SAYS(2, "unknown option '--colour'", "store", "search", store, "docs", "--colour", "red");
    COMMAND_SAYS(2, "unknown option '--colour=red'", "store", "search", store, "docs", "--colour=red");
    assert_int_equal(scratch_entries() > 0, 1);
}

static void says_nothing(command_result ran)
{
    if (ran.code != 0 || ran.out[0] || ran.err[0])
        fail_msg("exit code %d, \"%s\", \"%s\"", ran.code, ran.out, ran.err);
    command_free(&ran);
}

static void quiet_writes_and_checks_say_nothing(void **state)
{
    (void)state;
    const char *copy = scratch_path("copy.db"), *out = scratch_path("out.jsonl"), *picture = scratch_path("map.svg");
    says_nothing(COMMAND_RUN("store", "add", store, "docs", "--vector", "[5, 5, 5]", "--id", "e", "--quiet"));
    says_nothing(COMMAND_RUN("store", "remove", store, "docs", "--id", "e", "--quiet"));
    says_nothing(COMMAND_RUN("store", "remove", store, "docs", "--where", "id = 'nobody'", "--quiet"));
    says_nothing(COMMAND_RUN("store", "create", store, "more", "--dim", "2", "--quiet"));
    says_nothing(COMMAND_RUN("store", "import", store, "docs", scratch_path("rows.jsonl"), "--upsert", "--quiet"));
    says_nothing(COMMAND_RUN("store", "export", store, "docs", out, "--quiet"));
    says_nothing(COMMAND_RUN("store", "map", store, "docs", "--out", picture, "--device", "cpu", "--quiet"));
    says_nothing(COMMAND_RUN("store", "build-ivf", store, "docs", "--nlist", "2", "--device", "cpu", "--quiet"));
    says_nothing(COMMAND_RUN("store", "drop-ivf", store, "docs", "--quiet"));
    says_nothing(COMMAND_RUN("store", "index", store, "docs", "$.year", "--quiet"));
    says_nothing(COMMAND_RUN("store", "compact", store, "docs", "--quiet"));
    says_nothing(COMMAND_RUN("store", "check", store, "--quiet"));
    says_nothing(COMMAND_RUN("store", "backup", store, copy, "--quiet"));
    says_nothing(COMMAND_RUN("store", "rename", store, "docs", "books", "--quiet"));
    says_nothing(COMMAND_RUN("store", "drop", store, "books", "--quiet"));
}

static void a_file_without_bytes_gets_a_note(void **state)
{
    (void)state;
    char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_write("emptied.db", "", 0));
    command_result loud = COMMAND_RUN("store", "info", path);
    assert_int_equal(loud.code, 0);
    assert_non_null(strstr(loud.err, "emptied.db has 0 bytes"));
    command_free(&loud);
    scratch_write("emptied.db", "", 0);
    command_result quiet =
        COMMAND_RUN("store", "import", path, "docs", scratch_path("rows.jsonl"), "--metric", "l2", "--quiet");
    command_result full = COMMAND_RUN("store", "info", path);
    assert_int_equal(quiet.code, 0);
    assert_string_equal(quiet.err, "");
    assert_string_equal(full.err, "");
    command_free(&quiet);
    command_free(&full);
}

static void a_search_finds_rows_by_sparse_vectors_alone_and_fused(void **state)
{
    (void)state;
    static const char Q[] = "{\"indices\": [9, 2], \"values\": [1, 1]}";
    const char *const rows[][3] = {{"s", "[5, 0, 0]", "{\"indices\": [9], \"values\": [1]}"},
                                   {"t", "[0, 5, 0]", "{\"indices\": [2, 9], \"values\": [0.5, 2]}"},
                                   {"u", "[0, 0, 5]", "{\"indices\": [2], \"values\": [1.5]}"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        COMMAND_SAYS(0, "", "store", "add", store, "docs", "--id", rows[i][0], "--vector", rows[i][1], "--sparse", rows[i][2]);
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--sparse", Q, "--json"), "t,u,s");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--sparse", Q, "--min-score", "1.5", "--json"), "t,u");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--sparse", Q, "--where", "id <> 't'", "--json"), "u,s");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--sparse", "{\"indices\": [1], \"values\": [1]}", "--json"),
                 "");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--sparse", Q, "--modifier", "idf", "-k", "1", "--json"), "t");
    json_t *fused = COMMAND_JSON("store", "search", store, "docs", "--sparse", Q, "--vector", "[0, 0, 5]", "-k", "1", "--json");
    json_t *hit = json_array_get(json_array_get(json_object_get(fused, "results"), 0), 0);
    assert_int_equal(json_integer_value(json_object_get(hit, "vector_rank")), 1);
    assert_int_equal(json_integer_value(json_object_get(hit, "sparse_rank")), 2);
    assert_found(fused, "u");
    assert_found(COMMAND_JSON("store", "search", store, "docs", "--sparse", Q, "--vector", "[0, 0, 5]", "-k", "1", "--weights",
                              "0,1", "--json"),
                 "t");
    json_t *got = COMMAND_JSON("store", "get", store, "docs", "--id", "t", "--vectors", "--json");
    json_t *sparse = json_object_get(json_array_get(got, 0), "sparse");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(sparse, "indices"), 1)), 9);
    json_decref(got);
    COMMAND_SAYS(2, "--sparse goes with --vector", "store", "add", store, "docs", "--sparse", Q);
    COMMAND_SAYS(2, "1 indices and 0 values", "store", "search", store, "docs", "--sparse",
                 "{\"indices\": [1], \"values\": []}");
    COMMAND_SAYS(2, "--modifier goes with --sparse", "store", "search", store, "docs", "--vector", "[1, 0, 0]", "--modifier",
                 "idf");
    COMMAND_SAYS(2, "--sparse does not go with --mmr", "store", "search", store, "docs", "--sparse", Q, "--mmr", "0.5");
    COMMAND_SAYS(2, "must be two numbers", "store", "search", store, "docs", "--sparse", Q, "--vector", "[0, 0, 5]",
                 "--weights", "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(imported_rows_are_listed_returned_and_found, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(filters_take_parameters, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_without_bytes_gets_a_note, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_are_added_replaced_and_removed, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_are_got_counted_and_removed_by_conditions, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_export_can_be_imported, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(files_of_bytes_are_added_as_they_are, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(exports_have_the_type_of_the_rows, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_restored_collection_replaces_the_one_with_its_name, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_backup_is_a_store_of_its_own, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_failed_batch_reports_which_rows_are_in_the_store, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_index_is_built_used_and_dropped, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_export_has_no_index_and_an_import_goes_into_the_one_there_is, setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(an_export_has_the_sparse_vectors_and_an_import_reads_them, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_search_finds_rows_by_sparse_vectors_alone_and_fused, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(quiet_writes_and_checks_say_nothing, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(wrong_command_lines_are_refused, setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
