/* Files, paths and arguments with bytes that control a terminal: everything that the command prints of them, on stdout or
 *stderr, is text that neither moves the cursor nor changes the writing direction, and with --json it is ASCII that decodes to
 *the original.
 *
 * What is plain is decided here by a list of byte sequences, not by the function that is tested.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"
#include "support/data/bytes.h"

/* NOLINTBEGIN(misc-misleading-bidirectional): they are what is tested */
/* Orders in every form, the last of which are no UTF-8: C0, DEL and C1; what breaks lines; marks, embeddings, overrides and
 * isolates of direction, a separator of lines, a byte order mark, a tag, no character; C1 and others as lone bytes, an overlong
 * form, half a surrogate pair, a character that is cut off. */
static const char *const orders[] = {
    "\x1b[2J\x1b]t\x07\x08\x7f\xc2\x9b"
    "31m\xc2\x85",
    "a\rb\tc\nd",
    "\xe2\x80\xae\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c",
    "\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81\xef\xbf\xbe",
    "\x9b"
    "31m\xff\xfe\xc0\x9b\xed\xa0\x80",
    "\xf4\x90\x80\x80\xe2\x80",
};
enum { ORDERS = sizeof orders / sizeof *orders, ORDERS_UTF8 = 4 };

/* Sequences that must not appear in the output, in any context. */
static const char *const forbidden[] = {
    "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",     "\xe2\x80\xa9", "\xe2\x80\xaa",
    "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",     "\xe2\x81\xa6", "\xe2\x81\xa7",
    "\xe2\x81\xa8", "\xe2\x81\xa9", "\xef\xbb\xbf", "\xf3\xa0\x81\x81", "\xef\xbf\xbe",
};
/* NOLINTEND(misc-misleading-bidirectional) */

static void check_plain(const char *what, const char *text, bool ascii)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        if ((*at < 0x20 && *at != '\n') || *at == 0x7f || c1 || (ascii && *at >= 0x80))
            fail_msg("%s: byte %02x at %td of:\n%s", what, *at, (const char *)at - text, text);
    }
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (strstr(text, forbidden[i]))
            fail_msg("%s: forbidden sequence %zu in:\n%s", what, i, text);
    json_t *utf8 = json_string(text); /* Jansson checks that it is UTF-8 */
    if (!utf8)
        fail_msg("%s: not UTF-8:\n%s", what, text);
    json_decref(utf8);
}

/* Runs with and without --json, and looks at everything that comes out; returns how often the exit code was `code`. */
static int run_plain(int code, const char *const *arguments)
{
    const char *list[32];
    int as_expected = 0;
    for (int json = 0; json < 2; json++) {
        size_t count = 0;
        for (; arguments[count]; count++)
            list[count] = arguments[count];
        list[count] = json ? "--json" : NULL;
        list[count + 1] = NULL;
        command_result result = command_run(list);
        check_plain(arguments[0], result.out, json);
        check_plain(arguments[0], result.err, false);
        json_t *value = json && result.code != 2 ? json_loads(result.out, 0, NULL) : NULL;
        if (json && result.code != 2 && !value)
            fail_msg("%s %s: not JSON:\n%s\n%s", arguments[0], arguments[1], result.out, result.err);
        json_decref(value);
        as_expected += result.code == code;
        command_free(&result);
    }
    return as_expected;
}

#define PLAIN(code, ...)                                                                                                       \
    do {                                                                                                                       \
        const int runs_ = run_plain(code, (const char *const[]){__VA_ARGS__, NULL});                                           \
        if (runs_ != 2)                                                                                                        \
            fail_msg("%d of 2 runs had exit code %d: %s", runs_, code, #__VA_ARGS__);                                          \
    } while (0)

static const char *named(const char *before, const char *order, const char *after)
{
    static char names[8][128];
    static unsigned next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "%s%s%s", before, order, after);
    return name;
}

/* ---- search -------------------------------------------------------------------------------------------------------------- */

