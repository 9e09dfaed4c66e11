/* Devices: names, descriptions, environment variables, and buffers of the CPU. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "support/memory.h"

static int forget_environment(void **state)
{
    (void)state;
    unsetenv("WARPWAVE_DEVICE");
    unsetenv("WARPWAVE_ISA");
    unsetenv("WARPWAVE_THREADS");
    return 0;
}

static void the_cpu_opens_by_its_names(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu", "cpu:0"};
    for (size_t i = 0; i < 2; i++) {
        ww_device *device = NULL;
        CHECK_OK(ww_device_open(names[i], &device));
        assert_string_equal(device->info.id, "cpu");
        assert_string_equal(device->info.backend, "cpu");
        ww_device_close(device);
    }
    ww_device_close(NULL);
}

static void auto_and_null_open_something_and_never_the_emulator(void **state)
{
    (void)state;
    static const char *const names[] = {"auto", NULL};
    for (size_t i = 0; i < 2; i++) {
        ww_device *device = NULL;
        CHECK_OK(ww_device_open(names[i], &device));
        assert_string_not_equal(device->info.backend, "emulator");
        ww_device_close(device);
    }
}

static void the_environment_determines_auto(void **state)
{
    (void)state;
    ww_device *device = NULL;
    setenv("WARPWAVE_DEVICE", "cpu", 1);
    CHECK_OK(ww_device_open("auto", &device));
    assert_string_equal(device->info.id, "cpu");
    ww_device_close(device);
    setenv("WARPWAVE_DEVICE", "abacus", 1);
    CHECK_FAILS(WW_NO_DEVICE, ww_device_open(NULL, &device));
    assert_non_null(strstr(ww_error_message(), "abacus"));
    CHECK_OK(ww_device_open("cpu", &device)); /* a name given outright is not overridden */
    ww_device_close(device);
}

static void a_name_that_is_not_there_is_refused_with_the_list(void **state)
{
    (void)state;
    static const char *const names[] = {"", "gpu", "cpu:1", "cpu:", "cpux", "cuda:999", "rocm:999", "emulator:33", "CPU"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ww_device *device = (ww_device *)&device;
        CHECK_FAILS(WW_NO_DEVICE, ww_device_open(names[i], &device));
        assert_null(device);
        assert_non_null(strstr(ww_error_message(), names[i]));
        assert_non_null(strstr(ww_error_message(), "cpu"));
    }
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_open("cpu", NULL));
}

static void the_devices_are_described_with_every_field(void **state)
{
    (void)state;
    ww_device_info infos[32];
    size_t count = 0, again = 0;
    CHECK_OK(ww_devices(NULL, 0, &count));
    assert_true(count >= 1 && count <= 32);
    for (size_t i = 0; i < 32; i++)
        infos[i] = ww_device_info_default();
    CHECK_OK(ww_devices(infos, 32, &again));
    assert_int_equal(again, count);
    const ww_device_info *cpu = infos;
    while (cpu < infos + count && strcmp(cpu->id, "cpu") != 0)
        cpu++;
    assert_true(cpu < infos + count);
    assert_true(cpu->name[0] && cpu->vendor[0] && cpu->arch[0] && cpu->kernels[0] && cpu->instruction_sets[0]);
    assert_string_equal(cpu->pci_address, "");
    assert_true(cpu->compute_units >= 1 && cpu->wave_size == 1 && cpu->max_threads_per_block == 1 && cpu->index == 0);
    assert_true(cpu->memory_total_bytes > 0 && cpu->memory_free_bytes > 0);
    assert_true(cpu->memory_used_bytes == cpu->memory_total_bytes - cpu->memory_free_bytes);

    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_devices(infos, 32, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_devices(NULL, 1, &count));
    infos[0].struct_size = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_devices(infos, 1, &count));
}

static void an_older_and_smaller_info_is_filled_as_far_as_it_goes(void **state)
{
    (void)state;
    struct {
        size_t struct_size;
        char id[32];
        char after[64];
    } older = {.struct_size = sizeof(size_t) + 32};
    memset(older.after, 0x5a, sizeof older.after);
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_device_describe(device, (ww_device_info *)&older));
    assert_string_equal(older.id, "cpu");
    for (size_t i = 0; i < sizeof older.after; i++)
        assert_int_equal(older.after[i], 0x5a);
    ww_device_close(device);
}

