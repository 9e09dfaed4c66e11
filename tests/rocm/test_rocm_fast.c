/* Fast products on AMD's chips if rocBLAS is not installed: which kernel multiplies on which chip. Other tests check the
 * kernels' results (tests/quant, tests/tensor, tests/codeobjects); here the stand-in reports their names. */
#include "support/standin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "support/data/random.h"

enum { ROWS = 64, TILE = 128, TILES_MAX = 4, COLS = 256, COLUMNS_MAX = 2048, LAUNCHES_MAX = 64 };

static standin rocm;
static bool (*emulate)(const standin_launch *launch);
static char launched[LAUNCHES_MAX][64];
static int launches;
static float weights[TILES_MAX * TILE * COLS], values[COLUMNS_MAX * COLS];
static uint16_t halves[ROWS * ROWS]; /* small enough that f16 and bf16 have them all */

/* Does not compute products: only the kernels' names matter. */
static void note_launch(const standin_launch *launch)
{
    if (launches < LAUNCHES_MAX)
        snprintf(launched[launches++], sizeof launched[0], "%s", launch->kernel);
    if (strncmp(launch->kernel, "matmul_", 7) != 0 && strncmp(launch->kernel, "quant_tile_", 11) != 0)
        assert_true(emulate(launch));
}

static bool was_launched(const char *kernel)
{
    for (int i = 0; i < launches; i++)
        if (strcmp(launched[i], kernel) == 0)
            return true;
    return false;
}

/* Returns the stand-in's device of that chip; NULL, after printing it, if this build has no kernels for it. */
static ww_device *open_chip(const char *chip, int units)
{
    char settings[64];
    ww_device *device = NULL;
    bool embedded = false;
    for (size_t i = 0; ww_kernel_chip(i) != NULL; i++)
        embedded |= strcmp(ww_kernel_chip(i), chip) == 0;
    if (!embedded) {
        printf("SKIP: this build has no kernels for %s\n", chip);
        return NULL;
    }
    snprintf(settings, sizeof settings, "chips=%s;units=%d;memory=256MiB", chip, units);
    rocm.configure(settings);
    CHECK_OK(ww_device_open("rocm:0", &device));
    return device;
}

static void close_chip(ww_device *device)
{
    ww_device_close(device);
    assert_null(rocm.misuse());
    assert_int_equal(standin_alive(&rocm), 0);
}

/* ---- quantized matrices -------------------------------------------------------------------------------------------------- */

/* Units and tiles of rows are those of a card and of 4096 rows, divided by the same: an MI300X has 304 units for 32 tiles. */
typedef struct quant_choice {
    const char *chip;
    int units;
    int64_t tiles; /* of rows */
    ww_quant_type type;
    int64_t columns;
    const char *kernel;
} quant_choice;

static const quant_choice quant_choices[] = {
    {"gfx942", 19, 2, WW_QUANT_Q4_0, 64, "quant_tile_block32"},
    {"gfx942", 19, 2, WW_QUANT_Q8_0, 1024, "quant_tile_block32"},
    {"gfx942", 19, 2, WW_QUANT_Q4_K, 512, "quant_tile_kblock"},
    {"gfx942", 19, 2, WW_QUANT_Q6_K, 512, "quant_tile_kblock"},
    {"gfx942", 19, 2, WW_QUANT_Q4_K, 1024, "matmul_fast_bf16"},
    {"gfx942", 19, 2, WW_QUANT_Q4_K, 1280, "quant_tile_kblock"}, /* a second round of a few tiles */
    {"gfx942", 19, 2, WW_QUANT_Q6_K, 2048, "matmul_fast_bf16"},
    {"gfx90a", 13, 4, WW_QUANT_Q4_0, 512, "quant_tile_block32"},
    {"gfx90a", 13, 4, WW_QUANT_Q8_0, 512, "quant_tile_block32"},
    {"gfx90a", 13, 4, WW_QUANT_Q4_K, 32, "quant_gemv_q4_k"}, /* few columns, on any chip */
    {"gfx90a", 13, 4, WW_QUANT_Q4_K, 128, "quant_tile_kblock"},
    {"gfx90a", 13, 4, WW_QUANT_Q4_K, 512, "matmul_fast_bf16"},
    {"gfx90a", 13, 4, WW_QUANT_Q6_K, 512, "matmul_fast_bf16"},
    {"gfx1100", 3, 2, WW_QUANT_Q4_0, 512, "quant_tile_block32"},
    {"gfx1100", 3, 2, WW_QUANT_Q4_K, 128, "matmul_fast_bf16"},
    {"gfx1100", 3, 2, WW_QUANT_Q6_K, 512, "matmul_fast_bf16"},
    {"gfx1201", 1, 1, WW_QUANT_Q8_0, 512, "quant_tile_block32"},
    {"gfx1201", 1, 1, WW_QUANT_Q4_K, 512, "quant_tile_kblock"},
    {"gfx906", 3, 2, WW_QUANT_Q4_K, 512, "quant_tile_kblock"}, /* no matrix units, so no other kernel */
};