static void paths_of_vectors(void **state)
{
    (void)state;
    const float rows[6] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < ORDERS; i++) {
        char base[SCRATCH_PATH_BYTES], out[SCRATCH_PATH_BYTES];
        snprintf(base, sizeof base, "%s", scratch_path(named("b", orders[i], ".fbin")));
        snprintf(out, sizeof out, "%s", scratch_path(named("o", orders[i], ".ibin")));
        CHECK_OK(ww_matrix_write_f32(base, rows, 3, 2));
        PLAIN(0, "search", "--base", base, "--queries", base, "--device", "cpu", "--out-neighbors", out);
        PLAIN(2, "search", "--base", base, "--queries", base, "--device", "cpu", "--out-neighbors", base);
        PLAIN(2, "search", "--base", base, "--queries", base, "--device", "cpu", "--rows-skip", "9");
        PLAIN(3, "search", "--base", scratch_path(named("no", orders[i], ".fbin")), "--queries", base, "--device", "cpu");
        PLAIN(3, "search", "--base", base, "--queries", base, "--ids", base, "--device", "cpu");
        scratch_write(named("b", orders[i], ".fbin"), "abc", 3);
        PLAIN(3, "search", "--base", base, "--queries", base, "--device", "cpu");
        unlink(base);
        unlink(out);
    }
}

static void ids_of_rows_and_queries(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS; i++) {
        char text[256], csv[SCRATCH_PATH_BYTES], rows[SCRATCH_PATH_BYTES];
        const bool one_line = !strpbrk(orders[i], "\r\n\t"); /* else the CSV is another */
        snprintf(text, sizeof text, "name,x,y\n%s1,1,2\n%s2,3,4\n", orders[i], orders[i]);
        snprintf(csv, sizeof csv, "%s", scratch_write("ids.csv", text, strlen(text)));
        snprintf(rows, sizeof rows, "%s", scratch_write("rows.csv", "1,2\n3,4\n", 8));
        snprintf(text, sizeof text, "%s1\n%s2\n", orders[i], orders[i]);
        const char *ids = scratch_write("ids.txt", text, strlen(text));
        const int good = i < ORDERS_UTF8 && one_line ? 0 : 3;
        (void)run_plain(0, (const char *const[]){"search", "--base", rows, "--queries", csv, "--query-id-column", "name",
                                                 "--device", "cpu", NULL});
        if (one_line) {
            PLAIN(good, "search", "--base", csv, "--queries", rows, "--id-column", "name", "--device", "cpu");
            PLAIN(good, "search", "--base", rows, "--queries", rows, "--ids", ids, "--device", "cpu");
        }
        PLAIN(2, "search", "--base", csv, "--queries", rows, "--id-column", orders[i], "--device", "cpu");
        snprintf(text, sizeof text, "1,2\n3,%s\n", orders[i]); /* no number, and the message quotes it */
        PLAIN(3, "search", "--base", scratch_write("bad.csv", text, strlen(text)), "--queries", rows, "--device", "cpu");
    }
}

/* ---- models -------------------------------------------------------------------------------------------------------------- */

/* A model whose keys, texts and tensor have `order` in them; the number of the tensor is not finite where `bad`. */
static const char *hostile_model(const char *file, const char *order, float first)
{
    static test_bytes b;
    float x[64] = {first};
    b.size = 0;
    put_start(&b, 3, 1, 3);
    put_key(&b, named("key", order, ""), WW_GGUF_STRING);
    put_text(&b, named("text", order, ""));
    put_key(&b, named("list", order, ""), WW_GGUF_ARRAY);
    put_u32(&b, WW_GGUF_STRING);
    put_u64(&b, 2);
    put_text(&b, order);
    put_text(&b, named("", order, "end"));
    put_key_u32(&b, named("number", order, ""), 7);
    put_tensor(&b, named("weight", order, ""), 32, 2, 0, 0);
    put_padding(&b, 32);
    put_bytes(&b, x, sizeof x);
    return scratch_write(file, b.data, b.size);
}

