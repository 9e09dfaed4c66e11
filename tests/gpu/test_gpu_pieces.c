/* Jobs that are larger than a launch may be, by the limits that vendors have: HIP takes fewer than 2^32 threads in a launch.
 *
 * The launches are counted, not run, over a table that has memory without end: no machine has time for them here. That pieces
 * give the bits of the whole is seen where limits are small: the suites limits_* run the tests of tensors so, and quantized
 * products are run here.
 */
#include <stdlib.h>

#include "support/calls/quant.h"
#include "support/check.h"

#include "arithmetic/blocks/blocks.h"
#include "arithmetic/philox.h"
#include "device/quant_jobs.h"
#include "device/tensor_jobs.h"
#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "gpu/device.h"
#include "gpu/launch.h"
#include "gpu/open.h"
#include "kernels/elementwise/elementwise.h"

static driver_launch_limits limits;
static int64_t launches, launches_too_large, blocks_in_all;
static uintptr_t next_address;

static int count_launch(driver_function function, driver_stream stream, const driver_launch *launch)
{
    (void)function;
    (void)stream;
    const int64_t threads = (int64_t)launch->grid_x * launch->block_x;
    launches++;
    blocks_in_all += (int64_t)launch->grid_x * launch->grid_y;
    if (launch->grid_x > limits.grid[0] || launch->grid_y > limits.grid[1] || launch->grid_z != 1 ||
        threads > limits.threads[0])
        launches_too_large++;
    return 0;
}

static int say_limits(int32_t index, driver_launch_limits *out)
{
    (void)index;
    *out = limits;
    return 0;
}

static int take_nothing(size_t bytes, void **out)
{
    *out = (void *)next_address;
    next_address += (bytes + 4095) / 4096 * 4096;
    return 0;
}

static int give_nothing(void *address)
{
    (void)address;
    return 0;
}

static int fill_nothing(driver_stream stream, void *to, uint32_t pattern, size_t words)
{
    (void)stream;
    (void)to;
    (void)pattern;
    (void)words;
    return 0;
}

static int say_memory(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = (size_t)1 << 40;
    return 0;
}

