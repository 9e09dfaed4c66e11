/* The library contains every kernel module for every supported chip that can use it, in the form that the chip's driver
 * accepts.
 */
#include "support/check.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "kernels/embedded.h"
#include "support/embedded_find.h"
#include "support/scratch.h"

static const char *const modules[] = {
#define KERNEL_ENTRY(module, name, args_type) #module,
#include "kernels/kernels.def"
#undef KERNEL_ENTRY
    NULL,
};
static const char *const names[] = {
#define KERNEL_ENTRY(module, name, args_type) #name,
#include "kernels/kernels.def"
#undef KERNEL_ENTRY
    NULL,
};

/* The chips that a module is compiled for are a pattern in cmake/Kernels.cmake, perhaps another module's; without one, all. */
static bool is_for(const char *module, const char *chip)
{
    static char *text;
    char pattern[128] = "";
    char begin[96];
    size_t bytes = 0;
    regex_t chips;
    if (text == NULL)
        text = scratch_content(SOURCE_DIR "/cmake/Kernels.cmake", &bytes);
    snprintf(begin, sizeof begin, "set(ONLY_FOR_%s ", module);
    const char *line = strstr(text, begin);
    if (line == NULL)
        return true;
    assert_int_equal(sscanf(line + strlen(begin), "\"%127[^\"]\"", pattern), 1);
    char other[64];
    if (sscanf(pattern, "${ONLY_FOR_%63[a-z0-9_]}", other) == 1)
        return is_for(other, chip);
    assert_int_equal(regcomp(&chips, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const bool fits = regexec(&chips, chip, 0, NULL, 0) == 0;
    regfree(&chips);
    return fits;
}

/* The module's code, with every kernel of it by name. */
static void check_code(const embedded_kernels *kernels)
{
    char *code = NULL;
    size_t bytes = 0;
    CHECK_OK(embedded_unpack(kernels, &code, &bytes));
    assert_int_equal(code[bytes], 0);
    for (size_t k = 0; names[k]; k++)
        if (strcmp(modules[k], kernels->module) == 0)
            assert_non_null(memmem(code, bytes, names[k], strlen(names[k])));
    if (strcmp(kernels->format, "PTX") != 0) {
        assert_memory_equal(code, "\177ELF", 4);
    } else {
        assert_int_equal(strlen(code), bytes);
        assert_non_null(strstr(code, kernels->chip));
    }
    memory_free(code);
}

static void check_chip(const char *chip)
{
    for (size_t m = 0; modules[m]; m++) {
        if (m > 0 && strcmp(modules[m], modules[m - 1]) == 0)
            continue;
        const embedded_kernels *kernels = embedded_find(modules[m], chip);
        if (!is_for(modules[m], chip)) {
            assert_null(kernels);
            continue;
        }
        assert_non_null(kernels);
        assert_string_equal(kernels->module, modules[m]);
        assert_string_equal(kernels->chip, chip);
        assert_string_equal(kernels->format, strncmp(chip, "gfx", 3) == 0 ? "HSACO" : "PTX");
        check_code(kernels);
        const embedded_kernels *cubin = embedded_find_cubin(modules[m], chip);
        if (cubin != NULL) {
            assert_string_equal(cubin->format, "cubin");
            check_code(cubin);
        }
        /* A chip has cubins for all its modules or for none, because otherwise a device would run code of two compilers. */
        assert_true((cubin != NULL) == (embedded_find_cubin(modules[0], chip) != NULL));
    }
}

static void every_kernel_is_there_for_every_chip_that_can_use_it(void **state)
{
    (void)state;
    if (embedded_chip_count() == 0) {
        print_message("SKIP: this library has no GPU kernels\n");
        skip();
    }
    for (size_t c = 0; c < embedded_chip_count(); c++)
        check_chip(embedded_chip(c));
}

/* The library contains the same bytes as the file that the build wrote. */
static void it_is_the_code_that_the_build_compiled(void **state)
{
    (void)state;
    int compared = 0;
    for (size_t c = 0; c < embedded_chip_count(); c++) {
        char path[512];
        const char *chip = embedded_chip(c);
        snprintf(path, sizeof path, BUILD_DIR "/kernels/%s.%s.%s", modules[0], chip,
                 strncmp(chip, "gfx", 3) == 0 ? "hsaco" : "ptx");
        if (access(path, R_OK) != 0)
            continue;
        char *code = NULL;
        size_t bytes = 0;
        size_t file_bytes = 0;
        char *file = scratch_content(path, &file_bytes);
        CHECK_OK(embedded_unpack(embedded_find(modules[0], chip), &code, &bytes));
        assert_int_equal(bytes, file_bytes);
        assert_memory_equal(code, file, bytes);
        memory_free(code);
        free(file);
        compared++;
    }
    if (compared == 0) {
        print_message("SKIP: this build compiled no kernels itself to compare with\n");
        skip();
    }
}

static void a_damaged_library_is_a_status(void **state)
{
    (void)state;
    if (embedded_chip_count() == 0) {
        print_message("SKIP: this library has no GPU kernels\n");
        skip();
    }
    char *code = NULL;
    size_t bytes = 0;
    embedded_kernels damaged = *embedded_find(modules[0], embedded_chip(0));
    char *packed = memcpy(malloc(damaged.packed_bytes), damaged.packed, damaged.packed_bytes);
    packed[damaged.packed_bytes / 2] ^= 4;
    damaged.packed = packed;
    CHECK_FAILS(WW_CORRUPT_FILE, embedded_unpack(&damaged, &code, &bytes));
    assert_non_null(strstr(ww_error_message(), modules[0]));
    assert_non_null(strstr(ww_error_message(), embedded_chip(0)));
    assert_non_null(strstr(ww_error_message(), "install the library again"));
    assert_null(code);
    free(packed);
}

static void the_list_of_chips_ends_with_null(void **state)
{
    (void)state;
    assert_null(embedded_chip(embedded_chip_count()));
    assert_int_equal(ww_kernel_chip_count(), embedded_chip_count());
    assert_null(ww_kernel_chip(embedded_chip_count()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_is_there_for_every_chip_that_can_use_it),
        cmocka_unit_test(it_is_the_code_that_the_build_compiled),
        cmocka_unit_test(a_damaged_library_is_a_status),
        cmocka_unit_test(the_list_of_chips_ends_with_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
