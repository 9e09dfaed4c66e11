/* A device's life on the stand-in for ROCm: which one "auto" opens, ten thousand rows stored, searched, grown and shrunk with
 * both wave sizes, and the order in which everything is freed.
 */
#include "support/collections.h"
#include "support/process.h"
#include "support/standin.h"

#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "gpu/open.h"

enum { SECONDS = 300, DIM = 128, ROWS = 10000, MORE = 3000, QUERIES = 3, K = 10 };

static standin rocm;

static void use_standin(const char *settings)
{
    if (!standin_open(6, settings, &rocm))
        _exit(PROCESS_SKIPPED);
}

static ww_device *open_device(const char *name)
{
    ww_device *device = NULL;
    EXPECT(ww_device_open(name, &device) == WW_OK);
    return device;
}

static void expect_all_well(void)
{
    if (rocm.misuse() != NULL)
        fprintf(stderr, "%s\n", rocm.misuse());
    EXPECT(rocm.misuse() == NULL);
    EXPECT(standin_alive(&rocm) == 0);
}

/* ---- the order of ending ------------------------------------------------------------------------------------------------- */

static void end_everything(void)
{
    use_standin("");
    const int64_t shape[] = {32, 32};
    ww_device *device = open_device("rocm:0");
    ww_tensor a = {0}, product = {0};
    ww_collection *collection = collection_make(device, 8, WW_L2);
    test_random random = {1};
    collection_fill(collection, &random, 50, 8, "row", 0);
    EXPECT(ww_tensor_normal(device, WW_F32, 2, shape, 0.0, 1.0, &a) == WW_OK);
    EXPECT(ww_tensor_matmul(&a, &a, WW_MATH_FAST, &product) == WW_OK); /* by rocBLAS, whose handle is bound to the stream */
    ww_tensor_release(&a);
    ww_tensor_release(&product);
    ww_collection_destroy(collection);
    const size_t before = strlen(rocm.given_back());
    ww_device_close(device);
    const char *ended = rocm.given_back() + before;
    const char *blas = strstr(ended, "rocblas_destroy_handle"), *stream = strstr(ended, "hipStreamDestroy"),
               *code = strstr(ended, "hipModuleUnload");
    EXPECT(blas != NULL && stream != NULL && code != NULL);
    EXPECT(blas < stream && stream < code);
    EXPECT(strstr(code, "hipStreamDestroy") == NULL && strstr(stream, "rocblas_destroy_handle") == NULL);
    expect_all_well();
}

static void a_blas_handle_ends_before_its_stream_and_that_before_the_code(void **state)
{
    (void)state;
    in_a_process(end_everything, SECONDS);
}

static char ended[4096];

static void note(const char *what)
{
    if (strlen(ended) + strlen(what) + 2 < sizeof ended)
        strcat(strcat(ended, what), " ");
}

static int noting_stream(driver_stream stream)
{
    note("stream");
    return emulated_driver.stream_destroy(stream);
}

static int noting_memory(void *address)
{
    note("memory");
    return emulated_driver.memory_free(address);
}

static int noting_module(driver_module module)
{
    note("module");
    return emulated_driver.module_unload(module);
}

static int noting_context(int32_t index, driver_context context)
{
    note("context");
    return emulated_driver.context_destroy(index, context);
}

static void the_context_ends_last(void **state)
{
    (void)state;
    const int64_t shape[] = {10};
    gpu_driver table = emulated_driver;
    ww_device *device = NULL;
    ww_tensor x = {0}, y = {0};
    table.stream_destroy = noting_stream;
    table.memory_free = noting_memory;
    table.module_unload = noting_module;
    table.context_destroy = noting_context;
    CHECK_OK(gpu_open(&backend_emulator, &table, 0, &device));
    CHECK_OK(ww_tensor_zeros(device, WW_F32, 1, shape, &x));
    CHECK_OK(ww_tensor_unary(WW_EXP, &x, &y));
    ww_tensor_release(&x);
    ww_tensor_release(&y);
    ended[0] = '\0';
    ww_device_close(device);
    assert_non_null(strstr(ended, "stream "));
    assert_non_null(strstr(ended, "module "));
    const char *context = strstr(ended, "context ");
    assert_non_null(context);
    assert_string_equal(context, "context ");                 /* nothing follows */
    assert_null(strstr(strstr(ended, "module "), "stream ")); /* no stream outlives the code that may run on it */
}

/* ---- which device "auto" is ---------------------------------------------------------------------------------------------- */