static const driver_launch_limits OF_HIP = {
    .grid = {INT32_MAX, 65535, 65535}, .block = {1024, 1024, 1024}, .threads = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
static const driver_launch_limits OF_CUDA = {
    .grid = {INT32_MAX, 65535, 65535}, .block = {1024, 1024, 64}, .threads = {INT64_MAX, INT64_MAX, INT64_MAX}};

static gpu_driver table;

static ww_device *open_with(const driver_launch_limits *of)
{
    ww_device *device = NULL;
    limits = *of;
    next_address = 1 << 20;
    table = emulated_driver;
    table.launch = count_launch;
    table.launch_limits = say_limits;
    table.memory_alloc = take_nothing;
    table.memory_free = give_nothing;
    table.memory_info = say_memory;
    table.fill32 = fill_nothing;
    CHECK_OK(gpu_open(&backend_emulator, &table, 1, &device));
    return device;
}

/* An address that is never read. */
static void *far_away(int64_t gib)
{
    return (void *)(uintptr_t)(gib << 30);
}

/* ---- the jobs: what a caller asked for, and how many blocks that is at least --------------------------------------------- */

static ww_status softmax_of_67108864_rows(ww_device *device)
{
    const rows_job job = {
        .op = ROW_SOFTMAX, .type = TYPE_F32, .rows = 67108864, .n = 50, .x = far_away(100), .out = far_away(200)};
    return device->backend->tensors->rows(device, &job);
}

static ww_status sort_of_8388608_rows(ww_device *device)
{
    const sort_job job = {.type = TYPE_F32, .rows = 8388608, .n = 2000, .k = 2000, .x = far_away(100), .values = far_away(200)};
    return device->backend->tensors->sort(device, &job);
}

/* Eight of them a thread block. */
static ww_status sort_of_134217728_short_rows(ww_device *device)
{
    const sort_job job = {.type = TYPE_F32, .rows = 134217728, .n = 100, .k = 100, .x = far_away(100), .values = far_away(200)};
    return device->backend->tensors->sort(device, &job);
}

static ww_status sort_of_long_rows(ww_device *device)
{
    const sort_job job = {.type = TYPE_F64, .rows = 600000, .n = 8192, .k = 8192, .x = far_away(100), .indices = far_away(200)};
    return device->backend->tensors->sort(device, &job);
}

static ww_status argmax_with_16777216_results(ww_device *device)
{
    const reduce_job job = {.op = REDUCE_ARGMAX,
                            .type = TYPE_F64,
                            .out_type = TYPE_U32,
                            .outs = 16777216,
                            .n = 7,
                            .kept = {.rank = 1, .shape = {16777216}, .strides = {7}},
                            .reduced = {.rank = 1, .shape = {7}, .strides = {1}},
                            .x = far_away(100),
                            .out = far_away(200)};
    return device->backend->tensors->reduce(device, &job);
}

static ww_status sum_with_results_in_two_dimensions(ww_device *device)
{
    const reduce_job job = {.op = REDUCE_SUM,
                            .type = TYPE_F32,
                            .out_type = TYPE_F32,
                            .outs = (int64_t)3 << 29,
                            .n = 5,
                            .kept = {.rank = 2, .shape = {3, 1 << 29}, .strides = {(int64_t)5 << 29, 1}},
                            .reduced = {.rank = 1, .shape = {5}, .strides = {1 << 29}},
                            .x = far_away(100),
                            .out = far_away(200)};
    return device->backend->tensors->reduce(device, &job);
}

static ww_status addition_of_40_billion_bytes(ww_device *device)
{
    const tensor_operand operand = {.data = far_away(100), .type = TYPE_U8, .strides = {1}};
    elementwise_job job = {.family = ELEMENTWISE_BINARY,
                           .op = BINARY_ADD,
                           .inputs = 2,
                           .rank = 1,
                           .shape = {40000000000},
                           .count = 40000000000,
                           .out = operand,
                           .in = {operand, operand}};
    job.out.data = far_away(300);
    return device->backend->tensors->elementwise(device, &job);
}

static ww_status random_numbers(ww_device *device)
{
    const random_job job = {.to = far_away(100), .type = TYPE_F16, .count = 40000000000, .what = RANDOM_UNIFORM, .b = 1.0};
    return device->backend->tensors->random(device, &job);
}

static ww_status rope_of_many_rows(ww_device *device)
{
    const reduce_dims rows = {.rank = 1, .shape = {200000000}, .strides = {64}};
    const rope_job job = {.type = TYPE_F16,
                          .rows = 200000000,
                          .half = 64,
                          .cosines = rows,
                          .sines = rows,
                          .cosine_step = 1,
                          .sine_step = 1,
                          .x = far_away(100),
                          .cosine = far_away(200),
                          .sine = far_away(300),
                          .out = far_away(400)};
    return device->backend->tensors->rope(device, &job);
}

static ww_status product_of_one_row(ww_device *device)
{
    const matmul_job job = {.type = TYPE_F32,
                            .m = 1,
                            .n = 2000000000,
                            .k = 2,
                            .a = far_away(100),
                            .b = far_away(200),
                            .c = far_away(300),
                            .a_row = 2,
                            .a_column = 1,
                            .b_row = 2000000000,
                            .b_column = 1,
                            .c_row = 2000000000,
                            .c_elements = 2000000000};
    return device->backend->tensors->matmul(device, &job);
}

static ww_status product_of_one_column(ww_device *device)
{
    const matmul_job job = {.type = TYPE_F64,
                            .m = 2000000000,
                            .n = 1,
                            .k = 2,
                            .a = far_away(100),
                            .b = far_away(200),
                            .c = far_away(300),
                            .a_row = 2,
                            .a_column = 1,
                            .b_row = 1,
                            .b_column = 1,
                            .c_row = 1,
                            .c_elements = 2000000000};
    return device->backend->tensors->matmul(device, &job);
}

static ww_status scatter_of_many_lines(ww_device *device)
{
    const tensor_operand operand = {.data = far_away(100), .type = TYPE_U8, .strides = {4}};
    const scatter_job job = {
        .lines = {.inputs = 2, .rank = 1, .shape = {5000000000}, .count = 5000000000, .out = operand, .in = {operand, operand}},
        .length = 4,
        .extent = 4,
        .x_step = 1,
        .ids_step = 1,
        .src_step = 1};
    return device->backend->tensors->scatter(device, &job);
}

/* 300 million rows of 32 weights, by one column: more threads than HIP takes. */
static ww_status quantized_product(ww_device *device, bool decoded)
{
    const buffer weights = {.data = far_away(100), .bytes = (size_t)300000000 * 18}, x = {.data = far_away(200), .bytes = 128},
                 y = {.data = far_away(300), .bytes = (size_t)300000000 * 4};
    const quant_product_job job = {.type = BLOCK_Q4_0,
                                   .decoded = decoded,
                                   .weights = &weights,
                                   .rows = 300000000,
                                   .cols = 32,
                                   .x = &x,
                                   .columns = 1,
                                   .y = &y};
    return device->backend->quants->product(device, &job);
}

static ww_status quantized_gemv(ww_device *device)
{
    return quantized_product(device, false);
}

static ww_status quantized_decoded(ww_device *device)
{
    return quantized_product(device, true);
}

static const struct {
    const char *name;
    ww_status (*run)(ww_device *device);
    int64_t launches_of_cuda; /* 0: more than one step anyway */
    int64_t blocks_min;
} jobs[] = {
    {"softmax of 67,108,864 rows", softmax_of_67108864_rows, 1, 67108864},
    {"sort of 8,388,608 rows", sort_of_8388608_rows, 1, 8388608},
    {"sort of 134,217,728 short rows", sort_of_134217728_short_rows, 1, 134217728 / 16},
    {"sort of long rows", sort_of_long_rows, 0, 1},
    {"argmax with 16,777,216 results", argmax_with_16777216_results, 2, 16777216},
    {"sum with results in two dimensions", sum_with_results_in_two_dimensions, 1, 1},
    {"addition of 40 billion bytes", addition_of_40_billion_bytes, 1, 40000000000 / ELEMENTWISE_TILE},
    {"random numbers", random_numbers, 1, 40000000000 / 1024},
    {"rope of 200 million rows", rope_of_many_rows, 1, 200000000 / 4},
    {"product of one row", product_of_one_row, 1, 2000000000 / 256},
    {"product of one column", product_of_one_column, 1, 2000000000 / 64},
    {"quantized gemv of 300 million rows", quantized_gemv, 1, 300000000 / QUANT_GEMV_ROWS},
    {"decoded product of 300 million rows", quantized_decoded, 1, 300000000 / 16},
    {"scatter of 5 billion lines", scatter_of_many_lines, 1, 5000000000 / 128},
};

static void run_jobs(const driver_launch_limits *of, bool hip)
{
    ww_device *device = open_with(of);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        launches = launches_too_large = blocks_in_all = 0;
        const ww_status status = jobs[i].run(device);
        if (status != WW_OK)
            fail_msg("%s: %s", jobs[i].name, ww_error_message());
        if (launches_too_large > 0)
            fail_msg("%s: %lld of %lld launches are too large", jobs[i].name, (long long)launches_too_large,
                     (long long)launches);
        if (!hip && jobs[i].launches_of_cuda > 0 && launches != jobs[i].launches_of_cuda)
            fail_msg("%s: %lld launches", jobs[i].name, (long long)launches);
        if (hip && launches <= jobs[i].launches_of_cuda)
            fail_msg("%s: %lld launches, which is too few", jobs[i].name, (long long)launches);
        if (blocks_in_all < jobs[i].blocks_min)
            fail_msg("%s: %lld blocks, of %lld at least", jobs[i].name, (long long)blocks_in_all,
                     (long long)jobs[i].blocks_min);
    }
    ww_device_close(device);
}

