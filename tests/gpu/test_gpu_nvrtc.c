/* NVIDIA's real NVRTC, which needs no GPU: it compiles the example's kernel, says what is wrong with a source, and what it
 * compiled is kept. */
#include "support/process.h"
#include "support/scratch.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/driver/cuda_api.h"
#include "gpu/driver/nvrtc.h"

enum { SECONDS = 120, MACHINE_NVIDIA = 190 };

static char detail[1024];

static int compile(const char *text, driver_compiled *out, char **log)
{
    const driver_source source = {.text = text, .name = "own", .arch = "sm_90"};
    const int number = nvrtc_compile_source(&source, out, log, detail, sizeof detail);
    if (number == NV_ERROR_NOT_SUPPORTED) {
        printf("SKIP: %s\n", detail);
        fflush(stdout);
        _exit(PROCESS_SKIPPED);
    }
    return number;
}

static void compile_the_example(void)
{
    size_t bytes = 0;
    char *log = NULL, *source = scratch_content(SOURCE_DIR "/examples/own_kernel/scale.hip", &bytes);
    driver_compiled code;
    EXPECT(scratch_setup(NULL) == 0);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    for (int again = 0; again < 2; again++) {
        EXPECT(compile(source, &code, &log) == 0);
        Elf64_Ehdr header;
        memcpy(&header, code.image, sizeof header);
        EXPECT(memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == MACHINE_NVIDIA);
        EXPECT((code.cached[0] != '\0') == (again == 1));
        memory_free(log);
        memory_free(code.image);
    }
    EXPECT(compile("#error as it must be", &code, &log) == NV_ERROR_NO_BINARY_FOR_GPU);
    EXPECT(log != NULL && strstr(log, "as it must be") != NULL && strstr(detail, "as it must be") != NULL);
    EXPECT(strchr(detail, '\n') == NULL); /* the message has the first line, the log has all */
    memory_free(log);
    free(source);
    EXPECT(scratch_teardown(NULL) == 0);
}

static void the_example_is_compiled_and_an_error_is_told(void **state)
{
    (void)state;
    in_a_process(compile_the_example, SECONDS);
}

static void look_for_a_file_that_is_not_there(void)
{
    const driver_source source = {.text = "", .name = "own", .arch = "sm_90"};
    driver_compiled code;
    char *log = NULL;
    setenv("WARPWAVE_NVRTC_LIBRARY", "/nonexistent/libnvrtc.so", 1);
    EXPECT(nvrtc_compile_source(&source, &code, &log, detail, sizeof detail) == NV_ERROR_NOT_SUPPORTED);
    EXPECT(strstr(detail, "/nonexistent/libnvrtc.so") != NULL && log == NULL);
}

static void a_compiler_that_is_not_there_is_named(void **state)
{
    (void)state;
    in_a_process(look_for_a_file_that_is_not_there, SECONDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_compiled_and_an_error_is_told),
        cmocka_unit_test(a_compiler_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
