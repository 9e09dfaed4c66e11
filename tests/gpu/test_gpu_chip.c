/* Which embedded code runs on which chip, and the message for a driver that is too old for the PTX. */
#include "support/check.h"

#include <stdio.h>
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
    assert_int_equal(chip_fitness("sm_100", "sm_90a"), 0); /* code with a letter runs only on its own chip */
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
    assert_int_equal(chip_fitness("gfx950", "gfx9-4-generic"), CHIP_GENERIC);
    assert_int_equal(chip_fitness("gfx950", "gfx942"), 0); /* it lacks an instruction */
    assert_int_equal(chip_fitness("gfx1250", "gfx12-generic"), 0);
    assert_int_equal(chip_fitness("gfx1200", "gfx12-generic"), CHIP_GENERIC);
    assert_int_equal(chip_fitness("gfx", "gfx12-generic"), 0);
    assert_int_equal(chip_fitness("", "gfx12-generic"), 0);
}

/* The build compiles for the target that scripts/kernels/chips.sh names for a GPU; it must be the one that the library would
 * choose of all. */
static void the_build_chooses_the_targets_that_the_library_would(void **state)
{
    (void)state;
    static const char *const gpus[] = {"gfx900",  "gfx902",  "gfx904",  "gfx906",  "gfx908",  "gfx909",  "gfx90a",
                                       "gfx90c",  "gfx940",  "gfx942",  "gfx950",  "gfx1250", "gfx1010", "gfx1013",
                                       "gfx1030", "gfx1031", "gfx1036", "gfx1100", "gfx1101", "gfx1103", "gfx1150",
                                       "gfx1151", "gfx1153", "gfx1200", "gfx1201", "sm_75",   "sm_80",   "sm_86",
                                       "sm_89",   "sm_90",   "sm_100",  "sm_120",  "sm_70",   "gfx803"};
    char all[512] = "";
    FILE *pipe = popen(SOURCE_DIR "/scripts/kernels/chips.sh all", "r");
    assert_non_null(pipe);
    assert_non_null(fgets(all, sizeof all, pipe));
    assert_int_equal(pclose(pipe), 0);
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        char list[512];
        char best[32] = "";
        char said[32] = "";
        char line[512];
        int32_t fitness = 0;
        char *rest = NULL;
        snprintf(list, sizeof list, "%s", all);
        for (const char *target = strtok_r(list, " \n", &rest); target != NULL; target = strtok_r(NULL, " \n", &rest))
            if (chip_fitness(gpus[i], target) > fitness) {
                fitness = chip_fitness(gpus[i], target);
                snprintf(best, sizeof best, "%s", target);
            }
        snprintf(line, sizeof line, SOURCE_DIR "/scripts/kernels/chips.sh --target %s", gpus[i]);
        pipe = popen(line, "r");
        assert_non_null(pipe);
        if (fgets(said, sizeof said, pipe) != NULL)
            said[strcspn(said, "\n")] = '\0';
        pclose(pipe);
        assert_string_equal(said, best);
    }
}

/* A row of each family, and names that only its generic code or a sibling has. */
static void a_chip_has_the_properties_of_its_family(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool sm_80, sm_90a, fast_f16, matrix_f16, mfma, gemv_one, slabs;
        int32_t wave_size;
    } expected[] = {
        {"gfx900", false, false, false, false, false, false, true, 64},
        {"gfx906", false, false, true, false, false, false, true, 64},
        {"gfx908", false, false, true, true, true, true, true, 64},
        {"gfx90a", false, false, true, true, true, true, true, 64},
        {"gfx942", false, false, true, true, true, true, true, 64},
        {"gfx950", false, false, true, true, true, true, true, 64},
        {"gfx9-4-generic", false, false, true, true, true, true, true, 64},
        {"gfx1250", false, false, false, false, false, true, true, 32},
        {"gfx9-generic", false, false, false, false, false, false, true, 64},
        {"gfx1010", false, false, false, false, false, true, true, 32},
        {"gfx1036", false, false, true, false, false, true, true, 32},
        {"gfx10-3-generic", false, false, true, false, false, true, true, 32},
        {"gfx1151", false, false, true, true, false, true, true, 32},
        {"gfx12-generic", false, false, true, true, false, true, true, 32},
        {"sm_75", false, false, false, false, false, false, false, 32},
        {"sm_80", true, false, false, false, false, false, false, 32},
        {"sm_90", true, false, false, false, false, false, false, 32},
        {"sm_90a", true, true, false, false, false, true, false, 32},
        {"sm_120", true, false, false, false, false, false, false, 32},
        {"something else", false, false, false, false, false, false, false, 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const chip_family *family = chip_find(expected[i].name);
        const chip_capabilities *has = &family->has;
        if (has->sm_80_code != expected[i].sm_80 || has->sm_90a_code != expected[i].sm_90a ||
            has->fast_f16 != expected[i].fast_f16 || has->matrix_f16 != expected[i].matrix_f16 ||
            has->mfma != expected[i].mfma || has->gemv_one != expected[i].gemv_one || has->quant_slabs != expected[i].slabs ||
            family->wave_size != expected[i].wave_size)
            fail_msg("%s is taken for '%s', which is another", expected[i].name, family->prefix);
    }
}

static void unknown_names_match_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"", "sm_", "sm_x", "sm_-5", "sm_90ab", "sm_99999999999999999999"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(chip_fitness("sm_90", names[i]), 0);
        assert_int_equal(chip_fitness(names[i], "sm_75"), 0);
    }
}

static void the_message_for_an_old_driver_names_one_that_is_new_enough(void **state)
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
        cmocka_unit_test(the_build_chooses_the_targets_that_the_library_would),
        cmocka_unit_test(a_chip_has_the_properties_of_its_family),
        cmocka_unit_test(unknown_names_match_nothing),
        cmocka_unit_test(the_message_for_an_old_driver_names_one_that_is_new_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
