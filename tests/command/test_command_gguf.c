/* `warpwave gguf` and `warpwave quant`: what they print, what they write, and what they refuse. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/data/bytes.h"
#include "support/data/golden.h"
#include "support/data/random.h"

/* A model of a matrix, a norm, a vector, a bias, matrices whose rows fit no block of 256, or none at all, and one that is left.
 */
static const char *model(void)
{
    static test_bytes b;
    static float x[4 * 256];
    test_random random = {3};
    random_normals(&random, x, 4 * 256);
    b.size = 0;
    put_start(&b, 3, 7, 3);
    put_key(&b, "general.architecture", WW_GGUF_STRING);
    put_text(&b, "test");
    put_key_u32(&b, "general.file_type", 0);
    put_key(&b, "list", WW_GGUF_ARRAY);
    put_u32(&b, WW_GGUF_I32);
    put_u64(&b, 2);
    put_u32(&b, 7);
    put_u32(&b, (uint32_t)-8);
    put_tensor(&b, "blk.0.ffn.weight", 256, 4, 0, 0);
    put_tensor(&b, "blk.0.norm.weight", 256, 2, 0, 4096);
    put_tensor_of(&b, "vector", 1, (const uint64_t[]){256}, 0, 6144);
    put_tensor(&b, "blk.0.ffn.bias", 256, 2, 0, 7168);
    put_tensor(&b, "by-32", 32, 2, 0, 9216);
    put_tensor(&b, "by-1", 7, 2, 0, 9472);
    put_tensor(&b, "blk.0.ffn_gate_inp.weight", 256, 2, 0, 9536);
    put_padding(&b, 32);
    put_bytes(&b, x, 4096);
    put_bytes(&b, x, 2048);
    put_bytes(&b, x, 1024);
    put_bytes(&b, x, 2048);
    put_bytes(&b, x, 256);
    put_bytes(&b, x, 56);
    put_padding(&b, 32);
    put_bytes(&b, x, 2048);
    return scratch_write("model.gguf", b.data, b.size);
}

static const char *type_in(json_t *report, const char *name)
{
    size_t i;
    json_t *tensor;
    json_array_foreach(json_object_get(report, "tensors"), i, tensor)
    {
        if (strcmp(json_string_value(json_object_get(tensor, "name")), name) == 0)
            return json_string_value(json_object_get(tensor, "type"));
    }
    return "";
}

static void info_says_what_is_in_the_file(void **state)
{
    (void)state;
    const char *path = model();
    COMMAND_SAYS(0, "GGUF version 3, 3 keys, 7 tensors", "gguf", "info", path);
    COMMAND_SAYS(0, "i32[2]         list = [7, -8]", "gguf", "info", path);
    COMMAND_SAYS(0, "blk.0.ffn.weight", "gguf", "info", path);
    json_t *report = COMMAND_JSON("gguf", "info", path, "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "version")), 3);
    assert_int_equal(json_array_size(json_object_get(report, "keys")), 3);
    assert_string_equal(type_in(report, "by-1"), "f32");
    json_decref(report);
}

static void quantize_keeps_norms_biases_and_vectors(void **state)
{
    (void)state;
    const char *path = model(), *out = scratch_path("out.gguf");
    command_result said = COMMAND_RUN("gguf", "quantize", path, out, "--type", "q4_K", "--device", "cpu");
    assert_int_equal(said.code, 0);
    assert_string_equal(said.err, "warpwave gguf: by-32: rows of 32 are no multiple of q4_K's block of 256; it becomes q8_0\n"
                                  "warpwave gguf: by-1: rows of 7 are no multiple of q4_K's block of 256; it becomes f16\n");
    command_free(&said);
    json_t *report = COMMAND_JSON("gguf", "info", "--json", out);
    assert_string_equal(type_in(report, "blk.0.ffn.weight"), "q4_K");
    assert_string_equal(type_in(report, "blk.0.norm.weight"), "f32");
    assert_string_equal(type_in(report, "blk.0.ffn.bias"), "f32");
    assert_string_equal(type_in(report, "vector"), "f32");
    assert_string_equal(type_in(report, "by-32"), "q8_0");
    assert_string_equal(type_in(report, "by-1"), "f16");
    assert_string_equal(type_in(report, "blk.0.ffn_gate_inp.weight"), "f32");
    json_decref(report);
    COMMAND_SAYS(0, "4 keys and 7 tensors are sound", "gguf", "verify", out);
    COMMAND_SAYS(0, "", "gguf", "quantize", out, scratch_path("back.gguf"), "--type=f32", "--device=emulator:32");
    COMMAND_SAYS(0, "are sound", "gguf", "verify", scratch_path("back.gguf"), "--device", "emulator:64");
}

static void diff_names_what_differs(void **state)
{
    (void)state;
    const char *path = model(), *out = scratch_path("q8.gguf");
    COMMAND_SAYS(0, "", "gguf", "diff", path, path);
    command_result result = COMMAND_RUN("gguf", "quantize", path, out, "--type", "q8_0", "--device", "cpu");
    assert_int_equal(result.code, 0);
    command_free(&result);
    result = COMMAND_RUN("gguf", "diff", path, out);
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.out, "! key general.file_type\n"));
    assert_non_null(strstr(result.out, "+ key general.quantization_version\n"));
    assert_non_null(strstr(result.out, "! tensor blk.0.ffn.weight: type, f32 256 x 4 and q8_0 256 x 4\n"));
    assert_null(strstr(result.out, "norm"));
    command_free(&result);
}