static void keys_texts_and_tensors_of_models(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS; i++) {
        char good[SCRATCH_PATH_BYTES], other[SCRATCH_PATH_BYTES], out[SCRATCH_PATH_BYTES];
        snprintf(good, sizeof good, "%s", hostile_model(named("good", orders[i], ".gguf"), orders[i], 1.0f));
        snprintf(other, sizeof other, "%s", hostile_model("other.gguf", orders[(i + 1) % ORDERS], 1.0f));
        snprintf(out, sizeof out, "%s", scratch_path(named("out", orders[i], ".gguf")));
        PLAIN(0, "gguf", "info", good);
        PLAIN(0, "gguf", "verify", good);
        PLAIN(0, "gguf", "quantize", good, out, "--type", "q4_0", "--device", "cpu");
        PLAIN(2, "gguf", "quantize", good, good, "--type", "q4_0", "--device", "cpu");
        PLAIN(1, "gguf", "diff", good, other);
        PLAIN(3, "gguf", "verify", hostile_model("nan.gguf", orders[i], 0.0f / 0.0f));
        PLAIN(3, "gguf", "quantize", scratch_path("nan.gguf"), out, "--type", "q8_0", "--pure", "--device", "cpu");
        scratch_write(named("good", orders[i], ".gguf"), "GGUF", 4);
        PLAIN(3, "gguf", "info", good);
        unlink(good);
        unlink(out);
    }
}

/* The JSON decodes to the file's contents. */
static void json_has_the_texts_as_they_were(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS_UTF8; i++) {
        json_t *report = COMMAND_JSON("gguf", "info", "--json", hostile_model("model.gguf", orders[i], 1.0f));
        const json_t *key = json_array_get(json_object_get(report, "keys"), 0);
        const json_t *tensor = json_array_get(json_object_get(report, "tensors"), 0);
        assert_string_equal(json_string_value(json_object_get(key, "key")), named("key", orders[i], ""));
        assert_string_equal(json_string_value(json_object_get(key, "value")), named("text", orders[i], ""));
        assert_string_equal(json_string_value(json_object_get(tensor, "name")), named("weight", orders[i], ""));
        json_decref(report);
    }
}

/* The header is JSON, so its texts are UTF-8, but may have every character. */
static void names_metadata_and_types_of_safetensors(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS; i++) {
        static test_bytes b;
        char path[SCRATCH_PATH_BYTES];
        json_t *header =
            json_pack("{s:{s:s}, s:{s:s, s:[i], s:[i, i]}}", "__metadata__", named("key", i < ORDERS_UTF8 ? orders[i] : "", ""),
                      orders[i < ORDERS_UTF8 ? i : 0], named("name", i < ORDERS_UTF8 ? orders[i] : "", ""), "dtype",
                      i < ORDERS_UTF8 ? orders[i] : "U8", "shape", 4, "data_offsets", 0, 4);
        assert_non_null(header);
        char *text = json_dumps(header, JSON_COMPACT);
        b.size = 0;
        put_text(&b, text);
        put_zeros(&b, 4);
        free(text);
        json_decref(header);
        snprintf(path, sizeof path, "%s", scratch_write(named("t", orders[i], ".safetensors"), b.data, b.size));
        PLAIN(0, "safetensors", "info", path);
        scratch_write(named("t", orders[i], ".safetensors"), b.data, b.size - 1);
        PLAIN(3, "safetensors", "info", path);
        b.size = 0;
        put_text(&b, named("{\"", orders[i], "\":1}")); /* invalid JSON, or not valid in a header */
        PLAIN(3, "safetensors", "info", scratch_write(named("t", orders[i], ".safetensors"), b.data, b.size));
        unlink(path);
    }
}