static void threads_are_as_many_as_the_environment_allows(void **state)
{
    (void)state;
    ww_device *device;
    setenv("WARPWAVE_THREADS", "1", 1);
    CHECK_OK(ww_device_open("cpu", &device));
    assert_int_equal(device->info.compute_units, 1);
    ww_device_close(device);
    static const char *const refused[] = {"0", "-1", "two", "2x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        setenv("WARPWAVE_THREADS", refused[i], 1);
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_open("cpu", &device));
        assert_non_null(strstr(ww_error_message(), refused[i]));
    }
}

static void an_instruction_set_that_is_not_there_is_refused_at_open(void **state)
{
    (void)state;
    ww_device *device;
    const int64_t held = blocks_held();
    setenv("WARPWAVE_ISA", "altivec", 1);
    CHECK_FAILS(WW_UNSUPPORTED, ww_device_open("cpu", &device));
    assert_non_null(strstr(ww_error_message(), "altivec"));
    assert_non_null(strstr(ww_error_message(), "scalar"));
    assert_int_equal(blocks_held(), held);
    setenv("WARPWAVE_ISA", "scalar", 1);
    CHECK_OK(ww_device_open("cpu", &device));
    assert_string_equal(device->info.instruction_sets, "scalar");
    ww_device_close(device);
}

static void absence_has_a_reason(void **state)
{
    (void)state;
    assert_string_equal(ww_backend_absence("cpu"), "");
    assert_true(strlen(ww_backend_absence("abacus")) > 0);
    assert_true(strlen(ww_backend_absence(NULL)) > 0);
}

static void the_memory_watch_counts_buffers(void **state)
{
    (void)state;
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    const backend *b = device->backend;
    ww_memory_info memory = ww_memory_info_default();
    buffer small = {0}, large = {0}, empty = {0};
    CHECK_OK(b->buffer_create(device, 1000, &small));
    CHECK_OK(b->buffer_create(device, 64 << 20, &large));
    CHECK_OK(b->buffer_create(device, 0, &empty));
    assert_int_equal((uintptr_t)small.data % 256, 0);
    assert_int_equal((uintptr_t)large.data % 256, 0);
    memset(small.data, 1, 1000);
    memset(large.data, 1, 64 << 20);
    CHECK_OK(ww_device_memory(device, &memory));
    assert_int_equal(memory.ours_bytes, 1000 + (64 << 20));
    b->buffer_destroy(device, &small);
    b->buffer_destroy(device, &small);
    b->buffer_destroy(device, &large);
    b->buffer_destroy(device, &empty);
    assert_null(large.data);
    CHECK_OK(ww_device_trim(device));
    CHECK_OK(ww_device_memory(device, &memory));
    assert_int_equal(memory.ours_bytes, 0);
    assert_int_equal(memory.peak_bytes, 1000 + (64 << 20));
    CHECK_FAILS(WW_OUT_OF_MEMORY, b->buffer_create(device, (size_t)1 << 60, &large));
    CHECK_FAILS(WW_OUT_OF_MEMORY, b->buffer_create(device, SIZE_MAX - 8, &large));
    assert_null(large.data);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_memory(NULL, &memory));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_memory(device, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_describe(device, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_trim(NULL));
    ww_device_close(device);
}

static ww_memory_info memory_of(ww_device *device)
{
    ww_memory_info memory = ww_memory_info_default();
    CHECK_OK(ww_device_memory(device, &memory));
    return memory;
}

