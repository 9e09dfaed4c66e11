/* Device memory: buffers, their pool, and the watch that counts and refuses. On every GPU, real or emulated.
 */
#include "support/devices.h"

#include <stdlib.h>
#include <string.h>

#include "emulated/emulated.h"
#include "gpu/backend.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "support/data/random.h"

#define MIB INT64_C(1048576)

static ww_memory_info memory_of(ww_device *device)
{
    ww_memory_info memory = ww_memory_info_default();
    CHECK_OK(ww_device_memory(device, &memory));
    return memory;
}

static void a_block_loses_little_to_rounding(void **state)
{
    (void)state;
    size_t before = 0;
    for (size_t bytes = 1; bytes < (size_t)1 << 40; bytes += 1 + bytes / 97) {
        const size_t block = gpu_block_bytes(bytes);
        assert_true(block >= bytes && block % 256 == 0 && block >= before);
        assert_true(block - bytes <= 255 || block - bytes <= bytes / 64);
        assert_int_equal(gpu_block_bytes(block), block);
        before = block;
    }
    assert_int_equal(gpu_block_bytes(SIZE_MAX), 0);
}

static void buffers_are_aligned_and_freed_in_any_order(void **state)
{
    ww_device *device = *state;
    const backend *gpu = device->backend;
    const int64_t ours = memory_of(device).ours_bytes;
    buffer buffers[7] = {{0}};
    static const size_t bytes[7] = {1, 255, 256, 257, 65536, 3 * MIB + 4, 0};
    for (int i = 0; i < 7; i++) {
        CHECK_OK(gpu->buffer_create(device, bytes[i], &buffers[i]));
        assert_int_equal(buffers[i].bytes, bytes[i]);
        assert_int_equal((uintptr_t)buffers[i].data % 256, 0);
    }
    assert_true(memory_of(device).ours_bytes >= ours + 3 * MIB);
    static const int order[7] = {3, 0, 6, 5, 1, 4, 2};
    for (int i = 0; i < 7; i++) {
        gpu->buffer_destroy(device, &buffers[order[i]]);
        assert_null(buffers[order[i]].data);
        gpu->buffer_destroy(device, &buffers[order[i]]); /* an empty one is accepted */
    }
    assert_int_equal(memory_of(device).ours_bytes, ours);
    CHECK_OK(ww_device_trim(device));
}

static void freed_memory_is_pooled_and_reused(void **state)
{
    ww_device *device = *state;
    const backend *gpu = device->backend;
    CHECK_OK(ww_device_trim(device));
    const ww_memory_info before = memory_of(device);
    buffer first = {0};
    buffer second = {0};
    CHECK_OK(gpu->buffer_create(device, 5 * MIB, &first));
    void *address = first.data;
    assert_true(memory_of(device).peak_bytes >= before.ours_bytes + 5 * MIB);
    gpu->buffer_destroy(device, &first);
    assert_true(memory_of(device).pooled_bytes >= before.pooled_bytes + 5 * MIB);
    CHECK_OK(gpu->buffer_create(device, 5 * MIB - 100, &second)); /* the same class */
    assert_ptr_equal(second.data, address);
    gpu->buffer_destroy(device, &second);
    CHECK_OK(ww_device_trim(device));
    assert_int_equal(memory_of(device).pooled_bytes, 0);
    assert_int_equal(memory_of(device).ours_bytes, before.ours_bytes);
}

static void requests_that_cannot_fit_are_refused_with_the_numbers(void **state)
{
    ww_device *device = *state;
    const backend *gpu = device->backend;
    const ww_memory_info before = memory_of(device);
    buffer held = {0};
    CHECK_FAILS(WW_OUT_OF_MEMORY, gpu->buffer_create(device, (size_t)before.total_bytes + 1, &held));
    assert_null(held.data);
    assert_non_null(strstr(ww_error_message(), " asked, "));
    assert_non_null(strstr(ww_error_message(), " free of "));
    CHECK_FAILS(WW_OUT_OF_MEMORY, gpu->buffer_create(device, SIZE_MAX, &held));
    CHECK_FAILS(WW_OUT_OF_MEMORY, gpu->buffer_create(device, SIZE_MAX / 2, &held));
    assert_int_equal(memory_of(device).ours_bytes, before.ours_bytes);
    CHECK_OK(gpu->buffer_create(device, MIB, &held));
    gpu->buffer_destroy(device, &held);
}