/* Ids and payloads that are kept, names of collections, and paths of stores. */
static void rows_of_a_store(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS_UTF8; i++) {
        char path[SCRATCH_PATH_BYTES];
        const char *order = orders[i];
        json_t *payload = json_pack("{s:s}", order, order);
        char *text = json_dumps(payload, 0);
        assert_non_null(text);
        snprintf(path, sizeof path, "%s", scratch_path(named("s", order, ".db")));
        (void)run_plain(0, (const char *const[]){"store", "create", path, "docs", "--dim", "2", NULL});
        (void)run_plain(0, (const char *const[]){"store", "create", path, order, "--dim", "2", NULL});
        PLAIN(0, "store", "add", path, "docs", "--vector", "[1, 2]", "--id", order, "--payload", text, "--upsert");
        PLAIN(0, "store", "get", path, "docs", "--id", order);
        PLAIN(0, "store", "search", path, "docs", "--vector", "[1, 2]", "--device", "cpu");
        PLAIN(0, "store", "list", path);
        PLAIN(0, "store", "info", path);
        PLAIN(1, "store", "get", path, "docs", "--id", named("no", order, ""));
        PLAIN(1, "store", "get", path, named("no", order, ""), "--id", order);
        free(text);
        json_decref(payload);
    }
}

/* ---- arguments and the environment --------------------------------------------------------------------------------------- */

static void arguments_that_are_quoted(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS; i++) {
        const char *order = orders[i], *none = scratch_path(named("none", order, ""));
        PLAIN(2, order);
        PLAIN(2, "help", order);
        PLAIN(2, "gguf", order);
        PLAIN(2, "safetensors", order, order);
        PLAIN(2, "devices", order);
        PLAIN(2, "bench", named("--", order, ""));
        PLAIN(2, "bench", "--rows", order);
        PLAIN(4, "bench", "--device", order);
        PLAIN(2, "demo", "--metric", order);
        PLAIN(2, "gguf", "quantize", none, none, "--type", order);
        PLAIN(2, "search", "--base", none, "--queries", none, "--metric", order);
        PLAIN(2, "quant", order, none, none, "--type", "q8_0", "--cols", "32");
        const int missing =
            run_plain(3, (const char *const[]){"quant", "encode", none, none, "--type", "q8_0", "--cols", "32", NULL});
        assert_int_equal(missing, 1); /* it has no --json, which is exit code 2 */
    }
}

static void variables_that_are_quoted(void **state)
{
    (void)state;
    static const char *const names[] = {"WARPWAVE_DEVICE", "WARPWAVE_ISA", "WARPWAVE_THREADS", "WARPWAVE_CUDA_LIBRARY",
                                        "WARPWAVE_HIP_LIBRARY"};
    for (size_t v = 0; v < sizeof names / sizeof *names; v++)
        for (int i = 0; i < ORDERS; i++) {
            assert_int_equal(setenv(names[v], named("/", orders[i], ""), 1), 0);
            (void)run_plain(0, (const char *const[]){"devices", NULL});
            (void)run_plain(0, (const char *const[]){"bench", "--device", "auto", "--rows", "64", "--dim", "2", "--queries",
                                                     "1", "--repeat", "1", NULL});
            unsetenv(names[v]);
        }
}

static void cases_of_tensors(void **state)
{
    (void)state;
    for (int i = 0; i < ORDERS_UTF8; i++) {
        json_t *cases = json_pack("[{s:s, s:s}]", "id", orders[i], "op", orders[i]);
        char *text = json_dumps(cases, 0);
        const char *const arguments[] = {"warpwave-cases", scratch_write("cases.json", text, strlen(text)), NULL};
        command_result result = program_run(CASES_PATH, arguments);
        assert_int_equal(result.code, 1);
        check_plain("warpwave-cases", result.out, false);
        check_plain("warpwave-cases", result.err, false);
        command_free(&result);
        free(text);
        json_decref(cases);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_vectors),
        cmocka_unit_test(ids_of_rows_and_queries),
        cmocka_unit_test(keys_texts_and_tensors_of_models),
        cmocka_unit_test(json_has_the_texts_as_they_were),
        cmocka_unit_test(names_metadata_and_types_of_safetensors),
        cmocka_unit_test(rows_of_a_store),
        cmocka_unit_test(arguments_that_are_quoted),
        cmocka_unit_test(variables_that_are_quoted),
        cmocka_unit_test(cases_of_tensors),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
