/* The command and files: it never overwrites its input, accepts pipes and standard input, reads ids from a column, and reports
 * the place of a number that is not finite; its exit codes and JSON failures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/data/bytes.h"

enum { ROWS = 20, DIM = 4 };

static float base[ROWS][DIM];

static const char *write_base(const char *name)
{
    const char *path = scratch_path(name);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < DIM; j++)
            base[i][j] = (float)(i * 7 % 11) + 0.25f * (float)j;
    CHECK_OK(ww_matrix_write_f32(path, base[0], ROWS, DIM));
    return path;
}

static void write_text(const char *name, const char *text)
{
    scratch_write(name, text, strlen(text));
}

/* Runs a shell command in which $W is the command and $D the scratch folder. */
static command_result shell(const char *line)
{
    char whole[8192];
    snprintf(whole, sizeof whole, "W='%s'; D='%s'; cd \"$D\"; %s", COMMAND_PATH, scratch_path("."), line);
    const char *const arguments[] = {"sh", "-c", whole, NULL};
    return program_run("/bin/sh", arguments);
}

static void shell_says(int code, const char *out, const char *err, const char *line)
{
    command_result result = shell(line);
    if (result.code != code || !strstr(result.out, out) || !strstr(result.err, err))
        fail_msg("%s: exit code %d, not %d, or no '%s' in:\n%s\nor no '%s' in:\n%s", line, result.code, code, out, result.out,
                 err, result.err);
    command_free(&result);
}

/* ---- inputs are never overwritten ---------------------------------------------------------------------------------------- */

static void unchanged(const char *path, const char *before, size_t bytes)
{
    size_t size;
    char *content = scratch_content(path, &size);
    assert_int_equal(size, bytes);
    assert_memory_equal(content, before, size);
    free(content);
}

static void search_refuses_to_overwrite_its_input(void **state)
{
    (void)state;
    size_t size;
    const char *path = write_base("base.ibin.npy");
    char *before = scratch_content(path, &size);
    assert_int_equal(symlink(path, scratch_path("link.npy")), 0);
    assert_int_equal(link(path, scratch_path("hard.npy")), 0);
    assert_int_equal(symlink("link.npy", scratch_path("twice.npy")), 0);
    write_base("q.fbin");
    static const char *const others[] = {"base.ibin.npy", "./base.ibin.npy", "link.npy", "hard.npy", "twice.npy"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        COMMAND_SAYS(2, "is the same file as --base", "search", "--base", path, "--queries", scratch_path("q.fbin"),
                     "--out-neighbors", scratch_path(others[i]), "--device", "cpu");
        COMMAND_SAYS(2, "is the same file as --queries", "search", "--base", scratch_path("q.fbin"), "--queries",
                     scratch_path(others[i]), "--out-distances", path, "--device", "cpu");
        unchanged(path, before, size);
    }
    scratch_write("ids.npy", "a\n", 2);
    COMMAND_SAYS(2, "is the same file as --ids", "search", "--base", path, "--queries", path, "--ids", scratch_path("ids.npy"),
                 "--out-distances", scratch_path("ids.npy"), "--device", "cpu");
    free(before);
}

static void two_outputs_are_two_files(void **state)
{
    (void)state;
    const char *path = write_base("b.npy");
    COMMAND_SAYS(2, "are the same file", "search", "--base", path, "--queries", path, "--out-neighbors", scratch_path("o.npy"),
                 "--out-distances", scratch_path("./o.npy"));
    scratch_write("there.npy", "x", 1);
    assert_int_equal(symlink("there.npy", scratch_path("to.npy")), 0);
    COMMAND_SAYS(2, "are the same file", "search", "--base", path, "--queries", path, "--out-neighbors",
                 scratch_path("there.npy"), "--out-distances", scratch_path("to.npy"));
    shell_says(2, "", "are the same file",
               "$W search --base b.npy --queries b.npy --out-neighbors - --out-distances - | cat; exit 2");
    shell_says(0, "", "",
               "$W search --base b.npy --queries b.npy --out-neighbors /dev/null --out-distances /dev/null --device cpu");
}

static const char *small_model(const char *name)
{
    static test_bytes b;
    b.size = 0;
    put_start(&b, 3, 1, 0);
    put_tensor(&b, "w", 32, 2, 0, 0);
    put_padding(&b, 32);
    put_zeros(&b, 256);
    return scratch_write(name, b.data, b.size);
}