/* A file may hold what a terminal would obey, and numbers of more digits than an f32 has. */
static void names_are_printed_plainly_and_numbers_whole(void **state)
{
    (void)state;
    static test_bytes b;
    const double third = 1.0 / 3.0;
    const float one = 1.0f;
    b.size = 0;
    put_start(&b, 3, 1, 2);
    put_key(&b, "\x1b[2J\n", WW_GGUF_F64);
    put_bytes(&b, &third, sizeof third);
    put_key_u32(&b,
                "\xc2\x9b"
                "7",
                7);
    put_tensor(&b, "\x7f\x1b[1m", 1, 1, 0, 0);
    put_padding(&b, 32);
    put_bytes(&b, &one, sizeof one);
    const char *path = scratch_write("odd.gguf", b.data, b.size);
    COMMAND_SAYS(0, "  f64            \\x1b[2J\\x0a = 0.333333333\n", "gguf", "info", path);
    COMMAND_SAYS(0, "4 B  \\x7f\\x1b[1m\n", "gguf", "info", path);
    COMMAND_SAYS(0, "\\xc2\\x9b7 = 7\n", "gguf", "info", path);
    command_result difference = COMMAND_RUN("gguf", "diff", path, model());
    assert_int_equal(difference.code, 1);
    assert_non_null(strstr(difference.out, "- tensor \\x7f\\x1b[1m\n"));
    command_free(&difference);
    json_t *report = COMMAND_JSON("gguf", "info", "--json", path);
    json_t *value = json_object_get(json_array_get(json_object_get(report, "keys"), 0), "value");
    assert_true(json_real_value(value) == third);
    json_decref(report);
}

static void verify_finds_numbers_that_are_not_finite(void **state)
{
    (void)state;
    static test_bytes b;
    const float bad[2] = {1.0f, INFINITY};
    b.size = 0;
    put_start(&b, 3, 1, 0);
    put_tensor(&b, "t", 2, 1, 0, 0);
    put_padding(&b, 32);
    put_bytes(&b, bad, sizeof bad);
    COMMAND_SAYS(3, "1 of 1 tensors have numbers that are not finite; the first is 't', with 1", "gguf", "verify",
                 scratch_write("bad.gguf", b.data, b.size));
    COMMAND_SAYS(3, "offset 0: the file ends inside the magic", "gguf", "verify", scratch_write("cut.gguf", "GG", 2));
}

