/* Copies, fills, streams, events and launches' refusals, on every GPU there is, real or emulated. */
#include "support/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/launch.h"
#include "gpu/stream.h"
#include "support/data/random.h"
#include "support/kernels.h"

#define MIB INT64_C(1048576)

static void random_bytes(char *out, size_t bytes, uint64_t seed)
{
    test_random random = {seed};
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)random_bits(&random);
}

static void check_round_trip(ww_device *device, device_stream *on, size_t offset, size_t bytes)
{
    const backend *gpu = device->backend;
    char *sent = memory_alloc(bytes);
    char *kept = memory_alloc(bytes);
    char *back = memory_alloc(bytes);
    buffer held = {0};
    random_bytes(sent, bytes, bytes);
    memcpy(kept, sent, bytes);
    memset(back, 1, bytes);
    CHECK_OK(gpu->buffer_create(device, offset + bytes + 3, &held));
    CHECK_OK(gpu->copy_in(device, on, (buffer_range){&held, offset, bytes}, sent));
    memset(sent, 0x5a, bytes); /* allowed as soon as the call has returned */
    CHECK_OK(gpu->copy_out(device, on, back, (buffer_range){&held, offset, bytes}));
    assert_memory_equal(back, kept, bytes);
    gpu->buffer_destroy(device, &held);
    memory_free(sent);
    memory_free(kept);
    memory_free(back);
}

static void bytes_are_read_back_unchanged(void **state)
{
    ww_device *device = *state;
    static const size_t sizes[] = {1, 3, 4, 4095, 65536, 65537, 1000003, 8 * MIB, 8 * MIB + 1, 27 * MIB + 5};
    device_stream *on = NULL;
    CHECK_OK(device->backend->stream_create(device, &on));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_round_trip(device, on, i * 7, sizes[i]);
    device->backend->stream_destroy(device, on);
}

static void many_small_copies_follow_each_other(void **state)
{
    ww_device *device = *state;
    const backend *gpu = device->backend;
    enum { COUNT = 300 };
    int32_t back[COUNT];
    device_stream *on = NULL;
    buffer held = {0};
    CHECK_OK(gpu->stream_create(device, &on));
    CHECK_OK(gpu->buffer_create(device, sizeof back, &held));
    for (int32_t i = 0; i < COUNT; i++) {
        int32_t value = i * i;
        CHECK_OK(gpu->copy_in(device, on, (buffer_range){&held, (size_t)i * sizeof value, sizeof value}, &value));
    }
    CHECK_OK(gpu->copy_out(device, on, back, (buffer_range){&held, 0, sizeof back}));
    for (int32_t i = 0; i < COUNT; i++)
        assert_int_equal(back[i], i * i);
    gpu->buffer_destroy(device, &held);
    gpu->stream_destroy(device, on);
}

static void pieces_are_laid_side_by_side(void **state)
{
    gpu_device *device = gpu_of(*state);
    static const struct {
        size_t piece, stride;
        int64_t count;
    } shapes[] = {{4, 12, 7}, {300, 300, 1000}, {12, 64, 100000}, {4096, 4100, 3000}, {3 * MIB, 4 * MIB, 5}, {5, 9, 0}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const size_t piece = shapes[s].piece;
        const size_t total = piece * (size_t)shapes[s].count;
        const size_t spread = shapes[s].stride * (size_t)shapes[s].count;
        char *sent = memory_alloc(spread);
        char *back = memory_alloc(total);
        gpu_stream *stream = NULL;
        void *scratch = NULL;
        random_bytes(sent, spread, s + 1);
        CHECK_OK(gpu_stream_borrow(device, &stream));
        CHECK_OK(gpu_workspace(stream, 0, total, &scratch));
        CHECK_OK(gpu_copy_in_pieces(stream, scratch, (host_pieces){sent, piece, shapes[s].stride, shapes[s].count}));
        CHECK_OK(gpu_copy_out(stream, back, scratch, total));
        CHECK_OK(gpu_stream_return(stream, WW_OK));
        for (int64_t i = 0; i < shapes[s].count; i++)
            assert_memory_equal(back + (size_t)i * piece, sent + (size_t)i * shapes[s].stride, piece);
        memory_free(sent);
        memory_free(back);
    }
}