static void gguf_and_quant_refuse_to_write_over_their_input(void **state)
{
    (void)state;
    size_t size;
    const char *model = small_model("m.gguf"), *weights = scratch_write("w.f32", base, 128);
    char *before = scratch_content(model, &size);
    assert_int_equal(symlink(model, scratch_path("m-link.gguf")), 0);
    assert_int_equal(link(weights, scratch_path("w-hard.f32")), 0);
    COMMAND_SAYS(2, "is the same file as IN", "gguf", "quantize", model, model, "--type", "q8_0", "--device", "cpu");
    COMMAND_SAYS(2, "is the same file as IN", "gguf", "quantize", model, scratch_path("m-link.gguf"), "--type", "q8_0");
    unchanged(model, before, size);
    COMMAND_SAYS(2, "is the same file as IN", "quant", "encode", weights, weights, "--type", "q8_0", "--cols", "32");
    COMMAND_SAYS(2, "is the same file as IN", "quant", "encode", weights, scratch_path("w-hard.f32"), "--type", "q8_0",
                 "--cols", "32");
    shell_says(2, "", "is the same file as IN", "$W quant encode w.f32 - --type q8_0 --cols 32 >> w.f32");
    shell_says(2, "", "is the same file as IN", "$W quant encode - w.f32 --type q8_0 --cols 32 < w.f32");
    unchanged(weights, (const char *)base, 128);
    free(before);
}

/* The second file of a split model is an input, too, although the command line does not name it. */
static void no_part_of_a_split_model_is_overwritten(void **state)
{
    (void)state;
    static test_bytes b;
    for (unsigned part = 0; part < 2; part++) {
        b.size = 0;
        put_start(&b, 3, 1, 2);
        put_key_u16(&b, "split.no", part);
        put_key_u16(&b, "split.count", 2);
        put_tensor(&b, part ? "b" : "a", 32, 2, 0, 0);
        put_padding(&b, 32);
        put_zeros(&b, 256);
        scratch_write(part ? "s-00002-of-00002.gguf" : "s-00001-of-00002.gguf", b.data, b.size);
    }
    COMMAND_SAYS(2, "is the same file as IN", "gguf", "quantize", scratch_path("s-00001-of-00002.gguf"),
                 scratch_path("s-00002-of-00002.gguf"), "--type", "q8_0", "--device", "cpu");
    COMMAND_SAYS(0, "b", "gguf", "info", scratch_path("s-00001-of-00002.gguf"));
}

/* If the distances cannot be written, the neighbours do not change, either. */
static void a_failure_changes_no_output(void **state)
{
    (void)state;
    const char *path = write_base("b.npy");
    scratch_write("n.ibin", "old", 3);
    assert_int_equal(mkdir(scratch_path("d.fbin"), 0777), 0);
    COMMAND_SAYS(3, "is not a regular file", "search", "--base", path, "--queries", path, "--out-neighbors",
                 scratch_path("n.ibin"), "--out-distances", scratch_path("d.fbin"), "--device", "cpu");
    unchanged(scratch_path("n.ibin"), "old", 3);
    shell_says(0, "", "", "test -z \"$(ls -A | grep tmp)\"");
}

/* If it is killed while it waits for input, it has not touched its output. */
static void a_kill_leaves_the_old_file(void **state)
{
    (void)state;
    scratch_write("w.f32", base, 128);
    scratch_write("out", "old", 3);
    shell_says(137, "", "", "(cat w.f32; sleep 2) | timeout -s KILL 0.3 $W quant encode - out --type q8_0 --cols 32");
    unchanged(scratch_path("out"), "old", 3);
}

/* ---- pipes and standard input -------------------------------------------------------------------------------------------- */

