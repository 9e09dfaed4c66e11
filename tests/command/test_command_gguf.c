/* `warpwave gguf` and `warpwave quant`: what they print, what they write, and what they refuse. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/command.h"
#include "support/data/bytes.h"
#include "support/data/golden.h"
#include "support/data/random.h"

/* A model with a matrix, a norm, a vector, a bias, matrices whose rows are not a multiple of 256 or of 32, and a tensor that
 * stays unchanged. */
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

static void info_describes_the_contents_of_the_file(void **state)
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
    assert_string_equal(said.err,
                        "warpwave gguf: by-32: rows of 32 are not a multiple of q4_K's block of 256; it becomes q8_0\n"
                        "warpwave gguf: by-1: rows of 7 are not a multiple of q4_K's block of 256; it becomes f16\n");
    assert_non_null(strstr(said.out, "out.gguf as Q4_K_M: "));
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
    COMMAND_SAYS(0, "bits a weight", "gguf", "quantize", out, scratch_path("back.gguf"), "--type=f32", "--device=emulator:32");
    COMMAND_SAYS(0, "are sound", "gguf", "verify", scratch_path("back.gguf"), "--device", "emulator:64");
}

static void diff_names_the_differences(void **state)
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
    const char *line = strstr(result.out, "f32 256 x 4 and q8_0 256 x 4\n    rmse ");
    assert_non_null(line);
    command_free(&result);
}

/* The errors of a file against itself coded as q8_0, computed here from the decoded file. */
static void diff_gives_the_error_of_each_tensor(void **state)
{
    (void)state;
    const char *path = model(), *out = scratch_path("q8.gguf"), *back = scratch_path("back.gguf");
    const char *const files[] = {path, back};
    static float x[2][1024];
    COMMAND_SAYS(0, "", "gguf", "quantize", path, out, "--type", "q8_0", "--device", "cpu", "--pure", "--quiet");
    COMMAND_SAYS(0, "", "gguf", "quantize", out, back, "--type", "f32", "--device", "cpu", "--quiet");
    for (int i = 0; i < 2; i++) {
        ww_gguf *g = NULL;
        int64_t index = -1;
        CHECK_OK(ww_gguf_open(files[i], &g));
        CHECK_OK(ww_gguf_find_tensor(g, "blk.0.ffn.weight", &index));
        CHECK_OK(ww_gguf_read(g, index, 0, x[i], sizeof x[i]));
        ww_gguf_close(g);
    }
    double squares = 0.0, differences = 0.0, largest = 0.0;
    for (int i = 0; i < 1024; i++) {
        const double d = (double)x[1][i] - (double)x[0][i];
        squares += (double)x[0][i] * (double)x[0][i];
        differences += d * d;
        largest = fabs(d) > largest ? fabs(d) : largest;
    }
    command_result result = COMMAND_RUN("gguf", "diff", path, out, "--json");
    assert_int_equal(result.code, 1);
    assert_string_equal(result.err, "");
    json_t *report = json_loads(result.out, 0, NULL);
    assert_non_null(report);
    json_t *tensor = NULL, *entry;
    size_t i;
    json_array_foreach(json_object_get(report, "tensors"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "name")), "blk.0.ffn.weight") == 0)
            tensor = entry;
    }
    assert_non_null(tensor);
    assert_true(json_integer_value(json_object_get(report, "differences")) >= 2);
    assert_string_equal(json_string_value(json_object_get(tensor, "type_b")), "q8_0");
    assert_true(largest > 0.0 && json_real_value(json_object_get(tensor, "max_abs")) == largest);
    assert_true(fabs(json_real_value(json_object_get(tensor, "rmse")) - sqrt(differences / 1024)) < 1e-12);
    assert_true(fabs(json_real_value(json_object_get(tensor, "relative")) - sqrt(differences / squares)) < 1e-12);
    json_decref(report);
    command_free(&result);
    report = COMMAND_JSON("gguf", "diff", path, path, "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "differences")), 0);
    json_decref(report);
}

