/* The library carries every kernel module for every chip it names that can use it, in the form that the chip's driver takes. */
#include "support/check.h"

#include <string.h>

#include "base/memory.h"
#include "kernels/embedded.h"

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

/* As cmake/Kernels.cmake has it. */
static bool is_for(const char *module, const char *chip)
{
    if (strcmp(module, "conv_fast") == 0)
        return strncmp(chip, "sm_", 3) == 0 && strcmp(chip, "sm_75") != 0;
    const bool of_one = strcmp(module, "screen_wide") == 0 || strcmp(module, "search_stream") == 0;
    return !of_one || strcmp(chip, "sm_90a") == 0;
}

static void check_code(const embedded_kernels *kernels, const char *name)
{
    char *code = NULL;
    size_t bytes = 0;
    assert_int_equal(embedded_unpack(kernels, &code, &bytes), WW_OK);
    assert_int_equal(code[bytes], 0);
    assert_non_null(memmem(code, bytes, name, strlen(name)));
    if (strncmp(kernels->chip, "gfx", 3) == 0) {
        assert_memory_equal(code, "\177ELF", 4);
    } else {
        assert_int_equal(strlen(code), bytes);
        assert_non_null(strstr(code, kernels->chip));
    }
    memory_give(code);
}

static void every_kernel_is_there_for_every_chip_that_can_use_it(void **state)
{
    (void)state;
    if (embedded_chip_count() == 0) {
        print_message("SKIP: this library was built without a device compiler\n");
        skip();
    }
    for (size_t c = 0; c < embedded_chip_count(); c++)
        for (size_t m = 0; modules[m]; m++) {
            const char *chip = embedded_chip(c);
            const embedded_kernels *kernels = embedded_find(modules[m], chip);
            if (!is_for(modules[m], chip)) {
                assert_null(kernels);
                continue;
            }
            assert_non_null(kernels);
            assert_string_equal(kernels->module, modules[m]);
            assert_string_equal(kernels->chip, chip);
            check_code(kernels, names[m]);
        }
}

static void what_is_not_there_is_null(void **state)
{
    (void)state;
    assert_null(embedded_find("no such module", "gfx90a"));
    assert_null(embedded_find(modules[0] ? modules[0] : "rows", "sm_1"));
    assert_null(embedded_chip(embedded_chip_count()));
    assert_int_equal(ww_kernel_chip_count(), embedded_chip_count());
    assert_null(ww_kernel_chip(embedded_chip_count()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_is_there_for_every_chip_that_can_use_it),
        cmocka_unit_test(what_is_not_there_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
