/* Many threads use tensors at once: one device, separate storages, and memory that passes from one to the other. */
#include <pthread.h>
#include <stdlib.h>

#include "support/devices.h"
#include "support/tensors.h"

enum { THREADS = 4, TURNS = 25, COUNT = 3000 };

typedef struct worker {
    ww_device *device;
    const ww_tensor *shared; /* read by all */
    float number;
    ww_status status;
    int wrong;
} worker;

/* shared + number, made from scratch each time. */
static ww_status one_turn(worker *w, float *got)
{
    const int64_t count = COUNT;
    ww_tensor sum = {0};
    ww_storage *filled = NULL;
    ww_status status = ww_storage_create(w->device, WW_F32, COUNT, &filled);
    ww_tensor x = {.storage = filled, .layout = ww_layout_contiguous(1, &count)};
    if (status == WW_OK)
        status = ww_tensor_const_set(&x, &w->number);
    if (status == WW_OK)
        status = ww_tensor_binary(WW_ADD, &x, w->shared, &sum);
    ww_storage_release(filled);
    if (status == WW_OK)
        status = ww_tensor_to_host(&sum, got);
    ww_tensor_release(&sum);
    return status;
}

static void *work(void *argument)
{
    worker *w = argument;
    float *got = malloc(COUNT * sizeof *got);
    for (int turn = 0; turn < TURNS && w->status == WW_OK; turn++) {
        w->status = one_turn(w, got);
        for (int i = 0; w->status == WW_OK && i < COUNT; i++)
            w->wrong += got[i] != (float)i + w->number;
    }
    free(got);
    return NULL;
}

static void threads_do_not_see_each_other(void **state)
{
    const int64_t count = COUNT;
    float numbers[COUNT];
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)i;
    test_tensor shared = test_tensor_of(*state, WW_F32, 1, &count, numbers);
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){.device = *state, .shared = &shared.tensor, .number = (float)(t + 1)};
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        assert_int_equal(workers[t].status, WW_OK);
        assert_int_equal(workers[t].wrong, 0);
    }
    test_tensor_free(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_do_not_see_each_other)};
    return RUN_ON_EVERY_DEVICE("tensors and threads", tests);
}
