/* Runs the examples as programs. On a GPU, those for GPUs must find the same as on the CPU; without a GPU they say so and exit
 * with 77. The test prints which of the two happened. The others print the same on every device.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"
#include "support/data/bytes.h"
#include "support/scratch.h"
#include "support/standin.h"

enum { SAME = 0, NO_DEVICE = 77 };

#define PROGRAM_RUN(name, ...) program_run(EXAMPLES_DIR name, (const char *[]){name, __VA_ARGS__, NULL})

static int run(const char *path, const char *kind)
{
    const char *const arguments[] = {path, NULL};
    command_result result = program_run(path, arguments);
    const int code = result.code;
    printf("%s: %s\n%s", path, code == SAME ? "ran on a device" : code == NO_DEVICE ? "no device" : "FAILED", result.out);
    if (code == SAME) {
        assert_non_null(strstr(result.out, "rows and score bits are the same"));
        assert_non_null(strstr(result.out, kind));
    } else if (code == NO_DEVICE) {
        char expected[64];
        snprintf(expected, sizeof expected, "no device '%s': ", kind);
        assert_non_null(strstr(result.out, expected));
        printf("SKIP: %s: there is no %s device here, so nothing was compared\n", path, kind);
    } else {
        fail_msg("%s: exit code %d: %s", path, code, result.err);
    }
    assert_string_equal(result.err, "");
    command_free(&result);
    return code;
}

static void the_cuda_example_agrees_with_the_cpu_or_finds_no_device(void **state)
{
    (void)state;
    run(EXAMPLES_DIR "/example_cuda_basic", "cuda");
}

static void the_rocm_example_agrees_with_the_cpu_or_finds_no_device(void **state)
{
    (void)state;
    run(EXAMPLES_DIR "/example_rocm_basic", "rocm");
}

static void run_own_kernel(const char *device)
{
    command_result result = program_run(EXAMPLES_DIR "/example_own_kernel",
                                        (const char *[]){"own_kernel", device, BUILD_DIR "/tests/own_kernel", NULL});
    if (result.code != SAME)
        fail_msg("own_kernel on %s: exit code %d: %s%s", device, result.code, result.out, result.err);
    assert_non_null(strstr(result.out, "1000 elements and 8 sums are as computed here"));
    command_free(&result);
}

static void a_kernel_of_ones_own_runs_on_the_emulator(void **state)
{
    (void)state;
    run_own_kernel("emulator:32");
    run_own_kernel("emulator:64");
}

static void a_callers_kernel_runs_on_the_stand_in(void **state)
{
    (void)state;
    if (!standin_has_kernels()) {
        printf("SKIP: " STANDIN_WITHOUT_KERNELS "\n");
        skip();
    }
    setenv("WARPWAVE_HIP_LIBRARY", BUILD_DIR "/standin/libamdhip64.so.6", 1);
    setenv("WARPWAVE_STANDIN", "kernels=" BUILD_DIR "/tests/own_kernel/scale.so", 1);
    run_own_kernel("rocm:0"); /* waves of 64 */
    run_own_kernel("rocm:1"); /* a device with waves of 32 */
    unsetenv("WARPWAVE_STANDIN");
    unsetenv("WARPWAVE_HIP_LIBRARY");
}

static void the_rocm_example_agrees_with_the_cpu_on_the_stand_in(void **state)
{
    (void)state;
    if (access(BUILD_DIR "/standin/libamdhip64.so", R_OK) != 0) {
        printf("SKIP: the stand-in for ROCm was not built\n");
        skip();
    }
    if (!standin_has_kernels()) {
        printf("SKIP: " STANDIN_WITHOUT_KERNELS "\n");
        skip();
    }
    setenv("WARPWAVE_HIP_LIBRARY", BUILD_DIR "/standin/libamdhip64.so", 1);
    assert_int_equal(run(EXAMPLES_DIR "/example_rocm_basic", "rocm"), SAME);
    unsetenv("WARPWAVE_HIP_LIBRARY");
}

static void expect_output(const char *path, const char *expected)
{
    const char *const arguments[] = {path, NULL};
    command_result result = program_run(path, arguments);
    assert_string_equal(result.err, "");
    assert_string_equal(result.out, expected);
    assert_int_equal(result.code, 0);
    command_free(&result);
}

static void the_filter_finds_even_rows_only(void **state)
{
    (void)state;
    expect_output(EXAMPLES_DIR "/example_filter", "row 4 at distance 1\nrow 6 at distance 1\nrow 2 at distance 3\n");
}

static void a_collection_that_was_saved_is_loaded_again(void **state)
{
    (void)state;
    assert_int_equal(chdir(scratch_path(".")), 0); /* the folder it writes to */
    expect_output(EXAMPLES_DIR "/example_save", "3 rows saved, 3 loaded\n");
}