static void what_cannot_be_quantized_is_named(void **state)
{
    (void)state;
    static test_bytes b;
    float x[64] = {[40] = INFINITY};
    b.size = 0;
    put_start(&b, 3, 1, 0);
    put_tensor(&b, "w", 32, 2, 0, 0);
    put_padding(&b, 32);
    put_bytes(&b, x, sizeof x);
    COMMAND_SAYS(3, "tensor 'w': row 1, columns 0 to 31 cannot be coded as q8_0", "gguf", "quantize",
                 scratch_write("bad.gguf", b.data, b.size), scratch_path("out.gguf"), "--type", "q8_0", "--device", "cpu");
}

static void encode_and_decode_are_the_references(void **state)
{
    (void)state;
    const size_t floats = (size_t)GOLDEN_ROWS * GOLDEN_COLS * sizeof(float);
    size_t size;
    void *x = golden_read("input.f32", floats), *blocks = golden_read("q5_0.blocks", GOLDEN_ROWS * 32 * 22);
    float *decoded = golden_read("q5_0.f32", floats);
    const char *in = scratch_write("in.f32", x, floats), *out = scratch_path("out.q5_0"), *back = scratch_path("back.f32");
    COMMAND_SAYS(0, "", "quant", "encode", "--type", "q5_0", "--cols", "1024", "--device", "cpu", in, out);
    char *content = scratch_content(out, &size);
    assert_int_equal(size, GOLDEN_ROWS * 32 * 22);
    assert_memory_equal(content, blocks, size);
    free(content);
    COMMAND_SAYS(0, "", "quant", "decode", out, back, "--type", "q5_0", "--cols", "1024", "--device", "emulator:64");
    content = scratch_content(back, &size);
    assert_int_equal(size, floats);
    assert_memory_equal(content, decoded, size);
    free(content);
    free(decoded);
    free(blocks);
    free(x);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    const char *path = model();
    COMMAND_SAYS(2, "no action given; the actions are info", "gguf");
    COMMAND_SAYS(2, "unknown action 'inform'", "gguf", "inform", path);
    COMMAND_SAYS(2, "expected: info FILE; 0 of 1 given", "gguf", "info");
    COMMAND_SAYS(2, "unexpected argument 'b'; expected: info FILE", "gguf", "info", path, "b");
    COMMAND_SAYS(2, "unknown option '--type=q4_0'", "gguf", "info", path, "--type=q4_0");
    COMMAND_SAYS(2, "--type T is missing", "gguf", "quantize", path, "x");
    COMMAND_SAYS(3, "unknown quantized type 'q4_k_m'", "gguf", "quantize", path, scratch_path("x"), "--type", "q4_k_m");
    COMMAND_SAYS(3, "q8_K is for activations", "gguf", "quantize", path, scratch_path("x"), "--type", "q8_K");
    COMMAND_SAYS(3, "cannot open the file", "gguf", "info", scratch_path("absent.gguf"));
    COMMAND_SAYS(2, "unknown action 'code'", "quant", "code", "--type", "q4_0", "--cols", "32", path, "y");
    COMMAND_SAYS(2, "--cols N is missing", "quant", "encode", "--type", "q4_0", path, "y");
    COMMAND_SAYS(3, "blocks hold 32", "quant", "encode", "--type", "q4_0", "--cols", "33", path, scratch_path("y"));
    COMMAND_SAYS(3, "a row has 4096 bytes, but only", "quant", "encode", "--type", "q4_0", "--cols", "1024", path,
                 scratch_path("y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_says_what_is_in_the_file),
        cmocka_unit_test(quantize_keeps_norms_biases_and_vectors),
        cmocka_unit_test(diff_names_what_differs),
        cmocka_unit_test(names_are_printed_plainly_and_numbers_whole),
        cmocka_unit_test(verify_finds_numbers_that_are_not_finite),
        cmocka_unit_test(what_cannot_be_quantized_is_named),
        cmocka_unit_test(encode_and_decode_are_the_references),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