static void no_launch_has_more_threads_than_hip_takes(void **state)
{
    (void)state;
    run_jobs(&OF_HIP, true);
}

static void nothing_is_cut_that_cuda_takes_whole(void **state)
{
    (void)state;
    run_jobs(&OF_CUDA, false);
}

/* A driver that allows only few blocks in each dimension: each limit is read, and a larger grid is refused before the driver is
 * called. */
static void a_launch_past_a_limit_is_refused(void **state)
{
    (void)state;
    const driver_launch_limits few = {.grid = {1000, 7, 1}, .block = {1024, 1, 1}, .threads = {102400, INT64_MAX, INT64_MAX}};
    const search_merge_args args = {0};
    ww_device *device = open_with(&few);
    gpu_stream *stream;
    assert_int_equal(gpu_blocks_max(gpu_of(device)), 100);
    assert_int_equal(gpu_blocks_y_max(gpu_of(device)), 7);
    CHECK_OK(gpu_stream_borrow(gpu_of(device), &stream));
    launches = 0;
    CHECK_OK(launch_search_merge(stream, grid_of_2(1000, 7), 64, 0, &args));
    assert_int_equal(launches, 1);
    CHECK_FAILS(WW_INTERNAL, launch_search_merge(stream, grid_of(1001), 64, 0, &args));
    CHECK_FAILS(WW_INTERNAL, launch_search_merge(stream, grid_of_2(1, 8), 64, 0, &args));
    CHECK_FAILS(WW_INTERNAL, launch_search_merge(stream, grid_of(801), 128, 0, &args));
    CHECK_OK(launch_search_merge(stream, grid_of(800), 128, 0, &args));
    assert_int_equal(launches, 2);
    CHECK_OK(gpu_stream_return(stream, WW_OK));
    ww_device_close(device);
}

