/* Which embedded code suits which chip, and what an old driver is told about PTX. */
#include "support/check.h"

#include <string.h>

#include "gpu/chip.h"
#include "gpu/driver/ptx.h"

static void nvidia_chips_take_their_own_code_first_and_older_baselines_next(void **state)
{
    (void)state;
    assert_int_equal(chip_fitness("sm_90", "sm_90a"), CHIP_EXACT);
    assert_true(chip_fitness("sm_90", "sm_90a") > chip_fitness("sm_90", "sm_90"));
    assert_true(chip_fitness("sm_90", "sm_90") > chip_fitness("sm_90", "sm_80"));
    assert_true(chip_fitness("sm_90", "sm_80") > chip_fitness("sm_90", "sm_75"));
    assert_true(chip_fitness("sm_100", "sm_80") > chip_fitness("sm_100", "sm_75"));
    assert_true(chip_fitness("sm_75", "sm_75") > 0);
    assert_int_equal(chip_fitness("sm_100", "sm_90a"), 0); /* what has a letter runs on its own chip alone */
    assert_int_equal(chip_fitness("sm_89", "sm_90a"), 0);
    assert_int_equal(chip_fitness("sm_75", "sm_80"), 0);
    assert_int_equal(chip_fitness("sm_75", "gfx906"), 0);
}

static void finished_code_is_best_on_its_own_chip_and_nothing_elsewhere(void **state)
{
    (void)state;
    assert_true(chip_code_fitness("sm_90", "sm_90a", "cubin") > chip_code_fitness("sm_90", "sm_90a", "PTX"));
    assert_true(chip_code_fitness("sm_90", "sm_90a", "PTX") > chip_code_fitness("sm_90", "sm_90", "cubin"));
    assert_true(chip_code_fitness("sm_80", "sm_80", "cubin") > chip_code_fitness("sm_80", "sm_80", "PTX"));
    assert_true(chip_code_fitness("sm_80", "sm_80", "PTX") > chip_code_fitness("sm_80", "sm_75", "PTX"));
    assert_int_equal(chip_code_fitness("sm_90", "sm_80", "cubin"), 0);
    assert_int_equal(chip_code_fitness("sm_86", "sm_80", "cubin"), 0);
    assert_int_equal(chip_code_fitness("sm_100", "sm_90a", "cubin"), 0);
    assert_true(chip_code_fitness("sm_86", "sm_80", "PTX") > 0);
    assert_true(chip_code_fitness("gfx90a", "gfx90a", "HSACO") > 0);
}

static void amd_chips_take_their_own_code_and_that_of_their_family(void **state)
{
    (void)state;
    assert_int_equal(chip_fitness("gfx90a", "gfx90a"), CHIP_EXACT);
    assert_int_equal(chip_fitness("gfx90a", "gfx908"), 0);
    assert_int_equal(chip_fitness("gfx1100", "gfx1101"), 0);
    assert_int_equal(chip_fitness("gfx90a", "sm_75"), 0);
    assert_int_equal(chip_fitness("gfx1101", "gfx11-generic"), CHIP_GENERIC);
    assert_true(chip_fitness("gfx1100", "gfx1100") > chip_fitness("gfx1100", "gfx11-generic"));
    assert_int_equal(chip_fitness("gfx1036", "gfx10-3-generic"), CHIP_GENERIC);
    assert_int_equal(chip_fitness("gfx1010", "gfx10-3-generic"), 0);
    assert_int_equal(chip_fitness("gfx900", "gfx9-generic"), CHIP_GENERIC);
    assert_int_equal(chip_fitness("gfx90a", "gfx9-generic"), 0); /* CDNA has instructions of its own */
    assert_int_equal(chip_fitness("gfx942", "gfx9-generic"), 0);
    assert_int_equal(chip_fitness("gfx1200", "gfx12-generic"), CHIP_GENERIC);
    assert_int_equal(chip_fitness("gfx", "gfx12-generic"), 0);
    assert_int_equal(chip_fitness("", "gfx12-generic"), 0);
}

static void names_that_are_none_fit_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"", "sm_", "sm_x", "sm_-5", "sm_90ab", "sm_99999999999999999999"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(chip_fitness("sm_90", names[i]), 0);
        assert_int_equal(chip_fitness(names[i], "sm_75"), 0);
    }
}

static void an_old_driver_is_told_which_one_would_do(void **state)
{
    (void)state;
    char text[256] = "as it was";
    ptx_explain_old_driver("// no version here", 12020, text, sizeof text);
    assert_string_equal(text, "as it was");
    ptx_explain_old_driver("//\n.version 8.6\n.target sm_90a\n", 12020, text, sizeof text);
    assert_non_null(strstr(text, "is for CUDA 12.2"));
    assert_non_null(strstr(text, "PTX 8.6"));
    assert_non_null(strstr(text, "install a driver for CUDA 12.7 or newer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvidia_chips_take_their_own_code_first_and_older_baselines_next),
        cmocka_unit_test(finished_code_is_best_on_its_own_chip_and_nothing_elsewhere),
        cmocka_unit_test(amd_chips_take_their_own_code_and_that_of_their_family),
        cmocka_unit_test(names_that_are_none_fit_nothing),
        cmocka_unit_test(an_old_driver_is_told_which_one_would_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
