/* Copies from ordinary memory reach at least 70% of the bandwidth of pinned memory. Measured on a real GPU; an emulated one has
 * no copy engine, and the test says so. */
#include "support/devices.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/error.h"
#include "gpu/stream.h"

enum { ROUNDS = 5 };

static const size_t bytes = (size_t)1 << 30;
static const double share_min = 0.7;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The best of several rounds: the others measure the machine's other work. */
static double pinned_seconds(gpu_stream *stream, void *to, void *pinned, bool out)
{
    gpu_device *device = stream->device;
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = seconds_now();
        const int number = out ? device->driver->copy_out(stream->handle, pinned, to, bytes)
                               : device->driver->copy_in(stream->handle, to, pinned, bytes);
        CHECK_OK(gpu_check(device, number, "a pinned copy"));
        CHECK_OK(gpu_check(device, device->driver->stream_synchronize(stream->handle), "waiting for it"));
        const double taken = seconds_now() - begin;
        best = taken < best ? taken : best;
    }
    return best;
}

static double pageable_seconds(gpu_stream *stream, void *to, char *host, bool out)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = seconds_now();
        CHECK_OK(out ? gpu_copy_out(stream, host, to, bytes) : gpu_copy_in(stream, to, host, bytes));
        CHECK_OK(gpu_synchronize(stream));
        const double taken = seconds_now() - begin;
        best = taken < best ? taken : best;
    }
    return best;
}

static void copies_of_ordinary_memory_reach_most_of_the_pinned_bandwidth(void **state)
{
    gpu_device *device = gpu_of(*state);
    gpu_stream *stream = NULL;
    void *memory = NULL;
    void *pinned = NULL;
    if (device_is_slow(*state)) {
        printf("SKIP: an emulated device has no copy engine to measure\n");
        skip();
    }
    char *host = malloc(bytes);
    assert_non_null(host);
    memset(host, 1, bytes);
    CHECK_OK(gpu_stream_borrow(device, &stream));
    CHECK_OK(gpu_workspace(stream, 0, bytes, &memory));
    CHECK_OK(gpu_check(device, device->driver->pinned_alloc(bytes, &pinned), "pinned memory"));
    memset(pinned, 2, bytes);
    for (int out = 0; out < 2; out++) {
        const double engine = pinned_seconds(stream, memory, pinned, out);
        const double ours = pageable_seconds(stream, memory, host, out);
        printf("%s: pinned %.1f GB/s, ordinary memory %.1f GB/s (%.0f%%)\n", out ? "device to host" : "host to device",
               1e-9 * (double)bytes / engine, 1e-9 * (double)bytes / ours, 100.0 * engine / ours);
        if (engine / ours < share_min)
            fail_msg("copies of ordinary memory reach only %.0f%%", 100.0 * engine / ours);
    }
    CHECK_OK(gpu_check(device, device->driver->pinned_free(pinned), "pinned memory"));
    CHECK_OK(gpu_stream_return(stream, WW_OK));
    free(host);
}

int main(void)
{
    setenv("WARPWAVE_TEST_DEVICES", "emulator:32", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_of_ordinary_memory_reach_most_of_the_pinned_bandwidth)};
    return RUN_ON_EVERY_DEVICE("gpu bandwidth", tests);
}