/* Pieces of a quantized product have the bits of the whole: 1003 rows, some of which are in two pieces, times 1 and 9 columns,
 * with encoded and with decoded weights, in a format of each kind of block and a plain one. */
static void a_quantized_product_in_pieces_has_the_same_bits(void **state)
{
    (void)state;
    enum { ROWS = 1003, COLS = 256, COLUMNS = 9 };
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q4_K, WW_QUANT_F16};
    float *w = quant_normals(1, ROWS * COLS), *x = quant_normals(2, COLUMNS * COLS);
    ww_device *device;
    CHECK_OK(ww_device_open("emulator:32", &device));
    for (int32_t i = 0; i < 12; i++) {
        const int64_t n = i % 2 == 0 ? 1 : COLUMNS, shape[2] = {n, COLS};
        ww_quant *q;
        ww_tensor t = {0}, whole = {0}, pieces = {0};
        float out[2][COLUMNS * ROWS];
        ww_quant_product options = ww_quant_product_default();
        options.activations = i % 4 < 2 ? WW_ACTIVATIONS_CODED : WW_ACTIVATIONS_FLOAT;
        CHECK_OK(ww_quant_from_f32(device, types[i / 4], w, ROWS, COLS, 0, &q));
        CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, shape, x, &t));
        CHECK_OK(ww_quant_multiply(q, &t, &options, &whole));
        CHECK_OK(ww_tensor_to_host(&whole, out[0]));
        driver_launch_limits *own = &gpu_of(device)->limits;
        const driver_launch_limits before = *own;
        own->threads[0] = (int64_t)20 * QUANT_THREADS; /* 320 rows */
        CHECK_OK(ww_quant_multiply(q, &t, &options, &pieces));
        *own = before;
        CHECK_OK(ww_tensor_to_host(&pieces, out[1]));
        assert_memory_equal(out[0], out[1], (size_t)(n * ROWS) * sizeof(float));
        ww_tensor_release(&whole);
        ww_tensor_release(&pieces);
        ww_tensor_release(&t);
        ww_quant_destroy(q);
    }
    free(w);
    free(x);
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_launch_has_more_threads_than_hip_takes),
        cmocka_unit_test(nothing_is_cut_that_cuda_takes_whole),
        cmocka_unit_test(a_launch_past_a_limit_is_refused),
        cmocka_unit_test(a_quantized_product_in_pieces_has_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