static void workspaces_grow_and_stay(void **state)
{
    gpu_device *device = gpu_of(*state);
    gpu_stream *stream = NULL;
    void *small = NULL;
    void *again = NULL;
    void *large = NULL;
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_OK(gpu_workspace(stream, 3, 1000, &small));
    CHECK_OK(gpu_workspace(stream, 3, 10, &again));
    assert_ptr_equal(small, again);
    CHECK_OK(gpu_workspace(stream, 3, 2 * MIB, &large));
    CHECK_FAILS(WW_INTERNAL, gpu_workspace(stream, GPU_WORKSPACES, 1, &again));
    CHECK_OK(gpu_stream_return(stream, WW_OK));
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_OK(gpu_workspace(stream, 3, 2 * MIB, &again));
    assert_ptr_equal(large, again);
    CHECK_OK(gpu_stream_return(stream, WW_OK));
}

/* ---- on the emulated driver, whose memory can be set --------------------------------------------------------------------- */

static void pooled_and_idle_memory_is_freed_before_an_allocation_fails(void **state)
{
    (void)state;
    ww_device *device = NULL;
    gpu_stream *stream = NULL;
    buffer first = {0};
    buffer second = {0};
    void *scratch = NULL;
    emulated_set_memory(16 * MIB);
    CHECK_OK(ww_device_open("emulator:32", &device));
    CHECK_OK(device->backend->buffer_create(device, 6 * MIB, &first));
    device->backend->buffer_destroy(device, &first); /* pooled */
    CHECK_OK(gpu_stream_borrow(gpu_of(device), &stream));
    CHECK_OK(gpu_workspace(stream, 0, 5 * MIB, &scratch));
    CHECK_OK(gpu_stream_return(stream, WW_OK)); /* idle */
    CHECK_OK(device->backend->buffer_create(device, 15 * MIB, &first));
    CHECK_FAILS(WW_OUT_OF_MEMORY, device->backend->buffer_create(device, 2 * MIB, &second));
    assert_non_null(strstr(ww_error_message(), "2.0 MiB asked, 1.0 MiB free of 16.0 MiB"));
    assert_non_null(strstr(ww_error_message(), "emulator:32"));
    device->backend->buffer_destroy(device, &first);
    CHECK_OK(device->backend->buffer_create(device, 2 * MIB, &second));
    device->backend->buffer_destroy(device, &second);
    ww_device_close(device);
    emulated_set_memory(0);
}

static void the_fields_of_an_emulated_device_are_all_there(void **state)
{
    (void)state;
    static const int32_t waves[2] = {32, 64};
    for (int i = 0; i < 2; i++) {
        char id[32];
        ww_device *device = NULL;
        ww_device_info info = ww_device_info_default();
        snprintf(id, sizeof id, "emulator:%d", waves[i]);
        CHECK_OK(ww_device_open(id, &device));
        CHECK_OK(ww_device_describe(device, &info));
        assert_string_equal(info.id, id);
        assert_string_equal(info.backend, "emulator");
        assert_string_equal(info.kernels, "built in");
        assert_int_equal(info.wave_size, waves[i]);
        assert_int_equal(info.index, i);
        assert_true(info.name[0] && info.vendor[0] && info.arch[0] && info.driver_version[0]);
        assert_true(info.compute_units > 0 && info.max_threads_per_block >= 1024 && info.shared_bytes_per_block >= 32768);
        assert_true(info.memory_total_bytes > 0 && info.memory_free_bytes > 0);
        assert_int_equal(info.memory_total_bytes - info.memory_free_bytes, info.memory_used_bytes);
        ww_device_close(device);
    }
}

int main(void)
{
    setenv("WARPWAVE_TEST_DEVICES", "emulator:32,emulator:64", 0);
    const struct CMUnitTest everywhere[] = {
        cmocka_unit_test(buffers_are_aligned_and_freed_in_any_order),
        cmocka_unit_test(freed_memory_is_pooled_and_reused),
        cmocka_unit_test(requests_that_cannot_fit_are_refused_with_the_numbers),
        cmocka_unit_test(workspaces_grow_and_stay),
    };
    const struct CMUnitTest emulated[] = {
        cmocka_unit_test(a_block_loses_little_to_rounding),
        cmocka_unit_test(pooled_and_idle_memory_is_freed_before_an_allocation_fails),
        cmocka_unit_test(the_fields_of_an_emulated_device_are_all_there),
    };
    return RUN_ON_EVERY_DEVICE("gpu memory", everywhere) + cmocka_run_group_tests_name("gpu memory", emulated, NULL, NULL);
}
