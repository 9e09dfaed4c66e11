/* AMD's own runtime on a machine without an AMD GPU: the library opens it, finds every function, reports its message that there
 * is no device, and continues with other backends. Its compiler needs no GPU: it compiles every kernel for the chips that it
 * knows, and the examples' own. tests/rocm/run-runtimes runs this with the runtimes of ROCm 5.2, 5.7, 6.4 and 7.2.
 *
 * Each test is a separate process with a time limit, because AMD's code runs in it.
 */
#include "support/devices.h"
#include "support/process.h"
#include "support/scratch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/blas/rocblas_api.h"
#include "gpu/driver/driver.h"
#include "gpu/driver/hip_api.h"
#include "gpu/driver/hiprtc.h"
#include "gpu/driver/rocm_library.h"
#include "kernels/embedded.h"
#include "standin/code_object.h"

enum { SECONDS_TO_START = 60, SECONDS_TO_COMPILE = 480, SECONDS_TO_COMPILE_ALL = 3600, QUICK_MODULES = 3 };

/* Opens the runtime as the library does; skips the test if it is not installed. */
static void *open_runtime(void)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    unsetenv("WARPWAVE_HIP_LIBRARY");
    unsetenv("WARPWAVE_DEVICE");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = rocm_library_open(names[i]);
        if (library != NULL)
            return library;
    }
    printf("SKIP: no ROCm runtime is installed here (Debian: libamdhip64-5)\n");
    fflush(stdout);
    _exit(PROCESS_SKIPPED);
}