static bool has_chip(const char *chip)
{
    bool found = false;
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        found |= strcmp(ww_kernel_chip(i), chip) == 0;
    return found;
}

/* Opens "auto" and expects a device of that backend. The stand-in for CUDA says that it is an sm_90: a build without kernels
 * for that skips it. */
static void expect_auto(const char *backend_name, const char *otherwise)
{
    ww_device *device = NULL;
    ww_device_info info = ww_device_info_default();
    const bool passed_over =
        strcmp(backend_name, "cuda") == 0 && !has_chip("sm_75") && !has_chip("sm_80") && !has_chip("sm_90a");
    unsetenv("WARPWAVE_DEVICE");
    EXPECT(ww_device_open("auto", &device) == WW_OK && ww_device_describe(device, &info) == WW_OK);
    EXPECT(strcmp(info.backend, passed_over ? otherwise : backend_name) == 0);
    EXPECT(passed_over == (strstr(info.passed_over, "cuda:0") != NULL));
    ww_device_close(device);
}

/* "auto" opens the device `id`, which says that each of `reasons` is why another one did not open. */
static void expect_auto_passes_over(const char *id, const char *const *reasons, size_t count)
{
    ww_device *device = NULL;
    ww_device_info info = ww_device_info_default();
    unsetenv("WARPWAVE_DEVICE");
    EXPECT(ww_device_open("auto", &device) == WW_OK && ww_device_describe(device, &info) == WW_OK);
    printf("%s: %s\n", info.id, info.passed_over);
    EXPECT(strcmp(info.id, id) == 0);
    for (size_t i = 0; i < count; i++)
        EXPECT(strstr(info.passed_over, reasons[i]) != NULL);
    ww_device_close(device);
    EXPECT(standin_alive(&rocm) == 0);
}

static void with_both(void)
{
    use_standin("");
    setenv("WARPWAVE_CUDA_LIBRARY", BUILD_DIR "/standin/libcuda.so.1", 1);
    expect_auto("cuda", "rocm");
}

static void with_cuda_alone(void)
{
    use_standin("");
    setenv("WARPWAVE_HIP_LIBRARY", "/nonexistent/libamdhip64.so.6", 1);
    setenv("WARPWAVE_CUDA_LIBRARY", BUILD_DIR "/standin/libcuda.so.1", 1);
    expect_auto("cuda", "cpu");
}

static void with_rocm_alone(void)
{
    use_standin("");
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    expect_auto("rocm", "");
}

static void with_a_cuda_driver_without_a_card(void)
{
    use_standin("");
    setenv("WARPWAVE_CUDA_LIBRARY", BUILD_DIR "/standin/libcuda.so.1", 1);
    setenv("STANDIN_CUDA_INIT", "100", 1);
    expect_auto("rocm", "");
}

static void with_neither(void)
{
    use_standin("init=100");
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    expect_auto("cpu", "");
}

static void with_a_first_card_out_of_memory(void)
{
    use_standin("fail=hipStreamCreateWithFlags:1:2");
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    expect_auto_passes_over("rocm:1", (const char *const[]){"rocm:0", "hipErrorOutOfMemory"}, 2);
}

static void with_cards_of_an_unknown_chip(void)
{
    use_standin("arch=gfx9999");
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    expect_auto_passes_over("cpu", (const char *const[]){"rocm:0", "rocm:1", "gfx9999"}, 3);
}

static void with_a_lost_card(void)
{
    use_standin("fail=hipStreamCreateWithFlags:1:719");
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    expect_auto_passes_over("cpu", (const char *const[]){"rocm:0", "rocm:1"}, 2);
}

