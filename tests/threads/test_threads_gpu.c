/* Many threads on one GPU at once: they borrow streams and allocate and free memory. All bytes come back right, and nothing
 * leaks.
 */
#include "support/devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/stream.h"
#include "support/data/random.h"

enum { THREADS = 8, ROUNDS = 40, BYTES_MAX = 200000 };

typedef struct visitor {
    ww_device *device;
    pthread_t thread;
    uint64_t seed;
    char failure[512];
} visitor;

static ww_status visit(ww_device *device, test_random *random, bool *same)
{
    static _Thread_local uint32_t sent[BYTES_MAX / 4];
    static _Thread_local uint32_t back[BYTES_MAX / 4];
    gpu_stream *stream = NULL;
    void *scratch = NULL;
    buffer held = {0};
    const size_t words = 1 + random_below(random, BYTES_MAX / 4);
    for (size_t i = 0; i < words; i++)
        sent[i] = (uint32_t)random_bits(random);
    ww_status status = device->backend->buffer_create(device, 4 * words, &held);
    if (status != WW_OK)
        return status;
    status = gpu_stream_borrow(gpu_of(device), &stream);
    if (status == WW_OK) {
        status = gpu_workspace(stream, 0, 4 * words, &scratch);
        if (status == WW_OK)
            status = gpu_copy_in(stream, scratch, sent, 4 * words);
        if (status == WW_OK)
            status = gpu_copy(stream, held.data, scratch, 4 * words);
        if (status == WW_OK)
            status = gpu_copy_out(stream, back, held.data, 4 * words);
        status = gpu_stream_return(stream, status);
    }
    device->backend->buffer_destroy(device, &held);
    *same = memcmp(sent, back, 4 * words) == 0;
    return status;
}

static void *visit_often(void *argument)
{
    visitor *self = argument;
    test_random random = {self->seed};
    for (int i = 0; i < ROUNDS && self->failure[0] == '\0'; i++) {
        bool same = true;
        const ww_status status = visit(self->device, &random, &same);
        if (status != WW_OK)
            snprintf(self->failure, sizeof self->failure, "round %d: %s", i, ww_error_message());
        else if (!same)
            snprintf(self->failure, sizeof self->failure, "round %d: other bytes came back", i);
        if (i % 8 == 7 && ww_device_trim(self->device) != WW_OK)
            snprintf(self->failure, sizeof self->failure, "trim in round %d: %s", i, ww_error_message());
    }
    return NULL;
}

static void threads_share_a_device(void **state)
{
    ww_device *device = *state;
    static visitor visitors[THREADS];
    ww_memory_info memory = ww_memory_info_default();
    for (int i = 0; i < THREADS; i++) {
        visitors[i] = (visitor){.device = device, .seed = (uint64_t)i + 1};
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit_often, &visitors[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(visitors[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_string_equal(visitors[i].failure, "");
    CHECK_OK(ww_device_trim(device));
    CHECK_OK(ww_device_memory(device, &memory));
    assert_int_equal(memory.ours_bytes, 0);
    assert_int_equal(memory.pooled_bytes, 0);
    assert_true(memory.peak_bytes > 0);
}

int main(void)
{
    setenv("WARPWAVE_TEST_DEVICES", "emulator:32,emulator:64", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_a_device)};
    return RUN_ON_EVERY_DEVICE("threads on a gpu", tests);
}