static void fast_products_of_quantized_matrices_go_the_quicker_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof quant_choices / sizeof *quant_choices; i++) {
        const quant_choice *choice = &quant_choices[i];
        const int64_t shape[2] = {choice->columns, COLS};
        ww_quant_product options = ww_quant_product_default();
        ww_device *device = open_chip(choice->chip, choice->units);
        ww_quant *matrix = NULL;
        ww_tensor x = {0}, out = {0};
        if (device == NULL)
            continue;
        options.math = WW_MATH_FAST;
        CHECK_OK(ww_quant_from_f32(device, choice->type, weights, choice->tiles * TILE, COLS, 0, &matrix));
        CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, shape, values, &x));
        launches = 0;
        CHECK_OK(ww_quant_multiply(matrix, &x, &options, &out));
        if (!was_launched(choice->kernel))
            fail_msg("%s, %s, %lld columns: not by %s but by %s", choice->chip, ww_quant_name(choice->type),
                     (long long)choice->columns, choice->kernel, launches > 0 ? launched[launches - 1] : "nothing");
        ww_tensor_release(&out);
        ww_tensor_release(&x);
        ww_quant_destroy(matrix);
        close_chip(device);
    }
}

/* ---- floats -------------------------------------------------------------------------------------------------------------- */

typedef struct float_choice {
    const char *chip;
    ww_dtype type;
    const char *kernel;
} float_choice;

static const float_choice float_choices[] = {
    {"gfx90a", WW_F16, "matmul_fast_f16"},          {"gfx90a", WW_BF16, "matmul_fast_bf16"},
    {"gfx90a", WW_F32, "matmul_fast_f32"},          {"gfx1100", WW_F16, "matmul_fast_f16"},
    {"gfx1100", WW_BF16, "matmul_fast_bf16"},       {"gfx1100", WW_F32, "matmul_f32_64"},
    {"gfx906", WW_F16, "matmul_fast_f16"},          {"gfx906", WW_BF16, "matmul_f32_64"},
    {"gfx1030", WW_F16, "matmul_fast_f16"},         {"gfx1030", WW_BF16, "matmul_f32_64"},
    {"gfx10-3-generic", WW_F16, "matmul_fast_f16"}, {"gfx9-generic", WW_F16, "matmul_f32_64"},
    {"gfx10-1-generic", WW_F16, "matmul_f32_64"},
};

static void fast_products_of_floats_use_the_units_that_the_chip_has(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof float_choices / sizeof *float_choices; i++) {
        const float_choice *choice = &float_choices[i];
        const int64_t side = choice->type == WW_F32 ? ROWS / 2 : ROWS, shape[2] = {side, side};
        ww_device *device = open_chip(choice->chip, 3);
        ww_tensor x = {0}, out = {0};
        if (device == NULL)
            continue;
        CHECK_OK(ww_tensor_from_host(device, choice->type, 2, shape, halves, &x));
        launches = 0;
        CHECK_OK(ww_tensor_matmul(&x, &x, WW_MATH_FAST, &out));
        CHECK_OK(ww_device_synchronize(device));
        if (launches != 1 || !was_launched(choice->kernel))
            fail_msg("%s, type %d: not by %s but by %s", choice->chip, (int)choice->type, choice->kernel, launched[0]);
        ww_tensor_release(&out);
        ww_tensor_release(&x);
        close_chip(device);
    }
}

int main(void)
{
    test_random random = {11};
    void (*execute_with)(standin_executor) = NULL;
    if (!standin_open(6, "", &rocm))
        return 0;
    setenv("WARPWAVE_ROCBLAS_LIBRARY", "/nonexistent/librocblas.so.4", 1);
    *(void **)&execute_with = dlsym(rocm.library, "standin_execute_with");
    *(void **)&emulate = dlsym(rocm.library, "standin_emulate");
    execute_with(note_launch);
    random_normals(&random, weights, (int64_t)TILES_MAX * TILE * COLS);
    random_normals(&random, values, (int64_t)COLUMNS_MAX * COLS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_products_of_quantized_matrices_go_the_quicker_way),
        cmocka_unit_test(fast_products_of_floats_use_the_units_that_the_chip_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