/* If the CPU cannot be opened, either, the message has every reason. */
static void with_nothing_that_opens(void)
{
    ww_device *device = NULL;
    use_standin("arch=gfx9999");
    setenv("WARPWAVE_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
    setenv("WARPWAVE_ISA", "abacus", 1);
    unsetenv("WARPWAVE_DEVICE");
    EXPECT(ww_device_open("auto", &device) != WW_OK && device == NULL);
    EXPECT(strstr(ww_error_message(), "rocm:1") != NULL && strstr(ww_error_message(), "abacus") != NULL);
}

static void auto_passes_over_a_card_that_does_not_open(void **state)
{
    (void)state;
    in_a_process(with_a_first_card_out_of_memory, SECONDS);
    in_a_process(with_cards_of_an_unknown_chip, SECONDS);
    in_a_process(with_a_lost_card, SECONDS);
    in_a_process(with_nothing_that_opens, SECONDS);
}

static void auto_is_cuda_then_rocm_then_the_cpu(void **state)
{
    (void)state;
    in_a_process(with_both, SECONDS);
    in_a_process(with_cuda_alone, SECONDS);
    in_a_process(with_rocm_alone, SECONDS);
    in_a_process(with_a_cuda_driver_without_a_card, SECONDS);
    in_a_process(with_neither, SECONDS);
}

/* ---- ten thousand rows --------------------------------------------------------------------------------------------------- */

typedef struct answers {
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
} answers;

static void search(ww_collection *collection, uint64_t seed, answers *found)
{
    float queries[QUERIES * DIM];
    test_random random = {seed};
    ww_query asked = ww_query_default();
    random_normals(&random, queries, QUERIES * DIM);
    asked.queries = queries;
    asked.query_count = QUERIES;
    asked.dim = DIM;
    asked.k = K;
    EXPECT(ww_collection_search(collection, &asked, found->rows, found->scores) == WW_OK);
}

static void expect_same(ww_collection *one, ww_collection *other, uint64_t seed)
{
    answers a, b;
    memset(&a, 1, sizeof a);
    memset(&b, 2, sizeof b);
    search(one, seed, &a);
    search(other, seed, &b);
    EXPECT(memcmp(a.rows, b.rows, sizeof a.rows) == 0 && memcmp(a.scores, b.scores, sizeof a.scores) == 0);
}

static void fill(ww_collection *collection, int64_t first, int64_t count)
{
    test_random random = {(uint64_t)first + 5};
    collection_fill(collection, &random, count, DIM, "row", first);
}

static void shrink(ww_collection *collection)
{
    for (int i = 0; i < ROWS + MORE; i += 4) {
        char id[16];
        const char *removed = id;
        snprintf(id, sizeof id, "row%d", i);
        EXPECT(ww_collection_remove(collection, &removed, 1) == WW_OK);
    }
}

static void live_on(const char *name)
{
    ww_device *device = open_device(name), *cpu = open_device("cpu");
    ww_collection *collections[] = {collection_make(device, DIM, WW_COSINE), collection_make(cpu, DIM, WW_COSINE)};
    for (int i = 0; i < 2; i++)
        fill(collections[i], 0, ROWS);
    expect_same(collections[0], collections[1], 1);
    for (int i = 0; i < 2; i++)
        fill(collections[i], ROWS, MORE);
    expect_same(collections[0], collections[1], 2);
    for (int i = 0; i < 2; i++)
        shrink(collections[i]);
    expect_same(collections[0], collections[1], 3);
    for (int i = 0; i < 2; i++) {
        ww_collection_info info = ww_collection_info_default();
        EXPECT(ww_collection_compact(collections[i], NULL, NULL) == WW_OK);
        EXPECT(ww_collection_describe(collections[i], &info) == WW_OK);
        EXPECT(info.rows_live == (ROWS + MORE) / 4 * 3 && info.rows_removed == 0);
    }
    expect_same(collections[0], collections[1], 4);
    for (int i = 0; i < 2; i++)
        ww_collection_destroy(collections[i]);
    ww_device_close(device);
    ww_device_close(cpu);
    expect_all_well();
}

static void live_with_waves_of_64(void)
{
    use_standin("chips=gfx90a");
    live_on("rocm:0");
}

static void live_with_waves_of_32(void)
{
    if (!has_chip("gfx1030")) {
        printf("SKIP: this build has no kernels for gfx1030\n");
        fflush(stdout);
        _exit(PROCESS_SKIPPED);
    }
    use_standin("chips=gfx1030");
    live_on("rocm:0");
}

static void ten_thousand_rows_live_on_gfx90a(void **state)
{
    (void)state;
    in_a_process(live_with_waves_of_64, SECONDS);
}

static void ten_thousand_rows_live_on_gfx1030(void **state)
{
    (void)state;
    in_a_process(live_with_waves_of_32, SECONDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blas_handle_ends_before_its_stream_and_that_before_the_code),
        cmocka_unit_test(auto_is_cuda_then_rocm_then_the_cpu),
        cmocka_unit_test(auto_passes_over_a_card_that_does_not_open),
        cmocka_unit_test(ten_thousand_rows_live_on_gfx90a),
        cmocka_unit_test(ten_thousand_rows_live_on_gfx1030),
        cmocka_unit_test(the_context_ends_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