static void fills_and_copies_on_the_device_respect_their_ranges(void **state)
{
    ww_device *device = *state;
    const backend *gpu = device->backend;
    uint32_t words[100];
    device_stream *on = NULL;
    buffer a = {0};
    buffer b = {0};
    CHECK_OK(gpu->stream_create(device, &on));
    CHECK_OK(gpu->buffer_create(device, sizeof words, &a));
    CHECK_OK(gpu->buffer_create(device, sizeof words, &b));
    CHECK_OK(gpu->fill(device, on, (buffer_range){&a, 0, sizeof words}, 0));
    CHECK_OK(gpu->fill(device, on, (buffer_range){&a, 40, 80}, 0xdeadbeefu));
    CHECK_OK(gpu->fill(device, on, (buffer_range){&b, 0, sizeof words}, 1));
    CHECK_OK(gpu->copy(device, on, (buffer_range){&b, 200, 100}, &a, 36));
    CHECK_OK(gpu->copy_out(device, on, words, (buffer_range){&b, 0, sizeof words}));
    for (size_t i = 0; i < 100; i++) {
        const size_t source = i + 9 - 50; /* word i of b came from there, if it came from the source */
        const uint32_t expected = i < 50 || i >= 75 ? 1 : source >= 10 && source < 30 ? 0xdeadbeefu : 0;
        assert_int_equal(words[i], expected);
    }
    gpu->buffer_destroy(device, &a);
    gpu->buffer_destroy(device, &b);
    gpu->stream_destroy(device, on);
}