/* A model of 16 blocks with the tensors that mixes treat apart; `kv_heads` and `experts` decide some of them. */
static const char *blocks_model(unsigned kv_heads, unsigned experts)
{
    static unsigned char data[1 << 20];
    static const char *const names[] = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"};
    static test_bytes b;
    const uint64_t bytes = 256 * 2 * 4;
    uint64_t offset = 0;
    char name[64];
    b.size = 0;
    put_start(&b, 3, 2 + 16 * 6, 5);
    put_key(&b, "general.architecture", WW_GGUF_STRING);
    put_text(&b, "llama");
    put_key_u32(&b, "llama.block_count", 16);
    put_key_u32(&b, "llama.attention.head_count", 32);
    put_key_u32(&b, "llama.attention.head_count_kv", kv_heads);
    put_key_u32(&b, "llama.expert_count", experts);
    put_tensor(&b, "token_embd.weight", 256, 2, 0, offset);
    put_tensor(&b, "output.weight", 256, 2, 0, offset += bytes);
    for (int block = 0; block < 16; block++)
        for (size_t i = 0; i < 6; i++) {
            snprintf(name, sizeof name, "blk.%d.%s.weight", block, names[i]);
            put_tensor(&b, name, 256, 2, 0, offset += bytes);
        }
    put_padding(&b, 32);
    memcpy(data, b.data, b.size);
    memset(data + b.size, 0, offset + bytes);
    static char path[SCRATCH_PATH_BYTES]; /* for longer than scratch_path() keeps its result */
    snprintf(path, sizeof path, "%s", scratch_write("blocks.gguf", data, b.size + offset + bytes));
    return path;
}

static void check_mix(const char *path, const char *mix, const char *const *expected)
{
    const char *out = scratch_path("mixed.gguf");
    json_t *report = COMMAND_JSON("gguf", "quantize", path, out, "--type", mix, "--device", "cpu", "--json");
    json_t *info = COMMAND_JSON("gguf", "info", out, "--json");
    assert_true(json_integer_value(json_object_get(report, "bytes_after")) <
                json_integer_value(json_object_get(report, "bytes_before")));
    assert_int_equal(json_integer_value(json_object_get(report, "bytes_after")),
                     json_integer_value(json_object_get(info, "data_bytes")));
    for (; expected[0]; expected += 2)
        if (strcmp(type_in(info, expected[0]), expected[1]) != 0)
            fail_msg("%s: %s is %s, not %s", mix, expected[0], type_in(info, expected[0]), expected[1]);
    json_decref(report);
    json_decref(info);
}

#define MIX_GIVES(path, mix, ...) check_mix(path, mix, (const char *[]){__VA_ARGS__, NULL})