static void inputs_may_be_pipes_and_standard_input(void **state)
{
    (void)state;
    write_base("b.npy");
    command_result plain = COMMAND_RUN("search", "--base", scratch_path("b.npy"), "--queries", scratch_path("b.npy"),
                                       "--device", "cpu", "--json", "-k", "3");
    assert_int_equal(plain.code, 0);
    char *results = strstr(plain.out, "\"results\"");
    assert_non_null(results);
    static const char *const lines[] = {
        "$W search --base - --queries b.npy --format npy --device cpu --json -k 3 < b.npy",
        "cat b.npy | $W search --base b.npy --queries - --format npy --device cpu --json -k 3",
        "mkfifo f; cat b.npy > f & $W search --base f --queries b.npy --format=.NPY --device cpu --json -k 3",
        "cp b.npy data.bin; $W search --base data.bin --queries b.npy --format npy --device cpu --json -k 3",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        shell_says(0, results, "", lines[i]);
    command_free(&plain);
    shell_says(0, "id7", "", "seq -f id%g 0 19 | $W search --base b.npy --queries b.npy --ids - --device cpu --json -k 20");
    shell_says(2, "", "give --format", "$W search --base - --queries b.npy < b.npy");
    shell_says(2, "", "unknown format 'parquet'", "$W search --base - --queries b.npy --format parquet < b.npy");
    shell_says(2, "", "only one of", "$W search --base - --queries - --format npy < b.npy");
    shell_says(3, "", "standard input: offset 0: the file is empty",
               "$W search --base - --queries b.npy --format npy < /dev/null");
}

static void outputs_may_be_pipes_and_standard_output(void **state)
{
    (void)state;
    write_base("b.npy");
    shell_says(0, "", "20 rows of 4",
               "$W search --base b.npy --queries b.npy -k 3 --device cpu --out-neighbors n.ibin >/dev/null;"
               "$W search --base b.npy --queries b.npy -k 3 --device cpu --out-neighbors - > o.ibin; cmp n.ibin o.ibin");
    shell_says(
        0, "", "",
        "mkfifo p; cat p > o2.ibin & "
        "$W search --base b.npy --queries b.npy -k 3 --device cpu --out-neighbors p >/dev/null; wait; cmp n.ibin o2.ibin");
    shell_says(2, "", "both go to standard output",
               "$W search --base b.npy --queries b.npy --out-neighbors - --json >/dev/null");
    small_model("m.gguf");
    shell_says(0, "1 tensor,", "bits a weight", "$W gguf quantize m.gguf - --type q8_0 --device cpu | $W gguf info -");
    shell_says(0, "", "",
               "head -c 256 /dev/zero > w; cat w | $W quant encode - - --type q8_0 --cols 32 | "
               "$W quant decode - back --type q8_0 --cols 32; cmp w back");
}

/* ---- defaults, ids, numbers ---------------------------------------------------------------------------------------------- */

static void ten_nearest_by_cosine_are_the_default(void **state)
{
    (void)state;
    const char *path = write_base("b.npy");
    json_t *report = COMMAND_JSON("search", "--base", path, "--queries", path, "--device", "cpu", "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "k")), 10);
    assert_string_equal(json_string_value(json_object_get(report, "metric")), "cosine");
    json_decref(report);
}

static void ids_come_from_a_column_by_name_or_number(void **state)
{
    (void)state;
    write_text("named.csv", "x,id,y\n1,first,2\n3,\"the \"\"second\"\"\",4\n");
    write_text("plain.csv", "first,1,2\nother,3,4\n");
    write_text("q.csv", "name,x,y\nq1,1,2\n");
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("named.csv"), "--queries", scratch_path("q.csv"),
                                  "--id-column", "id", "--query-id-column", "name", "--device", "cpu", "--json");
    const json_t *results = json_array_get(json_object_get(report, "results"), 0);
    assert_string_equal(json_string_value(json_object_get(json_array_get(results, 0), "id")), "first");
    assert_string_equal(json_string_value(json_object_get(json_array_get(results, 1), "id")), "the \"second\"");
    assert_string_equal(json_string_value(json_array_get(json_object_get(report, "query_ids"), 0)), "q1");
    assert_int_equal(json_integer_value(json_object_get(report, "dim")), 2);
    json_decref(report);
    COMMAND_SAYS(0, "first", "search", "--base", scratch_path("plain.csv"), "--queries", scratch_path("q.csv"), "--id-column",
                 "1", "--query-id-column", "1", "--device", "cpu");
    COMMAND_SAYS(2, "no column is called 'key'", "search", "--base", scratch_path("named.csv"), "--queries",
                 scratch_path("q.csv"), "--id-column", "key");
    COMMAND_SAYS(2, "the ids should be in column 9", "search", "--base", scratch_path("plain.csv"), "--queries",
                 scratch_path("q.csv"), "--id-column", "9");
    COMMAND_SAYS(2, "only CSV has a column of ids", "search", "--base", write_base("b.npy"), "--queries", scratch_path("q.csv"),
                 "--id-column", "1");
    COMMAND_SAYS(2, "--ids and --id-column both", "search", "--base", scratch_path("plain.csv"), "--queries",
                 scratch_path("q.csv"), "--id-column", "1", "--ids", scratch_path("q.csv"));
    write_text("twice.csv", "a,1,2\na,3,4\n");
    COMMAND_SAYS(3, "'a'", "search", "--base", scratch_path("twice.csv"), "--queries", scratch_path("q.csv"), "--id-column",
                 "1", "--query-id-column", "1");
}

static void a_number_that_is_not_finite_is_named_by_row_and_column(void **state)
{
    (void)state;
    const char *good = write_base("b.npy");
    float bad[ROWS][DIM];
    memcpy(bad, base, sizeof bad);
    bad[17][3] = NAN;
    CHECK_OK(ww_matrix_write_f32(scratch_path("bad.npy"), bad[0], ROWS, DIM));
    COMMAND_SAYS(3, "bad.npy: row 17, column 3 is NaN", "search", "--base", scratch_path("bad.npy"), "--queries", good,
                 "--device", "cpu");
    COMMAND_SAYS(3, "bad.npy: row 17, column 3 is NaN", "search", "--base", good, "--queries", scratch_path("bad.npy"),
                 "--device", "cpu");
    write_text("bad.csv", "1,2,3,4\n1,2,-inf,4\n");
    COMMAND_SAYS(3, "bad.csv: row 1, column 2 is infinite", "search", "--base", good, "--queries", scratch_path("bad.csv"),
                 "--device", "cpu");
}

/* ---- exit codes and JSON failures ---------------------------------------------------------------------------------------- */

static void a_wrong_command_line_gives_exit_code_2(void **state)
{
    (void)state;
    write_base("b.npy");
    small_model("m.gguf");
    shell_says(2, "", "unknown quantized type 'q9'", "$W quant encode b.npy y --type q9 --cols 32");
    shell_says(2, "", "a row of 100 columns cannot be q4_0", "$W quant encode b.npy y --type q4_0 --cols 100");
    shell_says(2, "", "unknown type 'q9'", "$W gguf quantize m.gguf y --type q9");
    shell_says(2, "", "is for activations", "$W gguf quantize m.gguf y --type q8_K");
    static const char *const commands[] = {"search --base b.npy --queries b.npy",
                                           "demo",
                                           "bench --rows 10",
                                           "devices",
                                           "gguf verify m.gguf",
                                           "gguf diff m.gguf m.gguf",
                                           "gguf quantize m.gguf y --type q8_0",
                                           "quant encode m.gguf y --type f32 --cols 1"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[256];
        snprintf(line, sizeof line, "export WARPWAVE_DEVICE=cpu; WARPWAVE_ISA=foo $W %s", commands[i]);
        shell_says(2, "", "WARPWAVE_ISA is 'foo'", line);
        snprintf(line, sizeof line, "export WARPWAVE_DEVICE=cpu; WARPWAVE_THREADS=none $W %s", commands[i]);
        shell_says(2, "", "WARPWAVE_THREADS", line);
    }
    shell_says(0, "", "", "test ! -e y");
}

static void check_failure(int code, const char *status, const char *message, const char *const *arguments)
{
    json_error_t error;
    command_result result = command_run(arguments);
    json_t *failure = json_loads(result.out, 0, &error);
    assert_int_equal(result.code, code);
    if (!failure)
        fail_msg("no JSON in '%s': %s", result.out, error.text);
    assert_true(json_is_true(json_object_get(failure, "error")));
    assert_string_equal(json_string_value(json_object_get(failure, "status")), status);
    assert_int_equal(json_integer_value(json_object_get(failure, "exit_code")), code);
    if (!strstr(json_string_value(json_object_get(failure, "message")), message) || !strstr(result.err, message))
        fail_msg("no '%s' in:\n%s\n%s", message, result.out, result.err);
    json_decref(failure);
    command_free(&result);
}

#define FAILS_IN_JSON(code, status, message, ...) check_failure(code, status, message, (const char *[]){__VA_ARGS__, NULL})

static void failures_carry_their_reason_in_json(void **state)
{
    (void)state;
    const char *path = write_base("b.npy"), *model = small_model("m.gguf");
    const char *cut = scratch_write("cut.gguf", "GG", 2);
    FAILS_IN_JSON(3, "input/output error", "cannot open", "search", "--base", scratch_path("absent.npy"), "--queries", path,
                  "--json");
    FAILS_IN_JSON(2, "invalid argument", "--queries FILE is missing", "search", "--json");
    FAILS_IN_JSON(2, "invalid argument", "-k must be between", "search", "--json", "-k", "0");
    FAILS_IN_JSON(2, "out of range", "--rows-skip 99", "search", "--json", "--base", path, "--queries", path, "--rows-skip",
                  "99");
    FAILS_IN_JSON(4, "no device", "teapot", "bench", "--json", "--device", "teapot");
    FAILS_IN_JSON(5, "out of memory", "4000000000 rows", "bench", "--json", "--device", "cpu", "--rows", "4000000000", "--dim",
                  "65536");
    FAILS_IN_JSON(2, "invalid argument", "unexpected argument", "devices", "--json", "extra");
    FAILS_IN_JSON(3, "corrupt file", "the file is cut off inside the magic", "gguf", "info", cut, "--json");
    FAILS_IN_JSON(3, "corrupt file", "the file is cut off inside the magic", "gguf", "verify", cut, "--json");
    FAILS_IN_JSON(3, "corrupt file", "the file is cut off inside the magic", "gguf", "diff", model, cut, "--json");
    FAILS_IN_JSON(2, "invalid argument", "unknown type 'q9'", "gguf", "quantize", model, "y", "--type", "q9", "--json");
    FAILS_IN_JSON(3, "corrupt file", "not a .safetensors file", "safetensors", "info", cut, "--json");
    FAILS_IN_JSON(2, "invalid argument", "unknown option '--json'", "version", "--json");
}

static void safetensors_info_lists_tensors_and_texts(void **state)
{
    (void)state;
    ww_array array = ww_array_default();
    array.name = "layer.weight";
    array.element = WW_ELEMENT_BF16;
    array.rank = 2;
    array.shape[0] = 3;
    array.shape[1] = 5;
    array.data = base;
    const char *path = scratch_path("m.safetensors");
    CHECK_OK(ww_safetensors_write(path, &array, 1, (const char *const[]){"format", "\x1b[2J", NULL}));
    COMMAND_SAYS(0, "1 tensor, 30 B\n  format = \\x1b[2J\n  BF16     3 x 5", "safetensors", "info", path);
    json_t *report = COMMAND_JSON("safetensors", "info", "--json", path);
    const json_t *tensor = json_array_get(json_object_get(report, "tensors"), 0);
    assert_string_equal(json_string_value(json_object_get(tensor, "name")), "layer.weight");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(tensor, "shape"), 1)), 5);
    json_decref(report);
    shell_says(0, "-: 1 tensor, 30 B", "", "cat m.safetensors | $W safetensors info -");
    COMMAND_SAYS(2, "unknown action 'inform'", "safetensors", "inform", path);
    COMMAND_SAYS(2, "expected: info FILE; 0 of 1 given", "safetensors", "info");
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(search_refuses_to_overwrite_its_input),
        IN_SCRATCH(two_outputs_are_two_files),
        IN_SCRATCH(gguf_and_quant_refuse_to_write_over_their_input),
        IN_SCRATCH(no_part_of_a_split_model_is_overwritten),
        IN_SCRATCH(a_failure_changes_no_output),
        IN_SCRATCH(a_kill_leaves_the_old_file),
        IN_SCRATCH(inputs_may_be_pipes_and_standard_input),
        IN_SCRATCH(outputs_may_be_pipes_and_standard_output),
        IN_SCRATCH(ten_nearest_by_cosine_are_the_default),
        IN_SCRATCH(ids_come_from_a_column_by_name_or_number),
        IN_SCRATCH(a_number_that_is_not_finite_is_named_by_row_and_column),
        IN_SCRATCH(a_wrong_command_line_gives_exit_code_2),
        IN_SCRATCH(failures_carry_their_reason_in_json),
        IN_SCRATCH(safetensors_info_lists_tensors_and_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