static void look_without_a_card(void)
{
    (void)open_runtime();
    const char *why = ww_backend_absence("rocm");
    if (why[0] == '\0') {
        printf("SKIP: there is a ROCm device here, so its absence cannot be seen\n");
        fflush(stdout);
        _exit(PROCESS_SKIPPED);
    }
    printf("%s\n", why);
    EXPECT(strstr(why, "hipErrorNoDevice (100)") != NULL);
    EXPECT(strstr(why, "hipGetDeviceCount") != NULL || strstr(why, "hipInit") != NULL);
    EXPECT(strstr(why, "/dev/kfd") != NULL || strstr(why, "HIP_VISIBLE_DEVICES") != NULL);
    ww_device *device = NULL;
    EXPECT(ww_device_open("rocm:0", &device) == WW_NO_DEVICE && device == NULL);
    EXPECT(strstr(ww_error_message(), "hipErrorNoDevice (100)") != NULL && strstr(ww_error_message(), "cpu") != NULL);
    EXPECT(ww_device_open("auto", &device) == WW_OK);
    ww_device_info info = ww_device_info_default();
    EXPECT(ww_device_describe(device, &info) == WW_OK && strcmp(info.backend, "rocm") != 0);
    ww_device_close(device);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------- */

static int missing_of(void *library, const char *const *symbols, size_t count)
{
    int missing = 0;
    for (size_t i = 0; i < count; i++)
        if (dlsym(library, symbols[i]) == NULL) {
            fprintf(stderr, "there is no %s\n", symbols[i]);
            missing++;
        }
    return missing;
}

static void look_for_functions(void)
{
#define FUNCTION(name, symbol, parameters) #symbol,
    static const char *const hip[] = {HIP_FUNCTIONS(FUNCTION) HIP_OPTIONAL_FUNCTIONS(FUNCTION) "hipGetErrorName",
                                      "hipGetLastError"};
    static const char *const properties[] = {HIP_PROPERTIES_FUNCTIONS(FUNCTION)};
#undef FUNCTION
    void *library = open_runtime();
    EXPECT(missing_of(library, hip, sizeof hip / sizeof hip[0]) == 0);
    EXPECT(dlsym(library, properties[0]) != NULL || dlsym(library, properties[1]) != NULL);
}

static void look_for_rocblas(void)
{
    static const char *const files[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0"};
#define FUNCTION(name, symbol, parameters) #symbol,
    static const char *const symbols[] = {ROCBLAS_FUNCTIONS(FUNCTION)};
#undef FUNCTION
    void *library = NULL;
    unsetenv("WARPWAVE_ROCBLAS_LIBRARY");
    for (size_t i = 0; library == NULL && i < sizeof files / sizeof files[0]; i++)
        library = rocm_library_open(files[i]);
    if (library == NULL) {
        printf("SKIP: no rocBLAS is installed here\n");
        fflush(stdout);
        _exit(PROCESS_SKIPPED);
    }
    EXPECT(missing_of(library, symbols, sizeof symbols / sizeof symbols[0]) == 0);
}

/* ---- the compiler -------------------------------------------------------------------------------------------------------- */

/* A chip, and the first HIP whose compiler has to know it in Debian's packages. */
typedef struct known_chip {
    const char *name;
    uint64_t wave_size;
    int since;
} known_chip;

static const known_chip quick_chips[] = {{"gfx90c", 64, 502}, {"gfx1031", 32, 502}};
static const known_chip long_chips[] = {{"gfx906", 64, 502},  {"gfx908", 64, 502},  {"gfx90a", 64, 502},  {"gfx90c", 64, 502},
                                        {"gfx942", 64, 507},  {"gfx950", 64, 604},  {"gfx1010", 32, 502}, {"gfx1030", 32, 502},
                                        {"gfx1100", 32, 507}, {"gfx1151", 32, 507}, {"gfx1201", 32, 604}, {"gfx1250", 32, 702}};

/* The long form has AMD's compiler compile every module for each chip, which takes it long (tests/long.cmake). The short form
 * takes one of a search, one of tensors and one of products. */
static bool is_left_out(const char *module)
{
    static const char *const quick[QUICK_MODULES] = {"search", "tensor_cast", "matmul_i8"};
    bool found = test_is_long();
    for (int i = 0; i < QUICK_MODULES && !found; i++)
        found = strcmp(module, quick[i]) == 0;
    return !found;
}

static void check_code(const driver_compiled *compiled, const known_chip *chip)
{
    code_object code;
    const char *wrong = code_object_read(compiled->image, &code);
    EXPECT(wrong == NULL && code_object_bytes(compiled->image) <= compiled->bytes);
    EXPECT(strstr(code.target, chip->name) != NULL);
    for (int k = 0; k < code.count; k++)
        EXPECT(code.kernels[k].wave_size == chip->wave_size && code.kernels[k].explicit_bytes > 0);
}

static void skip_without_compiler(const char *detail)
{
    if (strstr(detail, "has no hipRTC") == NULL)
        return;
    printf("SKIP: %s\n", detail);
    fflush(stdout);
    _exit(PROCESS_SKIPPED);
}

/* Compiles a source of the caller. False, with the compiler's words, if it does not. */
static bool compile_source(void *library, const known_chip *chip, const char *text, char *said, size_t capacity)
{
    const hiprtc_job job = {.hip_library = library, .detail = said, .detail_capacity = capacity};
    const driver_source source = {.text = text, .name = "own", .arch = chip->name};
    driver_compiled code;
    char *log = NULL;
    const int failed = hiprtc_compile_source(&job, &source, &code, &log);
    memory_free(log);
    skip_without_compiler(said);
    if (failed != 0)
        return false;
    check_code(&code, chip);
    memory_free(code.image);
    return true;
}

/* 507 for HIP 5.7. */
static int hip_version(void *library)
{
    int (*runtime_version)(int *number);
    int number = 0;
    *(void **)&runtime_version = dlsym(library, "hipRuntimeGetVersion");
    EXPECT(runtime_version != NULL && runtime_version(&number) == 0);
    return number / 10000000 * 100 + number / 100000 % 100;
}

static void compile_module(void *library, const known_chip *chip, const char *module)
{
    char detail[1024] = "";
    driver_compiled code;
    const hiprtc_job job = {
        .hip_library = library, .module = module, .arch = chip->name, .detail = detail, .detail_capacity = sizeof detail};
    const int failed = hiprtc_compile(&job, &code);
    skip_without_compiler(detail);
    if (failed != 0)
        fprintf(stderr, "%s for %s: %s\n", module, chip->name, detail);
    if (hip_version(library) == 507 && strcmp(module, "conv_shared") == 0 &&
        (strcmp(chip->name, "gfx90a") == 0 || strcmp(chip->name, "gfx942") == 0)) {
        EXPECT(failed != 0 && strstr(detail, "the compiler of ROCm 5 crashes") != NULL);
        return;
    }
    EXPECT(failed == 0 && code.bytes > 0);
    check_code(&code, chip);
    memory_free(code.image);
}

static void compile_for(void *library, const known_chip *chip)
{
    int compiled = 0;
    for (const embedded_source *source = embedded_sources(); source->name != NULL; source++) {
        char module[64];
        const char *file = strrchr(source->name, '/');
        if (strncmp(source->name, "kernels/", 8) != 0 || sscanf(file, "/%63[a-z0-9_].c", module) != 1 ||
            strstr(file, ".c") == NULL)
            continue;
        if (is_left_out(module))
            continue;
        if (test_is_long())
            fprintf(stderr, "compiling %s for %s\n", module, chip->name); /* AMD's compiler may end the process */
        compile_module(library, chip, module);
        compiled++;
    }
    EXPECT(test_is_long() ? compiled > QUICK_MODULES : compiled == QUICK_MODULES);
    printf("%s: %d modules\n", chip->name, compiled);
}

/* WARPWAVE_TEST_CHIPS, if it is set, has the names of the chips to take in place of the quick ones. */
static bool is_wanted(const char *chip)
{
    const char *wanted = getenv("WARPWAVE_TEST_CHIPS");
    return wanted == NULL || strstr(wanted, chip) != NULL;
}

static void compile_kernels(void)
{
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    void *library = open_runtime();
    const bool named = getenv("WARPWAVE_TEST_CHIPS") != NULL;
    const known_chip *chips = named ? long_chips : quick_chips;
    const size_t count = named ? sizeof long_chips / sizeof *chips : sizeof quick_chips / sizeof *chips;
    char said[1024];
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(chips[i].name))
            continue;
        if (compile_source(library, &chips[i], "extern \"C\" __global__ void nothing(int *x) { *x = 1; }", said, sizeof said)) {
            compile_for(library, &chips[i]);
            continue;
        }
        printf("HIP %d's compiler does not know %s: %s\n", hip_version(library), chips[i].name, said);
        EXPECT(hip_version(library) < chips[i].since);
    }
    const known_chip unknown = {.name = "gfx1299"};
    EXPECT(!compile_source(library, &unknown, "extern \"C\" __global__ void nothing(int *x) { *x = 1; }", said, sizeof said));
    EXPECT(strstr(said, "this release of ROCm does not know gfx1299") != NULL);
    if (!named && !test_is_long())
        compile_for(library, &chips[1]); /* from the cache, and the same */
    fflush(stdout);
    EXPECT(scratch_teardown(NULL) == 0);
}