static void mixes_give_more_bits_to_the_documented_tensors(void **state)
{
    (void)state;
    const char *path = blocks_model(8, 0);
    MIX_GIVES(path, "Q4_K_M", "output.weight", "q6_K", "token_embd.weight", "q4_K", "blk.0.attn_v.weight", "q6_K",
              "blk.2.attn_v.weight", "q4_K", "blk.4.ffn_down.weight", "q6_K", "blk.5.ffn_down.weight", "q4_K",
              "blk.14.ffn_down.weight", "q6_K", "blk.0.attn_output.weight", "q4_K", "blk.0.ffn_up.weight", "q4_K");
    MIX_GIVES(path, "q4_k_s", "output.weight", "q6_K", "blk.3.attn_v.weight", "q5_K", "blk.4.attn_v.weight", "q4_K",
              "blk.1.ffn_down.weight", "q5_K", "blk.2.ffn_down.weight", "q4_K");
    MIX_GIVES(path, "Q2_K", "output.weight", "q6_K", "blk.9.attn_v.weight", "q4_K", "blk.9.ffn_down.weight", "q3_K",
              "blk.9.attn_output.weight", "q3_K", "blk.9.attn_q.weight", "q2_K");
    MIX_GIVES(path, "Q3_K_S", "output.weight", "q6_K", "blk.0.attn_v.weight", "q3_K", "blk.0.ffn_down.weight", "q3_K");
    MIX_GIVES(path, "Q3_K_M", "blk.1.attn_v.weight", "q5_K", "blk.2.attn_v.weight", "q4_K", "blk.0.ffn_down.weight", "q5_K",
              "blk.1.ffn_down.weight", "q4_K", "blk.5.attn_output.weight", "q4_K", "blk.5.ffn_up.weight", "q3_K");
    MIX_GIVES(path, "Q3_K_L", "blk.7.attn_v.weight", "q5_K", "blk.7.ffn_down.weight", "q5_K", "blk.7.attn_output.weight",
              "q5_K");
    MIX_GIVES(path, "Q5_K_S", "output.weight", "q6_K", "blk.0.attn_v.weight", "q5_K", "blk.0.ffn_down.weight", "q5_K");
    MIX_GIVES(path, "Q5_K_M", "blk.0.attn_v.weight", "q6_K", "blk.2.attn_v.weight", "q5_K", "blk.15.ffn_down.weight", "q6_K");
    MIX_GIVES(path, "Q6_K", "output.weight", "q6_K", "blk.0.attn_v.weight", "q6_K");
    MIX_GIVES(path, "Q4_0", "output.weight", "q6_K", "blk.0.attn_v.weight", "q4_0");
    MIX_GIVES(path, "Q8_0", "output.weight", "q8_0", "blk.0.attn_v.weight", "q8_0");
    MIX_GIVES(path, "IQ4_NL", "output.weight", "q6_K", "blk.0.attn_v.weight", "iq4_nl");
    MIX_GIVES(path, "iq4_xs", "output.weight", "q6_K", "blk.0.attn_v.weight", "iq4_xs");
    MIX_GIVES(path, "MXFP4", "output.weight", "q6_K", "blk.0.attn_v.weight", "mxfp4");
    MIX_GIVES(path, "F16", "output.weight", "f16", "blk.0.ffn_down.weight", "f16");
    MIX_GIVES(path, "BF16", "output.weight", "bf16", "blk.0.ffn_down.weight", "bf16");
    MIX_GIVES(blocks_model(32, 0), "Q2_K", "blk.9.attn_v.weight", "q3_K");
    MIX_GIVES(blocks_model(8, 8), "Q4_K_M", "blk.9.attn_v.weight", "q8_0", "blk.9.attn_k.weight", "q8_0",
              "blk.9.attn_output.weight", "q5_K");
}

static void pure_is_one_type_everywhere(void **state)
{
    (void)state;
    const char *out = scratch_path("pure.gguf");
    COMMAND_SAYS(0, "as q4_K: ", "gguf", "quantize", blocks_model(8, 0), out, "--type", "q4_K", "--pure", "--device", "cpu");
    json_t *info = COMMAND_JSON("gguf", "info", out, "--json");
    assert_string_equal(type_in(info, "output.weight"), "q4_K");
    assert_string_equal(type_in(info, "blk.0.attn_v.weight"), "q4_K");
    json_decref(info);
}

static void encoding_quantized_weights_again_gives_a_warning(void **state)
{
    (void)state;
    const char *path = model(), *once = scratch_path("once.gguf"), *again = scratch_path("again.gguf");
    COMMAND_SAYS(0, "", "gguf", "quantize", path, once, "--type", "q8_0", "--device", "cpu", "--quiet");
    command_result result = COMMAND_RUN("gguf", "quantize", once, again, "--type", "q4_0", "--device", "cpu");
    assert_int_equal(result.code, 0);
    assert_non_null(strstr(result.err, "warning: 2 tensors were quantized already (the first is blk.0.ffn.weight)"));
    command_free(&result);
    COMMAND_SAYS(0, "", "gguf", "quantize", once, again, "--type", "q4_0", "--device", "cpu", "--quiet");
    result = COMMAND_RUN("gguf", "quantize", once, again, "--type", "f16", "--device", "cpu"); /* decoding is no coding */
    assert_null(strstr(result.err, "warning"));
    command_free(&result);
}

