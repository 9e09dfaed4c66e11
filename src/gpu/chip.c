/* The table of chips, and which of the embedded code a chip can run. */
#include "gpu/chip.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- families ------------------------------------------------------------------------------------------------------------ */

#define CONSTANTS(bf16_percent, stages)                                                                                        \
    {.quant_bf16_percent = (bf16_percent),                                                                                     \
     .quant_stages = (stages),                                                                                                 \
     .narrow_count_max = INT32_MAX,                                                                                            \
     .screen_sample_buckets = 4, /* so that few of the best are in one bucket */                                               \
     .screen_sample_tiles = 16,  /* so that there are buckets enough for chance not to matter */                               \
     .three_stages_numbers = 1 << 20,                                                                                          \
     .three_stages_tiles = 256,                                                                                                \
     .stream_queries = 9,                                                                                                      \
     /* with fewer, warps wait for memory, which two blocks of search_tile hide better */ .stream_teams = 8}

#define AMD       .quant_slabs = true, .wide_gemv = true
#define CDNA      AMD, .fast_f16 = true, .matrix_f16 = true, .matrix_f32 = true, .mfma = true, .conv_halves = true, .gemv_one = true
#define RDNA_WMMA AMD, .fast_f16 = true, .matrix_f16 = true, .gemv_one = true
#define SM_80     .sm_80_code = true, .conv_all_taps = true

/* The first row whose prefix fits is used. cmake/Kernels.cmake (ONLY_FOR_...) says which chips the kernels of only some chips
 * are compiled for. */
static const chip_family chips[] = {
    {"gfx908", 64, {CDNA}, CONSTANTS(101, 2)},
    {"gfx90a", 64, {CDNA}, CONSTANTS(60, 2)},
    {"gfx94", 64, {CDNA}, CONSTANTS(84, 2)},
    {"gfx950", 64, {CDNA}, CONSTANTS(84, 2)},
    {"gfx9-4-generic", 64, {CDNA}, CONSTANTS(84, 2)},
    {"gfx906", 64, {AMD, .fast_f16 = true}, CONSTANTS(101, 2)},
    {"gfx9", 64, {AMD}, CONSTANTS(101, 2)},
    {"gfx103", 32, {AMD, .fast_f16 = true, .gemv_one = true}, CONSTANTS(101, 2)},
    {"gfx10-3-generic", 32, {AMD, .fast_f16 = true, .gemv_one = true}, CONSTANTS(101, 2)},
    {"gfx10", 32, {AMD, .gemv_one = true}, CONSTANTS(101, 2)},
    {"gfx11", 32, {RDNA_WMMA}, CONSTANTS(60, 2)},
    {"gfx125", 32, {AMD, .gemv_one = true}, CONSTANTS(101, 2)}, /* its WMMA is wider than that of the other gfx12 */
    {"gfx12", 32, {RDNA_WMMA}, CONSTANTS(101, 2)},
    {"sm_90a", 32, {SM_80, .sm_90a_code = true, .gemv_one = true}, CONSTANTS(0, 3)},
    {"sm_7", 32, {.conv_all_taps = true}, CONSTANTS(0, 3)},
    {"sm_", 32, {SM_80}, CONSTANTS(0, 3)},
    {"", 0, {.sm_80_code = false}, CONSTANTS(0, 2)}, /* any other */
};

const chip_family *chip_find(const char *name)
{
    const chip_family *row = chips;
    while (strncmp(name, row->prefix, strlen(row->prefix)) != 0)
        row++;
    return row;
}

/* ---- code ---------------------------------------------------------------------------------------------------------------- */

/* "sm_90a" is 90 with the feature letter 'a'; false for anything else. */
static int sm_number(const char *name, long *number, char *feature)
{
    if (strncmp(name, "sm_", 3) != 0)
        return 0;
    char *end = NULL;
    *number = strtol(name + 3, &end, 10);
    *feature = *end;
    return end != name + 3 && *number > 0 && *number < INT_MAX && (*end == '\0' || end[1] == '\0');
}

/* LLVM's generic targets, each with the chips that run its code, as the AMDGPU backend's guide lists them. gfx908 and gfx90a
 * are of no such family. */
static const struct {
    const char *generic;
    const char *chips; /* with a space before and after each */
} families[] = {
    {"gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
    {"gfx9-4-generic", " gfx940 gfx941 gfx942 gfx950 "},
    {"gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 "},
    {"gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
    {"gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
    {"gfx12-generic", " gfx1200 gfx1201 "},
};

static int32_t amd_fitness(const char *arch, const char *target)
{
    char name[32];
    if (strcmp(arch, target) == 0)
        return CHIP_EXACT;
    snprintf(name, sizeof name, " %s ", arch);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].generic, target) == 0 && strstr(families[i].chips, name) != NULL)
            return CHIP_GENERIC;
    return 0;
}

/* Returns 90 for "sm_90" and "sm_90a", and 0 if it is not an NVIDIA chip. */
static int32_t chip_sm_number(const char *target)
{
    long number = 0;
    char feature = '\0';
    return sm_number(target, &number, &feature) ? (int32_t)number : 0;
}

int32_t chip_code_fitness(const char *arch, const char *target, const char *format)
{
    const int32_t fitness = chip_fitness(arch, target);
    if (strcmp(format, "cubin") != 0)
        return 2 * fitness;
    return fitness > 0 && chip_sm_number(arch) == chip_sm_number(target) ? 2 * fitness + 1 : 0;
}

int32_t chip_fitness(const char *arch, const char *target)
{
    long have = 0;
    long wants = 0;
    char have_feature = '\0';
    char wants_feature = '\0';
    if (!sm_number(arch, &have, &have_feature))
        return amd_fitness(arch, target);
    if (!sm_number(target, &wants, &wants_feature))
        return 0;
    if (wants_feature != '\0') /* code with a feature letter runs only on its own chip */
        return wants == have ? CHIP_EXACT : 0;
    return wants <= have ? (int32_t)wants : 0;
}