static void compile_examples(void)
{
    static const char *const examples[] = {SOURCE_DIR "/examples/own_kernel/scale.hip",
                                           SOURCE_DIR "/examples/own_kernel/scale.c"};
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    void *library = open_runtime();
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        for (size_t c = 0; c < sizeof quick_chips / sizeof quick_chips[0]; c++) {
            char said[1024] = "";
            size_t bytes = 0;
            char *source = scratch_content(examples[i], &bytes);
            if (!compile_source(library, &quick_chips[c], source, said, sizeof said))
                fprintf(stderr, "%s for %s: %s\n", examples[i], quick_chips[c].name, said);
            EXPECT(said[0] == '\0');
            free(source);
        }
    char said[1024] = "";
    EXPECT(!compile_source(library, &quick_chips[0], "#error as it must be", said, sizeof said));
    EXPECT(strstr(said, "as it must be") != NULL);
    EXPECT(scratch_teardown(NULL) == 0);
}

static void the_runtime_without_a_card_says_why_and_the_library_goes_on(void **state)
{
    (void)state;
    in_a_process(look_without_a_card, SECONDS_TO_START);
}

static void every_function_is_found(void **state)
{
    (void)state;
    in_a_process(look_for_functions, SECONDS_TO_START);
}

static void every_function_of_rocblas_is_found(void **state)
{
    (void)state;
    in_a_process(look_for_rocblas, SECONDS_TO_START);
}

static void its_compiler_takes_the_examples(void **state)
{
    (void)state;
    in_a_process(compile_examples, SECONDS_TO_COMPILE);
}

static void its_compiler_takes_the_kernels(void **state)
{
    (void)state;
    in_a_process(compile_kernels, test_is_long() ? SECONDS_TO_COMPILE_ALL : SECONDS_TO_COMPILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_runtime_without_a_card_says_why_and_the_library_goes_on),
        cmocka_unit_test(every_function_is_found),
        cmocka_unit_test(every_function_of_rocblas_is_found),
        cmocka_unit_test(its_compiler_takes_the_examples),
        cmocka_unit_test(its_compiler_takes_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