/* The weights are random and the training is 500 steps of f32, and yet the result is known: the arithmetic is canonical. */
static void the_perceptron_learns_the_same_digits_everywhere(void **state)
{
    (void)state;
    command_result result = PROGRAM_RUN("/example_perceptron", SOURCE_DIR "/data/digits.csv", "cpu");
    assert_string_equal(result.err, "");
    assert_string_equal(result.out, "274 of 297 right: 0.9226\n");
    assert_int_equal(result.code, 0);
    command_free(&result);
    result = PROGRAM_RUN("/example_perceptron", "/nowhere.csv");
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.err, "/nowhere.csv"));
    command_free(&result);
}

/* Each block has 127 as its largest value, so that q8_0 holds its integers exactly, with a scale of 1. */
static const char *small_model(void)
{
    static test_bytes b;
    float values[2][64];
    for (int i = 0; i < 128; i++)
        values[i / 64][i % 64] = i % 32 == 0 ? 127.0f : (float)(i / 64 == 0 ? 1 : i % 32);
    b.size = 0;
    put_start(&b, 3, 1, 0);
    put_tensor(&b, "blk.0.ffn.weight", 64, 2, 0, 0);
    put_padding(&b, 32);
    put_bytes(&b, values, sizeof values);
    return scratch_write("model.gguf", b.data, b.size);
}

static void the_gguf_example_multiplies_alike_on_every_device(void **state)
{
    (void)state;
    const char *model = small_model(), *quantized = scratch_path("q8.gguf");
    command_result result = COMMAND_RUN("gguf", "quantize", model, quantized, "--type", "q8_0", "--device", "cpu");
    assert_int_equal(result.code, 0);
    command_free(&result);
    command_result plain = PROGRAM_RUN("/example_gguf_multiply", model, "blk.0.ffn.weight", "cpu");
    assert_int_equal(plain.code, 0);
    assert_non_null(strstr(plain.out, "f32, 2 rows of 64\ny[0] = "));
    command_result cpu = PROGRAM_RUN("/example_gguf_multiply", quantized, "blk.0.ffn.weight", "cpu");
    assert_int_equal(cpu.code, 0);
    assert_non_null(strstr(cpu.out, "q8_0, 2 rows of 64\ny[0] = "));
    double exact[2] = {0, 0}, coded[2];
    for (int i = 0; i < 64; i++) {
        exact[0] += (i % 32 == 0 ? 127.0 : 1.0) / (i + 1);
        exact[1] += (i % 32 == 0 ? 127.0 : i % 32) / (i + 1);
    }
    command_result *const results[] = {&plain, &cpu};
    for (int r = 0; r < 2; r++) {
        assert_int_equal(sscanf(strchr(results[r]->out, '\n'), "\ny[0] = %lf\ny[1] = %lf", &coded[0], &coded[1]), 2);
        for (int i = 0; i < 2; i++) /* x is coded, too, with an error of 1/254 of its largest, 1 */
            assert_true(fabs(coded[i] - exact[i]) < (r == 0 ? 1e-4 : 0.01 * exact[i]));
    }
    command_result emulated = PROGRAM_RUN("/example_gguf_multiply", quantized, "blk.0.ffn.weight", "emulator:32");
    if (emulated.code == 0)
        assert_string_equal(emulated.out, cpu.out);
    else
        printf("SKIP: this library has no emulator, so the CPU was compared with nothing\n");
    command_free(&emulated);
    command_free(&cpu);
    command_free(&plain);
    result = PROGRAM_RUN("/example_gguf_multiply", quantized, "no.such.tensor", "cpu");
    assert_int_equal(result.code, 1);
    assert_non_null(strstr(result.err, "no.such.tensor"));
    command_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filter_finds_even_rows_only),
        cmocka_unit_test_setup_teardown(a_collection_that_was_saved_is_loaded_again, scratch_setup, scratch_teardown),
        cmocka_unit_test(the_cuda_example_agrees_with_the_cpu_or_finds_no_device),
        cmocka_unit_test(the_rocm_example_agrees_with_the_cpu_or_finds_no_device),
        cmocka_unit_test(a_kernel_of_ones_own_runs_on_the_emulator),
        cmocka_unit_test(a_callers_kernel_runs_on_the_stand_in),
        cmocka_unit_test(the_rocm_example_agrees_with_the_cpu_on_the_stand_in),
        cmocka_unit_test(the_perceptron_learns_the_same_digits_everywhere),
        cmocka_unit_test_setup_teardown(the_gguf_example_multiplies_alike_on_every_device, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