static void ranges_outside_a_buffer_are_refused(void **state)
{
    ww_device *device = *state;
    const backend *gpu = device->backend;
    char bytes[64] = {0};
    device_stream *on = NULL;
    buffer held = {0};
    CHECK_OK(gpu->stream_create(device, &on));
    CHECK_OK(gpu->buffer_create(device, 100, &held));
    CHECK_FAILS(WW_OUT_OF_RANGE, gpu->copy_in(device, on, (buffer_range){&held, 40, 64}, bytes));
    CHECK_FAILS(WW_OUT_OF_RANGE, gpu->copy_out(device, on, bytes, (buffer_range){&held, 101, 0}));
    CHECK_FAILS(WW_OUT_OF_RANGE, gpu->copy_out(device, on, bytes, (buffer_range){&held, SIZE_MAX, 2}));
    CHECK_FAILS(WW_OUT_OF_RANGE, gpu->copy(device, on, (buffer_range){&held, 96, 8}, &held, 0));
    CHECK_FAILS(WW_OUT_OF_RANGE, gpu->fill(device, on, (buffer_range){&held, 96, 8}, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, gpu->fill(device, on, (buffer_range){&held, 2, 8}, 1));
    gpu->buffer_destroy(device, &held);
    gpu->stream_destroy(device, on);
}

static void one_stream_waits_for_another_by_an_event(void **state)
{
    gpu_device *device = gpu_of(*state);
    gpu_stream *first = NULL;
    gpu_stream *second = NULL;
    void *scratch = NULL;
    driver_event begun = NULL;
    driver_event filled = NULL;
    uint32_t word = 0;
    float milliseconds = -1.0f;
    CHECK_OK(gpu_stream_borrow(device, &first));
    CHECK_OK(gpu_stream_borrow(device, &second));
    assert_ptr_not_equal(first, second);
    CHECK_OK(gpu_event_create(device, true, &begun));
    CHECK_OK(gpu_event_create(device, true, &filled));
    CHECK_OK(gpu_workspace(first, 0, 16 * MIB, &scratch));
    CHECK_OK(gpu_event_record(first, begun));
    CHECK_OK(gpu_fill(first, scratch, 77, 4 * MIB));
    CHECK_OK(gpu_event_record(first, filled));
    assert_int_equal(device->driver->stream_wait(second->handle, filled), 0);
    CHECK_OK(gpu_copy_out(second, &word, (char *)scratch + 16 * MIB - 4, sizeof word));
    assert_int_equal(word, 77);
    CHECK_OK(gpu_event_elapsed(device, begun, filled, &milliseconds));
    assert_true(milliseconds >= 0.0f && milliseconds < 60000.0f);
    gpu_event_destroy(device, begun);
    gpu_event_destroy(device, filled);
    CHECK_OK(gpu_stream_return(second, WW_OK));
    CHECK_OK(gpu_stream_return(first, WW_OK));
}

static void a_returned_stream_reports_the_failure(void **state)
{
    gpu_device *device = gpu_of(*state);
    gpu_stream *stream = NULL;
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_FAILS(WW_CANCELLED, gpu_stream_return(stream, WW_CANCELLED));
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_OK(gpu_stream_return(stream, WW_OK));
}

static void launches_that_do_not_fit_are_refused(void **state)
{
    gpu_device *device = gpu_of(*state);
    gpu_stream *stream = NULL;
    driver_function_limits limits = {0};
    static const char arguments[4096];
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_OK(gpu_kernel_limits(device, 0, &limits));
    assert_true(limits.threads_per_block_max > 0 && limits.shared_dynamic_bytes_max > 0);
    const size_t bytes = limits.arguments_bytes > 0 ? (size_t)limits.arguments_bytes : 8;
    const size_t shared_bytes = (size_t)limits.shared_dynamic_bytes_max + 1;
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, 0, (gpu_shape){grid_of(0), 32, 0}, arguments, bytes));
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, 0, (gpu_shape){grid_of_2(1, 65536), 32, 0}, arguments, bytes));
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, 0, (gpu_shape){grid_of(1), 0, 0}, arguments, bytes));
    CHECK_FAILS(WW_INTERNAL,
                gpu_launch(stream, 0, (gpu_shape){grid_of(1), limits.threads_per_block_max + 1, 0}, arguments, bytes));
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, 0, (gpu_shape){grid_of(1), 32, shared_bytes}, arguments, bytes));
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, 0, (gpu_shape){grid_of(1), 32, 0}, arguments, 4095));
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, GPU_KERNEL_COUNT, (gpu_shape){grid_of(1), 32, 0}, arguments, bytes));
    CHECK_FAILS(WW_INTERNAL, gpu_launch(stream, -1, (gpu_shape){grid_of(1), 32, 0}, arguments, bytes));
    CHECK_OK(gpu_stream_return(stream, WW_OK));
}

/* Every kernel of the list is in the device's code, under its name, with arguments of the size that the host has in mind. */
static void every_kernel_is_found(void **state)
{
    gpu_device *device = gpu_of(*state);
    gpu_stream *stream = NULL;
    CHECK_OK(gpu_stream_borrow(device, &stream));
    for (int32_t kernel = 0; kernel < GPU_KERNEL_COUNT; kernel++) {
        driver_function_limits limits = {0};
        if (!kernel_is_there(*state, kernel))
            continue;
        CHECK_OK(gpu_kernel_limits(device, kernel, &limits));
        assert_true(limits.threads_per_block_max > 0);
    }
    CHECK_OK(gpu_stream_return(stream, WW_OK));
}

int main(void)
{
    setenv("WARPWAVE_TEST_DEVICES", "emulator:32,emulator:64", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_read_back_unchanged),
        cmocka_unit_test(many_small_copies_follow_each_other),
        cmocka_unit_test(pieces_are_laid_side_by_side),
        cmocka_unit_test(fills_and_copies_on_the_device_respect_their_ranges),
        cmocka_unit_test(ranges_outside_a_buffer_are_refused),
        cmocka_unit_test(one_stream_waits_for_another_by_an_event),
        cmocka_unit_test(a_returned_stream_reports_the_failure),
        cmocka_unit_test(launches_that_do_not_fit_are_refused),
        cmocka_unit_test(every_kernel_is_found),
    };
    return RUN_ON_EVERY_DEVICE("gpu copies", tests);
}