/* Types that no version knows, at the front, in the middle and at the end of a file. */
static const char *unknown_model(void)
{
    static test_bytes b;
    static float x[256];
    b.size = 0;
    put_start(&b, 3, 4, 0);
    put_tensor(&b, "odd.first", 64, 2, 1000, 0);
    put_tensor(&b, "plain", 32, 8, 0, 96);
    put_tensor(&b, "odd.middle", 7, 3, 77, 96 + 1024);
    put_tensor(&b, "odd.last", 8, 1, 2147483647, 96 + 1024 + 32);
    put_padding(&b, 32);
    for (int i = 0; i < 256; i++)
        x[i] = (float)i;
    put_bytes(&b, "0123456789", 10);
    put_zeros(&b, 86);
    put_bytes(&b, x, sizeof x);
    put_bytes(&b, "abcdefgh", 8);
    put_zeros(&b, 24);
    put_bytes(&b, "12345", 5);
    return scratch_write("unknown.gguf", b.data, b.size);
}

static void tensors_of_unknown_types_are_listed_copied_and_compared(void **state)
{
    (void)state;
    const char *path = unknown_model(), *out = scratch_path("copied.gguf");
    json_t *info = COMMAND_JSON("gguf", "info", path, "--json");
    assert_string_equal(type_in(info, "odd.first"), "type 1000");
    assert_string_equal(type_in(info, "odd.last"), "type 2147483647");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(info, "tensors"), 0), "bytes")), 96);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(info, "tensors"), 3), "bytes")), 5);
    json_decref(info);
    COMMAND_SAYS(0, "type 77", "gguf", "info", path);
    COMMAND_SAYS(0, "tensors of an unknown type, whose bytes were read: 3", "gguf", "verify", path);
    COMMAND_SAYS(0, "", "gguf", "quantize", path, out, "--type", "q8_0", "--device", "cpu");
    info = COMMAND_JSON("gguf", "info", out, "--json");
    assert_string_equal(type_in(info, "plain"), "q8_0");
    assert_string_equal(type_in(info, "odd.middle"), "type 77");
    json_decref(info);
    command_result result = COMMAND_RUN("gguf", "diff", path, out);
    assert_int_equal(result.code, 1);
    assert_null(strstr(result.out, "odd"));
    assert_non_null(strstr(result.out, "! tensor plain: type"));
    command_free(&result);
}

/* A file may contain bytes that control a terminal, and numbers with more digits than an f32 has. */
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
    COMMAND_SAYS(3, "offset 0: the file is cut off inside the magic", "gguf", "verify", scratch_write("cut.gguf", "GG", 2));
}

static void tensors_that_cannot_be_quantized_are_named(void **state)
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
    COMMAND_SAYS(2, "unknown type 'q4_k_xl'; the mixes are Q2_K", "gguf", "quantize", path, scratch_path("x"), "--type",
                 "q4_k_xl");
    COMMAND_SAYS(2, "q8_K is for activations", "gguf", "quantize", path, scratch_path("x"), "--type", "q8_K");
    COMMAND_SAYS(3, "cannot open the file", "gguf", "info", scratch_path("absent.gguf"));
    COMMAND_SAYS(2, "unknown action 'code'", "quant", "code", "--type", "q4_0", "--cols", "32", path, "y");
    COMMAND_SAYS(2, "--cols N is missing", "quant", "encode", "--type", "q4_0", path, "y");
    COMMAND_SAYS(2, "blocks hold 32", "quant", "encode", "--type", "q4_0", "--cols", "33", path, scratch_path("y"));
    COMMAND_SAYS(3, "a row has 4096 bytes, but only", "quant", "encode", "--type", "q4_0", "--cols", "1024", path,
                 scratch_path("y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_describes_the_contents_of_the_file),
        cmocka_unit_test(quantize_keeps_norms_biases_and_vectors),
        cmocka_unit_test(diff_names_the_differences),
        cmocka_unit_test(diff_gives_the_error_of_each_tensor),
        cmocka_unit_test(mixes_give_more_bits_to_the_documented_tensors),
        cmocka_unit_test(pure_is_one_type_everywhere),
        cmocka_unit_test(encoding_quantized_weights_again_gives_a_warning),
        cmocka_unit_test(tensors_of_unknown_types_are_listed_copied_and_compared),
        cmocka_unit_test(names_are_printed_plainly_and_numbers_whole),
        cmocka_unit_test(verify_finds_numbers_that_are_not_finite),
        cmocka_unit_test(tensors_that_cannot_be_quantized_are_named),
        cmocka_unit_test(encode_and_decode_are_the_references),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