static void a_few_large_buffers_of_tensors_are_kept(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, MANY = 12 };
    ww_device *device = NULL;
    ww_tensor made[MANY] = {{0}};
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_storage_create(device, WW_U8, 3 * MIB, &made[0].storage));
    CHECK_OK(ww_storage_create(device, WW_U8, 1000, &made[1].storage));
    ww_tensor_release(&made[0]);
    ww_tensor_release(&made[1]);
    assert_int_equal(memory_of(device).pooled_bytes, 3 * MIB);
    assert_int_equal(memory_of(device).ours_bytes, 0);
    CHECK_OK(ww_storage_create(device, WW_U8, 2 * MIB, &made[0].storage)); /* another size is another buffer */
    assert_int_equal(memory_of(device).pooled_bytes, 3 * MIB);
    CHECK_OK(ww_tensor_zeros(device, WW_F32, 1, (int64_t[]){3 * MIB / 4}, &made[1]));
    assert_int_equal(memory_of(device).pooled_bytes, 0);
    assert_int_equal(memory_of(device).ours_bytes, 5 * MIB);
    ww_tensor_release(&made[0]);
    ww_tensor_release(&made[1]);
    for (int32_t i = 0; i < MANY; i++)
        CHECK_OK(ww_storage_create(device, WW_U8, (int64_t)(40 + i) * MIB, &made[i].storage));
    for (int32_t i = 0; i < MANY; i++)
        ww_tensor_release(&made[i]);
    assert_in_range(memory_of(device).pooled_bytes, 51 * MIB, 256 * MIB);
    assert_int_equal(memory_of(device).ours_bytes, 0);
    CHECK_OK(ww_device_trim(device));
    assert_int_equal(memory_of(device).pooled_bytes, 0);
    assert_int_equal(memory_of(device).ours_bytes, 0);
    ww_device_close(device);
}

static void a_buffer_without_memory_is_a_status_and_leaks_nothing(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 64 << 20};
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    const int64_t held = blocks_held();
    for (size_t i = 0; i < 2; i++) {
        buffer b = {0};
        fail_allocation_at(1);
        CHECK_FAILS(WW_OUT_OF_MEMORY, device->backend->buffer_create(device, sizes[i], &b));
        fail_allocation_at(0);
        assert_null(b.data);
        CHECK_OK(device->backend->buffer_create(device, sizes[i], &b));
        assert_int_equal(blocks_held(), held + 1);
        device->backend->buffer_destroy(device, &b);
        assert_int_equal(blocks_held(), held);
    }
    ww_device_close(device);
}

static void bytes_are_filled_and_copied(void **state)
{
    (void)state;
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    const backend *b = device->backend;
    device_stream *s = NULL;
    buffer from = {0}, to = {0};
    uint32_t words[8] = {0};
    CHECK_OK(b->stream_create(device, &s));
    assert_non_null(s);
    CHECK_OK(b->buffer_create(device, 32, &from));
    CHECK_OK(b->buffer_create(device, 32, &to));
    CHECK_OK(b->fill(device, s, (buffer_range){&from, 0, 32}, 0x01020304u));
    CHECK_OK(b->copy_in(device, s, (buffer_range){&from, 8, 8}, (uint32_t[]){7, 8}));
    CHECK_OK(b->fill(device, s, (buffer_range){&to, 0, 32}, 0));
    CHECK_OK(b->copy(device, s, (buffer_range){&to, 4, 12}, &from, 8));
    CHECK_OK(b->stream_synchronize(device, s));
    CHECK_OK(b->copy_out(device, s, words, (buffer_range){&to, 0, 32}));
    assert_memory_equal(words, ((uint32_t[]){0, 7, 8, 0x01020304u, 0, 0, 0, 0}), 32);
    b->buffer_destroy(device, &from);
    b->buffer_destroy(device, &to);
    b->stream_destroy(device, s);
    b->stream_destroy(device, NULL);
    ww_device_close(device);
}

static void a_device_lives_until_its_last_user_is_gone(void **state)
{
    (void)state;
    ww_device *device;
    const int64_t held = blocks_held();
    CHECK_OK(ww_device_open("cpu", &device));
    assert_ptr_equal(device_retain(device), device);
    ww_device_close(device);
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    ww_device_close(device);
    assert_int_equal(blocks_held(), held);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, forget_environment, forget_environment)
    const struct CMUnitTest tests[] = {
        TEST(the_cpu_opens_by_its_names),
        TEST(auto_and_null_open_something_and_never_the_emulator),
        TEST(the_environment_determines_auto),
        TEST(a_name_that_is_not_there_is_refused_with_the_list),
        TEST(the_devices_are_described_with_every_field),
        TEST(an_older_and_smaller_info_is_filled_as_far_as_it_goes),
        TEST(threads_are_as_many_as_the_environment_allows),
        TEST(an_instruction_set_that_is_not_there_is_refused_at_open),
        TEST(absence_has_a_reason),
        TEST(the_memory_watch_counts_buffers),
        TEST(a_few_large_buffers_of_tensors_are_kept),
        TEST(a_buffer_without_memory_is_a_status_and_leaks_nothing),
        TEST(bytes_are_filled_and_copied),
        TEST(a_device_lives_until_its_last_user_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
